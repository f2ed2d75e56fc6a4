//! Mutual TLS: settings of both sides, and the check of a client's certificate.
//!
//! TLS 1.3 only. Sessions are not resumed: a resumed session would skip the deny list.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore,
    ServerConfig, SignatureScheme,
};

use super::{DenyList, EnrolError, Identity, PeerIdentity, Subject};

/// The protocol over TLS: HTTP/2.
const ALPN: &[u8] = b"h2";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn wrong(error: impl ToString) -> EnrolError {
    EnrolError::crypto("setting up TLS", error)
}

fn roots(authority: &CertificateDer<'static>) -> Result<Arc<RootCertStore>, EnrolError> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).map_err(wrong)?;
    Ok(Arc::new(roots))
}

/// Checks that a client's certificate was signed by the authority, holds now, names a terminal or
/// the evaluator, and is not on the deny list.
#[derive(Debug)]
pub struct ClientVerifier {
    signed: Arc<dyn ClientCertVerifier>,
    denied: Arc<DenyList>,
}

pub(super) fn verifier(
    authority: &CertificateDer<'static>,
    denied: Arc<DenyList>,
) -> Result<ClientVerifier, EnrolError> {
    let builder = WebPkiClientVerifier::builder_with_provider(roots(authority)?, provider());
    Ok(ClientVerifier { signed: builder.build().map_err(wrong)?, denied })
}

impl ClientVerifier {
    /// Subject of this certificate, checked at this time in seconds since 1970.
    pub fn check(
        &self,
        certificate: &CertificateDer<'_>,
        now: u64,
    ) -> Result<PeerIdentity, EnrolError> {
        let peer = PeerIdentity::of(certificate)?;
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
        let signed = self.signed.verify_client_cert(certificate, &[], now);
        signed.map_err(|error| EnrolError::refused(peer.subject, error))?;
        if peer.subject == Subject::Server {
            return Err(EnrolError::refused(peer.subject, "it is no client"));
        }
        if self.denied.denies(&peer.serial)? {
            return Err(EnrolError::refused(peer.subject, "its certificate is revoked"));
        }
        Ok(peer)
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.signed.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.signed.verify_client_cert(end_entity, intermediates, now)?;
        match self.check(end_entity, now.as_secs()) {
            Ok(_) => Ok(verified),
            Err(_) => Err(CertificateError::Revoked.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

fn key(identity: &Identity) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.key.serialize_der()))
}

/// Settings of the server. `clock` is what certificates are checked by; `None` for the system's.
pub fn server_config(
    identity: &Identity,
    denied: Arc<DenyList>,
    clock: Option<Arc<dyn TimeProvider>>,
) -> Result<ServerConfig, EnrolError> {
    let clock = clock.unwrap_or_else(|| Arc::new(DefaultTimeProvider));
    let verifier = Arc::new(verifier(&identity.authority, denied)?);
    let config = ServerConfig::builder_with_details(provider(), clock)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(wrong)?;
    let chain = vec![identity.certificate.clone()];
    let config = config.with_client_cert_verifier(verifier);
    let mut config = config.with_single_cert(chain, key(identity)).map_err(wrong)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Settings of a client. `clock` as for the server.
pub fn client_config(
    identity: &Identity,
    clock: Option<Arc<dyn TimeProvider>>,
) -> Result<ClientConfig, EnrolError> {
    let clock = clock.unwrap_or_else(|| Arc::new(DefaultTimeProvider));
    let config = ClientConfig::builder_with_details(provider(), clock)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(wrong)?
        .with_root_certificates(roots(&identity.authority)?);
    let chain = vec![identity.certificate.clone()];
    let mut config = config.with_client_auth_cert(chain, key(identity)).map_err(wrong)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}
