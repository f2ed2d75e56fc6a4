//! Server-sent events: the list of runs, and one run as it grows.
//!
//! A page that comes back says what it has (`Last-Event-ID`, or `after` in the query) and gets what
//! it lacks, from this server or from one that was started later.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::http::{Request, head};
use crate::hub::Hub;
use crate::relay::relay;
use crate::remote;
use crate::run::{Cursor, Run, Watch};

/// A stream without news sends a comment so often: a client that is gone is noticed.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// Sends changes until the client leaves or the hub is closed.
pub(crate) fn stream(hub: &Hub, request: &Request, out: &mut impl Write) -> io::Result<()> {
    out.write_all((head(200, "text/event-stream") + "\r\nretry: 1000\n\n").as_bytes())?;
    out.flush()?;
    let given = request.header("last-event-id").or(request.asked("after"));
    let id = request.asked("run");
    if let Some((id, (place, there))) = id.and_then(|id| Some((id, remote::split(id)?)))
        && let Some(remote) = hub.remotes.get(place)
    {
        return relay(hub, remote, [id, there], given.map(str::to_owned), out);
    }
    let mut cursor: Option<Cursor> = given.and_then(|text| text.parse().ok());
    // The run may appear later, or in the place of another.
    let mut run: Option<(Arc<Run>, Watch)> = None;
    let (mut seen, mut version, mut is_gone) = ((0, 0), 0, false);
    while !hub.is_over() {
        let (now, list) = hub.list();
        let mut is_silent = true;
        let found = id.and_then(|id| hub.run(id));
        if found.is_none() && id.is_some() && !is_gone {
            write_event(out, None::<&Cursor>, "gone", "{}")?;
        }
        is_gone = found.is_none();
        run = found.map(|found| match run.take() {
            Some((old, watch)) if Arc::ptr_eq(&old, &found) => (old, watch),
            _ => (Arc::clone(&found), found.watch()),
        });
        if let Some((next, text)) =
            run.as_ref().and_then(|(run, _)| run.shared_message(cursor.as_ref()))
        {
            write_event(out, Some(&next), "state", &text)?;
            (cursor, is_silent) = (Some(next), false);
        }
        if now != version {
            write_event(out, cursor.as_ref(), "runs", &list)?;
            (version, is_silent) = (now, false);
        }
        if is_silent {
            out.write_all(b": still here\n\n")?;
        }
        out.flush()?;
        hub.wait(SILENCE, &mut seen);
    }
    Ok(())
}

/// JSON has no line breaks, so an event is one line of data.
pub(crate) fn write_event(
    out: &mut impl Write,
    id: Option<&impl Display>,
    kind: &str,
    data: &str,
) -> io::Result<()> {
    if let Some(id) = id {
        writeln!(out, "id: {id}")?;
    }
    write!(out, "event: {kind}\ndata: {data}\n\n")
}
