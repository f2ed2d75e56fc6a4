//! Enrolment from token to handshake. Handshakes run in memory, with a clock of their own.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConnection, ServerConnection};
use tilp_core::round::TerminalId;

use super::*;

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;
const THREE: Subject = Subject::Terminal(TerminalId(3));

/// A folder of its own, gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("tilp-enrol-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn authority(&self, name: &str) -> Authority {
        Authority::init(&self.at(name), &["localhost".into(), "127.0.0.1".into()], 90, NOW).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug)]
struct At(u64);

impl TimeProvider for At {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
    }
}

/// Shakes hands and gives the subject that the server sees.
fn handshake(
    authority: &Authority,
    client: &Identity,
    host: &'static str,
    now: u64,
) -> Result<Subject, String> {
    let server = Device::at(&authority.server()).identity().unwrap();
    let denied = Arc::new(authority.deny_list());
    let server = server_config(&server, denied, Some(Arc::new(At(now)))).unwrap();
    let client = client_config(client, Some(Arc::new(At(now)))).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    let name = ServerName::try_from(host).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    for _ in 0..8 {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets().map_err(|error| format!("server: {error}"))?;
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets().map_err(|error| format!("client: {error}"))?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    let shown = server.peer_certificates().expect("a client shows a certificate");
    PeerIdentity::of(&shown[0]).map(|peer| peer.subject).map_err(|error| error.to_string())
}

/// A request with the certificate request of another.
fn with_csr(request: &Request, csr: &str) -> Request {
    let mut changed = request.clone();
    changed.csr = csr.to_owned();
    changed
}

#[test]
fn an_enrolled_terminal_shakes_hands_and_is_known_by_its_id() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let identity = authority.enrol_here(THREE, &scratch.at("device"), 7, NOW).unwrap();
    assert_eq!(identity.peer.not_after, NOW + 7 * DAY);
    for host in ["localhost", "127.0.0.1"] {
        assert_eq!(handshake(&authority, &identity, host, NOW), Ok(THREE));
    }
    let error = handshake(&authority, &identity, "another.example", NOW).unwrap_err();
    assert!(error.starts_with("client: "), "{error}");
}

#[test]
fn a_private_key_is_readable_by_its_owner_alone_and_is_in_no_other_file() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let device = scratch.at("device");
    authority.enrol_here(THREE, &device, 7, NOW).unwrap();
    let key = std::fs::read_to_string(device.join(KEY_FILE)).unwrap();
    for path in [device.join(KEY_FILE), scratch.at("ca/ca-key.pem"), scratch.at("ca/tokens.json")] {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    let secret = key.lines().nth(1).unwrap();
    let mut folders = vec![scratch.at("ca"), device.clone()];
    let mut n_files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path != device.join(KEY_FILE) {
                n_files += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains(secret), "{}", path.display());
            }
        }
    }
    assert!(n_files > 8, "{n_files} files");
    // A key that others can read is refused.
    let open = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(device.join(KEY_FILE), open).unwrap();
    let error = Device::at(&device).identity().unwrap_err().to_string();
    assert!(error.starts_with("mode = 0640, expected 0600"), "{error}");
}

#[test]
fn a_join_token_is_used_once_and_in_time() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let token = authority.token(THREE, 600, NOW).unwrap();
    assert_eq!(authority.waiting(NOW).unwrap().len(), 1);
    let request = Device::at(&scratch.at("a")).request(&token).unwrap();
    let late = authority.approve(&request, 7, NOW + 600).unwrap_err().to_string();
    assert_eq!(late, "terminal-3 is refused: its join token has expired");
    authority.approve(&request, 7, NOW).unwrap();
    let again = authority.approve(&request, 7, NOW).unwrap_err().to_string();
    assert_eq!(again, "terminal-3 is refused: its join token was used before");
    let other = Device::at(&scratch.at("b")).request(&token).unwrap();
    assert!(authority.approve(&other, 7, NOW).is_err());
    assert_eq!(authority.waiting(NOW).unwrap(), []);
}

