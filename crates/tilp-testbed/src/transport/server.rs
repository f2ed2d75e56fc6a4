//! The service of the base station.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::accept::{Doors, Peer, Security, accept};
use crate::contract::v1::base_station_server::{BaseStation, BaseStationServer};
use crate::contract::v1::{Down, Hello, Role, Up, up};
use crate::contract::{HEADER_BYTES, PART_BYTES, VERSION};
use crate::station::{Hub, Line, Party};

/// Frames that may wait besides a welcome and a request.
const SPARE_FRAMES: usize = 64;

/// How often the certificate of an open stream is looked at again.
const RECHECK: Duration = Duration::from_secs(1);

struct Gate {
    hub: Arc<Hub>,
    doors: Doors,
}

struct Sender(mpsc::Sender<Result<Down, Status>>, Peer);

impl Line for Sender {
    fn send(&self, frame: Down) -> bool {
        self.0.try_send(Ok(frame)).is_ok()
    }
}

impl Drop for Sender {
    /// The stream is not used any more: its connection, and with it every frame that its reader
    /// has not taken, goes soon.
    fn drop(&mut self) {
        self.1.leave.notify_one();
    }
}

impl Gate {
    /// The party that says hello, if it is permitted.
    fn admit(&self, peer: &Peer, hello: &Hello) -> Result<Party, Status> {
        if hello.version != VERSION {
            let text = format!("version = {}, expected {VERSION}", hello.version);
            return Err(Status::failed_precondition(text));
        }
        let party = match Role::try_from(hello.role) {
            Ok(Role::Terminal) => Party::Terminal(hello.id),
            Ok(Role::Evaluator) => Party::Evaluator,
            _ => return Err(Status::invalid_argument("role: expected terminal or evaluator")),
        };
        if let Some(certified) = peer.party.filter(|certified| *certified != party) {
            let text = format!("the certificate is that of {certified}, expected {party}");
            return Err(Status::permission_denied(text));
        }
        if !self.hub.knows(party) {
            return Err(Status::permission_denied(format!("{party} is no process of this run")));
        }
        Ok(party)
    }

    async fn hello(&self, frames: &mut Streaming<Up>) -> Result<Hello, Status> {
        let first = tokio::time::timeout(self.doors.hello_within, frames.next()).await;
        match first {
            Err(_) => Err(Status::deadline_exceeded("no hello in time")),
            Ok(Some(Ok(Up { body: Some(up::Body::Hello(hello)) }))) => Ok(hello),
            Ok(Some(Err(status))) => Err(status),
            Ok(_) => Err(Status::invalid_argument("the first frame must be a hello")),
        }
    }
}

#[tonic::async_trait]
impl BaseStation for Gate {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<Down, Status>> + Send>>;

    async fn attach(
        &self,
        request: Request<Streaming<Up>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let peer = request.extensions().get::<Peer>().cloned();
        let peer = peer.ok_or_else(|| Status::internal("a connection without a peer"))?;
        let mut frames = request.into_inner();
        let hello = self.hello(&mut frames).await?;
        let party = self.admit(&peer, &hello).inspect_err(|status| {
            tracing::warn!(role = hello.role, id = hello.id, %status, "refused");
        })?;
        // A whole payload fits, twice: a reader that lets more pile up is too slow.
        let parts = self.hub.settings().most_bytes as usize / PART_BYTES + 1;
        let (to, from) = mpsc::channel(2 * parts + SPARE_FRAMES);
        let connection = self.hub.attach(party, hello.samples, Box::new(Sender(to, peer.clone())));
        let connection = connection.ok_or_else(|| Status::permission_denied("unknown"))?;
        peer.accepted.store(true, Ordering::SeqCst);
        let hub = self.hub.clone();
        tokio::spawn(async move {
            let mut checked = tokio::time::Instant::now();
            while let Some(Ok(frame)) = frames.next().await {
                // Heartbeats come all the time, so a certificate that is revoked is noticed. No
                // answer is taken with one.
                let is_answer = matches!(frame.body, Some(up::Body::Answer(_)));
                if is_answer || checked.elapsed() > RECHECK {
                    checked = tokio::time::Instant::now();
                    if !peer.is_admitted() {
                        tracing::warn!(%party, "its certificate does not hold any more");
                        break;
                    }
                }
                if hub.receive(party, connection, frame).is_err() {
                    break;
                }
            }
            hub.detach(party, connection);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(from))))
    }
}

/// A service that listens.
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
}

impl Listening {
    /// Closes all connections.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
    }
}

/// Listens for terminals and evaluators of this hub.
pub async fn listen(
    hub: Arc<Hub>,
    address: SocketAddr,
    security: Security,
    doors: Doors,
) -> io::Result<Listening> {
    if matches!(security, Security::Loopback) && !address.ip().is_loopback() {
        let text = format!("listen = {address} without certificates, expected a loopback address");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let (to, from) = mpsc::channel(64);
    let (stop, mut stopped) = watch::channel(false);
    tokio::spawn(accept(listener, security, doors, to));
    let beats = hub.clone();
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(beats.settings().pace.heartbeat / 2);
        while !beats_over(&mut interval, &beats).await {}
    });
    let service = BaseStationServer::new(Gate { hub, doors })
        .max_decoding_message_size(PART_BYTES + HEADER_BYTES)
        .max_encoding_message_size(PART_BYTES + HEADER_BYTES);
    let server = tonic::transport::Server::builder()
        .max_concurrent_streams(Some(2))
        .max_frame_size(Some(PART_BYTES as u32))
        .http2_max_pending_accept_reset_streams(Some(16))
        .add_service(service);
    tokio::spawn(async move {
        let over = async move { drop(stopped.wait_for(|stop| *stop).await) };
        let served = server.serve_with_incoming_shutdown(ReceiverStream::new(from), over).await;
        if let Err(error) = served {
            tracing::error!(%error, "the service failed");
        }
    });
    Ok(Listening { address, stop })
}

/// One heartbeat of the hub; whether it has no other users.
async fn beats_over(interval: &mut tokio::time::Interval, hub: &Arc<Hub>) -> bool {
    interval.tick().await;
    hub.tick();
    Arc::strong_count(hub) == 1
}
