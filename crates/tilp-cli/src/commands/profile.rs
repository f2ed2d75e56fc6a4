//! `tilp profile`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use serde_json::json;
use tilp::cost::Hardware;
use tilp::experiment::{ModelProfileSpec, model_table, profile_onnx};
use tilp::scenario::{Scenario, cut_profiles, data_sheets, policy};
use tilp::split::model::{SplitModel, Weights};
use tilp::split::policy::Policy;
use tilp_testbed::adapters::Rapl;

use crate::arguments::{Format, ModelFile, OptimiserKind, Profile, ProfileVerb};
use crate::failure::Failure;
use crate::output;

/// Measured time of one cut.
struct Measured {
    cut: usize,
    operations_per_second: f64,
    /// Joules an operation, less what the machine uses at rest; none without counters.
    joules_per_operation: Option<f64>,
}

/// Measures a model or this machine.
pub(crate) fn profile(arguments: Profile) -> Result<(), Failure> {
    match arguments.verb {
        Some(verb) => device(verb),
        None => model(&arguments.model),
    }
}

/// Prints the table of a model.
fn model(arguments: &ModelFile) -> Result<(), Failure> {
    let missing = || Failure::input("no model given, expected an ONNX file or `device`");
    let path = arguments.model.as_ref().ok_or_else(missing)?;
    let mut sizes = BTreeMap::new();
    for given in &arguments.sizes {
        let parts = given.split_once('=');
        let size = parts.and_then(|(name, size)| Some((name, size.parse::<u64>().ok()?)));
        match size {
            Some((name, size)) if size > 0 => sizes.insert(name.to_owned(), size),
            _ => return Err(Failure::input(format!("--size {given}, expected NAME=NUMBER"))),
        };
    }
    let state_per_parameter = match arguments.optimiser {
        OptimiserKind::Sgd => 0,
        OptimiserKind::Momentum => 1,
        OptimiserKind::Adamw => 2,
    };
    let spec = ModelProfileSpec { batch: arguments.batch, state_per_parameter, sizes };
    let named = |error: &dyn Display| Failure::input(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| named(&error))?;
    let cuts = profile_onnx(&bytes, &spec).map_err(|error| named(&error))?;
    let name = path.file_name().map_or_else(String::new, |name| name.display().to_string());
    output::print(&model_table(&cuts, &name, &spec))
}

/// Measures this machine.
fn device(verb: ProfileVerb) -> Result<(), Failure> {
    let ProfileVerb::Device { scenario, overrides, seconds, clock_hz, format } = verb;
    let scenario = Scenario::load(&scenario, &overrides).map_err(Failure::input)?;
    if !(0.01..=600.0).contains(&seconds) {
        return Err(Failure::input(format!("--seconds = {seconds}, expected 0.01 to 600")));
    }
    let clock_hz = match clock_hz.or_else(system_clock_hz) {
        Some(clock_hz) if (1e6..=1e11).contains(&clock_hz) => clock_hz,
        Some(other) => {
            return Err(Failure::input(format!("--clock-hz = {other}, expected 1e6 to 1e11")));
        }
        None => {
            return Err(Failure::input("the system names no frequency, expected --clock-hz HZ"));
        }
    };
    let mut meter = Rapl::open().ok();
    let rest_w = rest_power(meter.as_mut(), seconds);
    let (policy, weights) = policy(&scenario).map_err(Failure::input)?;
    let profiles = cut_profiles(&scenario).map_err(Failure::input)?;
    let mut measured = Vec::new();
    for cut in policy.cuts() {
        let work = profiles.work(*cut, profiles.batch).0;
        let run = Bench { policy: &policy, weights: &weights, cut: *cut, samples: profiles.batch };
        measured.push(run.measure(work, seconds, meter.as_mut(), rest_w));
    }
    let modelled = data_sheets(&scenario, 0);
    output::print(&match format {
        Format::Json => as_json(&measured, clock_hz, &modelled),
        Format::Text => as_toml(&measured, clock_hz, &modelled, scenario.name()),
    })
}

/// The highest frequency that Linux names for the first core.
fn system_clock_hz() -> Option<f64> {
    let number = |text: String| text.trim().parse::<f64>().ok();
    let highest = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq";
    if let Some(kilohertz) = std::fs::read_to_string(highest).ok().and_then(number) {
        return Some(1e3 * kilohertz);
    }
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
    line.split(':').nth(1).and_then(|value| number(value.to_owned())).map(|mhz| 1e6 * mhz)
}

