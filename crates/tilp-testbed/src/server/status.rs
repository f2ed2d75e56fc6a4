//! `/metrics` and `/healthz`.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::station::{Hub, Status};

/// Largest head of a request.
const MOST_HEAD: usize = 4096;

/// Serves status pages for ever. Returns the address.
pub async fn serve_status(hub: Arc<Hub>, address: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let permits = Arc::new(tokio::sync::Semaphore::new(32));
    tokio::spawn(async move {
        loop {
            let Ok(permit) = permits.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let status = hub.status();
                    tokio::spawn(async move {
                        let answered = answer(stream, &status);
                        let _ = tokio::time::timeout(Duration::from_secs(5), answered).await;
                        drop(permit);
                    });
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, status: &Status) -> io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 512];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MOST_HEAD {
        match stream.read(&mut buffer).await? {
            0 => break,
            n => head.extend(&buffer[..n]),
        }
    }
    let line = String::from_utf8_lossy(&head);
    let path = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let (code, body) = match path {
        Some("/metrics") => ("200 OK", page(status)),
        Some("/healthz") => ("200 OK", "ok\n".to_owned()),
        _ => ("404 Not Found", "expected /metrics or /healthz\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// The numbers in Prometheus's text format.
pub fn page(status: &Status) -> String {
    let mut text = String::new();
    let mut put = |name: &str, kind: &str, help: &str, value: u64| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    };
    put("tilp_round", "gauge", "Round in progress.", status.round);
    let attached = status.attached.len() as u64;
    put("tilp_parties_attached", "gauge", "Terminals and evaluators with a stream.", attached);
    let away = status.away.len() as u64;
    put("tilp_parties_away", "gauge", "Terminals and evaluators without one.", away);
    put("tilp_requests_answered_total", "counter", "Requests answered.", status.answered);
    put("tilp_requests_lost_total", "counter", "Requests without an answer.", status.lost);
    put("tilp_streams_total", "counter", "Streams that were opened.", status.streams);
    put("tilp_violations_total", "counter", "Streams that broke the contract.", status.violations);
    put("tilp_payload_down_bytes_total", "counter", "Payload sent.", status.bytes_down);
    put("tilp_payload_up_bytes_total", "counter", "Payload received.", status.bytes_up);
    text
}
