//! `tilp dash`.

use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use tilp_dash::{Access, Hub, Remote, Server, export, export_study, is_plain};

use crate::arguments::Dash;
use crate::failure::Failure;
use crate::output;
use crate::signals::Signals;

/// Shows runs in a browser until a signal asks to stop, or writes one as a page.
pub(crate) fn dash(arguments: Dash) -> Result<(), Failure> {
    if let Some(file) = &arguments.export {
        return write_page(&arguments.places, file);
    }
    let (folders, remotes) = places(&arguments.places)?;
    let is_open = !arguments.listen.ip().is_loopback();
    let token = match token()? {
        None if is_open => Some(random_token()?),
        given => given,
    };
    let address = arguments.listen;
    let taken = |error| Failure::input(format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    let signals = Signals::listen().map_err(Failure::failed)?;
    let access = Access::new(address, token.clone())
        .map_err(|_| Failure::input(format!("{address} needs a token, expected TILP_TOKEN")))?;
    let query = token.map_or(String::new(), |token| format!("?token={token}"));
    output::print(&format!("dashboard at http://{address}/{query}"))?;
    let server = Server::new(Hub::with_remotes(folders, remotes), access);
    server.serve(&listener, &|| signals.asked().is_some()).map_err(Failure::failed)?;
    Err(Failure::signal(signals.asked().unwrap_or_default(), "stopped"))
}

/// Folders, and addresses of dashboards elsewhere.
fn places(given: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<Remote>), Failure> {
    let (mut folders, mut remotes) = (Vec::new(), Vec::new());
    for place in given {
        match place.to_str().filter(|text| text.contains("://")) {
            Some(url) => remotes.push(Remote::from_url(url).map_err(Failure::input)?),
            None if place.is_dir() => folders.push(place.clone()),
            None => {
                let name = place.display();
                let line = format!("{name} is no folder, expected one with runs below it");
                return Err(Failure::input(line));
            }
        }
    }
    Ok((folders, remotes))
}

/// One run as one file.
fn write_page(folders: &[PathBuf], file: &Path) -> Result<(), Failure> {
    let [folder] = folders else {
        return Err(Failure::input(format!(
            "{} folders, expected one run to export",
            folders.len()
        )));
    };
    let page = if folder.join("manifest.json").is_file() {
        Some(export(folder))
    } else {
        export_study(folder)
    };
    let page = page.ok_or_else(|| {
        let folder = folder.display();
        Failure::input(format!(
            "{folder} has no manifest.json, expected the folder of a run or study"
        ))
    })?;
    let failed = |error| Failure::failed(format!("cannot write {}: {error}", file.display()));
    let aside = file.with_extension("part");
    std::fs::write(&aside, page).map_err(failed)?;
    std::fs::rename(&aside, file).map_err(failed)?;
    output::print(&format!("page in {}", file.display()))
}

/// The token of the environment.
fn token() -> Result<Option<String>, Failure> {
    match std::env::var("TILP_TOKEN") {
        Ok(token) if token.is_empty() => Ok(None),
        Ok(token) if is_plain(&token) => Ok(Some(token)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        // Not the value, which would print it.
        _ => Err(Failure::input("TILP_TOKEN has other characters than letters, digits and -_.~")),
    }
}

/// A random token.
fn random_token() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::failed(format!("no random token: {error}; set TILP_TOKEN")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
