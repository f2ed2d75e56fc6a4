//! A base station, and a terminal that keeps the contract.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tilp_testbed::contract::v1::base_station_client::BaseStationClient;
use tilp_testbed::contract::v1::{Down, Hello, Role, Up, up};
use tilp_testbed::contract::{MOST_BYTES, PART_BYTES, VERSION};
use tilp_testbed::session::Pace;
use tilp_testbed::station::{Call, Greeting, Hub, MemoryLog, Party, Settings};
use tilp_testbed::terminal::{Agent, MemoryStore, Probed, Worked, Worker};
use tilp_testbed::transport::{
    Client, Doors, End, Listening, MonotonicClock, Secure, Security, listen,
};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Doors that close soon.
pub const DOORS: Doors = Doors {
    most: 600,
    hello_within: Duration::from_millis(500),
    leave_within: Duration::from_millis(500),
};

/// Answers every message with its bytes in reverse.
pub struct Mirror;

impl Worker for Mirror {
    fn prepare(&mut self, _work: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn reset(&mut self, _membership: u64) -> Result<(), String> {
        Ok(())
    }

    fn handle(&mut self, _round: u64, message: &[u8]) -> Result<Worked, String> {
        let message = message.iter().rev().copied().collect();
        Ok(Worked { message, ..Worked::default() })
    }

    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    fn restore(&mut self, _round: u64, _state: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

pub struct Station {
    pub hub: Arc<Hub>,
    pub listening: Listening,
    /// The journal of the terminal that keeps the contract.
    pub store: MemoryStore,
}

impl Station {
    pub async fn start() -> Self {
        Self::open(Security::Loopback, DOORS).await
    }

    pub async fn open(security: Security, doors: Doors) -> Self {
        let pace =
            Pace { heartbeat: Duration::from_millis(50), silence: Duration::from_millis(600) };
        let patience = Duration::from_secs(20);
        let settings = Settings { pace, most_bytes: MOST_BYTES, patience, goes_on: false };
        let work = BTreeMap::from([(Party::Terminal(7), Arc::new(b"work".to_vec()))]);
        let greeting = Greeting { run: "run".into(), work };
        let clock = Arc::new(MonotonicClock::start());
        let hub = Arc::new(Hub::new(settings, clock, greeting, Box::<MemoryLog>::default()));
        hub.begin_round(1);
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let listening = listen(hub.clone(), address, security, doors).await.unwrap();
        Self { hub, listening, store: MemoryStore::default() }
    }

    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Asks the terminal, which must answer.
    pub async fn ask(&self, payload: Vec<u8>) -> Call {
        let hub = self.hub.clone();
        let asked =
            tokio::task::spawn_blocking(move || hub.call(Party::Terminal(7), &payload, None, None));
        let asked = tokio::time::timeout(Duration::from_secs(20), asked).await;
        asked.expect("an answer in time").unwrap().unwrap()
    }

    /// A terminal that keeps the contract is served.
    pub async fn serves(&self) {
        self.serves_by(Secure::Loopback).await;
    }

    /// A client of this station.
    pub fn client(&self, id: u32, secure: Secure) -> Client {
        Client {
            server: self.address().to_string(),
            secure,
            hello: hello(id),
            clock: Arc::new(MonotonicClock::start()),
            probed: Probed::default(),
        }
    }

    /// The same over connections that are secured like this.
    pub async fn serves_by(&self, secure: Secure) {
        let (stop, stopped) = watch::channel(false);
        let client = self.client(7, secure);
        let agent = Agent::new(Mirror, self.store.clone());
        let terminal = tokio::spawn(async move { client.serve(agent, stopped).await });
        let payload: Vec<u8> = (0..3 * PART_BYTES + 5).map(|n| (n % 241) as u8).collect();
        let call = self.ask(payload.clone()).await;
        assert!(call.payload.iter().eq(payload.iter().rev()));
        stop.send(true).unwrap();
        assert_eq!(terminal.await.unwrap().unwrap(), End::Stopped);
    }

    /// A stream of our own, after its first frame.
    pub async fn attach(&self, first: Up) -> Result<(mpsc::Sender<Up>, Streaming<Down>), Status> {
        let uri = format!("http://{}", self.address());
        let mut client = BaseStationClient::connect(uri).await.unwrap();
        let (to, from) = mpsc::channel(16);
        to.send(first).await.unwrap();
        let response = client.attach(ReceiverStream::new(from)).await?;
        Ok((to, response.into_inner()))
    }
}

pub fn hello(id: u32) -> Hello {
    Hello { version: VERSION, role: Role::Terminal.into(), id, ..Hello::default() }
}

pub fn say(body: up::Body) -> Up {
    Up { body: Some(body) }
}