#[test]
fn a_request_cannot_be_changed_on_its_way() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let token = authority.token(THREE, 600, NOW).unwrap();
    let request = Device::at(&scratch.at("a")).request(&token).unwrap();
    // The proof of one request with the key of another.
    let stranger = authority.token(THREE, 600, NOW).unwrap();
    let stranger = Device::at(&scratch.at("b")).request(&stranger).unwrap();
    let swapped = with_csr(&request, &stranger.csr);
    let error = authority.approve(&swapped, 7, NOW).unwrap_err().to_string();
    assert_eq!(error, "terminal-3 is refused: no join token of this authority was used for it");
    // Another subject than the token's.
    let four = JoinToken::parse(&token.reveal().replace("terminal-3", "terminal-4")).unwrap();
    let four = Device::at(&scratch.at("c")).request(&four).unwrap();
    assert!(authority.approve(&four, 7, NOW).is_err());
    // Bytes turned over anywhere in the request.
    let text = request.to_json();
    for at in (0..text.len()).step_by(7) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        let Ok(changed) = String::from_utf8(bytes) else { continue };
        let refused = match Request::parse(&changed) {
            Err(_) => true,
            // A turned bit in the frame of the PEM text may leave the request what it is.
            Ok(changed) => match CheckedRequest::from_pem(&changed.csr) {
                Ok(same) if same.der == CheckedRequest::from_pem(&request.csr).unwrap().der => {
                    changed.proof == request.proof || authority.approve(&changed, 7, NOW).is_err()
                }
                _ => authority.approve(&changed, 7, NOW).is_err(),
            },
        };
        assert!(refused, "byte {at}");
    }
    authority.approve(&request, 7, NOW).unwrap();
}

#[test]
fn a_revoked_certificate_is_refused_at_once_and_the_list_says_so() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let identity = authority.enrol_here(THREE, &scratch.at("three"), 7, NOW).unwrap();
    let other = authority.enrol_here(Subject::Evaluator, &scratch.at("eval"), 7, NOW).unwrap();
    let denied = authority.deny_list();
    assert!(!denied.denies(&identity.peer.serial).unwrap());
    assert!(handshake(&authority, &identity, "localhost", NOW).is_ok());
    assert_eq!(authority.revoke(THREE, NOW).unwrap(), std::slice::from_ref(&identity.peer.serial));
    // The same list, which was read before.
    assert!(denied.denies(&identity.peer.serial).unwrap());
    assert!(handshake(&authority, &identity, "localhost", NOW).is_err());
    assert!(handshake(&authority, &other, "localhost", NOW).is_ok());
    let states: Vec<(String, State)> =
        authority.list(NOW).unwrap().into_iter().map(|one| (one.subject, one.state)).collect();
    let expected = [("server", State::Valid), ("terminal-3", State::Revoked)];
    assert_eq!(states[..2], expected.map(|(name, state)| (name.to_owned(), state)));
    assert!(authority.revoke(THREE, NOW).is_err());
    authority.revoke_serial(&other.peer.serial).unwrap();
    assert!(handshake(&authority, &other, "localhost", NOW).is_err());
    assert!(authority.revoke_serial(&"7f01".parse().unwrap()).is_err());
}

#[test]
fn a_deny_list_that_is_missing_or_damaged_refuses_everybody() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let identity = authority.enrol_here(THREE, &scratch.at("three"), 7, NOW).unwrap();
    let path = scratch.at("ca/denied.txt");
    let good = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, "not a serial\n").unwrap();
    assert!(handshake(&authority, &identity, "localhost", NOW).is_err());
    std::fs::remove_file(&path).unwrap();
    assert!(handshake(&authority, &identity, "localhost", NOW).is_err());
    std::fs::write(&path, good).unwrap();
    assert!(handshake(&authority, &identity, "localhost", NOW).is_ok());
}

#[test]
fn an_expired_certificate_and_one_of_another_authority_are_refused() {
    let scratch = Scratch::new();
    let (authority, other) = (scratch.authority("ca"), scratch.authority("other"));
    let identity = authority.enrol_here(THREE, &scratch.at("three"), 7, NOW).unwrap();
    let foreign = other.enrol_here(THREE, &scratch.at("foreign"), 7, NOW).unwrap();
    assert!(handshake(&authority, &identity, "localhost", NOW + 7 * DAY - 1).is_ok());
    let late = handshake(&authority, &identity, "localhost", NOW + 7 * DAY + 1).unwrap_err();
    assert!(late.contains("Expired") || late.contains("expired"), "{late}");
    assert!(handshake(&authority, &foreign, "localhost", NOW).is_err());
    let early = handshake(&authority, &identity, "localhost", NOW - DAY).unwrap_err();
    assert!(early.to_lowercase().contains("not valid yet"), "{early}");
    assert_eq!(authority.list(NOW + 8 * DAY).unwrap()[1].state, State::Expired);
}

#[test]
fn a_server_certificate_is_no_client_and_a_terminal_no_server() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let server = Device::at(&authority.server()).identity().unwrap();
    assert!(handshake(&authority, &server, "localhost", NOW).is_err());
    let terminal = authority.enrol_here(THREE, &scratch.at("three"), 7, NOW).unwrap();
    let verifier = tls::verifier(&terminal.authority, authority.deny_list().into()).unwrap();
    assert_eq!(verifier.check(&terminal.certificate, NOW).unwrap().subject, THREE);
    assert!(verifier.check(&server.certificate, NOW).is_err());
    assert!(authority.token(Subject::Server, 60, NOW).is_err());
}

