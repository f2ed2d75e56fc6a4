//! `tilp server`, `tilp terminal`, `tilp evaluator` and `tilp testbed`.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tilp::experiment::{Ended, PLANNER_STATES, RunSpec};
use tilp::record::Summary;
use tilp::round::TerminalId;
use tilp_testbed::contract::VERSION;
use tilp_testbed::contract::v1::{Hello, Role};
use tilp_testbed::description::Adapters;
use tilp_testbed::enrol::Subject;
use tilp_testbed::server::{
    EvaluatorWork, Running, ServeError, Surroundings, Testbed as Described, TlsFiles, serve,
    write_data,
};
use tilp_testbed::terminal::{
    Agent, Attached, FileStore, FrontHalf, Probed, Responder, TerminalData,
};
use tilp_testbed::transport::{Client, End, MonotonicClock, Secure, Security};
use tokio::sync::watch;
use tracing_subscriber::filter::LevelFilter;

use super::certificates;
use super::run::{about, result};
use crate::arguments::{
    Evaluator, Format, LogFormat, Reach, Server, Terminal, Testbed, TestbedVerb,
};
use crate::clock::WallTime;
use crate::failure::Failure;
use crate::output::{self, tell};
use crate::progress::Progress;
use crate::signals::Signals;

/// Prints the log on standard error.
fn start_log(format: LogFormat, quiet: bool) {
    let level = if quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level);
    // A second log in one process is a mistake without consequences.
    let _ = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().try_init(),
    };
}

/// Serves a testbed.
pub(crate) fn server(arguments: &Server) -> Result<(), Failure> {
    start_log(arguments.log, arguments.quiet);
    let testbed = Described::read(&arguments.file).map_err(Failure::input)?;
    let signals = Signals::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(arguments.quiet, Some(signals.clone()));
    let stop = signals.clone();
    let started = |running: &Running| {
        tell(&format!("listening on {}", running.listen));
        if let Some(status) = running.status {
            tell(&format!("status on http://{status}/metrics"));
        }
        let hub = running.hub.clone();
        // While the program waits for an absent terminal, it checks for signals here.
        std::thread::spawn(move || {
            while stop.asked().is_none() {
                std::thread::sleep(Duration::from_millis(100));
            }
            hub.stop();
        });
    };
    let cache = super::cache();
    let time = WallTime::start();
    let around = Surroundings {
        about: about(),
        cache: cache.as_ref(),
        time: &time,
        security: security(&testbed)?,
    };
    let ended = serve(&testbed, around, &mut progress, started);
    progress.clear();
    match (ended, signals.asked()) {
        (Ok(Ended::Finished(summary)), _) => output::print(&report(&testbed, &summary)),
        (Ok(Ended::Interrupted(round)), signal) => {
            let message = format!("stopped after round {round}; start it again to continue");
            Err(Failure::signal(signal.unwrap_or(2), message))
        }
        (Err(error), Some(signal)) => Err(Failure::signal(signal, error)),
        (Err(error @ (ServeError::Scenario(_) | ServeError::NoRobots)), None) => {
            Err(Failure::input(error))
        }
        (Err(error), None) => Err(Failure::failed(error)),
    }
}

fn report(testbed: &Described, summary: &Summary) -> String {
    let spec = RunSpec {
        scenario: testbed.scenario.clone(),
        method: testbed.method.clone(),
        seed: testbed.seed,
        replicate: testbed.replicate,
        checkpoint_every: testbed.checkpoint_every,
        planner_states: PLANNER_STATES,
        about: about(),
    };
    result(summary, &spec, &testbed.run_folder(), Format::Text)
}

fn security(testbed: &Described) -> Result<Security, Failure> {
    match &testbed.tls {
        None => Ok(Security::Loopback),
        Some(tls) => certificates::security(tls),
    }
}

