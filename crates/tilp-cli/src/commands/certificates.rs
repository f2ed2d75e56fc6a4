//! Mutual TLS of a testbed's processes, from the folders of `tilp enrol`.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tilp_testbed::enrol::{
    Authority, CA_FILE, DenyList, Device, EnrolError, Identity, Subject, client_config, date_text,
};
use tilp_testbed::server::TlsFiles;
use tilp_testbed::transport::{Secure, Security};

use crate::failure::Failure;

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// An error of the system may be temporary; every other error is bad input.
pub(super) fn refused(error: EnrolError) -> Failure {
    match &error {
        EnrolError::File { error: cause, .. } if cause.kind() != std::io::ErrorKind::NotFound => {
            Failure::failed(error)
        }
        EnrolError::Crypto { .. } => Failure::failed(error),
        _ => Failure::input(error),
    }
}

/// How the base station secures connections. The deny list is that of the authority around the
/// server's folder, if the testbed names no other.
pub(super) fn security(tls: &TlsFiles) -> Result<Security, Failure> {
    let identity = Device::at(&tls.server).identity().map_err(refused)?;
    let beside = || tls.server.parent().unwrap_or(Path::new(".")).join("denied.txt");
    let denied = Arc::new(DenyList::at(&tls.denied.clone().unwrap_or_else(beside)));
    // With an unreadable list every connection would be refused one by one.
    if denied.denies(&identity.peer.serial).map_err(refused)? {
        return Err(Failure::input("the server's own certificate is revoked"));
    }
    Security::mutual(&identity, denied).map_err(refused)
}

/// How a terminal or the evaluator secures its connection.
pub(super) fn secure(folder: &Path) -> Result<Secure, Failure> {
    let identity = Device::at(folder).identity().map_err(refused)?;
    if identity.peer.not_after < now() {
        let until = date_text(identity.peer.not_after);
        let folder = folder.display();
        return Err(Failure::input(format!("the certificate in {folder} ended on {until}")));
    }
    client_config(&identity, None).map_err(refused)?;
    // A certificate that was renewed meanwhile is used when the process connects again.
    let folder = folder.to_owned();
    let settings = move || {
        let identity = Device::at(&folder).identity().map_err(|error| error.to_string())?;
        let config = client_config(&identity, None).map_err(|error| error.to_string())?;
        Ok(Arc::new(config))
    };
    Ok(Secure::Tls(Arc::new(settings)))
}

/// Seconds that a certificate must still hold when a testbed on one machine starts.
const SPARE_S: u64 = 86_400;

/// The authority of a testbed on one machine, made or renewed if need be.
pub(super) fn authority_here(folder: &Path) -> Result<Authority, Failure> {
    let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let authority = Authority::at(folder);
    if !folder.join(CA_FILE).exists() {
        return Authority::init(folder, &hosts, 90, now()).map_err(refused);
    }
    let server = Device::at(&authority.server()).identity().map_err(refused)?;
    if server.peer.not_after < now() + SPARE_S {
        authority.renew_server(&hosts, 90, now()).map_err(refused)?;
    }
    Ok(authority)
}

/// The identity of a process that a testbed on one machine starts, made if it is missing, revoked or
/// about to end.
pub(super) fn enrol_here(
    authority: &Authority,
    subject: Subject,
    folder: &Path,
) -> Result<(), Failure> {
    let denied = authority.deny_list();
    let holds = |identity: &Identity| {
        let is_denied = denied.denies(&identity.peer.serial).unwrap_or(true);
        !is_denied && identity.peer.not_after > now() + SPARE_S
    };
    if Device::at(folder).identity().is_ok_and(|identity| holds(&identity)) {
        return Ok(());
    }
    // A folder that is in use is joined anew from its beginning.
    let _ = std::fs::remove_dir_all(folder);
    authority.enrol_here(subject, folder, 7, now()).map_err(refused)?;
    Ok(())
}
