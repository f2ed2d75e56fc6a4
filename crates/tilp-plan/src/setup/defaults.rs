//! What a cell description takes from the default scenario. The file is the only place that holds
//! these numbers.

use std::sync::LazyLock;

use serde::Deserialize;

use super::CellDescription;
use crate::allocate::TilpSettings;
use crate::cost::{Accounting, CostModel, Downlink, Payload, Profile, Sync};
use crate::round::Limits;
use crate::split::compress::{Compressor, Exchange};
use crate::split::rates::{RateSchedule, Rates};
use crate::split::rule::Rule;
use crate::station::TrainingSchedule;
use crate::units::Seconds;
use crate::wireless::{RateModel, correlation};

/// The parts of a scenario that a description falls back on.
#[derive(Deserialize)]
struct Scenario {
    rounds: u64,
    cell: Cell,
    limits: LimitDefaults,
    hardware: Meters,
    learning: Learning,
    methods: Methods,
}

#[derive(Deserialize)]
struct Cell {
    fading: RateModel,
    doppler_hz: f64,
    round_interval_s: f64,
}

#[derive(Deserialize)]
struct LimitDefaults {
    deadline_s: f64,
    give_up_s: f64,
}

#[derive(Deserialize)]
struct Meters {
    measurement_noise: f64,
}

#[derive(Deserialize)]
struct Learning {
    final_rate_share: f64,
    #[serde(default)]
    warm_up: u64,
    aggregate_every: u64,
    compressor: Compressor,
    payload: Payload,
    sync: Sync,
    #[serde(default)]
    exchange_bits: Exchange,
}

#[derive(Deserialize)]
struct Methods {
    rates: MethodRates,
}

#[derive(Deserialize)]
struct MethodRates {
    tilp: StartRates,
}

#[derive(Deserialize)]
struct StartRates {
    server_rate: f32,
    terminal_rate: f32,
}

static DEFAULT: LazyLock<Scenario> = LazyLock::new(|| {
    let text = include_str!("../../../../configs/default.toml");
    toml::from_str(text).expect("the default scenario is complete")
});

/// A cell with these limits, sizes and tasks, and everything else as in the default scenario. The
/// give-up time keeps its ratio to the deadline.
pub(super) fn description(limits: Limits, profile: Profile, n_tasks: usize) -> CellDescription {
    let Scenario { rounds, cell, limits: usual, hardware, learning, methods } = &*DEFAULT;
    let StartRates { server_rate, terminal_rate } = methods.rates.tilp;
    let rates = RateSchedule {
        start: Rates { server: server_rate, terminal: terminal_rate },
        final_share: learning.final_rate_share,
        rounds: *rounds,
        warm_up: learning.warm_up,
    };
    let (rule, aggregate_every) = (Rule::Parallel, learning.aggregate_every);
    let Learning { compressor, payload, sync, exchange_bits: exchange, .. } = *learning;
    let deadline = limits.deadline;
    CellDescription {
        cost: CostModel {
            limits,
            profile,
            accounting: Accounting { compressor, payload, sync, exchange },
            rate_model: cell.fading,
            downlink: Downlink::Shared,
        },
        training: TrainingSchedule { rule, aggregate_every, rates },
        closes: deadline,
        give_up: Seconds(deadline.0 * (usual.give_up_s / usual.deadline_s)),
        fading_correlation: correlation(cell.doppler_hz, cell.round_interval_s),
        measurement_noise: hardware.measurement_noise,
        n_tasks,
        planner: TilpSettings::default(),
    }
}
