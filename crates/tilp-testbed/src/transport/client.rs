//! A terminal's or an evaluator's way to the base station: dials, serves one stream at a time,
//! dials again.

use std::io;
use std::sync::Arc;
use std::sync::mpsc as threads;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Status};

use crate::contract::v1::base_station_client::BaseStationClient;
use crate::contract::v1::{Answer, Down, Heartbeat, Hello, Request, Up, Welcome, up};
use crate::contract::{HEADER_BYTES, PART_BYTES};
use crate::session::{Incoming, TerminalEnd};
use crate::station::Clock;
use crate::terminal::{PROBE_EVERY, Probed, Responder};

/// First and longest pause before dialling again.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// How the connection is secured.
#[derive(Clone)]
pub enum Secure {
    /// Not at all: on the loopback interface only.
    Loopback,
    /// Mutual TLS, with settings that are made anew for every connection: a renewed certificate
    /// is used from the next one on.
    Tls(Arc<TlsSettings>),
}

/// Makes the settings of a connection.
pub type TlsSettings = dyn Fn() -> Result<Arc<ClientConfig>, String> + Send + Sync;

/// Address of the server, and own identity.
pub struct Client {
    /// Host and port of the base station.
    pub server: String,
    /// How the connection is secured.
    pub secure: Secure,
    /// The first frame.
    pub hello: Hello,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// What a terminal's probe measures.
    pub probed: Probed,
}

/// How serving ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The base station reported the end of the run.
    Finished(String),
    /// The process was asked to stop.
    Stopped,
}

/// Why serving cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The base station refused this client.
    #[error("the base station refused: {0}")]
    Refused(String),
    /// The work cannot be done.
    #[error("{0}")]
    Work(String),
    /// The address cannot be used.
    #[error("server = {0}, expected HOST:PORT")]
    Address(String),
}

/// A job for the thread that computes, by the number of the stream that it came on.
struct Job {
    stream: u64,
    work: Work,
}

enum Work {
    Welcome(Welcome, Vec<u8>),
    Request(Request, Vec<u8>),
}

/// An answer, none for a welcome.
type Done = (u64, Result<Option<(Answer, Vec<u8>)>, String>);

impl Client {
    /// Serves until the run is over or `stop` becomes true.
    pub async fn serve<R: Responder + 'static>(
        &self,
        responder: R,
        mut stop: watch::Receiver<bool>,
    ) -> Result<End, ClientError> {
        let (jobs, mut done) = worker(responder);
        let (mut stream, mut pause) = (0, PAUSES[0]);
        loop {
            stream += 1;
            let served = tokio::select! {
                served = self.stream(stream, &jobs, &mut done) => served?,
                _ = stop.wait_for(|stop| *stop) => return Ok(End::Stopped),
            };
            match served {
                Served::Over(reason) => return Ok(End::Finished(reason)),
                Served::Lost { was_welcome, why } => {
                    tracing::warn!(%why, "the stream ended");
                    pause = if was_welcome { PAUSES[0] } else { (2 * pause).min(PAUSES[1]) };
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => return Ok(End::Stopped),
            }
        }
    }

    async fn dial(&self) -> Result<Channel, String> {
        let uri = format!("http://{}", self.server);
        let endpoint = Endpoint::from_shared(uri).map_err(|error| error.to_string())?;
        let endpoint = endpoint.connect_timeout(Duration::from_secs(10)).tcp_nodelay(true);
        let (server, secure) = (self.server.clone(), self.secure.clone());
        let connector = tower::service_fn(move |_: Uri| connect(server.clone(), secure.clone()));
        endpoint.connect_with_connector(connector).await.map_err(|error| reasons(&error))
    }

    /// One stream from dialling to its end.
    async fn stream(
        &self,
        number: u64,
        jobs: &threads::Sender<Job>,
        done: &mut mpsc::UnboundedReceiver<Done>,
    ) -> Result<Served, ClientError> {
        let lost = |why: String| Ok(Served::Lost { was_welcome: false, why });
        let channel = match self.dial().await {
            Ok(channel) => channel,
            Err(why) => return lost(why),
        };
        let mut client = BaseStationClient::new(channel)
            .max_decoding_message_size(PART_BYTES + HEADER_BYTES)
            .max_encoding_message_size(PART_BYTES + HEADER_BYTES);
        let (end, hello) = TerminalEnd::open(self.clock.now(), self.hello.clone());
        let (to, from) = mpsc::channel::<Up>(8);
        to.send(hello).await.map_err(|error| ClientError::Work(error.to_string()))?;
        let frames = match client.attach(ReceiverStream::new(from)).await {
            Ok(response) => response.into_inner(),
            Err(status) if is_final(&status) => {
                return Err(ClientError::Refused(status.message().to_owned()));
            }
            Err(status) => return lost(status.to_string()),
        };
        let (clock, probed) = (&*self.clock, &self.probed);
        let told = clock.now();
        let mut talk = Talk { number, end, to, clock, probed, told, jobs };
        talk.run(frames, done).await
    }
}

/// How a stream ended.
enum Served {
    Over(String),
    Lost { was_welcome: bool, why: String },
}

/// One stream in use.
struct Talk<'a> {
    number: u64,
    end: TerminalEnd,
    to: mpsc::Sender<Up>,
    clock: &'a dyn Clock,
    probed: &'a Probed,
    /// When the gain was told last.
    told: Duration,
    jobs: &'a threads::Sender<Job>,
}

