//! The side of a device: its key, its requests, its certificate.
//!
//! The private key is made here and never leaves the folder. A renewal makes a new key beside the
//! old one; the new key takes its place when a certificate for it is there.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{KeyPair, SigningKey};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

use super::certificate::{self, PeerIdentity};
use super::subject::{hex, unhex};
use super::token::{JoinToken, sha256};
use super::{EnrolError, files};

/// Certificate of the authority.
pub const CA_FILE: &str = "ca.pem";
/// Certificate of the device.
pub const CERTIFICATE_FILE: &str = "cert.pem";
/// Private key of the device.
pub const KEY_FILE: &str = "key.pem";
/// A request on its way to the authority.
pub const REQUEST_FILE: &str = "request.json";
/// Private key that a renewal waits to use.
const NEXT_KEY_FILE: &str = "next-key.pem";
/// Digest of the certificate of the authority that the join token named.
const PIN_FILE: &str = "ca.sha256";

const FORMAT: &str = "tilp-enrol-request";
const VERSION: u32 = 1;
const MAX_PEM_BYTES: u64 = 16 << 10;
/// Largest request that is read.
pub const MAX_REQUEST_BYTES: u64 = 32 << 10;

/// A request for a certificate, as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    format: String,
    version: u32,
    /// The certificate request, PEM.
    pub csr: String,
    /// Why it should be granted.
    pub proof: Proof,
}

/// Why a request should be granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Proof {
    /// The device has a join token: a keyed digest of the request.
    Token(String),
    /// The device has a certificate that still holds.
    Renewal {
        /// The certificate, PEM.
        certificate: String,
        /// Signature of the request by the key of that certificate, in hexadecimal digits.
        signature: String,
    },
}

impl Request {
    fn new(csr: String, proof: Proof) -> Self {
        Self { format: FORMAT.into(), version: VERSION, csr, proof }
    }

    /// Reads an untrusted request.
    pub fn parse(text: &str) -> Result<Self, EnrolError> {
        if text.len() as u64 > MAX_REQUEST_BYTES {
            return Err(EnrolError::refused("request", "it is larger than 32 KiB"));
        }
        let request: Self = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let reason =
                format!("line {line}, column {column} is not as in docs/reference/enrolment.md");
            EnrolError::refused("request", reason)
        })?;
        if request.format != FORMAT {
            return Err(EnrolError::field("format", &request.format, FORMAT, "request"));
        }
        if request.version != VERSION {
            return Err(EnrolError::field("version", request.version, VERSION, "request"));
        }
        Ok(request)
    }

    /// Reads a request from a file.
    pub fn read(path: &Path) -> Result<Self, EnrolError> {
        Self::parse(&files::read(path, MAX_REQUEST_BYTES)?)
    }

    /// The request as text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a request is plain data")
    }
}

/// What a signature of a renewal covers.
pub(super) fn renewal_message(request: &[u8]) -> Vec<u8> {
    [b"tilp renewal 1\n", request].concat()
}

/// The folder of a device.
#[derive(Clone, Debug)]
pub struct Device {
    folder: PathBuf,
}

impl Device {
    /// A device whose files are in this folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Makes a key and a request with a join token. A folder that already has a certificate is
    /// refused; without one, the request may be made again.
    pub fn request(&self, token: &JoinToken) -> Result<Request, EnrolError> {
        files::make_folder(&self.folder)?;
        let held = self.folder.join(CERTIFICATE_FILE);
        if held.exists() {
            let reason = format!("{} exists; renew it, or use another folder", held.display());
            return Err(EnrolError::refused(token.subject(), reason));
        }
        let key = certificate::new_key()?;
        let csr = certificate::new_request(token.subject(), &key)?;
        let checked = certificate::CheckedRequest::from_pem(&csr)?;
        let request = Request::new(csr, Proof::Token(token.prove(&checked.der)));
        files::write_secret(&self.folder.join(KEY_FILE), &key.serialize_pem())?;
        files::write(&self.folder.join(PIN_FILE), &hex(&token.authority()))?;
        files::write(&self.folder.join(REQUEST_FILE), &request.to_json())?;
        Ok(request)
    }

