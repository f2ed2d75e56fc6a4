//! Certificates that are missing, wrong, expired, revoked, or those of another terminal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tilp_core::round::TerminalId;
use tilp_testbed::enrol::{Authority, DenyList, Device, Subject, client_config};
use tilp_testbed::station::Party;
use tilp_testbed::terminal::{Agent, MemoryStore};
use tilp_testbed::transport::{ClientError, Secure, Security};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

use crate::station::{DOORS, Mirror, Station};

const DAY_S: u64 = 86_400;

/// An authority and its devices in a folder that is removed at the end.
struct Lab {
    folder: PathBuf,
    authority: Authority,
    now: u64,
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Lab {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tilp-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        // Old enough for a certificate that has ended.
        let made = now - 30 * DAY_S;
        let authority = Authority::init(&folder.join("authority"), &hosts, 90, made).unwrap();
        Self { folder, authority, now }
    }

    /// The folder of a terminal whose certificate was signed at this time, for seven days.
    fn device(&self, name: &str, id: u32, signed: u64) -> PathBuf {
        let folder = self.folder.join(name);
        let subject = Subject::Terminal(TerminalId(id));
        self.authority.enrol_here(subject, &folder, 7, signed).unwrap();
        folder
    }

    async fn station(&self) -> Station {
        let identity = Device::at(&self.authority.server()).identity().unwrap();
        let denied = Arc::new(DenyList::at(&self.folder.join("authority/denied.txt")));
        let security = Security::mutual(&identity, denied).unwrap();
        Station::open(security, DOORS).await
    }

    /// What a client shows: the certificate in a folder, or none.
    fn shown(&self, folder: Option<&Path>) -> ClientConfig {
        let read = |path: PathBuf| CertificateDer::from_pem_file(path).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(read(self.folder.join("authority/ca.pem"))).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots);
        let mut config = match folder {
            None => config.with_no_client_auth(),
            Some(folder) => {
                let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
                config.with_client_auth_cert(vec![read(folder.join("cert.pem"))], key).unwrap()
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    }
}

fn secure(folder: &Path) -> Secure {
    let folder = folder.to_owned();
    Secure::Tls(Arc::new(move || {
        let identity = Device::at(&folder).identity().map_err(|error| error.to_string())?;
        client_config(&identity, None).map(Arc::new).map_err(|error| error.to_string())
    }))
}

/// Whether a connection with these settings is refused: it fails, or ends without a byte of HTTP.
async fn is_refused(station: &Station, config: ClientConfig) -> bool {
    let stream = TcpStream::connect(station.address()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let Ok(mut stream) = TlsConnector::from(Arc::new(config)).connect(name, stream).await else {
        return true;
    };
    let _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    let mut first = [0];
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut first)).await;
    !matches!(read.expect("it ends in time"), Ok(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wrong_expired_and_revoked_certificates_are_refused() {
    let lab = Lab::new("hostile-certificates");
    let station = lab.station().await;
    let good = lab.device("good", 7, lab.now);
    let expired = lab.device("expired", 6, lab.now - 20 * DAY_S);
    let revoked = lab.device("revoked", 5, lab.now);
    lab.authority.revoke(Subject::Terminal(TerminalId(5)), lab.now).unwrap();
    let other = Lab::new("hostile-other");
    let foreign = other.device("foreign", 7, other.now);
    for (name, folder) in [
        ("none", None),
        ("foreign", Some(foreign)),
        ("expired", Some(expired)),
        ("revoked", Some(revoked)),
    ] {
        assert!(is_refused(&station, lab.shown(folder.as_deref())).await, "{name}");
    }
    assert!(!is_refused(&station, lab.shown(Some(&good))).await, "good");
    station.serves_by(secure(&good)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_good_for_its_own_terminal_only() {
    let lab = Lab::new("hostile-name");
    let station = lab.station().await;
    let eight = lab.device("eight", 8, lab.now);
    let (_stop, stopped) = watch::channel(false);
    let agent = Agent::new(Mirror, MemoryStore::default());
    let refused = station.client(7, secure(&eight)).serve(agent, stopped).await.unwrap_err();
    let ClientError::Refused(why) = refused else { panic!("{refused}") };
    assert_eq!(why, "the certificate is that of terminal 8, expected terminal 7");
    let seven = lab.device("seven", 7, lab.now);
    station.serves_by(secure(&seven)).await;
}

async fn wait_until(is_so: impl Fn() -> bool) {
    let until = tokio::time::Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(tokio::time::Instant::now() < until, "it does not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The stream of a terminal ends when it is revoked, and with a new certificate in its folder the
/// same process is served again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_that_is_revoked_loses_its_stream_and_returns_with_a_new_certificate() {
    let lab = Lab::new("hostile-revoked");
    let station = lab.station().await;
    let folder = lab.device("seven", 7, lab.now);
    let (stop, stopped) = watch::channel(false);
    let client = station.client(7, secure(&folder));
    let agent = Agent::new(Mirror, station.store.clone());
    let terminal = tokio::spawn(async move { client.serve(agent, stopped).await });
    let party = Party::Terminal(7);
    wait_until(|| station.hub.is_attached(party)).await;
    lab.authority.revoke(Subject::Terminal(TerminalId(7)), lab.now).unwrap();
    wait_until(|| !station.hub.is_attached(party)).await;
    std::fs::remove_dir_all(&folder).unwrap();
    lab.device("seven", 7, lab.now);
    wait_until(|| station.hub.is_attached(party)).await;
    assert_eq!(station.ask(b"again".to_vec()).await.payload, b"niaga");
    stop.send(true).unwrap();
    terminal.await.unwrap().unwrap();
}
