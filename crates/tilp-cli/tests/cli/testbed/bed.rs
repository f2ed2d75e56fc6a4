//! Processes of a testbed that tests start, kill and start again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::scratch::SHORT;
use crate::{Scratch, succeed, tilp};

/// No test waits longer for anything.
const LONG: Duration = Duration::from_secs(120);

/// A process of the testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Server,
    Terminal(u32),
    Evaluator,
}

pub struct Bed {
    folder: PathBuf,
    port: u16,
    parties: Vec<Who>,
    children: BTreeMap<Who, Child>,
    has_adapters: bool,
}

/// A port that is free now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + LONG;
    while Instant::now() < until {
        if is_so() {
            return true;
        }
        sleep(Duration::from_millis(5));
    }
    false
}

/// What a status page says; empty if there is none yet.
pub fn get(port: u16, path: &str) -> String {
    let mut text = String::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
        let _ = stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
        let _ = stream.read_to_string(&mut text);
    }
    text
}

impl Bed {
    /// A testbed of the short run in `bed.toml`, with data for its terminals.
    pub fn new(scratch: &Scratch, method: &str, terminals: &str, parties: &[Who]) -> Self {
        let port = free_port();
        let pairs: Vec<&[&str]> = SHORT[2..].chunks(2).collect();
        let set = pairs.iter().map(|pair| match pair {
            ["--rounds", rounds] => format!("\"rounds={rounds}\""),
            [_, value] => format!("{value:?}"),
            _ => unreachable!("flags have values"),
        });
        let set = set.collect::<Vec<_>>().join(", ");
        let evaluator = parties.is_empty() || parties.contains(&Who::Evaluator);
        scratch.put(
            "bed.toml",
            format!(
                "[testbed]\nscenario = \"tiny\"\nset = [{set}]\nmethod = \"{method}\"\nseed = 0\n\
                 clock = \"virtual\"\nfolder = \"bed\"\nlisten = \"127.0.0.1:{port}\"\n\
                 terminals = {terminals}\nevaluator = {evaluator}\ncheckpoint_every = 4\n\
                 heartbeat_s = 0.2\nsilence_s = 1\n"
            ),
        );
        succeed(scratch.path(), &["testbed", "data", "bed.toml"]);
        let (folder, parties) = (scratch.path().to_owned(), parties.to_vec());
        Self { folder, port, parties, children: BTreeMap::new(), has_adapters: false }
    }

    /// Terminals and evaluator read the adapters in the file.
    pub fn with_adapters(&mut self) {
        self.has_adapters = true;
    }

    /// Adds a line to the file.
    pub fn set(&self, line: &str) {
        let mut file = OpenOptions::new().append(true).open(self.folder.join("bed.toml")).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// Replaces a part of the file.
    pub fn replace(&self, from: &str, to: &str) {
        let path = self.folder.join("bed.toml");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    /// Lets the server have status pages. Returns their port.
    pub fn serve_status(&self) -> u16 {
        let port = free_port();
        self.set(&format!("status = \"127.0.0.1:{port}\""));
        port
    }

    pub fn run_folder(&self) -> PathBuf {
        self.folder.join("bed/run")
    }

    pub fn data_of(&self, id: u32) -> PathBuf {
        self.folder.join(format!("bed/data/terminal-{id}.safetensors"))
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn wait_for_port(&self) {
        assert!(wait_until(|| TcpStream::connect(self.address()).is_ok()));
    }

    pub fn start_all(&mut self) {
        self.start(Who::Server);
        for who in self.parties.clone() {
            self.start(who);
        }
    }

    fn log_path(&self, who: Who) -> PathBuf {
        self.folder.join(format!("{who:?}.log"))
    }

    /// What a process printed on standard error.
    pub fn log(&self, who: Who) -> String {
        fs::read_to_string(self.log_path(who)).unwrap_or_default()
    }

    pub fn start(&mut self, who: Who) {
        let server = format!("--server={}", self.address());
        let mut command: Command = tilp(&self.folder);
        command.env("TILP_HOLD", self.holds());
        match who {
            Who::Server => command.args(["server", "bed.toml"]),
            Who::Evaluator => command.args(["evaluator", &server]),
            Who::Terminal(id) => {
                let data = format!("--data={}", self.data_of(id).display());
                let state = format!("--state=state-{id}");
                command.args(["terminal", &format!("--id={id}"), &data, &state, &server])
            }
        };
        if self.has_adapters && who != Who::Server {
            command.arg("--adapters=bed.toml");
        }
        let path = self.log_path(who);
        let log = File::options().create(true).append(true).open(path).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        self.children.insert(who, command.spawn().unwrap());
    }

    pub fn kill(&mut self, who: Who) {
        if let Some(mut child) = self.children.remove(&who) {
            let _ = child.kill(); // SIGKILL
            let _ = child.wait();
        }
    }

    pub fn signal(&self, who: Who, name: &str) {
        let id = self.children[&who].id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Waits for a process; its exit code.
    pub fn wait(&mut self, who: Who) -> Option<i32> {
        let child = self.children.get_mut(&who).unwrap();
        let mut code = None;
        let ended = wait_until(|| {
            code = child.try_wait().unwrap();
            code.is_some()
        });
        if !ended {
            let _ = child.kill();
        }
        assert!(ended, "{who:?} does not end: {}", self.log(who));
        self.children.remove(&who);
        code.and_then(|status| status.code())
    }

    fn holds(&self) -> PathBuf {
        let folder = self.folder.join("holds");
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The next process that comes to this point is held there.
    pub fn hold_at(&self, point: &str) {
        File::create(self.holds().join(point)).unwrap();
    }

    /// Waits until a process is held at a point. It goes on when the file is removed.
    pub fn wait_held(&mut self, point: &str) -> PathBuf {
        let held = self.holds().join(format!("{point}.held"));
        let server = self.children.get_mut(&Who::Server).unwrap();
        wait_until(|| held.exists() || server.try_wait().unwrap().is_some());
        assert!(held.exists(), "{point} was not reached: {}", self.log(Who::Server));
        held
    }

    /// Waits until the journal of the server has so many more changes; `false` if the run is over.
    pub fn wait_for_records(&mut self, records: usize) -> bool {
        let path = self.folder.join("bed/server.journal");
        let length = || fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let (mut last, mut seen) = (length(), 0);
        let server = self.children.get_mut(&Who::Server).unwrap();
        wait_until(|| {
            if length() != last {
                (last, seen) = (length(), seen + 1);
            }
            seen >= records || server.try_wait().unwrap().is_some()
        });
        seen >= records
    }

    /// Waits until a round is done; `false` if the run is over before.
    pub fn wait_for_round(&mut self, round: usize) -> bool {
        let path = self.run_folder().join("rounds.csv");
        let rounds = || fs::read_to_string(&path).map_or(0, |text| text.lines().count());
        let server = self.children.get_mut(&Who::Server).unwrap();
        let mut is_done = false;
        wait_until(|| {
            is_done = rounds() > round; // one line of titles
            is_done || server.try_wait().unwrap().is_some()
        });
        is_done
    }

    /// Waits until the run is complete.
    pub fn finish(&mut self) {
        let code = self.wait(Who::Server);
        assert_eq!(code, Some(0), "{}", self.log(Who::Server));
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let all: Vec<Who> = self.children.keys().copied().collect();
        all.into_iter().for_each(|who| self.kill(who));
    }
}
