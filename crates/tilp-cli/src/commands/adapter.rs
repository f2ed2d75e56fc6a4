//! `tilp adapter`.

use std::path::{Path, PathBuf};

use tilp::round::TerminalId;
use tilp::scenario::{Scenario, fleet, policy, true_channel};
use tilp::tasks::EpisodeSet;
use tilp::units::{Hertz, to_db};
use tilp_testbed::adapters::{
    Actuator, ActuatorAnswer, ActuatorAsk, Adapter as Child, Kind, Meter, MeterAsk, ModelledMeter,
    Probe, ProbeAnswer, ProbeAsk, Program, Rapl, Robot, RobotAnswer, RobotAsk, WirelessProbe,
    schema, serve,
};
use tilp_testbed::proxy::{Command, Reply, ask_proxy};

use crate::arguments::{
    ActuatorTarget, Adapter, AdapterKind, AdapterVerb, MeterSource, ProbeSource,
};
use crate::failure::Failure;
use crate::output;

/// Is an adapter, or tries one.
pub(crate) fn adapter(arguments: Adapter) -> Result<(), Failure> {
    match arguments.verb {
        AdapterVerb::Probe { source, terminal, seed, station_dbm, iw } => {
            probe(source, terminal, seed, station_dbm, iw)
        }
        AdapterVerb::Actuator { target, terminal } => actuator(target, terminal),
        AdapterVerb::Meter { source, energy_coefficient, clock_hz, proxy, terminal } => {
            let link = proxy.map(|socket| SendingLink { socket, terminal, up_bytes: None });
            meter(&source, energy_coefficient, clock_hz, link)
        }
        AdapterVerb::Robot { scenario, terminal, seed } => robot(&scenario, terminal, seed),
        AdapterVerb::Schema { kind } => {
            let schema = schema(name(kind)).expect("every kind has a schema");
            output::print(&serde_json::to_string_pretty(&schema).expect("a schema is plain data"))
        }
        AdapterVerb::Check { kind, timeout_s, model, command } => {
            let program = Program { command, timeout_s };
            match kind {
                AdapterKind::Probe => check::<Probe>(program, &ProbeAsk { round: 1 }),
                AdapterKind::Actuator => {
                    let ask = ActuatorAsk { round: 1, bandwidth_hz: 1e6, power_w: 0.1 };
                    check::<Actuator>(program, &ask)
                }
                AdapterKind::Meter => check::<Meter>(program, &MeterAsk::default()),
                AdapterKind::Robot => {
                    let model = model.ok_or_else(|| Failure::input("no --model, expected FILE"))?;
                    let ask = RobotAsk { model: model.display().to_string(), episode: 0 };
                    check::<Robot>(program, &ask)
                }
            }
        }
    }
}

fn name(kind: AdapterKind) -> &'static str {
    match kind {
        AdapterKind::Probe => Probe::NAME,
        AdapterKind::Actuator => Actuator::NAME,
        AdapterKind::Meter => Meter::NAME,
        AdapterKind::Robot => Robot::NAME,
    }
}

/// Starts an adapter, sends one request, and prints both lines of the adapter.
fn check<K: Kind>(program: Program, ask: &K::Ask) -> Result<(), Failure> {
    let mut child = Child::<K>::start(program).map_err(Failure::input)?;
    let hello = child.hello().cloned();
    let answer = child.ask(ask).map_err(Failure::input)?;
    let said = serde_json::json!({ "hello": hello, "answer": answer });
    output::print(&serde_json::to_string_pretty(&said).expect("lines are plain data"))
}

/// Answers questions on standard input until there are no more.
fn answer<K: Kind>(
    name: &str,
    modelled: bool,
    answer: impl FnMut(&K::Ask) -> Result<K::Answer, String>,
) -> Result<(), Failure> {
    let (source, sink) = (std::io::stdin().lock(), std::io::stdout().lock());
    serve::<K>(source, sink, name, modelled, answer).map_err(Failure::failed)
}

fn probe(
    source: ProbeSource,
    terminal: u32,
    seed: u64,
    station_dbm: f64,
    with_iw: bool,
) -> Result<(), Failure> {
    let plain = |gain_db: f64| ProbeAnswer { gain_db, signal_dbm: None, noise_dbm: None };
    if let Some(socket) = source.proxy {
        return answer::<Probe>("proxy", true, |_| {
            let status = Command::Status { version: 1, terminal };
            match ask_proxy(&socket, &status).map_err(|error| error.to_string())? {
                Reply::Status { gain_db: Some(gain_db), .. } => Ok(plain(gain_db)),
                _ => Err("the proxy replays rates, not gains".into()),
            }
        });
    }
    if let Some(interface) = source.wireless {
        let probe = WirelessProbe { interface, station_dbm, with_iw };
        return answer::<Probe>("linux-wireless", false, |_| {
            probe.read().map_err(|error| error.to_string())
        });
    }
    let scenario = Scenario::load(&source.simulated.unwrap_or_default(), &[]);
    let scenario = scenario.map_err(Failure::input)?;
    check_terminal(terminal, &scenario)?;
    let truth = true_channel(&scenario, seed, scenario.rounds()).map_err(Failure::input)?;
    answer::<Probe>("simulated", true, |ask| {
        let index = (ask.round.max(1) - 1) % truth.rounds.len() as u64;
        let link = truth.rounds[index as usize][terminal as usize];
        Ok(plain(to_db(link.gain.0 * link.fading_power)))
    })
}

