//! As much of HTTP/1.1 as a read-only page needs: one bounded request per connection, one answer.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Bytes of a request, all its headers included. A browser sends about one kilobyte.
const MOST_BYTES: usize = 16 << 10;
/// Headers of a request.
const MOST_HEADERS: usize = 64;
/// Time in which a request must be complete.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What a page may load and do: nothing that this server does not serve.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A request without a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Only the head of the answer is wanted.
    pub is_head: bool,
    /// The path, decoded.
    pub path: String,
    /// Names and values after the question mark, decoded.
    pub query: Vec<(String, String)>,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// The value of a name in the query.
    pub fn asked(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Reads a request. An error is the status and the line that answer it.
    pub fn read(stream: &mut impl Read) -> Result<Self, (u16, &'static str)> {
        let start = Instant::now();
        let mut bytes = Vec::with_capacity(2048);
        let mut chunk = [0; 2048];
        let end = loop {
            if let Some(end) = find(&bytes, b"\r\n\r\n") {
                break end;
            }
            if bytes.len() >= MOST_BYTES {
                return Err((431, "the request is too long"));
            }
            if start.elapsed() > PATIENCE {
                return Err((408, "the request took too long"));
            }
            match stream.read(&mut chunk) {
                Ok(0) | Err(_) => return Err((400, "the request is not complete")),
                Ok(n) => bytes.extend_from_slice(&chunk[..n]),
            }
        };
        Self::parse(&bytes[..end])
    }

    fn parse(head: &[u8]) -> Result<Self, (u16, &'static str)> {
        let wrong = (400, "this is no request of HTTP/1.1");
        let text = std::str::from_utf8(head).map_err(|_| wrong)?;
        let mut lines = text.split("\r\n");
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, version] = words[..] else { return Err(wrong) };
        if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return Err(wrong);
        }
        let is_head = match method {
            "GET" => false,
            "HEAD" => true,
            _ => return Err((405, "only GET and HEAD are answered: nothing can be changed here")),
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = decoded(path, false).ok_or(wrong)?;
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((decoded(name, true)?, decoded(value, true)?))
        };
        let query = query.split('&').filter(|part| !part.is_empty()).map(pair);
        let query = query.collect::<Option<Vec<_>>>().ok_or(wrong)?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.map(header).collect::<Option<Vec<_>>>().ok_or(wrong)?;
        match headers.len() > MOST_HEADERS {
            true => Err((431, "the request has too many headers")),
            false => Ok(Self { is_head, path, query, headers }),
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Text without percent signs; none if it is not UTF-8 or contains a control character.
fn decoded(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?].map(|digit| (digit as char).to_digit(16));
                (digits[0]? * 16 + digits[1]?) as u8
            }
            b'+' if plus_is_space => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control))
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Media type of the body.
    pub kind: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Headers that not every answer has.
    pub headers: Vec<(&'static str, String)>,
}

impl Response {
    /// A good answer.
    pub fn new(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, kind, body: body.into(), headers: Vec::new() }
    }

    /// JSON.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        Self::new("application/json", body)
    }

    /// One line that says what is wrong.
    pub fn error(status: u16, line: impl std::fmt::Display) -> Self {
        let body = format!("{line}\n").into_bytes();
        Self { status, ..Self::new("text/plain; charset=utf-8", body) }
    }

    /// With one more header.
    pub fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Writes it.
    pub fn write(&self, stream: &mut impl Write, is_head: bool) -> io::Result<()> {
        let length = self.body.len();
        let mut head = head(self.status, self.kind);
        head += &format!("Content-Length: {length}\r\n");
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        stream.write_all(head.as_bytes())?;
        if !is_head {
            stream.write_all(&self.body)?;
        }
        stream.flush()
    }
}

/// The head of every answer, without the empty line that ends it.
pub(crate) fn head(status: u16, kind: &str) -> String {
    let reason = match status {
        200 => "OK",
        303 => "See Other",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Security-Policy: {POLICY}\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\nConnection: close\r\n"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Request, u16> {
        Request::read(&mut text.as_bytes()).map_err(|(status, _)| status)
    }

    #[test]
    fn path_query_and_headers_are_decoded() {
        let request = read(
            "GET /api/round?run=0%2Fa+b&round=3 HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: x.1.2\r\n\r\n",
        )
        .unwrap();
        assert_eq!(request.path, "/api/round");
        assert_eq!((request.asked("run"), request.asked("round")), (Some("0/a b"), Some("3")));
        assert_eq!(request.header("last-event-id"), Some("x.1.2"));
        assert_eq!(request.asked("terminal"), None);
    }

    /// A text as a browser writes it into an address.
    fn encoded(text: &str) -> String {
        text.bytes().map(|byte| format!("%{byte:02x}")).collect()
    }

    proptest! {
        #[test]
        fn any_path_and_query_come_back(path in "[^\\p{C}]{0,40}", value in "[^\\p{C}]{0,40}") {
            let (line, other) = (encoded(&path), encoded(&value));
            let found = read(&format!("GET /{line}?name={other} HTTP/1.1\r\n\r\n")).unwrap();
            prop_assert_eq!(found.path, format!("/{path}"));
            prop_assert_eq!(found.query, [("name".to_owned(), value)]);
        }

        #[test]
        fn any_bytes_are_a_request_or_refused_with_a_status(
            start in prop::sample::select(vec!["", "GET /", "GET /?a=", "GET / HTTP/1.1\r\nHost: "]),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let bytes = [start.as_bytes(), &bytes, b" HTTP/1.1\r\n\r\n"].concat();
            if let Err((status, _)) = Request::read(&mut &bytes[..]) {
                prop_assert!([400, 405, 431].contains(&status), "{status}");
            }
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (text, status) in [
            ("", 400),
            ("GET / HTTP/1.1\r\n", 400),
            ("GET /\r\n\r\n", 400),
            ("GET http://elsewhere/ HTTP/1.1\r\n\r\n", 400),
            ("GET /%zz HTTP/1.1\r\n\r\n", 400),
            ("GET /%0a HTTP/1.1\r\n\r\n", 400),
            ("GET /%ff HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\n\r\n", 405),
            ("DELETE /api/runs HTTP/1.1\r\n\r\n", 405),
        ] {
            assert_eq!(read(text), Err(status), "{text:?}");
        }
    }

    #[test]
    fn a_request_without_end_is_refused_when_it_is_too_long() {
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20));
        assert_eq!(read(&long), Err(431));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100));
        assert_eq!(read(&many), Err(431));
    }

    #[test]
    fn every_answer_forbids_foreign_content() {
        let mut bytes = Vec::new();
        Response::error(404, "nothing here").write(&mut bytes, false).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("HTTP/1.1 404 Not Found\r\n"), "{text}");
        assert!(text.contains("default-src 'none'") && text.contains("nosniff"), "{text}");
        assert!(text.ends_with("\r\n\r\nnothing here\n"), "{text}");
        let mut bytes = Vec::new();
        Response::json("{}").write(&mut bytes, true).unwrap();
        assert!(bytes.ends_with(b"\r\n\r\n"));
    }
}
