//! The proxy: sockets, and the only clock of this module.
//!
//! Every terminal has a port of its own, so that a link is known before a byte is read. The proxy
//! does not look into what passes: TLS ends at the two sides.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tilp_core::cost::Grant;
use tilp_core::units::{Hertz, Watts, to_db};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::channel::{Quality, ReplayedChannel};
use super::control::{Command, MAX_LINE_BYTES, Reply};
use super::link::{Direction, Link, LinkSettings};
use super::shaper::{Shaper, Verdict};

/// Bytes of a piece.
const PIECE: usize = 4096;
/// Pieces on their way in one direction: 4 MiB.
const QUEUE: usize = 1024;
/// Connections of one terminal at a time.
const CONNECTIONS: usize = 16;
/// Control connections at a time.
const CONTROLS: usize = 64;
/// How long the server may take to answer a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The two ends of a proxy, and the behaviour of its links.
pub struct ProxySettings {
    /// Where the server listens.
    pub server: SocketAddr,
    /// Where the proxy listens for terminal 0. The others follow port by port; port 0 for any.
    pub listen: SocketAddr,
    /// Unix socket of the control channel.
    pub control: Option<PathBuf>,
    /// The channel.
    pub channel: ReplayedChannel,
    /// How links follow it.
    pub link: LinkSettings,
    /// Bytes that a silent link saves up.
    pub burst_bytes: u32,
}

/// One terminal's link and its user.
struct Lane {
    shaper: Mutex<Shaper>,
    /// Counts changes by the control channel; waiting pieces ask again when it moves.
    changes: watch::Sender<u64>,
    /// Whether connections are cut.
    cut: watch::Sender<bool>,
    connections: AtomicUsize,
    bytes: [AtomicU64; 2],
}

impl Lane {
    fn shaper(&self) -> MutexGuard<'_, Shaper> {
        self.shaper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Shaper)) {
        change(&mut self.shaper());
        self.changes.send_modify(|count| *count += 1);
    }
}

struct Shared {
    lanes: Vec<Lane>,
    server: SocketAddr,
    start: Instant,
    controls: AtomicUsize,
}

/// A proxy that is bound to its ports.
pub struct Proxy {
    shared: Arc<Shared>,
    listeners: Vec<TcpListener>,
    control: Option<(UnixListener, PathBuf)>,
}

impl Proxy {
    /// Binds all ports and the control socket. The replay starts now.
    pub async fn bind(settings: ProxySettings) -> io::Result<Self> {
        let ProxySettings { server, listen, control, channel, link, burst_bytes } = settings;
        let mut listeners = Vec::new();
        let mut lanes = Vec::new();
        for n in 0..channel.n_terminals() {
            let port =
                if listen.port() == 0 { Some(0) } else { listen.port().checked_add(n as u16) };
            let port = port.ok_or_else(|| io::Error::other("there are not enough ports"))?;
            let address = SocketAddr::new(listen.ip(), port);
            let bound = TcpListener::bind(address).await;
            let at = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
            listeners.push(bound.map_err(at)?);
            lanes.push(Lane {
                shaper: Mutex::new(Shaper::new(Link::new(&channel, n, link), burst_bytes)),
                changes: watch::channel(0).0,
                cut: watch::channel(false).0,
                connections: AtomicUsize::new(0),
                bytes: [AtomicU64::new(0), AtomicU64::new(0)],
            });
        }
        let control = match control {
            Some(path) => Some((bind_control(&path)?, path)),
            None => None,
        };
        let shared = Shared { lanes, server, start: Instant::now(), controls: AtomicUsize::new(0) };
        Ok(Self { shared: Arc::new(shared), listeners, control })
    }

