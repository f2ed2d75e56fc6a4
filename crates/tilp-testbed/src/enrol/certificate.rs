//! Certificates: what we put into them, and what we read out of one.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    SanType, SerialNumber,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::{EnrolError, Serial, Subject, token};

/// Largest certificate or request in bytes. Ours have about 500.
pub const MAX_DER_BYTES: usize = 4096;
/// Clocks of devices may be behind by this many seconds.
const SKEW_S: u64 = 300;

/// Subject and validity of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    /// Its subject.
    pub subject: Subject,
    /// Serial number, by which it is revoked.
    pub serial: Serial,
    /// Start of its validity, in seconds since 1970.
    pub not_before: u64,
    /// End of its validity, in seconds since 1970.
    pub not_after: u64,
}

impl PeerIdentity {
    /// Reads a certificate. Whether it was signed by the authority is checked elsewhere.
    pub fn of(certificate: &[u8]) -> Result<Self, EnrolError> {
        let wrong = |reason: &str| EnrolError::refused("certificate", reason);
        if certificate.len() > MAX_DER_BYTES {
            return Err(wrong("it is larger than 4096 bytes"));
        }
        let (rest, parsed) =
            X509Certificate::from_der(certificate).map_err(|_| wrong("it cannot be read"))?;
        if !rest.is_empty() {
            return Err(wrong("there are bytes behind its end"));
        }
        let names =
            parsed.subject_alternative_name().map_err(|_| wrong("its names are unclear"))?;
        let names = names.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
        let uris: Vec<&str> = names.iter().filter_map(uri).collect();
        let [uri] = uris[..] else { return Err(wrong("it does not name one subject")) };
        let subject = Subject::from_uri(uri);
        let subject = subject.ok_or_else(|| wrong("its subject is none of this program"))?;
        let seconds = |time: i64| u64::try_from(time).map_err(|_| wrong("it is older than 1970"));
        Ok(Self {
            subject,
            serial: Serial::from_bytes(parsed.raw_serial()),
            not_before: seconds(parsed.validity().not_before.timestamp())?,
            not_after: seconds(parsed.validity().not_after.timestamp())?,
        })
    }
}

fn uri<'a>(name: &'a GeneralName<'_>) -> Option<&'a str> {
    match name {
        GeneralName::URI(uri) => Some(uri),
        _ => None,
    }
}

/// The key in a certificate, as the bytes that signatures are checked with.
pub(super) fn public_key(certificate: &CertificateDer<'_>) -> Result<Vec<u8>, EnrolError> {
    let parsed = X509Certificate::from_der(certificate);
    let (_, parsed) =
        parsed.map_err(|_| EnrolError::refused("certificate", "it cannot be read"))?;
    Ok(parsed.public_key().subject_public_key.data.to_vec())
}

/// The one certificate in a PEM text.
pub(super) fn from_pem(
    text: &str,
    place: impl std::fmt::Display,
) -> Result<CertificateDer<'static>, EnrolError> {
    CertificateDer::from_pem_slice(text.as_bytes()).map_err(|_| {
        EnrolError::field("certificate", "(not readable)", "one certificate in PEM", place)
    })
}

/// Makes a key of the only kind that is used here.
pub(super) fn new_key() -> Result<KeyPair, EnrolError> {
    let made = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
    made.map_err(|error| EnrolError::crypto("making a key", error))
}

/// The request of a subject for a certificate of this key, as PEM.
pub(super) fn new_request(subject: Subject, key: &KeyPair) -> Result<String, EnrolError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = name(&subject.to_string());
    params.subject_alt_names = vec![subject_name(subject)?];
    let wrong = |error| EnrolError::crypto("making a certificate request", error);
    params.serialize_request(key).map_err(wrong)?.pem().map_err(wrong)
}

/// A certificate request whose signature was checked.
#[derive(Debug)]
pub struct CheckedRequest {
    /// Its subject.
    pub subject: Subject,
    /// The request as signed.
    pub(super) der: Vec<u8>,
    key: rcgen::PublicKey,
}

impl CheckedRequest {
    /// Reads an untrusted request in PEM. See [`CheckedRequest::from_der`].
    pub fn from_pem(text: &str) -> Result<Self, EnrolError> {
        let der = CertificateSigningRequestDer::from_pem_slice(text.as_bytes());
        let wrong = |_| EnrolError::refused("certificate request", "it is not PEM");
        Self::from_der(&der.map_err(wrong)?)
    }

