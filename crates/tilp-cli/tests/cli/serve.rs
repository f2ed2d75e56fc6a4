//! `tilp policy serve`: clients that keep the rules, and those that do not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use rmpv::Value;
use tilp::split::policy::Policy;
use tungstenite::client::IntoClientRequest;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket, connect};

use crate::bad_input::refused;
use crate::{Scratch, succeed, tilp};

/// A run whose policy is there to be served.
const RUN: [&str; 9] =
    ["run", "tiny", "--method", "random", "--rounds", "1", "--quiet", "--out", "run"];

type Client = WebSocket<MaybeTlsStream<TcpStream>>;

/// A server that ends with its owner.
struct Serving {
    scratch: Scratch,
    child: Child,
    address: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(name: &str, token: &str, more: &[&str]) -> Self {
        let scratch = Scratch::new(name);
        succeed(scratch.path(), &RUN);
        let mut command = tilp(scratch.path());
        command.args(["policy", "serve", "run/model.safetensors", "--listen", "127.0.0.1:0"]);
        command.args(more).env("TILP_TOKEN", token).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("ws://").nth(1).unwrap().split(',').next().unwrap().to_owned();
        Self { scratch, child, address }
    }

    fn try_connect(&self, token: &str) -> Result<Client, tungstenite::Error> {
        let mut request = format!("ws://{}", self.address).into_client_request()?;
        let value = format!("Api-Key {token}").parse().unwrap();
        request.headers_mut().insert("Authorization", value);
        connect(request).map(|(client, _)| client)
    }

    /// A client that has read the greeting.
    fn client(&self) -> Client {
        let mut client = self.try_connect("").unwrap();
        let greeting = read(&mut client);
        assert_eq!(entry(&greeting, "state_length").as_u64(), Some(43));
        client
    }

    /// The server still gives the right answer to a correct client.
    fn still_serves(&self) {
        let bytes = std::fs::read(self.scratch.path().join("run/model.safetensors")).unwrap();
        let (policy, weights) = Policy::from_safetensors(&bytes).unwrap();
        let state: Vec<f32> = (0..43).map(|n| n as f32 / 43.0 - 0.5).collect();
        let mut expected = vec![0.0; 4];
        policy.act(&weights, &state, &mut expected);
        let mut client = self.client();
        client.send(Message::binary(request(&state))).unwrap();
        let answer = read(&mut client);
        let actions = entry(&answer, "actions").as_map().unwrap();
        let (_, data) = &actions[1];
        let found: Vec<f32> = data
            .as_slice()
            .unwrap()
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        assert_eq!(found, expected);
    }
}

fn request(state: &[f32]) -> Vec<u8> {
    let bytes = |text: &str| Value::Binary(text.as_bytes().to_vec());
    let data = state.iter().flat_map(|number| number.to_le_bytes()).collect();
    let array = Value::Map(vec![
        (bytes("__ndarray__"), Value::Boolean(true)),
        (bytes("data"), Value::Binary(data)),
        (bytes("dtype"), Value::from("<f4")),
        (bytes("shape"), Value::Array(vec![Value::from(state.len() as u64)])),
    ]);
    let picture = Value::Binary(vec![0; 1000]);
    let map = Value::Map(vec![
        (Value::from("observation/image"), picture),
        (Value::from("observation/state"), array),
        (Value::from("prompt"), Value::from("stack the cubes")),
    ]);
    let mut message = Vec::new();
    rmpv::encode::write_value(&mut message, &map).unwrap();
    message
}

fn read(client: &mut Client) -> Value {
    match client.read().unwrap() {
        Message::Binary(bytes) => rmpv::decode::read_value(&mut &bytes[..]).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn entry<'a>(map: &'a Value, name: &str) -> &'a Value {
    let entries = map.as_map().unwrap();
    &entries.iter().find(|(key, _)| key.as_str() == Some(name)).unwrap().1
}

/// The text that the server answers with.
fn told(client: &mut Client, message: Message) -> String {
    client.send(message).unwrap();
    match client.read().unwrap() {
        Message::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_gets_the_action_of_the_policy() {
    let serving = Serving::start("serve", "", &[]);
    serving.still_serves();
}

#[test]
fn what_cannot_be_answered_is_answered_with_a_line_and_the_client_may_go_on() {
    let serving = Serving::start("serve-odd", "", &[]);
    let mut client = serving.client();
    let garbage = told(&mut client, Message::binary(vec![0x81, 0xa5]));
    assert!(garbage.contains("no MessagePack"), "{garbage}");
    let short = told(&mut client, Message::binary(request(&[0.0; 5])));
    assert!(short.contains("has 5 numbers, expected 43"), "{short}");
    let text = told(&mut client, Message::text("hello"));
    assert!(text.contains("expected a binary frame"), "{text}");
    client.send(Message::binary(request(&[0.0; 43]))).unwrap();
    entry(&read(&mut client), "actions");
    serving.still_serves();
}

#[test]
fn a_message_that_is_too_large_closes_the_connection_and_the_server_goes_on() {
    let serving = Serving::start("serve-large", "", &["--message-bytes", "10000"]);
    let mut client = serving.client();
    // The server may close before all is sent.
    let _ = client.send(Message::binary(vec![0; 100_000]));
    let is_over = (0..3).any(|_| !matches!(client.read(), Ok(Message::Text(_))));
    assert!(is_over);
    serving.still_serves();
}

#[test]
fn who_has_no_token_does_not_get_in() {
    let serving = Serving::start("serve-token", "open sesame", &[]);
    for wrong in ["", "open", "open sesame and more"] {
        let refusal = serving.try_connect(wrong).unwrap_err().to_string();
        assert!(refusal.contains("401"), "{refusal}");
    }
    let mut client = serving.try_connect("open sesame").unwrap();
    assert_eq!(entry(&read(&mut client), "server").as_str(), Some("tilp"));
}

#[test]
fn idle_connections_beyond_the_limit_are_closed_and_leave_room_when_they_go() {
    let serving = Serving::start("serve-idle", "", &["--connections", "8", "--idle-s", "1"]);
    let open = |_| TcpStream::connect(&serving.address).unwrap();
    let mut idle: Vec<TcpStream> = (0..100).map(open).collect();
    let mut last = idle.pop().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(last.read(&mut [0; 1]).unwrap_or(0), 0, "closed: all places are taken");
    // Neither words of another protocol nor half a handshake keep a place.
    let _ = idle[0].write_all(b"GET / HTTP/1.1\r\n");
    drop(idle);
    let mut tries = 0;
    while serving.try_connect("").is_err() {
        tries += 1;
        assert!(tries < 500, "no place becomes free");
        std::thread::sleep(Duration::from_millis(20));
    }
    serving.still_serves();
}

#[test]
fn what_cannot_be_served_is_one_line_and_exit_code_2() {
    let scratch = Scratch::new("serve-bad");
    scratch.put("odd.safetensors", "no policy");
    for (model, expected) in
        [("nothing", "cannot read nothing"), ("odd.safetensors", "no policy in")]
    {
        let line = refused(&scratch, &["policy", "serve", model, "--listen", "127.0.0.1:0"]);
        assert!(line.contains(expected), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn a_token_that_is_no_text_is_refused_and_not_taken_for_none() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new("serve-token");
    succeed(scratch.path(), &RUN);
    let output = tilp(scratch.path())
        .args(["policy", "serve", "run/model.safetensors", "--listen", "127.0.0.1:0"])
        .env("TILP_TOKEN", std::ffi::OsStr::from_bytes(b"\xffsecret"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("TILP_TOKEN") && !said.contains("secret"), "{said}");
}
