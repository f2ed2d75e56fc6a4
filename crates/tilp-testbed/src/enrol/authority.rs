//! The authority beside the server: gives out tokens, signs certificates, revokes them.
//!
//! Its folder:
//!
//! | file | content |
//! |---|---|
//! | `ca.pem`, `ca-key.pem` | certificate and private key of the authority |
//! | `server/` | identity of the server, as in the folder of a device |
//! | `tokens.json` | digests of tokens, when they expire, whether they were used |
//! | `issued.jsonl` | a line for every certificate |
//! | `issued/SUBJECT/` | the last certificate of a subject, to be brought to its device |
//! | `denied.txt` | the deny list |
//!
//! Every change holds the lock of the folder. A token is written down as used before its
//! certificate is signed: if the program ends in between, another token is needed, and none is
//! ever used twice.

use std::path::{Path, PathBuf};

use rcgen::{Issuer, KeyPair};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use super::certificate::{self, CheckedRequest, PeerIdentity, Validity};
use super::device::{self, CA_FILE, CERTIFICATE_FILE, KEY_FILE, Proof, Request, renewal_message};
use super::files::{self, Lock};
use super::token::{JoinToken, TokenRecord, sha256};
use super::{DenyList, EnrolError, Serial, Subject, deny, tls};

const CA_KEY_FILE: &str = "ca-key.pem";
const SERVER: &str = "server";
const TOKENS: &str = "tokens.json";
const ISSUED: &str = "issued.jsonl";
const DENIED: &str = "denied.txt";
const MAX_PEM_BYTES: u64 = 16 << 10;
const MAX_BOOK_BYTES: u64 = 64 << 20;
const DAY_S: u64 = 86_400;
/// How long the authority's own certificate holds: ten years.
const AUTHORITY_S: u64 = 3650 * DAY_S;
/// Longest that any other certificate may hold.
pub const MAX_DAYS: u64 = 398;

/// The folder of an authority.
#[derive(Clone, Debug)]
pub struct Authority {
    folder: PathBuf,
}

/// A certificate that was issued.
#[derive(Clone, Debug)]
pub struct Issued {
    /// Its subject and its validity.
    pub peer: PeerIdentity,
    /// The certificate, PEM.
    pub certificate: String,
    /// That of the authority, PEM.
    pub authority: String,
    /// The folder where both were put.
    pub folder: PathBuf,
}

/// What has become of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It holds.
    Valid,
    /// Its time is over.
    Expired,
    /// It is on the deny list.
    Revoked,
}

/// A certificate in the list of an authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its subject.
    pub subject: String,
    /// Its serial number.
    pub serial: String,
    /// Start of its validity, in seconds since 1970.
    pub not_before: u64,
    /// End of its validity, in seconds since 1970.
    pub not_after: u64,
    /// What has become of it.
    pub state: State,
}

/// A token that waits to be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// The subject that may join with it.
    pub subject: String,
    /// Time of expiry, in seconds since 1970.
    pub expires: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuedLine {
    subject: String,
    serial: String,
    not_before: u64,
    not_after: u64,
}

impl Authority {
    /// The authority in a folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Makes an authority and the identity of its server, which answers at these host names and
    /// addresses. Refuses a folder that already has one.
    pub fn init(
        folder: &Path,
        hosts: &[String],
        server_days: u64,
        now: u64,
    ) -> Result<Self, EnrolError> {
        let authority = Self::at(folder);
        files::make_folder(folder)?;
        let _lock = Lock::take(folder)?;
        let certificate = authority.path(CA_FILE);
        if certificate.exists() {
            let value = certificate.display();
            return Err(EnrolError::field(
                "folder",
                value,
                "a folder without an authority",
                "init",
            ));
        }
        let key = certificate::new_key()?;
        let params = certificate::authority_params(Validity::starting(now, AUTHORITY_S))?;
        let signed = params.self_signed(&key);
        let signed = signed.map_err(|error| EnrolError::crypto("signing a certificate", error))?;
        files::write_secret(&authority.path(TOKENS), "[]")?;
        files::write(&authority.path(DENIED), "# Serial numbers of revoked certificates.\n")?;
        files::write(&authority.path(ISSUED), "")?;
        files::write_secret(&authority.path(CA_KEY_FILE), &key.serialize_pem())?;
        // Last: a folder with this file is complete.
        files::write(&certificate, &signed.pem())?;
        authority.certify_server(hosts, server_days, now)?;
        Ok(authority)
    }