#[test]
fn a_renewal_is_vouched_for_by_the_present_certificate_and_changes_the_key() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let folder = scratch.at("three");
    let first = authority.enrol_here(THREE, &folder, 7, NOW).unwrap();
    let device = Device::at(&folder);
    let request = device.renewal().unwrap();
    // Until the new certificate is there the old one works.
    assert_eq!(device.identity().unwrap().peer, first.peer);
    let later = NOW + 5 * DAY;
    let issued = authority.approve(&request, 7, later).unwrap();
    assert_eq!(device.identity().unwrap().peer, first.peer);
    let second = device.install(&issued.certificate, &issued.authority).unwrap();
    assert_eq!(second.peer.not_after, later + 7 * DAY);
    assert_ne!(second.key.public_key_raw(), first.key.public_key_raw());
    assert_eq!(device.identity().unwrap().peer, second.peer);
    assert_eq!(handshake(&authority, &second, "localhost", later), Ok(THREE));
    // An expired or revoked certificate vouches for nothing.
    let request = device.renewal().unwrap();
    assert!(authority.approve(&request, 7, later + 8 * DAY).is_err());
    authority.revoke(THREE, later).unwrap();
    let error = authority.approve(&request, 7, later).unwrap_err().to_string();
    assert!(error.contains("revoked"), "{error}");
}

#[test]
fn a_renewal_for_another_terminal_or_by_another_key_is_refused() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let three = authority.enrol_here(THREE, &scratch.at("three"), 7, NOW).unwrap();
    let four = Subject::Terminal(TerminalId(4));
    authority.enrol_here(four, &scratch.at("four"), 7, NOW).unwrap();
    let own = Device::at(&scratch.at("three")).renewal().unwrap();
    let others = Device::at(&scratch.at("four")).renewal().unwrap();
    let crossed = with_csr(&others, &own.csr);
    assert!(authority.approve(&crossed, 7, NOW).is_err());
    let error = authority.renew(&three.peer, &others.csr, 7, NOW).unwrap_err().to_string();
    assert_eq!(error, "terminal-4 is refused: the certificate shown is that of terminal-3");
    let issued = authority.renew(&three.peer, &own.csr, 7, NOW).unwrap();
    assert_eq!(issued.peer.subject, THREE);
    assert!(authority.approve(&own, 500, NOW).unwrap_err().to_string().contains("days = 500"));
}

#[test]
fn a_device_that_joins_anew_replaces_the_one_before() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let lost = authority.enrol_here(THREE, &scratch.at("lost"), 7, NOW).unwrap();
    let new = authority.enrol_here(THREE, &scratch.at("new"), 7, NOW).unwrap();
    assert!(handshake(&authority, &lost, "localhost", NOW).is_err());
    assert!(handshake(&authority, &new, "localhost", NOW).is_ok());
    let again = authority.enrol_here(THREE, &scratch.at("new"), 7, NOW).unwrap_err().to_string();
    assert!(again.contains("renew it, or use another folder"), "{again}");
}

#[test]
fn a_device_takes_only_the_authority_that_its_token_named() {
    let scratch = Scratch::new();
    let (authority, false_one) = (scratch.authority("ca"), scratch.authority("false"));
    let device = Device::at(&scratch.at("three"));
    let request = device.request(&authority.token(THREE, 600, NOW).unwrap()).unwrap();
    let issued = authority.approve(&request, 7, NOW).unwrap();
    let other = std::fs::read_to_string(scratch.at("false/ca.pem")).unwrap();
    let error = device.install(&issued.certificate, &other).unwrap_err().to_string();
    assert!(error.starts_with("sha256 = "), "{error}");
    // A certificate for another key is refused too.
    let four = Subject::Terminal(TerminalId(4));
    let four = false_one.enrol_here(four, &scratch.at("four"), 7, NOW).unwrap();
    assert_eq!(four.peer.subject, Subject::Terminal(TerminalId(4)));
    let foreign = std::fs::read_to_string(scratch.at("four/cert.pem")).unwrap();
    assert!(device.install(&foreign, &issued.authority).is_err());
    device.install(&issued.certificate, &issued.authority).unwrap();
}

#[test]
fn an_authority_is_not_written_over_and_its_server_can_be_renewed() {
    let scratch = Scratch::new();
    let authority = scratch.authority("ca");
    let error = Authority::init(&scratch.at("ca"), &[], 90, NOW).unwrap_err().to_string();
    assert!(error.contains("expected a folder without an authority"), "{error}");
    let before = Device::at(&authority.server()).identity().unwrap().peer;
    authority.renew_server(&["localhost".into()], 90, NOW + DAY).unwrap();
    let after = Device::at(&authority.server()).identity().unwrap().peer;
    assert_eq!(after.not_after, before.not_after + DAY);
}