    /// Where the terminals connect, in the order of their numbers.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Carries out commands from within the same program.
    pub fn controller(&self) -> impl Fn(&Command) -> Reply + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |command| shared.obey(command)
    }

    /// Serves until `stop` is ready. Connections end with the runtime's tasks.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let mut tasks = tokio::task::JoinSet::new();
        for (n, listener) in self.listeners.into_iter().enumerate() {
            tasks.spawn(accept(Arc::clone(&self.shared), n, listener));
        }
        let mut socket = None;
        if let Some((listener, path)) = self.control {
            tasks.spawn(accept_controls(Arc::clone(&self.shared), listener));
            socket = Some(path);
        }
        stop.await;
        for lane in &self.shared.lanes {
            lane.cut.send_replace(true);
        }
        tasks.shutdown().await;
        if let Some(path) = socket {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Binds the control socket. A socket that a killed proxy left is replaced, a live one is not.
fn bind_control(path: &Path) -> io::Result<UnixListener> {
    let at =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if path.exists() {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(at(io::ErrorKind::AddrInUse.into()));
        }
        std::fs::remove_file(path).map_err(at)?;
    }
    let listener = UnixListener::bind(path).map_err(at)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(at)?;
    Ok(listener)
}

async fn accept(shared: Arc<Shared>, n: usize, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: the next may do.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let lane = &shared.lanes[n];
        let open = lane.connections.fetch_add(1, Ordering::SeqCst);
        let seat = Seat(Arc::clone(&shared), n);
        if open < CONNECTIONS && !*lane.cut.borrow() {
            tokio::spawn(async move { carry(&seat, stream).await });
        }
    }
}

/// A place among the connections of a terminal; free again when it is dropped.
struct Seat(Arc<Shared>, usize);

