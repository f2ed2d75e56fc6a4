//! A server that offers a trained policy to external clients, in openpi's websocket protocol.
//!
//! One thread per connection, up to a limit; further clients are refused. The
//! size of a message and the time for the handshake and between messages are bounded.

mod wire;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tilp::split::model::Weights;
use tilp::split::policy::Policy;
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tungstenite::http::StatusCode;
use tungstenite::http::header::AUTHORIZATION;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket, accept_hdr_with_config};

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long the server waits before it looks for signals and clients again.
const POLL: Duration = Duration::from_millis(20);

/// Limits of a server.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Bytes of a message.
    pub message_bytes: usize,
    /// Connections at a time.
    pub connections: usize,
    /// How long a client may be silent.
    pub idle: Duration,
    /// Token of the clients, if one is required.
    pub token: Option<String>,
}

/// A policy and its clients.
pub(crate) struct Server {
    policy: Policy,
    weights: Weights,
    limits: Limits,
    n_open: AtomicUsize,
}

/// A place among the connections; free again when it is dropped.
struct Seat(Arc<Server>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.n_open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Server {
    /// A server for a policy.
    pub(crate) fn new(policy: Policy, weights: Weights, limits: Limits) -> Arc<Self> {
        Arc::new(Self { policy, weights, limits, n_open: AtomicUsize::new(0) })
    }

    /// Serves until a signal stops it.
    pub(crate) fn serve(
        self: &Arc<Self>,
        listener: &TcpListener,
        stopped: &dyn Fn() -> bool,
    ) -> std::io::Result<()> {
        listener.set_nonblocking(true)?;
        while !stopped() {
            match listener.accept() {
                Ok((stream, client)) => self.admit(stream, client),
                // No client, a client that has already disconnected, or no free socket.
                Err(_) => std::thread::sleep(POLL),
            }
        }
        Ok(())
    }

    /// Gives a client a thread, or closes the connection if all are taken.
    fn admit(self: &Arc<Self>, stream: TcpStream, client: SocketAddr) {
        let taken = self.n_open.fetch_add(1, Ordering::SeqCst);
        let seat = Seat(Arc::clone(self));
        if taken >= self.limits.connections {
            return;
        }
        let thread = std::thread::Builder::new().name(format!("client {client}"));
        // A thread that cannot be started frees its slot; the client may connect again.
        let _ = thread.spawn(move || {
            let _ = seat.0.attend(stream);
        });
    }

    /// One client, until it leaves or breaks the rules.
    fn attend(&self, stream: TcpStream) -> Result<(), Error> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(HANDSHAKE))?;
        stream.set_write_timeout(Some(HANDSHAKE))?;
        let config = WebSocketConfig::default()
            .read_buffer_size(16 << 10)
            .max_message_size(Some(self.limits.message_bytes))
            .max_frame_size(Some(self.limits.message_bytes));
        let door = Door { token: self.limits.token.as_deref() };
        let Ok(mut socket) = accept_hdr_with_config(stream, door, Some(config)) else {
            return Ok(());
        };
        socket.get_ref().set_read_timeout(Some(self.limits.idle))?;
        let architecture = self.policy.architecture();
        let (state, action) = (architecture.observation_width(), architecture.actions);
        socket.send(Message::binary(wire::greeting(state, action)))?;
        loop {
            match socket.read() {
                Ok(Message::Binary(message)) => self.answer(&mut socket, &message)?,
                Ok(Message::Text(_)) => {
                    socket.send(Message::text("message is text, expected a binary frame"))?;
                }
                Ok(Message::Close(_)) | Err(Error::ConnectionClosed) => return Ok(()),
                Ok(_) => {}
                Err(Error::Io(error)) if is_silence(&error) => return socket.close(None),
                Err(Error::Capacity(reason)) => {
                    socket.send(Message::text(format!("message is too large: {reason}")))?;
                    return socket.close(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn answer(&self, socket: &mut WebSocket<TcpStream>, message: &[u8]) -> Result<(), Error> {
        let architecture = self.policy.architecture();
        let state = match wire::state(message, architecture.observation_width()) {
            Ok(state) => state,
            Err(reason) => return socket.send(Message::text(reason)),
        };
        let start = Instant::now();
        let mut action = vec![0.0; architecture.actions];
        self.policy.act(&self.weights, &state, &mut action);
        let milliseconds = 1e3 * start.elapsed().as_secs_f64();
        socket.send(Message::binary(wire::answer(&action, milliseconds)))
    }
}

/// Admits clients that present what they must.
struct Door<'a> {
    token: Option<&'a str>,
}

impl Callback for Door<'_> {
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        let Some(token) = self.token else { return Ok(response) };
        let presented = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
        let expected = format!("Api-Key {token}");
        if presented.is_some_and(|presented| is_same(presented, expected.as_bytes())) {
            return Ok(response);
        }
        let mut refusal = ErrorResponse::new(Some("a token is expected".to_owned()));
        *refusal.status_mut() = StatusCode::UNAUTHORIZED;
        Err(refusal)
    }
}

fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Compares without telling by its time how much is right.
fn is_same(presented: &[u8], expected: &[u8]) -> bool {
    let differ = presented.iter().zip(expected).fold(0, |sum, (a, b)| sum | (a ^ b));
    presented.len() == expected.len() && differ == 0
}