impl Talk<'_> {
    async fn run(
        &mut self,
        mut frames: tonic::Streaming<Down>,
        done: &mut mpsc::UnboundedReceiver<Done>,
    ) -> Result<Served, ClientError> {
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        loop {
            let ended = tokio::select! {
                frame = frames.next() => match frame {
                    Some(Ok(frame)) => self.receive(frame),
                    Some(Err(status)) => Err(status.to_string()),
                    None => Err("closed by the base station".into()),
                },
                Some((stream, result)) = done.recv() => {
                    let answer = result.map_err(ClientError::Work)?;
                    match answer.filter(|_| stream == self.number) {
                        Some((answer, payload)) => self.answer(&answer, &payload).await,
                        None => Ok(None),
                    }
                }
                _ = ticks.tick() => self.tick().await,
            };
            match ended {
                Ok(None) => {}
                Ok(Some(over)) => return Ok(over),
                Err(why) => return Ok(Served::Lost { was_welcome: self.end.is_welcome(), why }),
            }
        }
    }

    fn receive(&mut self, frame: Down) -> Result<Option<Served>, String> {
        let incoming = self.end.receive(self.clock.now(), frame).map_err(|error| error.to_string());
        let work = match incoming? {
            Incoming::Nothing => return Ok(None),
            Incoming::Goodbye(goodbye) if goodbye.finished => {
                return Ok(Some(Served::Over(goodbye.reason)));
            }
            Incoming::Goodbye(goodbye) => return Err(goodbye.reason),
            Incoming::Welcome(welcome, payload) => Work::Welcome(welcome, payload),
            Incoming::Request(request, payload) => Work::Request(request, payload),
        };
        let job = Job { stream: self.number, work };
        self.jobs.send(job).map_err(|_| "the computing thread has ended".to_owned())?;
        Ok(None)
    }

    async fn answer(&mut self, answer: &Answer, payload: &[u8]) -> Result<Option<Served>, String> {
        for frame in self.end.answer(self.clock.now(), answer, payload) {
            self.send(frame).await?;
        }
        Ok(None)
    }

    async fn tick(&mut self) -> Result<Option<Served>, String> {
        let (beat, is_gone) = self.end.tick(self.clock.now());
        if is_gone {
            return Err("the base station is silent".into());
        }
        match beat {
            Some(frame) => self.send(frame).await,
            None => Ok(None),
        }?;
        self.tell_gain().await
    }

    /// Tells what the probe measures, as often as it measures.
    async fn tell_gain(&mut self) -> Result<Option<Served>, String> {
        let now = self.clock.now();
        let is_due = self.end.is_welcome() && now.saturating_sub(self.told) >= PROBE_EVERY;
        let Some(gain_db) = self.probed.gain_db().filter(|_| is_due) else { return Ok(None) };
        self.told = now;
        let beat = Heartbeat { count: 0, gain_db: Some(gain_db) };
        self.send(Up { body: Some(up::Body::Heartbeat(beat)) }).await
    }

    async fn send(&mut self, frame: Up) -> Result<Option<Served>, String> {
        self.to.send(frame).await.map_err(|_| "the stream is closed".to_owned())?;
        Ok(None)
    }
}

/// The thread that computes, so that heartbeats continue meanwhile.
fn worker<R: Responder + 'static>(
    mut responder: R,
) -> (threads::Sender<Job>, mpsc::UnboundedReceiver<Done>) {
    let (jobs, from) = threads::channel::<Job>();
    let (to, done) = mpsc::unbounded_channel::<Done>();
    std::thread::spawn(move || {
        while let Ok(Job { stream, work }) = from.recv() {
            let result = match work {
                Work::Welcome(welcome, payload) => {
                    responder.welcome(&welcome, &payload).map(|()| None)
                }
                Work::Request(request, payload) => responder.respond(&request, &payload).map(Some),
            };
            if to.send((stream, result)).is_err() {
                return;
            }
        }
    });
    (jobs, done)
}

/// Whether connecting again would not help.
fn is_final(status: &Status) -> bool {
    [Code::PermissionDenied, Code::InvalidArgument, Code::FailedPrecondition]
        .contains(&status.code())
}

/// An error with what is behind it.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        text = format!("{text}: {error}");
        behind = error.source();
    }
    text
}

enum Socket {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

async fn connect(server: String, secure: Secure) -> io::Result<TokioIo<Socket>> {
    let stream = TcpStream::connect(&server).await?;
    stream.set_nodelay(true)?;
    let config = match secure {
        Secure::Loopback if stream.peer_addr()?.ip().is_loopback() => {
            return Ok(TokioIo::new(Socket::Plain(stream)));
        }
        Secure::Loopback => {
            return Err(io::Error::other("no certificates, expected a loopback address"));
        }
        Secure::Tls(settings) => settings().map_err(io::Error::other)?,
    };
    let host = server.rsplit_once(':').map_or(&*server, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let stream = TlsConnector::from(config).connect(name, stream).await?;
    Ok(TokioIo::new(Socket::Tls(Box::new(stream))))
}

impl tokio::io::AsyncRead for Socket {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => std::pin::Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => std::pin::Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl tokio::io::AsyncWrite for Socket {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(stream) => std::pin::Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => std::pin::Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => std::pin::Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => std::pin::Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => std::pin::Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => std::pin::Pin::new(stream).poll_shutdown(context),
        }
    }
}