    /// Gives the server a new key and certificate. A running server keeps the old one until it is
    /// started again.
    pub fn renew_server(&self, hosts: &[String], days: u64, now: u64) -> Result<(), EnrolError> {
        let _lock = self.locked()?;
        self.certify_server(hosts, days, now)
    }

    fn certify_server(&self, hosts: &[String], days: u64, now: u64) -> Result<(), EnrolError> {
        let key = certificate::new_key()?;
        let csr = certificate::new_request(Subject::Server, &key)?;
        let issued = self.sign(&CheckedRequest::from_pem(&csr)?, hosts, days, now)?;
        let folder = self.path(SERVER);
        files::make_folder(&folder)?;
        files::write_secret(&folder.join(KEY_FILE), &key.serialize_pem())?;
        files::write(&folder.join(CA_FILE), &issued.authority)?;
        files::write(&folder.join(CERTIFICATE_FILE), &issued.certificate)
    }

    /// Folder of the server's identity.
    pub fn server(&self) -> PathBuf {
        self.path(SERVER)
    }

    /// The deny list.
    pub fn deny_list(&self) -> DenyList {
        DenyList::at(&self.path(DENIED))
    }

    /// Makes a join token that is valid for this number of seconds.
    pub fn token(&self, subject: Subject, seconds: u64, now: u64) -> Result<JoinToken, EnrolError> {
        if subject == Subject::Server {
            return Err(EnrolError::refused(
                subject,
                "the server is enrolled by `tilp enrol init`",
            ));
        }
        let _lock = self.locked()?;
        let certificate = self.certificate()?;
        let token = JoinToken::new(subject, sha256(&certificate))?;
        let mut tokens = self.tokens()?;
        // Old entries say nothing that the list of certificates does not.
        tokens.retain(|token| !token.used && token.expires > now);
        tokens.push(TokenRecord::of(&token, now.saturating_add(seconds)));
        self.write_tokens(&tokens)?;
        Ok(token)
    }

    /// Checks a request and signs a certificate that is valid for this number of days.
    ///
    /// A subject that joins with a token replaces an earlier device of the same name: its
    /// certificates are revoked. A renewal leaves the earlier certificate as it is.
    pub fn approve(&self, request: &Request, days: u64, now: u64) -> Result<Issued, EnrolError> {
        let checked = CheckedRequest::from_pem(&request.csr)?;
        let _lock = self.locked()?;
        match &request.proof {
            Proof::Token(proof) => {
                self.use_token(&checked, proof, now)?;
                let earlier = self.valid_serials(checked.subject, now)?;
                let remark = format!("{} joined anew", checked.subject);
                deny::add(&self.path(DENIED), &earlier, &remark)?;
            }
            Proof::Renewal { certificate, signature } => {
                self.check_renewal(&checked, certificate, signature, now)?;
            }
        }
        self.issue(&checked, days, now)
    }

    /// Signs a certificate for a peer that showed one over TLS: a renewal without files.
    pub fn renew(
        &self,
        peer: &PeerIdentity,
        csr: &str,
        days: u64,
        now: u64,
    ) -> Result<Issued, EnrolError> {
        let checked = CheckedRequest::from_pem(csr)?;
        let _lock = self.locked()?;
        self.check_peer(&checked, peer, now)?;
        self.issue(&checked, days, now)
    }

    fn issue(&self, checked: &CheckedRequest, days: u64, now: u64) -> Result<Issued, EnrolError> {
        if checked.subject == Subject::Server {
            let reason = "the server is enrolled by `tilp enrol init`";
            return Err(EnrolError::refused(checked.subject, reason));
        }
        let issued = self.sign(checked, &[], days, now)?;
        files::make_folder(&issued.folder)?;
        files::write(&issued.folder.join(CA_FILE), &issued.authority)?;
        files::write(&issued.folder.join(CERTIFICATE_FILE), &issued.certificate)?;
        Ok(issued)
    }