    /// Makes a new key and a request that the present certificate vouches for.
    pub fn renewal(&self) -> Result<Request, EnrolError> {
        let identity = self.identity()?;
        let key = certificate::new_key()?;
        let csr = certificate::new_request(identity.peer.subject, &key)?;
        let checked = certificate::CheckedRequest::from_pem(&csr)?;
        let signature = identity.key.sign(&renewal_message(&checked.der));
        let signature =
            signature.map_err(|error| EnrolError::crypto("signing a renewal", error))?;
        let certificate = files::read(&self.folder.join(CERTIFICATE_FILE), MAX_PEM_BYTES)?;
        let proof = Proof::Renewal { certificate, signature: hex(&signature) };
        let request = Request::new(csr, proof);
        files::write_secret(&self.folder.join(NEXT_KEY_FILE), &key.serialize_pem())?;
        files::write(&self.folder.join(REQUEST_FILE), &request.to_json())?;
        Ok(request)
    }

    /// Puts a certificate into the folder. It must be for a key of this device.
    pub fn install(&self, certificate: &str, authority: &str) -> Result<Identity, EnrolError> {
        let place = self.folder.join(CERTIFICATE_FILE);
        let der = certificate::from_pem(certificate, place.display())?;
        self.pinned(authority)?;
        // The old key stays in its place until the new certificate is there.
        self.find_key(&der)?;
        files::write(&self.folder.join(CA_FILE), authority)?;
        files::write(&place, certificate)?;
        self.identity()
    }

    /// What the device shows to others.
    pub fn identity(&self) -> Result<Identity, EnrolError> {
        let place = self.folder.join(CERTIFICATE_FILE);
        let authority = files::read(&self.folder.join(CA_FILE), MAX_PEM_BYTES)?;
        let authority = self.pinned(&authority)?;
        let certificate =
            certificate::from_pem(&files::read(&place, MAX_PEM_BYTES)?, place.display())?;
        let key = self.key_of(&certificate)?;
        Ok(Identity { peer: PeerIdentity::of(&certificate)?, authority, certificate, key })
    }

    /// The certificate of the authority, if it is the one that the join token named.
    fn pinned(&self, authority: &str) -> Result<CertificateDer<'static>, EnrolError> {
        let place = self.folder.join(CA_FILE);
        let certificate = certificate::from_pem(authority, place.display())?;
        let pin = self.folder.join(PIN_FILE);
        if pin.exists() {
            let expected = files::read(&pin, 128)?;
            let found = hex(&sha256(&certificate));
            if unhex::<32>(expected.trim()) != Some(sha256(&certificate)) {
                return Err(EnrolError::field("sha256", found, expected.trim(), place.display()));
            }
        }
        Ok(certificate)
    }

    /// The private key of the certificate in the folder. A key that waited for it takes its place.
    fn key_of(&self, certificate: &CertificateDer<'_>) -> Result<KeyPair, EnrolError> {
        let (key, path) = self.find_key(certificate)?;
        let held = self.folder.join(KEY_FILE);
        if path != held {
            fs::rename(&path, &held).map_err(|error| EnrolError::file("write", &held, error))?;
        }
        Ok(key)
    }

    /// The private key of a certificate and where it is.
    fn find_key(&self, certificate: &CertificateDer<'_>) -> Result<(KeyPair, PathBuf), EnrolError> {
        let wanted = certificate::public_key(certificate)?;
        for name in [KEY_FILE, NEXT_KEY_FILE] {
            let path = self.folder.join(name);
            if name == NEXT_KEY_FILE && !path.exists() {
                continue;
            }
            let key = read_key(&path)?;
            if key.public_key_raw() == wanted {
                return Ok((key, path));
            }
        }
        let reason = format!("it is not for the key in {}", self.folder.join(KEY_FILE).display());
        Err(EnrolError::refused("certificate", reason))
    }
}

fn read_key(path: &Path) -> Result<KeyPair, EnrolError> {
    let text = files::read_secret(path, MAX_PEM_BYTES)?;
    KeyPair::from_pem(&text).map_err(|_| {
        EnrolError::field("key", "(not shown)", "a private key in PEM", path.display())
    })
}

/// A certificate with its private key, and the authority behind it.
#[derive(Debug)]
pub struct Identity {
    /// Subject and validity of the certificate.
    pub peer: PeerIdentity,
    pub(super) authority: CertificateDer<'static>,
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: KeyPair,
}
