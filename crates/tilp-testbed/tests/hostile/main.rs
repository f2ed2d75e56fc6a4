//! Clients that break the contract, on purpose or not: each is refused or cut off, and a terminal
//! that keeps it is served all the same.

mod certificates;
mod station;

use std::net::SocketAddr;
use std::time::Duration;

use station::{Mirror, Station, hello, say};
use tilp_testbed::contract::PART_BYTES;
use tilp_testbed::contract::v1::Up;
use tilp_testbed::contract::v1::{Answer, Down, Hello, Part, Role, down, up};
use tilp_testbed::station::Party;
use tilp_testbed::terminal::{Agent, MemoryStore, Responder};
use tilp_testbed::transport::{Doors, Security, listen};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_stream::StreamExt;
use tonic::{Code, Streaming};

/// The stream ends, by itself or with an error. A request may come before: until a newer stream is
/// there, this one is the terminal.
async fn ends(mut frames: Streaming<Down>) {
    let end = async { while let Some(Ok(_)) = frames.next().await {} };
    tokio::time::timeout(Duration::from_secs(10), end).await.expect("the stream ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hello_that_is_not_acceptable_has_its_status() {
    let station = Station::start().await;
    let old = Hello { version: 0, ..hello(7) };
    let roleless = Hello { role: Role::Unspecified.into(), ..hello(7) };
    let evaluator = Hello { role: Role::Evaluator.into(), ..hello(0) };
    for (first, code) in [
        (say(up::Body::Hello(old)), Code::FailedPrecondition),
        (say(up::Body::Hello(roleless)), Code::InvalidArgument),
        (say(up::Body::Hello(hello(8))), Code::PermissionDenied),
        (say(up::Body::Hello(evaluator)), Code::PermissionDenied),
        (say(up::Body::Answer(Answer::default())), Code::InvalidArgument),
        (Up { body: None }, Code::InvalidArgument),
    ] {
        let refused = station.attach(first).await.expect_err("it is refused");
        assert_eq!(refused.code(), code, "{refused}");
    }
    station.serves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_or_an_announcement_that_is_too_large_ends_the_stream() {
    let station = Station::start().await;
    let huge = Answer { n_bytes: u64::MAX, payload: vec![0; PART_BYTES], ..Answer::default() };
    let long = Part { payload: vec![0; 4 * PART_BYTES] };
    let orphan = Part { payload: vec![0; 10] };
    let short = Answer { n_bytes: 100, payload: vec![0; 99], ..Answer::default() };
    for bad in [
        up::Body::Answer(huge),
        up::Body::Part(long),
        up::Body::Part(orphan),
        up::Body::Answer(short),
        up::Body::Hello(hello(7)),
    ] {
        let (to, frames) = station.attach(say(up::Body::Hello(hello(7)))).await.unwrap();
        to.send(say(bad)).await.unwrap();
        ends(frames).await;
    }
    assert!(station.hub.status().violations >= 4, "{:?}", station.hub.status());
    station.serves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_to_another_question_is_ignored() {
    let station = Station::start().await;
    let (to, mut frames) = station.attach(say(up::Body::Hello(hello(7)))).await.unwrap();
    let hub = station.hub.clone();
    let asked =
        tokio::task::spawn_blocking(move || hub.call(Party::Terminal(7), b"question", None, None));
    let request = loop {
        let frame = frames.next().await.unwrap().unwrap();
        if let Some(down::Body::Request(request)) = frame.body {
            break request;
        }
    };
    let key = request.key.unwrap();
    let answer = |key, text: &[u8]| {
        let n_bytes = text.len() as u64;
        let answer =
            Answer { key: Some(key), n_bytes, payload: text.to_vec(), ..Answer::default() };
        say(up::Body::Answer(answer))
    };
    let mut other = key;
    other.step += 1;
    to.send(answer(other, b"of tomorrow")).await.unwrap();
    other.step = key.step - 1;
    to.send(answer(other, b"of yesterday")).await.unwrap();
    to.send(answer(key, b"right")).await.unwrap();
    to.send(answer(key, b"again")).await.unwrap();
    assert_eq!(asked.await.unwrap().unwrap().payload, b"right");
    drop((to, frames));
    assert_eq!(station.hub.status().answered, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_is_cut_off() {
    let station = Station::start().await;
    for garbage in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxx"]
    {
        let mut stream = TcpStream::connect(station.address()).await.unwrap();
        let _ = stream.write_all(garbage).await;
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest));
        let _ = closed.await.expect("the connection is closed");
        assert!(rest.len() < 4096);
    }
    station.serves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_silent_connections_are_closed_and_block_nobody() {
    let station = Station::start().await;
    let mut silent = Vec::new();
    for _ in 0..500 {
        silent.push(TcpStream::connect(station.address()).await.unwrap());
    }
    station.serves().await;
    for mut stream in silent {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest));
        let _ = closed.await.expect("the connection is closed");
    }
    station.serves().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_stream_takes_the_place_of_an_older_one() {
    let station = Station::start().await;
    let (_to, frames) = station.attach(say(up::Body::Hello(hello(7)))).await.unwrap();
    station.serves().await;
    ends(frames).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_that_falls_silent_is_given_up() {
    let station = Station::start().await;
    let (_to, frames) = station.attach(say(up::Body::Hello(hello(7)))).await.unwrap();
    assert!(station.hub.is_attached(Party::Terminal(7)));
    ends(frames).await;
    assert!(!station.hub.is_attached(Party::Terminal(7)));
    station.serves().await;
}

#[tokio::test]
async fn without_certificates_only_the_loopback_interface_is_served() {
    let station = Station::start().await;
    let address: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let opened = listen(station.hub.clone(), address, Security::Loopback, Doors::default()).await;
    let error = opened.err().expect("it is refused");
    assert!(error.to_string().contains("expected a loopback address"), "{error}");
}

/// The trait is what streams are answered by; a mirror has nothing to save.
#[test]
fn a_request_without_a_key_is_refused() {
    let mut agent = Agent::new(Mirror, MemoryStore::default());
    let (answer, _) = agent.respond(&tilp_testbed::contract::v1::Request::default(), b"").unwrap();
    assert!(answer.refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_sends_byte_by_byte_is_closed_when_its_hello_is_due() {
    let station = Station::start().await;
    let mut stream = TcpStream::connect(station.address()).await.unwrap();
    let start = std::time::Instant::now();
    let mut is_open = true;
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".iter().cycle() {
        is_open &= stream.write_all(&[*byte]).await.is_ok();
        let mut one = [0];
        let read = tokio::time::timeout(Duration::from_millis(40), stream.read(&mut one)).await;
        is_open &= !matches!(read, Ok(Ok(0) | Err(_)));
        if !is_open || start.elapsed() > Duration::from_secs(10) {
            break;
        }
    }
    assert!(!is_open, "it is still open after {:?}", start.elapsed());
    station.serves().await;
}

/// Each stream is greeted with the work of the terminal, which its client does not read. Were the
/// older streams kept, the doors would soon be full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_nobody_reads_are_closed_when_a_newer_one_takes_their_place() {
    let doors = Doors { most: 20, leave_within: Duration::from_millis(20), ..station::DOORS };
    let station = Station::open(Security::Loopback, doors).await;
    let mut unread = Vec::new();
    for n in 0..100 {
        let stream = station.attach(say(up::Body::Hello(hello(7)))).await;
        unread.push(stream.unwrap_or_else(|status| panic!("stream {n}: {status}")));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    station.serves().await;
}