    /// Reads an untrusted request: one subject, a signature by the key in it, and
    /// a key of the kind used here. Whatever else it asks for is not granted.
    pub fn from_der(der: &[u8]) -> Result<Self, EnrolError> {
        let wrong = |reason: &str| EnrolError::refused("certificate request", reason);
        if der.len() > MAX_DER_BYTES {
            return Err(wrong("it is larger than 4096 bytes"));
        }
        let parsed = CertificateSigningRequestParams::from_der(&der.into())
            .map_err(|_| wrong("it cannot be read, or its signature is wrong"))?;
        if parsed.public_key.algorithm() != &PKCS_ECDSA_P256_SHA256 {
            return Err(wrong("its key is not ECDSA P-256"));
        }
        let [SanType::URI(uri)] = &parsed.params.subject_alt_names[..] else {
            return Err(wrong("it does not name exactly one subject"));
        };
        let subject = Subject::from_uri(uri.as_str());
        let subject = subject.ok_or_else(|| wrong("its subject is none of this program"))?;
        Ok(Self { subject, der: der.to_vec(), key: parsed.public_key })
    }
}

/// From when to when a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub from: u64,
    pub until: u64,
}

impl Validity {
    /// From shortly before now to this number of seconds from now.
    pub(super) fn starting(now: u64, seconds: u64) -> Self {
        Self { from: now.saturating_sub(SKEW_S), until: now.saturating_add(seconds) }
    }
}

fn date(seconds: u64) -> Result<OffsetDateTime, EnrolError> {
    let wrong =
        || EnrolError::field("validity", seconds, "a date before the year 9999", "enrolment");
    let seconds = i64::try_from(seconds).map_err(|_| wrong())?;
    OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| wrong())
}

/// A second, counted from 1970, as a date for people.
pub fn date_text(seconds: u64) -> String {
    let Ok(date) = date(seconds) else { return format!("{seconds} s after 1970") };
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    let (hour, minute) = (date.hour(), date.minute());
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn subject_name(subject: Subject) -> Result<SanType, EnrolError> {
    let uri = subject.uri().try_into();
    Ok(SanType::URI(uri.map_err(|error: rcgen::Error| EnrolError::crypto("naming", error))?))
}

/// What the certificate of an authority says.
pub(super) fn authority_params(validity: Validity) -> Result<CertificateParams, EnrolError> {
    let mut params = plain("tilp authority", validity)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// What the certificate of a subject says. A server also has host names and addresses.
pub(super) fn subject_params(
    subject: Subject,
    hosts: &[String],
    validity: Validity,
) -> Result<CertificateParams, EnrolError> {
    let mut params = plain(&subject.to_string(), validity)?;
    let hosts = CertificateParams::new(hosts).map_err(|_| {
        EnrolError::field("host", hosts.join(","), "names or addresses", "enrolment")
    })?;
    params.subject_alt_names = hosts.subject_alt_names;
    params.subject_alt_names.push(subject_name(subject)?);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![match subject {
        Subject::Server => ExtendedKeyUsagePurpose::ServerAuth,
        _ => ExtendedKeyUsagePurpose::ClientAuth,
    }];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn plain(common: &str, validity: Validity) -> Result<CertificateParams, EnrolError> {
    let mut params = CertificateParams::default();
    params.not_before = date(validity.from)?;
    params.not_after = date(validity.until)?;
    params.distinguished_name = name(common);
    params.serial_number = Some(SerialNumber::from_slice(&new_serial()?));
    Ok(params)
}

/// Sixteen random bytes that read as a positive number without leading zeros.
fn new_serial() -> Result<[u8; 16], EnrolError> {
    let mut bytes: [u8; 16] = token::random()?;
    bytes[0] = (bytes[0] & 0x7f).max(1);
    Ok(bytes)
}

impl CheckedRequest {
    /// A certificate for the key of the request, with what the authority puts into it.
    pub(super) fn certified(
        &self,
        params: &CertificateParams,
        issuer: &rcgen::Issuer<'_, KeyPair>,
    ) -> Result<rcgen::Certificate, EnrolError> {
        let signed = params.signed_by(&self.key, issuer);
        signed.map_err(|error| EnrolError::crypto("signing a certificate", error))
    }
}
