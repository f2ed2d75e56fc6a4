//! Connections on their way to the service: their number, the longest permitted silence, and their
//! identity.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::enrol::{DenyList, EnrolError, Identity, PeerIdentity, Subject, server_config};
use crate::station::Party;

/// Reads off a certificate whose it is, unless it was revoked. The handshake has checked its
/// signature before.
pub(super) type Identify = dyn Fn(&[u8]) -> Result<Party, String> + Send + Sync;

/// How connections are secured.
#[derive(Clone)]
pub enum Security {
    /// Not at all: on the loopback interface only.
    Loopback,
    /// Mutual TLS.
    Tls(Arc<ServerConfig>, Arc<Identify>),
}

impl Security {
    /// Mutual TLS with this identity of the server. Certificates on the list are refused, from the
    /// moment that they are there.
    pub fn mutual(identity: &Identity, denied: Arc<DenyList>) -> Result<Self, EnrolError> {
        let config = server_config(identity, denied.clone(), None)?;
        let identify = move |certificate: &[u8]| still_holds(certificate, &denied);
        Ok(Self::Tls(Arc::new(config), Arc::new(identify)))
    }
}

/// Whose certificate it is, if it is neither expired nor revoked by now.
fn still_holds(certificate: &[u8], denied: &DenyList) -> Result<Party, String> {
    let peer = PeerIdentity::of(certificate).map_err(|error| error.to_string())?;
    if denied.denies(&peer.serial).map_err(|error| error.to_string())? {
        return Err(format!("the certificate of {} is revoked", peer.subject));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    if peer.not_after < now {
        return Err(format!("the certificate of {} has expired", peer.subject));
    }
    match peer.subject {
        Subject::Terminal(id) => Ok(Party::Terminal(id.0)),
        Subject::Evaluator => Ok(Party::Evaluator),
        Subject::Server => Err("a server is no client".into()),
    }
}

/// Limits on connections.
#[derive(Clone, Copy, Debug)]
pub struct Doors {
    /// Most connections at a time. Further ones are closed at once.
    pub most: usize,
    /// A connection whose hello was not accepted within this time is closed.
    pub hello_within: Duration,
    /// A connection whose stream is not used any more is closed after this time, in which its last
    /// frames can be read.
    pub leave_within: Duration,
}

impl Default for Doors {
    fn default() -> Self {
        let (hello_within, leave_within) = (Duration::from_secs(10), Duration::from_secs(5));
        Self { most: 4096, hello_within, leave_within }
    }
}

/// Information for the service about the connection of a request.
#[derive(Clone)]
pub(super) struct Peer {
    /// Whose certificate it showed; none without TLS.
    pub party: Option<Party>,
    /// Set once its hello was accepted.
    pub accepted: Arc<AtomicBool>,
    /// Notified when its stream is not used any more.
    pub leave: Arc<Notify>,
    certificate: Option<(Arc<[u8]>, Arc<Identify>)>,
}

impl Peer {
    /// Whether its certificate still holds.
    pub(super) fn is_admitted(&self) -> bool {
        self.certificate.as_ref().is_none_or(|(bytes, identify)| identify(bytes).is_ok())
    }
}

/// A certificate with its subject.
type Certified = (Party, Arc<[u8]>, Arc<Identify>);

/// A connection that closes itself if its hello does not come.
pub(super) struct Guarded {
    inner: Stream,
    peer: Peer,
    patience: Option<Pin<Box<Sleep>>>,
    /// Ready some time after its stream was given up.
    left: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_left: bool,
    _seat: Counted,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// One of the connections that are counted.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Accepts connections for ever and hands those on that are secure.
pub(super) async fn accept(
    listener: TcpListener,
    security: Security,
    doors: Doors,
    to: mpsc::Sender<io::Result<Guarded>>,
) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = to.closed() => return,
        };
        let Ok((stream, address)) = accepted else {
            // Out of descriptors: others must close theirs first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let counted = Counted(open.clone());
        if open.fetch_add(1, Ordering::SeqCst) >= doors.most {
            tracing::warn!(%address, most = doors.most, "too many connections");
            continue;
        }
        let (security, to) = (security.clone(), to.clone());
        tokio::spawn(async move {
            let secured = tokio::time::timeout(doors.hello_within, secure(stream, &security)).await;
            match secured {
                Ok(Ok((inner, certified))) => {
                    let party = certified.as_ref().map(|(party, ..)| *party);
                    let certificate = certified.map(|(_, bytes, identify)| (bytes, identify));
                    let (accepted, leave) = (Arc::default(), Arc::new(Notify::new()));
                    let left = left(leave.clone(), doors.leave_within);
                    let peer = Peer { party, accepted, leave, certificate };
                    let patience = Some(Box::pin(tokio::time::sleep(doors.hello_within)));
                    let guarded =
                        Guarded { inner, peer, patience, left, is_left: false, _seat: counted };
                    let _ = to.send(Ok(guarded)).await;
                }
                Ok(Err(error)) => tracing::warn!(%address, %error, "refused"),
                Err(_) => tracing::warn!(%address, "refused: no handshake in time"),
            }
        });
    }
}

async fn secure(stream: TcpStream, security: &Security) -> io::Result<(Stream, Option<Certified>)> {
    stream.set_nodelay(true)?;
    let (config, identify) = match security {
        Security::Loopback => return Ok((Stream::Plain(stream), None)),
        Security::Tls(config, identify) => (config, identify),
    };
    let stream = TlsAcceptor::from(config.clone()).accept(stream).await?;
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let certificate = certificates.first().ok_or_else(|| io::Error::other("no certificate"))?;
    let party = identify(certificate).map_err(io::Error::other)?;
    let certified = (party, Arc::from(&certificate[..]), identify.clone());
    Ok((Stream::Tls(Box::new(stream)), Some(certified)))
}

/// Ready some time after a stream was given up.
fn left(leave: Arc<Notify>, within: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        leave.notified().await;
        tokio::time::sleep(within).await;
    })
}

impl Guarded {
    /// `Ready` if the hello did not come in time, or the stream was given up.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_left || self.left.as_mut().poll(context).is_ready() {
            self.is_left = true;
            return Poll::Ready(());
        }
        if self.peer.accepted.load(Ordering::SeqCst) {
            self.patience = None;
        }
        match &mut self.patience {
            None => Poll::Pending,
            Some(patience) => patience.as_mut().poll(context),
        }
    }
}

impl Connected for Guarded {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.poll_patience(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        match &mut self.inner {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