/// Is a terminal.
pub(crate) fn terminal(arguments: &Terminal) -> Result<(), Failure> {
    start_log(arguments.reach.log, false);
    let data = TerminalData::read(&arguments.data).map_err(Failure::input)?;
    std::fs::create_dir_all(&arguments.state).map_err(|error| {
        Failure::input(format!("--state {}: {error}", arguments.state.display()))
    })?;
    let samples = data.at(0).len() as u64;
    let store = FileStore::new(arguments.state.join("journal"), arguments.power_safe);
    let id = TerminalId(arguments.id);
    let adapters = read_adapters(arguments.adapters.as_deref())?;
    let equipment = Attached::start(&adapters, id).map_err(Failure::input)?;
    let probed = equipment.probed();
    let half = FrontHalf::new(id, data, Box::new(equipment));
    let hello = hello(Role::Terminal, arguments.id, samples);
    dial(&arguments.reach, hello, probed, Agent::new(half, store))
}

/// Is the evaluator.
pub(crate) fn evaluator(arguments: &Evaluator) -> Result<(), Failure> {
    start_log(arguments.reach.log, false);
    let adapters = read_adapters(arguments.adapters.as_deref())?;
    let work = EvaluatorWork::with_robots(adapters.robot);
    dial(&arguments.reach, hello(Role::Evaluator, 0, 0), Probed::default(), work)
}

fn read_adapters(file: Option<&Path>) -> Result<Adapters, Failure> {
    file.map_or(Ok(Adapters::default()), |path| Adapters::read(path).map_err(Failure::input))
}

fn hello(role: Role, id: u32, samples: u64) -> Hello {
    let software = concat!("tilp ", env!("CARGO_PKG_VERSION")).to_owned();
    Hello { version: VERSION, role: role.into(), id, samples, software }
}

