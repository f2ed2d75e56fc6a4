//! `tilp enrol`.

use std::io::Read;
use std::path::Path;

use tilp::round::TerminalId;
use tilp_testbed::enrol::{
    Authority, Device, Entry, JoinToken, MAX_REQUEST_BYTES, MAX_TOKEN_BYTES, REQUEST_FILE, Request,
    State, Subject, Waiting, date_text,
};

use super::certificates::{now, refused};
use crate::arguments::{Enrol, EnrolVerb, Format};
use crate::failure::Failure;
use crate::output;

/// Enrols terminals and the evaluator.
pub(crate) fn enrol(arguments: Enrol) -> Result<(), Failure> {
    let now = now();
    match arguments.verb {
        EnrolVerb::Init { folder, hosts, days, renew_server } => {
            init(&folder, &hosts, days, renew_server, now)
        }
        EnrolVerb::Token { folder, whose, hours } => {
            let subject = subject(whose.terminal);
            let made = Authority::at(&folder).token(subject, hours * 3600, now);
            output::print(&made.map_err(refused)?.reveal())
        }
        EnrolVerb::Request { folder, token_file, renew } => {
            let device = Device::at(&folder);
            let made = match renew {
                true => device.renewal(),
                false => device.request(&token(token_file.as_deref())?),
            };
            made.map_err(refused)?;
            let path = folder.join(REQUEST_FILE);
            output::print(&format!("request in {}; bring it to the authority", path.display()))
        }
        EnrolVerb::Approve { folder, request, days } => approve(&folder, &request, days, now),
        EnrolVerb::Revoke { folder, which } => {
            let authority = Authority::at(&folder);
            let serials = match which.serial {
                Some(serial) => {
                    let serial = serial.parse().map_err(refused)?;
                    authority.revoke_serial(&serial).map_err(refused)?;
                    vec![serial]
                }
                None => authority.revoke(subject(which.terminal), now).map_err(refused)?,
            };
            let lines: Vec<String> = serials.iter().map(|one| format!("revoked {one}")).collect();
            output::print(&lines.join("\n"))
        }
        EnrolVerb::List { folder, format } => {
            let authority = Authority::at(&folder);
            let (certificates, tokens) = (authority.list(now), authority.waiting(now));
            list(&certificates.map_err(refused)?, &tokens.map_err(refused)?, format)
        }
    }
}

/// A terminal, or without an id the evaluator.
fn subject(terminal: Option<u32>) -> Subject {
    terminal.map_or(Subject::Evaluator, |id| Subject::Terminal(TerminalId(id)))
}

fn init(
    folder: &Path,
    hosts: &[String],
    days: u64,
    renew_server: bool,
    now: u64,
) -> Result<(), Failure> {
    let authority = match renew_server {
        true => {
            let authority = Authority::at(folder);
            authority.renew_server(hosts, days, now).map_err(refused)?;
            authority
        }
        false => Authority::init(folder, hosts, days, now).map_err(refused)?,
    };
    output::print(&format!(
        "authority in {}, server's identity in {} for {}",
        folder.display(),
        authority.server().display(),
        hosts.join(", ")
    ))
}

/// The join token from a file, standard input or the environment; never from the command line, which
/// others can see.
fn token(file: Option<&Path>) -> Result<JoinToken, Failure> {
    let text = match file {
        Some(path) => read(path, MAX_TOKEN_BYTES)?,
        None => std::env::var("TILP_JOIN_TOKEN").map_err(|_| {
            Failure::input("no join token, expected --token-file FILE, TILP_JOIN_TOKEN or --renew")
        })?,
    };
    JoinToken::parse(&text).map_err(refused)
}

fn read(path: &Path, limit: u64) -> Result<String, Failure> {
    let wrong =
        |error: std::io::Error| Failure::input(format!("cannot read {}: {error}", path.display()));
    let source: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(path).map_err(wrong)?),
    };
    let mut text = String::new();
    source.take(limit + 1).read_to_string(&mut text).map_err(wrong)?;
    if text.len() as u64 > limit {
        let place = path.display();
        return Err(Failure::input(format!("bytes = more, expected at most {limit} ({place})")));
    }
    Ok(text)
}

fn approve(folder: &Path, request: &Path, days: u64, now: u64) -> Result<(), Failure> {
    let request = Request::parse(&read(request, MAX_REQUEST_BYTES)?).map_err(refused)?;
    let issued = Authority::at(folder).approve(&request, days, now).map_err(refused)?;
    output::print(&format!(
        "{} may take part until {}; bring ca.pem and cert.pem of {} to it",
        issued.peer.subject,
        date_text(issued.peer.not_after),
        issued.folder.display()
    ))
}

fn list(certificates: &[Entry], tokens: &[Waiting], format: Format) -> Result<(), Failure> {
    if format == Format::Json {
        let all = serde_json::json!({ "certificates": certificates, "tokens": tokens });
        return output::print(&serde_json::to_string_pretty(&all).expect("a list is plain data"));
    }
    let mut text = format!("{:14}{:34}{:22}{:22}state\n", "subject", "serial", "from", "until");
    for Entry { subject, serial, not_before, not_after, state } in certificates {
        let (from, until) = (date_text(*not_before), date_text(*not_after));
        let state = match state {
            State::Valid => "valid",
            State::Expired => "expired",
            State::Revoked => "revoked",
        };
        text += &format!("{subject:14}{serial:34}{from:22}{until:22}{state}\n");
    }
    for Waiting { subject, expires } in tokens {
        let (none, until) = ("", date_text(*expires));
        text += &format!("{subject:14}{:34}{none:22}{until:22}waiting\n", "(join token)");
    }
    output::print(&text)
}
