//! The server: a thread for each connection, so many at most.

use std::io::{BufWriter, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::access::Access;
use crate::api::answer;
use crate::http::{PATIENCE, Request, Response};
use crate::hub::Hub;
use crate::stream::stream;

/// Connections at a time: pages with their streams, and requests beside them.
const MOST_CONNECTIONS: usize = 256;
/// How long a client may take to take what it asked for.
const WRITING: Duration = Duration::from_secs(20);
/// How long the server waits before it looks for clients and the end again.
const POLL: Duration = Duration::from_millis(15);

/// A dashboard.
pub struct Server {
    hub: Arc<Hub>,
    access: Access,
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
    /// A server for what a hub knows.
    pub fn new(hub: Hub, access: Access) -> Arc<Self> {
        Arc::new(Self { hub: Arc::new(hub), access, n_open: AtomicUsize::new(0) })
    }

    /// Serves until it is told to stop.
    pub fn serve(
        self: &Arc<Self>,
        listener: &TcpListener,
        stopped: &dyn Fn() -> bool,
    ) -> std::io::Result<()> {
        listener.set_nonblocking(true)?;
        let hub = Arc::clone(&self.hub);
        let follower = std::thread::Builder::new().name("follower".into());
        let follower = follower.spawn(move || hub.follow())?;
        for place in 0..self.hub.remotes.len() {
            let hub = Arc::clone(&self.hub);
            let remote = std::thread::Builder::new().name("remote".into());
            // It ends with the hub, after a connection that may be waited for.
            remote.spawn(move || hub.follow_remote(place))?;
        }
        while !stopped() {
            match listener.accept() {
                Ok((client, _)) => self.admit(client),
                // No connection, one that was closed already, or no room for one more socket.
                Err(_) => std::thread::sleep(POLL),
            }
        }
        self.hub.close();
        let _ = follower.join();
        Ok(())
    }

    /// Gives a client a thread, or turns it away if all are taken.
    fn admit(self: &Arc<Self>, mut client: TcpStream) {
        let taken = self.n_open.fetch_add(1, Ordering::SeqCst);
        let seat = Seat(Arc::clone(self));
        if taken >= MOST_CONNECTIONS {
            let _ = client.set_nonblocking(true);
            let _ = Response::error(503, "too many connections").write(&mut client, false);
            return;
        }
        // A thread that cannot be started gives its seat back, and the client may come again.
        let _ = std::thread::Builder::new().name("client".into()).spawn(move || {
            let _ = seat.0.attend(client);
        });
    }

    fn attend(&self, mut client: TcpStream) -> std::io::Result<()> {
        client.set_nonblocking(false)?;
        client.set_nodelay(true)?;
        client.set_read_timeout(Some(PATIENCE))?;
        client.set_write_timeout(Some(WRITING))?;
        let request = match Request::read(&mut client) {
            Ok(request) => request,
            Err((status, line)) => return Response::error(status, line).write(&mut client, false),
        };
        if let Some(refusal) = self.access.refusal(&request) {
            return refusal.write(&mut client, request.is_head);
        }
        let mut out = BufWriter::with_capacity(64 << 10, client);
        match request.path.as_str() {
            "/api/stream" if !request.is_head => stream(&self.hub, &request, &mut out)?,
            _ => answer(&self.hub, &request).write(&mut out, request.is_head)?,
        }
        out.flush()
    }
}
