//! Dashboards elsewhere, whose runs are shown beside those that are here.
//!
//! A run elsewhere has an id that begins with `@` and the number of its dashboard. What is asked about
//! it is asked there. Nothing else of that machine can be reached through this server: requests name
//! runs, and only the paths below are passed on.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::access::is_plain;
use crate::http::{Request, Response};

/// Time in which a dashboard elsewhere must answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time for a connection.
const CONNECTING: Duration = Duration::from_secs(3);
/// Bytes of an answer.
const MOST_BYTES: u64 = 64 << 20;
/// Bytes of a line of a stream: everything of a long run.
const MOST_LINE: u64 = 256 << 20;
/// Runs and studies of a list.
const MOST_RUNS: usize = 20_000;
/// Paths that are passed on.
const PATHS: [&str; 10] = [
    "/api/round",
    "/api/spent",
    "/api/terminal",
    "/api/predictions",
    "/api/episode",
    "/api/outcomes",
    "/api/whatif",
    "/api/map",
    "/api/twin",
    "/api/compare",
];

/// A dashboard elsewhere.
#[derive(Debug)]
pub struct Remote {
    /// Host and port.
    authority: String,
    token: Option<String>,
    list: Mutex<Value>,
}

impl Remote {
    /// The dashboard at an address such as `http://127.0.0.1:8021/?token=..`.
    pub fn from_url(url: &str) -> Result<Self, String> {
        let expected =
            "expected the address of a dashboard: http://HOST:PORT/, with ?token=.. if it has one";
        let wrong = || format!("{}: {expected}", url.split('?').next().unwrap_or_default());
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = place.strip_suffix('/').unwrap_or(place);
        let is_sound = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        if authority.is_empty() || authority.len() > 255 || !authority.chars().all(is_sound) {
            return Err(wrong());
        }
        let token = match query.strip_prefix("token=") {
            Some(token) if is_plain(token) && !token.is_empty() => Some(token.to_owned()),
            None if query.is_empty() => None,
            _ => return Err(wrong()),
        };
        let has_port =
            authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:80") };
        Ok(Self { authority, token, list: Mutex::new(Value::Null) })
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Asks for the list of runs. True if it is another than before.
    pub(crate) fn refresh(&self, place: usize) -> bool {
        let answer = self.get("/api/runs");
        let list = match answer {
            Ok((200, bytes)) => serde_json::from_slice(&bytes).unwrap_or_default(),
            _ => Value::Null,
        };
        let list = renamed(list, place, &self.authority);
        let mut known = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != list;
        *known = list;
        is_new
    }

    /// Runs, studies and roots as they were last heard of; null if it does not answer.
    pub(crate) fn list(&self) -> Value {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answer to a request about a run or a study there.
    pub(crate) fn answer(&self, place: usize, request: &Request) -> Response {
        if !PATHS.contains(&request.path.as_str()) {
            return Response::error(404, "there is nothing here");
        }
        let prefix = prefix(place);
        let query: Vec<String> = request
            .query
            .iter()
            .filter(|(name, _)| name != "token")
            .map(|(name, value)| {
                let value = value.strip_prefix(&prefix).unwrap_or(value);
                format!("{}={}", encoded(name), encoded(value))
            })
            .collect();
        match self.get(&format!("{}?{}", request.path, query.join("&"))) {
            Ok((200, bytes)) if request.path == "/api/compare" => {
                let found = serde_json::from_slice(&bytes).unwrap_or_default();
                Response::json(renamed(found, place, &self.authority).to_string())
            }
            Ok((200, bytes)) => Response::json(bytes),
            Ok((status, bytes)) => {
                let line = String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
                Response::error(status.clamp(400, 599), line.trim_end())
            }
            Err(error) => Response::error(503, format!("{}: {error}", self.authority)),
        }
    }

    /// The stream of a run there, from where a page was.
    pub(crate) fn stream(&self, run: &str, after: Option<&str>) -> io::Result<Lines> {
        let after = after.map_or(String::new(), |after| format!("&after={}", encoded(after)));
        let client = self.send(&format!("/api/stream?run={}{after}", encoded(run)))?;
        let mut reader = BufReader::with_capacity(64 << 10, client);
        match head(&mut reader)? {
            200 => {}
            status => return Err(io::Error::other(format!("status {status}"))),
        }
        reader.get_ref().set_read_timeout(Some(Duration::from_millis(250)))?;
        Ok(Lines { reader, line: Vec::new() })
    }

    fn get(&self, target: &str) -> io::Result<(u16, Vec<u8>)> {
        let mut reader = BufReader::new(self.send(target)?);
        let status = head(&mut reader)?;
        let mut body = Vec::new();
        reader.take(MOST_BYTES + 1).read_to_end(&mut body)?;
        match body.len() as u64 > MOST_BYTES {
            true => Err(io::Error::other("the answer is too long")),
            false => Ok((status, body)),
        }
    }

    fn send(&self, target: &str) -> io::Result<TcpStream> {
        let address = self.authority.to_socket_addrs()?.next();
        let address = address.ok_or_else(|| io::Error::other("no such host"))?;
        let mut client = TcpStream::connect_timeout(&address, CONNECTING)?;
        client.set_read_timeout(Some(PATIENCE))?;
        client.set_write_timeout(Some(PATIENCE))?;
        let token = self.token.as_ref();
        let token =
            token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let host = &self.authority;
        write!(
            client,
            "GET {target} HTTP/1.1\r\nHost: {host}\r\n{token}Connection: close\r\n\r\n"
        )?;
        Ok(client)
    }
}

/// Lines of a stream that may rest.
pub(crate) struct Lines {
    reader: BufReader<TcpStream>,
    line: Vec<u8>,
}

impl Lines {
    /// The next line; none if there is none yet. An error at the end of the stream.
    pub(crate) fn next(&mut self) -> io::Result<Option<String>> {
        let room = MOST_LINE - self.line.len() as u64;
        let read = self.reader.by_ref().take(room).read_until(b'\n', &mut self.line);
        match read {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if self.line.last() == Some(&b'\n') => {}
            Ok(_) => return Err(io::Error::other("a line without end")),
            Err(error) if is_rest(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let line = String::from_utf8(std::mem::take(&mut self.line));
        line.map(|line| Some(line.trim_end().to_owned())).map_err(io::Error::other)
    }
}

fn is_rest(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Reads the head of an answer and gives its status.
fn head(reader: &mut impl BufRead) -> io::Result<u16> {
    let mut status = None;
    let mut room = 32 << 10;
    loop {
        let mut line = String::new();
        let n = reader.by_ref().take(room).read_line(&mut line)?;
        room -= n as u64;
        if n == 0 || room == 0 {
            return Err(io::Error::other("no answer of HTTP/1.1"));
        }
        if status.is_none() {
            let word = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
            status = Some(word.and_then(|word| word.trim().parse().ok()).unwrap_or(0));
        }
        if line == "\r\n" || line == "\n" {
            return Ok(status.unwrap_or(0));
        }
    }
}

/// How ids of runs there begin here.
pub(crate) fn prefix(place: usize) -> String {
    format!("@{place}/")
}

/// The number of the dashboard and the id there of a run elsewhere.
pub(crate) fn split(id: &str) -> Option<(usize, &str)> {
    let (place, rest) = id.strip_prefix('@')?.split_once('/')?;
    Some((place.parse().ok()?, rest))
}

/// A list or a comparison with the ids that runs and studies have here. Runs that are elsewhere for
/// that dashboard too are left out: two that show each other would go round.
fn renamed(mut list: Value, place: usize, at: &str) -> Value {
    let prefix = prefix(place);
    for part in ["runs", "studies"] {
        let Some(all) = list.get_mut(part).and_then(Value::as_array_mut) else { continue };
        all.retain(|one| one["id"].as_str().is_none_or(|id| !id.starts_with('@')));
        all.truncate(MOST_RUNS);
        for one in all {
            for name in ["id", "study"] {
                if let Some(id) = one.get(name).and_then(Value::as_str) {
                    one[name] = json!(format!("{prefix}{id}"));
                }
            }
            if one.is_object() && part == "runs" && one.get("state").is_some() {
                one["at"] = json!(at);
            }
        }
    }
    list
}

/// Text as it stands in a query.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => (byte as char).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_a_dashboard_or_refused_without_its_token() {
        let good = Remote::from_url("http://127.0.0.1:8021/?token=aZ0-9").unwrap();
        assert_eq!((good.authority(), good.token.as_deref()), ("127.0.0.1:8021", Some("aZ0-9")));
        assert_eq!(Remote::from_url("http://host").unwrap().authority(), "host:80");
        assert_eq!(Remote::from_url("http://[::1]:9/").unwrap().authority(), "[::1]:9");
        for url in [
            "https://host:1/",
            "http://",
            "http://host:1/path",
            "http://user@host:1/",
            "http://host:1/?token=a b",
            "http://host:1/?token=",
            "http://host:1/?other=1",
            "http://a\r\nb/",
            "http://a b/",
        ] {
            let line = Remote::from_url(url).unwrap_err();
            assert!(!line.contains("a b?") && line.contains("expected the address"), "{line}");
        }
    }

    #[test]
    fn ids_are_those_of_here_and_what_is_elsewhere_there_is_left_out() {
        let list = json!({
            "runs": [{ "id": "0/a", "study": "0/s", "state": "running" }, { "id": "@0/0/b" }, { "id": 7 }, 3],
            "studies": [{ "id": "0/s" }],
        });
        let found = renamed(list, 2, "host:1");
        assert_eq!(found["runs"][0]["id"], "@2/0/a");
        assert_eq!(found["runs"][0]["study"], "@2/0/s");
        assert_eq!(found["runs"][0]["at"], "host:1");
        assert_eq!(found["runs"].as_array().unwrap().len(), 3);
        assert_eq!(found["studies"][0]["id"], "@2/0/s");
        assert_eq!(renamed(json!([1]), 0, ""), json!([1]));
        assert_eq!(split("@2/0/a b"), Some((2, "0/a b")));
        for id in ["0/a", "@x/a", "@2", "@-1/a", ""] {
            assert_eq!(split(id), None, "{id}");
        }
    }

    #[test]
    fn an_answer_that_is_none_is_an_error() {
        for text in ["", "\r\n", "SMTP ready\r\n\r\n", "HTTP/1.1 abc\r\n\r\n"] {
            assert!(head(&mut text.as_bytes()).map_or(true, |status| status == 0), "{text}");
        }
        assert!(head(&mut "a: b\r\n".repeat(10_000).as_bytes()).is_err());
        assert_eq!(head(&mut &b"HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nrest"[..]).unwrap(), 404);
        assert_eq!(encoded("0/a b&c=ä"), "0%2Fa%20b%26c%3D%C3%A4");
    }
}
