//! Who may look: on the loopback address everybody on the machine, elsewhere those with the token.

use std::net::{IpAddr, SocketAddr};

use crate::http::{Request, Response};

/// The rule of a server.
#[derive(Clone, Debug)]
pub struct Access {
    address: SocketAddr,
    token: Option<String>,
}

/// Why a server may not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoToken;

impl Access {
    /// The rule at an address. Beyond the loopback address a token is needed.
    pub fn new(address: SocketAddr, token: Option<String>) -> Result<Self, NoToken> {
        let token = token.filter(|token| !token.is_empty());
        match token.is_none() && !address.ip().is_loopback() {
            true => Err(NoToken),
            false => Ok(Self { address, token }),
        }
    }

    /// The answer to a request that is not admitted; none if it is.
    pub fn refusal(&self, request: &Request) -> Option<Response> {
        if self.address.ip().is_loopback() && !request.header("host").is_some_and(is_loopback) {
            // A page elsewhere whose name was made to point here must not read what is here.
            return Some(Response::error(403, "the host is not this machine, expected localhost"));
        }
        let token = self.token.as_deref()?;
        if self.presented(request).any(|presented| is_same(presented.as_bytes(), token.as_bytes()))
        {
            // The address bar should not keep the token: a cookie does.
            let is_link = request.path == "/" && request.asked("token").is_some();
            return is_link.then(|| self.cookie(token));
        }
        Some(Response::error(401, "a token is expected: open the address that `tilp dash` printed"))
    }

    fn presented<'a>(&'a self, request: &'a Request) -> impl Iterator<Item = &'a str> {
        let bearer = request.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
        let name = self.cookie_name();
        let cookies = request.header("cookie").into_iter().flat_map(|text| text.split("; "));
        let cookies = cookies.filter_map(move |one| {
            one.split_once('=').filter(|(own, _)| *own == name).map(|(_, value)| value)
        });
        request.asked("token").into_iter().chain(bearer).chain(cookies)
    }

    /// Cookies do not tell ports apart, so their names do.
    fn cookie_name(&self) -> String {
        format!("tilp_dash_{}", self.address.port())
    }

    fn cookie(&self, token: &str) -> Response {
        let name = self.cookie_name();
        let cookie = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict");
        Response { status: 303, ..Response::new("text/plain", "") }
            .with("Location", "/".to_owned())
            .with("Set-Cookie", cookie)
    }
}

/// Whether a token can stand in a cookie and in an address.
pub fn is_plain(token: &str) -> bool {
    token.len() <= 256
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
}

/// Whether a host, with or without a port, is the machine itself.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares without telling by its time how much is right.
fn is_same(presented: &[u8], expected: &[u8]) -> bool {
    let differ = presented.iter().zip(expected).fold(0, |sum, (a, b)| sum | (a ^ b));
    presented.len() == expected.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, headers: &[(&str, &str)]) -> Request {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let (path, query) = path.split_once("?token=").unwrap_or((path, ""));
        let query = [query].into_iter().filter(|token| !token.is_empty());
        Request {
            path: path.to_owned(),
            query: query.map(|token| ("token".to_owned(), token.to_owned())).collect(),
            headers: headers.collect(),
            ..Request::default()
        }
    }

    fn access(address: &str, token: Option<&str>) -> Result<Access, NoToken> {
        Access::new(address.parse().unwrap(), token.map(str::to_owned))
    }

    fn status(access: &Access, request: &Request) -> u16 {
        access.refusal(request).map_or(200, |answer| answer.status)
    }

    #[test]
    fn elsewhere_than_on_loopback_nothing_starts_without_a_token() {
        assert!(access("127.0.0.1:80", None).is_ok() && access("[::1]:80", None).is_ok());
        for address in ["0.0.0.0:80", "10.0.0.7:80", "[::]:80"] {
            assert_eq!(access(address, None).err(), Some(NoToken), "{address}");
            assert_eq!(access(address, Some("")).err(), Some(NoToken), "{address}");
        }
    }

    #[test]
    fn on_loopback_only_the_names_of_the_machine_are_answered() {
        let access = access("127.0.0.1:7777", None).unwrap();
        for host in ["localhost:7777", "127.0.0.1", "[::1]:7777", "LOCALHOST"] {
            assert_eq!(status(&access, &request("/", &[("host", host)])), 200, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert_eq!(status(&access, &request("/", &[("host", host)])), 403, "{host}");
        }
        assert_eq!(status(&access, &request("/", &[])), 403);
    }

    #[test]
    fn no_page_and_no_number_without_the_token() {
        let access = access("0.0.0.0:7777", Some("secret")).unwrap();
        for path in ["/", "/app/main.js", "/api/runs", "/api/stream", "/metrics", "/nothing"] {
            assert_eq!(status(&access, &request(path, &[])), 401, "{path}");
            let wrong = [("cookie", "tilp_dash_7777=secres"), ("authorization", "Bearer secre")];
            assert_eq!(status(&access, &request(path, &wrong)), 401, "{path}");
            let right = [("cookie", "a=b; tilp_dash_7777=secret")];
            assert_eq!(status(&access, &request(path, &right)), 200, "{path}");
            assert_eq!(status(&access, &request(path, &[("authorization", "Bearer secret")])), 200);
        }
        let link = access.refusal(&request("/?token=secret", &[])).unwrap();
        assert_eq!(link.status, 303);
        assert!(link.headers.iter().any(|(_, value)| value.contains("HttpOnly; SameSite=Strict")));
        assert_eq!(status(&access, &request("/api/runs?token=secret", &[])), 200);
        assert_eq!(status(&access, &request("/?token=other", &[])), 401);
    }

    #[test]
    fn a_token_that_would_break_a_header_is_not_plain() {
        assert!(is_plain("aZ09-_.~"));
        for token in ["a b", "a;b", "a\r\nb", "ä", &"a".repeat(300)] {
            assert!(!is_plain(token), "{token:?}");
        }
    }
}