/// Watts of the machine when it rests.
fn rest_power(meter: Option<&mut Rapl>, seconds: f64) -> f64 {
    let Some(meter) = meter else { return 0.0 };
    let before = meter.read().map_or(0.0, |read| read.compute_j);
    let start = Instant::now();
    std::thread::sleep(Duration::from_secs_f64(seconds.min(2.0)));
    let used = meter.read().map_or(0.0, |read| read.compute_j) - before;
    used / start.elapsed().as_secs_f64()
}

/// Forward and backward passes of the front layers up to a cut.
struct Bench<'a> {
    policy: &'a Policy,
    weights: &'a Weights,
    cut: usize,
    samples: usize,
}

impl Bench<'_> {
    fn measure(
        &self,
        work: f64,
        seconds: f64,
        mut meter: Option<&mut Rapl>,
        rest_w: f64,
    ) -> Measured {
        let Self { policy, weights, cut, samples } = *self;
        let input: Vec<f32> =
            (0..samples * policy.n_elements(0)).map(|n| (n % 17) as f32 / 17.0 - 0.5).collect();
        let gradient = vec![1e-3; samples * policy.n_elements(cut)];
        let mut gradients = Weights::zeros(policy);
        let mut workspace = policy.workspace();
        let mut pass = || {
            policy.forward(1..=cut, weights, &input, &mut workspace);
            policy.backward(1..=cut, weights, &gradient, &mut workspace, &mut gradients);
        };
        // Caches and buffers fill in the first passes.
        (0..3).for_each(|_| pass());
        let mut read = || meter.as_mut()?.read().ok().map(|read| read.compute_j);
        let before = read();
        let (start, mut passes) = (Instant::now(), 0.0);
        while start.elapsed().as_secs_f64() < seconds {
            pass();
            passes += 1.0;
        }
        let elapsed = start.elapsed().as_secs_f64();
        let used = before.zip(read()).map(|(before, after)| after - before - rest_w * elapsed);
        Measured {
            cut,
            operations_per_second: passes * work / elapsed,
            joules_per_operation: used.map(|joules| joules.max(0.0) / (passes * work)),
        }
    }
}

/// Lowest and highest of some numbers.
fn range(values: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    [values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max)]
}

/// Lowest and highest operations per cycle and energy coefficient, and whether energy was measured.
fn hardware(
    measured: &[Measured],
    clock_hz: f64,
    modelled: &[Hardware],
) -> ([f64; 2], [f64; 2], bool) {
    let per_cycle = range(measured.iter().map(|one| one.operations_per_second / clock_hz));
    let of_counter = |one: &Measured| one.joules_per_operation.filter(|joules| *joules > 0.0);
    let found: Option<Vec<f64>> = measured.iter().map(of_counter).collect();
    let coefficient = |joules: &f64| joules / (clock_hz * clock_hz);
    match found {
        Some(joules) => (per_cycle, range(joules.iter().map(coefficient)), true),
        None => (per_cycle, range(modelled.iter().map(|one| one.energy_coefficient)), false),
    }
}

fn as_toml(measured: &[Measured], clock_hz: f64, modelled: &[Hardware], name: &str) -> String {
    let ([low, high], [least, most], is_measured) = hardware(measured, clock_hz, modelled);
    let mut text = format!("# tilp profile device, front layers of `{name}`\n");
    for Measured { cut, operations_per_second, joules_per_operation } in measured {
        let joules = joules_per_operation.map_or(String::new(), |j| format!(", {j:.3e} J each"));
        text += &format!("# cut {cut}: {operations_per_second:.4e} operations a second{joules}\n");
    }
    text += "[hardware]\n";
    text += &format!("clock_hz = {clock_hz:e}\n");
    text += &format!("operations_per_cycle = [{low:.4}, {high:.4}]\n");
    let source = match is_measured {
        true => "measured by the processor's counters, less its power at rest",
        false => "modelled: the scenario's own, this machine shows no energy counter",
    };
    text + &format!("# {source}\nenergy_coefficient = [{least:.4e}, {most:.4e}]\n")
}

fn as_json(measured: &[Measured], clock_hz: f64, modelled: &[Hardware]) -> String {
    let (per_cycle, coefficient, is_measured) = hardware(measured, clock_hz, modelled);
    let cut = |one: &Measured| {
        json!({
            "cut": one.cut,
            "operations_per_second": one.operations_per_second,
            "joules_per_operation": one.joules_per_operation,
        })
    };
    let all = json!({
        "clock_hz": clock_hz,
        "operations_per_cycle": per_cycle,
        "energy_coefficient": coefficient,
        "energy_is_modelled": !is_measured,
        "cuts": measured.iter().map(cut).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&all).expect("a profile is plain data")
}