fn dial<R: Responder + 'static>(
    reach: &Reach,
    hello: Hello,
    probed: Probed,
    responder: R,
) -> Result<(), Failure> {
    let secure = match &reach.tls {
        None => Secure::Loopback,
        Some(folder) => certificates::secure(folder)?,
    };
    let clock = Arc::new(MonotonicClock::start());
    let client = Client { server: reach.server.clone(), secure, hello, clock, probed };
    let signals = Signals::listen().map_err(Failure::failed)?;
    let (stop, stopped) = watch::channel(false);
    let asked = signals.clone();
    std::thread::spawn(move || {
        while asked.asked().is_none() {
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = stop.send(true);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    match runtime.block_on(client.serve(responder, stopped)) {
        Ok(End::Finished(reason)) => output::print(&reason),
        Ok(End::Stopped) => Err(Failure::signal(
            signals.asked().unwrap_or(2),
            "stopped; start it again to continue",
        )),
        Err(error) => Err(Failure::failed(error)),
    }
}

/// Starts everything on this machine, or makes data.
pub(crate) fn testbed(arguments: Testbed) -> Result<(), Failure> {
    match arguments.verb {
        TestbedVerb::Up { file, quiet } => up(&file, quiet),
        TestbedVerb::Data { file } => {
            let testbed = Described::read(&file).map_err(Failure::input)?;
            let files = write_data(&testbed, super::cache().as_ref(), &|_, _| {});
            let files = files.map_err(Failure::failed)?;
            let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
            output::print(&names.join("\n"))
        }
    }
}

/// Processes that end when this one does.
struct Children(Vec<(String, Child)>);

impl Children {
    /// Starts this program with other arguments, its log in a file.
    fn start(&mut self, name: &str, folder: &Path, arguments: &[String]) -> Result<(), Failure> {
        // In the Python package this process is the interpreter: the package names its command.
        let program = match std::env::var_os("TILP_PROGRAM") {
            Some(program) => program.into(),
            None => std::env::current_exe().map_err(Failure::failed)?,
        };
        let path = folder.join(format!("{name}.log"));
        let log = std::fs::File::create(&path)
            .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C reaches this process only, which ends the others after the round.
            .process_group(0)
            .spawn()
            .map_err(Failure::failed)?;
        self.0.push((name.to_owned(), child));
        Ok(())
    }

    /// Waits until all have ended by themselves; ends the others.
    fn finish(&mut self, within: Duration) {
        let until = Instant::now() + within;
        for (_, child) in &mut self.0 {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        self.0.clear();
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.finish(Duration::ZERO);
    }
}

fn up(file: &Path, quiet: bool) -> Result<(), Failure> {
    let mut testbed = Described::read(file).map_err(Failure::input)?;
    let missing = testbed.terminals.iter().any(|id| !testbed.data_file(*id).exists());
    let cache = super::cache();
    std::fs::create_dir_all(&testbed.folder).map_err(|error| {
        Failure::input(format!("testbed.folder = {}: {error}", testbed.folder.display()))
    })?;
    if missing {
        write_data(&testbed, cache.as_ref(), &|_, _| {}).map_err(Failure::failed)?;
    }
    enrol_all(&mut testbed)?;
    let signals = Signals::listen().map_err(Failure::failed)?;
    let mut progress = Progress::new(quiet, Some(signals.clone()));
    let mut children = Children(Vec::new());
    let mut failed = Ok(());
    let stop = signals.clone();
    let started = |running: &Running| {
        failed = start_all(&testbed, file, running.listen, &mut children);
        let (hub, broken) = (running.hub.clone(), failed.is_err());
        std::thread::spawn(move || {
            while stop.asked().is_none() && !broken {
                std::thread::sleep(Duration::from_millis(100));
            }
            hub.stop();
        });
    };
    let time = WallTime::start();
    let security = security(&testbed)?;
    let around = Surroundings { about: about(), cache: cache.as_ref(), time: &time, security };
    let ended = serve(&testbed, around, &mut progress, started);
    progress.clear();
    failed?;
    match ended {
        Ok(Ended::Finished(summary)) => {
            children.finish(Duration::from_secs(5));
            output::print(&report(&testbed, &summary))
        }
        Ok(Ended::Interrupted(round)) => {
            let message = format!("stopped after round {round}; start it again to continue");
            Err(Failure::signal(signals.asked().unwrap_or(2), message))
        }
        Err(error) => match signals.asked() {
            Some(signal) => Err(Failure::signal(signal, error)),
            None => Err(Failure::failed(error)),
        },
    }
}

/// Gives every process on this machine an identity, by the authority of the testbed or one of its
/// own.
fn enrol_all(testbed: &mut Described) -> Result<(), Failure> {
    let own = testbed.folder.join("authority");
    let named = testbed.tls.as_ref().and_then(|tls| tls.server.parent());
    let authority = certificates::authority_here(named.unwrap_or(&own))?;
    for &id in &testbed.terminals {
        let folder = identity_folder(&testbed.terminal_folder(id));
        certificates::enrol_here(&authority, Subject::Terminal(TerminalId(id)), &folder)?;
    }
    if testbed.evaluator {
        let folder = identity_folder(&evaluator_folder(testbed));
        certificates::enrol_here(&authority, Subject::Evaluator, &folder)?;
    }
    let server = authority.server();
    testbed.tls.get_or_insert(TlsFiles { server, denied: None });
    Ok(())
}

fn identity_folder(folder: &Path) -> PathBuf {
    folder.join("identity")
}

fn evaluator_folder(testbed: &Described) -> PathBuf {
    testbed.folder.join("evaluator")
}

fn start_all(
    testbed: &Described,
    file: &Path,
    server: SocketAddr,
    children: &mut Children,
) -> Result<(), Failure> {
    let text = |part: &Path| part.display().to_string();
    // A station that listens everywhere is reached here.
    let server = match server.ip().is_unspecified() {
        true => SocketAddr::from(([127, 0, 0, 1], server.port())),
        false => server,
    };
    let has_adapters = testbed.adapters != Adapters::default();
    for &id in &testbed.terminals {
        let mut arguments = vec![
            "terminal".to_owned(),
            format!("--id={id}"),
            format!("--server={server}"),
            format!("--data={}", text(&testbed.data_file(id))),
            format!("--state={}", text(&testbed.terminal_folder(id))),
            format!("--tls={}", text(&identity_folder(&testbed.terminal_folder(id)))),
        ];
        arguments.extend(testbed.power_safe.then(|| "--power-safe".to_owned()));
        arguments.extend(has_adapters.then(|| format!("--adapters={}", text(file))));
        children.start(&format!("terminal-{id}"), &testbed.folder, &arguments)?;
    }
    if testbed.evaluator {
        let folder = text(&identity_folder(&evaluator_folder(testbed)));
        let mut arguments =
            vec!["evaluator".to_owned(), format!("--server={server}"), format!("--tls={folder}")];
        arguments.extend(has_adapters.then(|| format!("--adapters={}", text(file))));
        children.start("evaluator", &testbed.folder, &arguments)?;
    }
    Ok(())
}