fn check_terminal(terminal: u32, scenario: &Scenario) -> Result<(), Failure> {
    let n_terminals = scenario.n_terminals();
    if (terminal as usize) < n_terminals {
        return Ok(());
    }
    let (last, name) = (n_terminals - 1, scenario.name());
    Err(Failure::input(format!("--terminal = {terminal}, expected 0 to {last} ({name})")))
}

fn actuator(target: ActuatorTarget, terminal: u32) -> Result<(), Failure> {
    let Some(socket) = target.proxy else {
        return answer::<Actuator>("simulated", true, |ask| Ok(applied(ask)));
    };
    answer::<Actuator>("proxy", true, |ask| {
        let command = match ask.bandwidth_hz > 0.0 {
            true => Command::Grant {
                version: 1,
                terminal,
                bandwidth_hz: ask.bandwidth_hz,
                power_w: ask.power_w,
            },
            false => Command::Release { version: 1, terminal },
        };
        ask_proxy(&socket, &command).map_err(|error| error.to_string())?;
        Ok(applied(ask))
    })
}

fn applied(ask: &ActuatorAsk) -> ActuatorAnswer {
    ActuatorAnswer { bandwidth_hz: ask.bandwidth_hz, power_w: ask.power_w }
}

/// The link of a terminal at a proxy, for the time that the terminal sends.
struct SendingLink {
    socket: PathBuf,
    terminal: u32,
    /// Bytes sent up to the last look.
    up_bytes: Option<u64>,
}

impl SendingLink {
    /// Seconds of sending since the last look, and the power. What was sent between two grants
    /// counts with the power and the rate that hold now.
    fn sent(&mut self) -> Result<(f64, f64), String> {
        let status = Command::Status { version: 1, terminal: self.terminal };
        let reply = ask_proxy(&self.socket, &status).map_err(|error| error.to_string())?;
        let Reply::Status { up_bps, up_bytes, power_w, .. } = reply else {
            return Err("the proxy gave no status".into());
        };
        let before = self.up_bytes.replace(up_bytes).unwrap_or(up_bytes);
        let bits = 8.0 * up_bytes.saturating_sub(before) as f64;
        let seconds = if up_bps > 0.0 { bits / up_bps } else { 0.0 };
        Ok((seconds, power_w.unwrap_or(0.0)))
    }
}

fn meter(
    source: &MeterSource,
    energy_coefficient: f64,
    clock_hz: f64,
    mut link: Option<SendingLink>,
) -> Result<(), Failure> {
    if source.rapl {
        let mut rapl = Rapl::open().map_err(Failure::input)?;
        return answer::<Meter>("rapl", false, |_| rapl.read().map_err(|error| error.to_string()));
    }
    for (flag, value) in [("--energy-coefficient", energy_coefficient), ("--clock-hz", clock_hz)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(Failure::input(format!("{flag} = {value}, expected above zero")));
        }
    }
    let mut modelled = ModelledMeter::new(energy_coefficient, Hertz(clock_hz));
    answer::<Meter>("modelled", true, |ask| {
        let mut ask = *ask;
        if let Some(link) = &mut link {
            (ask.sending_s, ask.power_w) = link.sent()?;
        }
        modelled.read(&ask)
    })
}

fn robot(scenario: &str, terminal: u32, seed: u64) -> Result<(), Failure> {
    let scenario = Scenario::load(scenario, &[]).map_err(Failure::input)?;
    check_terminal(terminal, &scenario)?;
    let (policy, _) = policy(&scenario).map_err(Failure::input)?;
    let fleet = fleet(&scenario, seed).map_err(Failure::input)?;
    let mut known: Option<(PathBuf, _)> = None;
    answer::<Robot>("simulated", true, |ask| {
        let path = Path::new(&ask.model);
        if known.as_ref().is_none_or(|(known, _)| known != path) {
            let at = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
            let bytes = std::fs::read(path).map_err(|error| at(&error))?;
            let weights = policy.weights_from(&bytes).map_err(|error| at(&error))?;
            known = Some((path.to_owned(), weights));
        }
        let weights = &known.as_ref().expect("the policy was just read").1;
        let (set, id) = (EpisodeSet::Calibration, [TerminalId(terminal)]);
        let found = fleet.at(0).measure(set, ask.episode, 1, &id, weights, &policy);
        Ok(RobotAnswer { success: found[0].count.successes == 1 })
    })
}