impl Seat {
    fn lane(&self) -> &Lane {
        &self.0.lanes[self.1]
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.lane().connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One connection, until either side ends it or the link is cut.
async fn carry(seat: &Seat, terminal: TcpStream) {
    let connect = tokio::time::timeout(CONNECT, TcpStream::connect(seat.0.server));
    let Ok(Ok(server)) = connect.await else { return };
    let _ = (terminal.set_nodelay(true), server.set_nodelay(true));
    let (from_terminal, to_terminal) = terminal.into_split();
    let (from_server, to_server) = server.into_split();
    let mut cut = seat.lane().cut.subscribe();
    let both = async {
        tokio::join!(
            pump(seat, Direction::Up, from_terminal, to_server),
            pump(seat, Direction::Down, from_server, to_terminal),
        )
    };
    tokio::select! {
        _ = both => {}
        _ = cut.wait_for(|cut| *cut) => {}
    }
}

/// One direction: pieces are timed by the shaper and delivered when their time has come.
async fn pump(seat: &Seat, direction: Direction, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let (queue, mut queued) = mpsc::channel::<(Instant, Vec<u8>)>(QUEUE);
    let read = async move {
        let mut buffer = vec![0; PIECE];
        while let Ok(n) = from.read(&mut buffer).await {
            if n == 0 {
                break;
            }
            let at = seat.0.timed(seat.lane(), direction, n).await;
            if queue.send((at, buffer[..n].to_vec())).await.is_err() {
                break;
            }
        }
    };
    let write = async move {
        while let Some((at, piece)) = queued.recv().await {
            sleep_until(at).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
            let counter = &seat.lane().bytes[usize::from(direction == Direction::Down)];
            counter.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        let _ = to.shutdown().await;
    };
    tokio::join!(read, write);
}

impl Shared {
    fn now_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Waits until a piece may leave, and gives the time of its delivery.
    async fn timed(&self, lane: &Lane, direction: Direction, n_bytes: usize) -> Instant {
        let mut changes = lane.changes.subscribe();
        loop {
            let verdict = lane.shaper().ask(direction, self.now_s(), n_bytes);
            let until = match verdict {
                Verdict::Deliver(at_s) => return self.instant(at_s),
                Verdict::Wait(until) => until,
            };
            tokio::select! {
                () = wait(until.map(|at_s| self.instant(at_s))) => {}
                _ = changes.changed() => {}
            }
        }
    }

    fn instant(&self, at_s: f64) -> Instant {
        // A year is as good as never, and no sum of times overflows.
        self.start + Duration::from_secs_f64(at_s.clamp(0.0, 3.2e7 + self.now_s()))
    }

    fn obey(&self, command: &Command) -> Reply {
        let now_s = self.now_s();
        let number = match *command {
            Command::Round { round, .. } => {
                self.lanes.iter().for_each(|lane| lane.change(|shaper| shaper.round(now_s, round)));
                return Reply::done();
            }
            Command::Grant { terminal, .. }
            | Command::Release { terminal, .. }
            | Command::Outage { terminal, .. }
            | Command::Cut { terminal, .. }
            | Command::Status { terminal, .. } => terminal,
        };
        let Some(lane) = self.lanes.get(number as usize) else {
            let n = self.lanes.len();
            return Reply::refused(format!("terminal = {number}, expected 0 to {}", n - 1));
        };
        match *command {
            Command::Grant { bandwidth_hz, power_w, .. } => {
                let grant = Grant { bandwidth: Hertz(bandwidth_hz), power: Watts(power_w) };
                lane.change(|shaper| shaper.grant(now_s, Some(grant)));
            }
            Command::Release { .. } => lane.change(|shaper| shaper.grant(now_s, None)),
            Command::Outage { on, .. } => lane.change(|shaper| shaper.outage(now_s, on)),
            Command::Cut { on, .. } => {
                lane.cut.send_replace(on);
            }
            Command::Status { .. } => return status(lane, number, now_s),
            Command::Round { .. } => {}
        }
        Reply::done()
    }
}

async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn status(lane: &Lane, terminal: u32, now_s: f64) -> Reply {
    let shaper = lane.shaper();
    let link = shaper.link();
    let conditions = link.conditions(now_s);
    let grant = link.grant();
    Reply::Status {
        version: 1,
        terminal,
        round: link.round(),
        up_bps: link.rate(Direction::Up, now_s).0,
        down_bps: link.rate(Direction::Down, now_s).0,
        delay_s: conditions.delay.0,
        gain_db: match conditions.quality {
            Quality::Air { gain, fading_power, .. } => Some(to_db(gain.0 * fading_power)),
            Quality::Rate(_) => None,
        },
        bandwidth_hz: grant.map(|grant| grant.bandwidth.0),
        power_w: grant.map(|grant| grant.power.0),
        outage: conditions.outage,
        connections: lane.connections.load(Ordering::SeqCst),
        up_bytes: lane.bytes[0].load(Ordering::Relaxed),
        down_bytes: lane.bytes[1].load(Ordering::Relaxed),
    }
}

async fn accept_controls(shared: Arc<Shared>, listener: UnixListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        if shared.controls.fetch_add(1, Ordering::SeqCst) < CONTROLS {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                let _ = attend(&shared, stream).await;
                shared.controls.fetch_sub(1, Ordering::SeqCst);
            });
        } else {
            shared.controls.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// One control connection: a line asks, a line answers; a line that is too long ends it.
async fn attend(shared: &Shared, stream: UnixStream) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let limit = MAX_LINE_BYTES as u64 + 1;
        if (&mut read).take(limit).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let reply = match Command::parse(line.trim_ascii_end()) {
            Ok(command) => shared.obey(&command),
            Err(error) => Reply::refused(error),
        };
        write.write_all(reply.to_line().as_bytes()).await?;
        if line.len() > MAX_LINE_BYTES {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::channel::Conditions;
    use crate::proxy::control::{CommandError, ask};
    use crate::proxy::link::Pace;
    use tilp_core::cost::Downlink;
    use tilp_core::units::{BitsPerSecond, Gain, Seconds};
    use tilp_core::wireless::RateModel;

    async fn proxy(server: SocketAddr, control: Option<PathBuf>) -> Proxy {
        let quality = Quality::Air { gain: Gain(1e-9), fading_power: 1.0, noise_w_per_hz: 4e-21 };
        let row = vec![Conditions { quality, delay: Seconds(0.0), outage: false }; 2];
        let settings = ProxySettings {
            server,
            listen: "127.0.0.1:0".parse().unwrap(),
            control,
            channel: ReplayedChannel::from_rows(&[row], Seconds(1.0)).unwrap(),
            link: LinkSettings {
                pace: Pace::Rounds,
                model: RateModel::Held,
                downlink: Downlink::Shared,
                signalling: BitsPerSecond(8e6),
            },
            burst_bytes: 1500,
        };
        Proxy::bind(settings).await.unwrap()
    }

    /// An echo server, and its address.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                    let _ = write.shutdown().await;
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn bytes_pass_unchanged_both_ways_until_the_link_is_cut() {
        let proxy = proxy(echo().await, None).await;
        let obey = proxy.controller();
        let address = proxy.addresses().unwrap()[1];
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(proxy.run(async { drop(stopped.await) }));
        let sent: Vec<u8> = (0..40_000u32).map(|n| (n * 31 % 251) as u8).collect();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let (mut read, mut write) = stream.split();
        let mut back = Vec::new();
        let write = async {
            write.write_all(&sent).await.unwrap();
            write.shutdown().await.unwrap();
        };
        tokio::join!(write, async { read.read_to_end(&mut back).await.unwrap() });
        assert_eq!(back, sent);
        let Reply::Status { up_bytes, down_bytes, .. } =
            obey(&Command::Status { version: 1, terminal: 1 })
        else {
            panic!("no status");
        };
        assert_eq!((up_bytes, down_bytes), (40_000, 40_000));
        // A cut link ends what is there and refuses what comes.
        let mut open = TcpStream::connect(address).await.unwrap();
        open.write_all(b"x").await.unwrap();
        assert_eq!(open.read_u8().await.unwrap(), b'x');
        obey(&Command::Cut { version: 1, terminal: 1, on: true });
        assert!(open.read_u8().await.is_err());
        let mut refused = TcpStream::connect(address).await.unwrap();
        assert!(refused.read_u8().await.is_err());
        obey(&Command::Cut { version: 1, terminal: 1, on: false });
        let mut again = TcpStream::connect(address).await.unwrap();
        again.write_all(b"y").await.unwrap();
        assert_eq!(again.read_u8().await.unwrap(), b'y');
        drop(stop);
        running.await.unwrap();
    }

    #[tokio::test]
    async fn the_control_socket_grants_and_refuses_and_is_its_owners_alone() {
        let path = std::env::temp_dir().join(format!("tilp-proxy-{}.sock", std::process::id()));
        let proxy = proxy(echo().await, Some(path.clone())).await;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(proxy.run(async { drop(stopped.await) }));
        let socket = path.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let grant = Command::Grant { version: 1, terminal: 0, bandwidth_hz: 1e6, power_w: 0.2 };
            assert_eq!(ask(&socket, &grant).unwrap(), Reply::done());
            let far = Command::Release { version: 1, terminal: 9 };
            let refused = ask(&socket, &far).unwrap_err();
            assert!(matches!(refused, CommandError::Refused(_)), "{refused}");
            ask(&socket, &Command::Status { version: 1, terminal: 0 }).unwrap()
        });
        let Reply::Status { up_bps, gain_db, bandwidth_hz, .. } = asked.await.unwrap() else {
            panic!("no status");
        };
        let expected = 1e6 * (1.0f64 + 1e-9 * 0.2 / (4e-21 * 1e6)).log2();
        assert!((up_bps / expected - 1.0).abs() < 1e-9, "{up_bps}, expected {expected}");
        assert!((gain_db.unwrap() + 90.0).abs() < 1e-9);
        assert_eq!(bandwidth_hz, Some(1e6));
        drop(stop);
        running.await.unwrap();
        assert!(!path.exists());
    }
}
