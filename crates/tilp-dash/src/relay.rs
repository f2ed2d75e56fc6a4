//! The stream of a run elsewhere, passed on with the id that the run has here.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::hub::Hub;
use crate::remote::{Lines, Remote};
use crate::stream::{SILENCE, write_event};

/// Time before a dashboard that did not answer is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// Passes changes on until the client leaves or the hub is closed. A connection that is lost is
/// made again, from where the page is.
pub(crate) fn relay(
    hub: &Hub,
    remote: &Remote,
    [id, there]: [&str; 2],
    mut cursor: Option<String>,
    out: &mut impl Write,
) -> io::Result<()> {
    let (mut version, mut said, mut is_gone) = (0, Instant::now(), false);
    let mut lines: Option<Lines> = None;
    while !hub.is_over() {
        if lines.is_none() {
            lines = remote.stream(there, cursor.as_deref()).ok();
            if lines.is_none() && !is_gone {
                write_event(out, None::<&String>, "gone", "{}")?;
            }
            is_gone = lines.is_none();
        }
        let (now, list) = hub.list();
        if now != version {
            write_event(out, cursor.as_ref(), "runs", &list)?;
            (version, said) = (now, Instant::now());
        }
        match lines.as_mut().map(|lines| pass_on(lines, id, &mut cursor, out)) {
            Some(Ok(true)) => said = Instant::now(),
            Some(Ok(false)) => {}
            Some(Err(Lost::There)) => lines = None,
            Some(Err(Lost::Here(error))) => return Err(error),
            None => std::thread::sleep(RETRY),
        }
        if said.elapsed() > SILENCE {
            out.write_all(b": still here\n\n")?;
            said = Instant::now();
        }
        out.flush()?;
    }
    Ok(())
}

/// Which side was lost.
enum Lost {
    There,
    Here(io::Error),
}

/// Passes one event on. False if there is none yet.
fn pass_on(
    lines: &mut Lines,
    id: &str,
    cursor: &mut Option<String>,
    out: &mut impl Write,
) -> Result<bool, Lost> {
    let (mut kind, mut next) = (String::new(), None);
    loop {
        let Some(line) = lines.next().map_err(|_| Lost::There)? else {
            // Between events there may be a rest, inside of one only a short one.
            if kind.is_empty() && next.is_none() { return Ok(false) } else { continue }
        };
        if let Some(given) = line.strip_prefix("id: ") {
            next = Some(given.to_owned());
        } else if let Some(given) = line.strip_prefix("event: ") {
            kind = given.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            let is_passed = match kind.as_str() {
                "state" => {
                    let mut data: Value = serde_json::from_str(data).map_err(|_| Lost::There)?;
                    data["run"] = json!(id);
                    *cursor = next.take().filter(|next| !next.contains(char::is_control));
                    let text = data.to_string();
                    write_event(out, cursor.as_ref(), "state", &text).map_err(Lost::Here)?;
                    true
                }
                "gone" => {
                    write_event(out, None::<&String>, "gone", "{}").map_err(Lost::Here)?;
                    true
                }
                // The list of that dashboard comes with the list of this one.
                _ => false,
            };
            return Ok(is_passed);
        }
    }
}