    /// Finds the token behind a proof and writes down that it is used.
    fn use_token(&self, checked: &CheckedRequest, proof: &str, now: u64) -> Result<(), EnrolError> {
        let subject = checked.subject;
        let refused = |reason: &str| Err(EnrolError::refused(subject, reason));
        let mut tokens = self.tokens()?;
        let name = subject.to_string();
        let is_proven = |token: &&mut TokenRecord| {
            token.subject == name && token.proves(subject, &checked.der, proof)
        };
        let Some(token) = tokens.iter_mut().find(is_proven) else {
            return refused("no join token of this authority was used for it");
        };
        if token.used {
            return refused("its join token was used before");
        }
        if token.expires <= now {
            return refused("its join token has expired");
        }
        token.used = true;
        self.write_tokens(&tokens)
    }

    fn check_renewal(
        &self,
        checked: &CheckedRequest,
        certificate: &str,
        signature: &str,
        now: u64,
    ) -> Result<(), EnrolError> {
        let refused = |reason: &str| EnrolError::refused(checked.subject, reason);
        let held = certificate::from_pem(certificate, "request")?;
        let verifier = tls::verifier(&self.certificate()?, self.deny_list().into())?;
        let peer = verifier.check(&held, now)?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, certificate::public_key(&held)?);
        let signature =
            unhex_any(signature).ok_or_else(|| refused("its signature is unreadable"))?;
        let signed = key.verify(&renewal_message(&checked.der), &signature);
        signed.map_err(|_| refused("it is not signed by the key of its certificate"))?;
        self.check_peer(checked, &peer, now)
    }

    /// A renewal is for the same subject, and for a certificate that still holds.
    fn check_peer(
        &self,
        checked: &CheckedRequest,
        peer: &PeerIdentity,
        now: u64,
    ) -> Result<(), EnrolError> {
        let refused = |reason: &str| Err(EnrolError::refused(checked.subject, reason));
        if peer.subject != checked.subject {
            return refused(&format!("the certificate shown is that of {}", peer.subject));
        }
        if !(peer.not_before..=peer.not_after).contains(&now) {
            return refused("the certificate shown does not hold now");
        }
        if self.deny_list().denies(&peer.serial)? {
            return refused("the certificate shown is revoked");
        }
        Ok(())
    }

    fn sign(
        &self,
        checked: &CheckedRequest,
        hosts: &[String],
        days: u64,
        now: u64,
    ) -> Result<Issued, EnrolError> {
        if !(1..=MAX_DAYS).contains(&days) {
            return Err(EnrolError::field("days", days, format!("1 to {MAX_DAYS}"), "enrolment"));
        }
        let authority = files::read(&self.path(CA_FILE), MAX_PEM_BYTES)?;
        let key = files::read_secret(&self.path(CA_KEY_FILE), MAX_PEM_BYTES)?;
        let wrong = |error| EnrolError::crypto("reading the authority", error);
        let issuer = Issuer::from_ca_cert_pem(&authority, KeyPair::from_pem(&key).map_err(wrong)?)
            .map_err(wrong)?;
        let validity = Validity::starting(now, days * DAY_S);
        let params = certificate::subject_params(checked.subject, hosts, validity)?;
        let signed = checked.certified(&params, &issuer)?;
        let peer = PeerIdentity::of(signed.der())?;
        let line = IssuedLine {
            subject: peer.subject.to_string(),
            serial: peer.serial.to_string(),
            not_before: peer.not_before,
            not_after: peer.not_after,
        };
        // Before the certificate leaves: one that is not in the list cannot be revoked by name.
        let line = serde_json::to_string(&line).expect("a line is plain data");
        files::append(&self.path(ISSUED), &line)?;
        let folder = self.path("issued").join(checked.subject.to_string());
        Ok(Issued { peer, certificate: signed.pem(), authority, folder })
    }

    /// Revokes certificates of a subject that have not expired; the deny list takes effect at once.
    pub fn revoke(&self, subject: Subject, now: u64) -> Result<Vec<Serial>, EnrolError> {
        let _lock = self.locked()?;
        let serials = self.valid_serials(subject, now)?;
        if serials.is_empty() {
            return Err(EnrolError::refused(subject, "it has no certificate that holds"));
        }
        deny::add(&self.path(DENIED), &serials, &format!("{subject} revoked"))?;
        Ok(serials)
    }

    /// Revokes one certificate by its serial number.
    pub fn revoke_serial(&self, serial: &Serial) -> Result<(), EnrolError> {
        let _lock = self.locked()?;
        let text = serial.to_string();
        if !self.lines()?.iter().any(|line| line.serial == text) {
            let expected = "a serial number of `tilp enrol list`";
            return Err(EnrolError::field("serial", text, expected, self.folder.display()));
        }
        deny::add(&self.path(DENIED), std::slice::from_ref(serial), "revoked")
    }

    fn valid_serials(&self, subject: Subject, now: u64) -> Result<Vec<Serial>, EnrolError> {
        let name = subject.to_string();
        let is_valid = |entry: &Entry| entry.subject == name && entry.state == State::Valid;
        let entries = self.list(now)?.into_iter().filter(is_valid);
        entries.map(|entry| entry.serial.parse()).collect()
    }

    /// Every certificate with its state, in the order they were issued.
    pub fn list(&self, now: u64) -> Result<Vec<Entry>, EnrolError> {
        let denied = self.deny_list();
        let entry = |line: IssuedLine| {
            let state = match denied.denies(&line.serial.parse()?)? {
                true => State::Revoked,
                false if line.not_after < now => State::Expired,
                false => State::Valid,
            };
            let IssuedLine { subject, serial, not_before, not_after } = line;
            Ok(Entry { subject, serial, not_before, not_after, state })
        };
        self.lines()?.into_iter().map(entry).collect()
    }

    /// Tokens that were given out and can still be used.
    pub fn waiting(&self, now: u64) -> Result<Vec<Waiting>, EnrolError> {
        let is_open = |token: &TokenRecord| !token.used && token.expires > now;
        let open = self.tokens()?.into_iter().filter(is_open);
        Ok(open.map(|TokenRecord { subject, expires, .. }| Waiting { subject, expires }).collect())
    }

    /// The lock of a folder that has an authority.
    fn locked(&self) -> Result<Lock, EnrolError> {
        if !self.path(CA_FILE).exists() {
            let value = self.folder.display();
            let expected = "the folder of an authority, made by `tilp enrol init`";
            return Err(EnrolError::field("folder", value, expected, "enrolment"));
        }
        Lock::take(&self.folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn certificate(&self) -> Result<rustls::pki_types::CertificateDer<'static>, EnrolError> {
        let path = self.path(CA_FILE);
        certificate::from_pem(&files::read(&path, MAX_PEM_BYTES)?, path.display())
    }

    fn lines(&self) -> Result<Vec<IssuedLine>, EnrolError> {
        let path = self.path(ISSUED);
        let text = files::read(&path, MAX_BOOK_BYTES)?;
        let line = |(index, line): (usize, &str)| {
            let place = format!("{}, line {}", path.display(), index + 1);
            serde_json::from_str(line)
                .map_err(|_| EnrolError::field("line", line, "an issued certificate", place))
        };
        text.lines().enumerate().map(line).collect()
    }

    fn tokens(&self) -> Result<Vec<TokenRecord>, EnrolError> {
        let path = self.path(TOKENS);
        serde_json::from_str(&files::read_secret(&path, MAX_BOOK_BYTES)?).map_err(|_| {
            EnrolError::field("tokens", "(not shown)", "a list of tokens", path.display())
        })
    }

    fn write_tokens(&self, tokens: &[TokenRecord]) -> Result<(), EnrolError> {
        let text = serde_json::to_string_pretty(tokens).expect("tokens are plain data");
        files::write_secret(&self.path(TOKENS), &text)
    }

    /// Enrols a device on the same machine in one step: for a testbed that runs on one computer.
    pub fn enrol_here(
        &self,
        subject: Subject,
        folder: &Path,
        days: u64,
        now: u64,
    ) -> Result<device::Identity, EnrolError> {
        let device = device::Device::at(folder);
        let request = device.request(&self.token(subject, 60, now)?)?;
        let issued = self.approve(&request, days, now)?;
        device.install(&issued.certificate, &issued.authority)
    }
}

/// Bytes of a signature from hexadecimal digits, at most 80 of them.
fn unhex_any(text: &str) -> Option<Vec<u8>> {
    if text.len() > 160 || !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}
