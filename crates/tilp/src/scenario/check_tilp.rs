//! Checks the numbers of `[methods.tilp]` and of its sections.

use super::check::Checker;
use super::load::ScenarioError;
use crate::allocate::{InnerOptions, PriceOptions, StartOptions, SuggestionOptions, TilpSettings};
use crate::rl::sac::ActorCriticOptions;
use crate::search::cem::SearchOptions;
use crate::twin::{
    NetworkOptions, Prior, TaskOptions, TerminalOptions, TrainingOptions, WeightPrior,
};

/// Largest number of candidates, and of whatever is part of them.
const MOST_CANDIDATES: u64 = 100_000;

/// Refuses numbers that do not fit each other; each by itself is in its range. Methods without the
/// search run whatever these are.
pub(super) fn consistent(checker: &Checker, tilp: &TilpSettings) -> Result<(), ScenarioError> {
    let (samples, inner) = (tilp.samples as u64, &tilp.inner.search);
    checker.within("methods.tilp.elites", tilp.elites as u64, 1, samples)?;
    // A search of few samples has neither proposals nor mutants, however many are asked for.
    let most = samples.max(tilp.search.least_samples as u64);
    checker.within("methods.tilp.search.proposals", tilp.search.proposals as u64, 0, most)?;
    checker.within("methods.tilp.search.mutants", tilp.search.mutants as u64, 0, most)?;
    let elites = "methods.tilp.inner.search.elites";
    checker.within(elites, inner.elites as u64, 1, inner.samples as u64)
}

/// Refuses what is out of range.
pub(super) fn tilp(checker: &Checker, tilp: &TilpSettings) -> Result<(), ScenarioError> {
    top(checker, tilp)?;
    search(checker, &tilp.search)?;
    inner(checker, &tilp.inner)?;
    prices(checker, &tilp.prices)?;
    start(checker, &tilp.start)?;
    suggestions(checker, &tilp.suggestions)?;
    let worth = &tilp.worth;
    checker.between("methods.tilp.worth.share", worth.share, 1e-6, 1.0)?;
    checker.between("methods.tilp.worth.overhead", worth.overhead, 1e-9, 1e3)?;
    checker.between("methods.tilp.worth.late_factor", worth.late_factor, 0.0, 1.0)?;
    checker.between("methods.tilp.worth.least_gain", worth.least_gain, 0.0, 1.0)?;
    checker.single("methods.tilp.decoder.band_share", tilp.decoder.band_share, 1e-6, 1.0)?;
    checker.single("methods.tilp.decoder.reach", tilp.decoder.reach, 0.0, 50.0)?;
    actor_critic(checker, &tilp.actor_critic)?;
    let curve = &tilp.twin.curve;
    checker.at_least("methods.tilp.twin.curve.earliest", curve.earliest, 1)?;
    checker.between("methods.tilp.twin.curve.spread", curve.spread, 0.0, 10.0)?;
    network(checker, &tilp.twin.network)?;
    training(checker, &tilp.twin.training)?;
    task(checker, &tilp.twin.task)
}

fn top(checker: &Checker, tilp: &TilpSettings) -> Result<(), ScenarioError> {
    checker.within("methods.tilp.horizon", tilp.horizon as u64, 1, 1000)?;
    checker.within("methods.tilp.samples", tilp.samples as u64, 2, MOST_CANDIDATES)?;
    checker.within("methods.tilp.elites", tilp.elites as u64, 1, MOST_CANDIDATES)?;
    checker.within("methods.tilp.iterations", tilp.iterations as u64, 1, 1000)?;
    checker.between("methods.tilp.discount", tilp.discount, 0.0, 0.9999)?;
    checker.within("methods.tilp.imagined", tilp.imagined as u64, 0, 1000)?;
    checker.within("methods.tilp.updates", tilp.updates as u64, 0, 1000)?;
    checker.between("methods.tilp.start_scheduled", tilp.start_scheduled, 0.1, 1e4)?;
    checker.between("methods.tilp.caution", tilp.caution, 0.0, 10.0)?;
    checker.between("methods.tilp.outlook", tilp.outlook, 0.0, 10.0)?;
    checker.between("methods.tilp.reward_unit", tilp.reward_unit, 1e-9, 1e9)?;
    checker.between("methods.tilp.plan_budget_ms", tilp.plan_budget_ms, 0.0, f64::INFINITY)?;
    checker.between("methods.tilp.sureness", tilp.sureness, 0.5, 0.999_999_9)?;
    let weights = [
        ("weight_task", tilp.weight_task),
        ("weight_delay", tilp.weight_delay),
        ("weight_energy", tilp.weight_energy),
        ("weight_penalty", tilp.weight_penalty),
    ];
    for (name, weight) in weights {
        checker.between(&format!("methods.tilp.{name}"), weight, 0.0, 1e9)?;
    }
    Ok(())
}

fn search(checker: &Checker, search: &SearchOptions) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("methods.tilp.search.{name}");
    checker.between(&field("kept_share"), search.kept_share, 0.0, 1.0)?;
    checker.within(&field("remembered"), search.remembered as u64, 0, MOST_CANDIDATES)?;
    checker.within(&field("least_samples"), search.least_samples as u64, 0, MOST_CANDIDATES)?;
    checker.within(&field("proposals"), search.proposals as u64, 0, MOST_CANDIDATES)?;
    checker.within(&field("mutants"), search.mutants as u64, 0, MOST_CANDIDATES)?;
    checker.within(&field("restart_every"), search.restart_every as u64, 0, 1000)?;
    checker.single(&field("correlation"), search.correlation, 0.0, 1.0)?;
    checker.single(&field("smoothing"), search.smoothing, 0.0, 1.0)?;
    checker.single(&field("deviation_floor"), search.deviation_floor, 1e-6, 10.0)?;
    checker.single(&field("category_floor"), search.category_floor, 0.0, 0.125)?;
    checker.single(&field("flag_floor"), search.flag_floor, 0.0, 0.5)?;
    checker.single(&field("mutation_share"), search.mutation_share, 0.0, 1.0)?;
    checker.single(&field("mutation_most"), search.mutation_most, 0.0, 1.0)?;
    checker.single(&field("plain_deviation_floor"), search.plain_deviation_floor, 1e-6, 10.0)
}

fn inner(checker: &Checker, inner: &InnerOptions) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("methods.tilp.inner.{name}");
    let search = &inner.search;
    checker.within(&field("search.samples"), search.samples as u64, 16, MOST_CANDIDATES)?;
    checker.within(&field("search.elites"), search.elites as u64, 1, MOST_CANDIDATES)?;
    checker.within(&field("search.iterations"), search.iterations as u64, 1, 1000)?;
    checker.within(&field("search.remembered"), search.remembered as u64, 0, MOST_CANDIDATES)?;
    checker.within(&field("search.proposals"), search.proposals as u64, 0, MOST_CANDIDATES)?;
    checker.single(&field("search.correlation"), search.correlation, 0.0, 1.0)?;
    checker.single(&field("search.smoothing"), search.smoothing, 0.0, 1.0)?;
    checker.single(&field("search.floor"), search.floor, 0.0, 10.0)?;
    for deviation in inner.deviations {
        checker.single(&field("deviations"), deviation, 0.0, 10.0)?;
    }
    checker.single(&field("worth_deviation"), inner.worth_deviation, 0.0, 10.0)?;
    for (name, length) in [("sizes", inner.sizes.len()), ("levels", inner.levels.len())] {
        if !(1..=32).contains(&length) {
            let found = format!("{length} values");
            return Err(checker.wrong(&field(name), found, "1 to 32 values"));
        }
    }
    for &size in &inner.sizes {
        checker.within(&field("sizes"), size as u64, 1, 10_000)?;
    }
    for &level in &inner.levels {
        checker.single(&field("levels"), level, 0.0, 1.0)?;
    }
    checker.single(&field("least_time"), inner.least_time, 1e-4, 1.0)?;
    checker.within(&field("price_turns"), inner.price_turns as u64, 1, 100)?;
    checker.single(&field("copy_price"), inner.copy_price, 0.0, 100.0)?;
    checker.single(&field("actor_shift"), inner.actor_shift, 0.0, 10.0)?;
    checker.within(&field("improvements"), inner.improvements as u64, 0, 100)?;
    checker.within(&field("additions"), inner.additions as u64, 0, 10_000)?;
    checker.within(&field("level_step"), inner.level_step as u64, 1, 127)
}

fn prices(checker: &Checker, prices: &PriceOptions) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("methods.tilp.prices.{name}");
    checker.between(&field("memory"), prices.memory, 0.0, 0.9999)?;
    checker.between(&field("balance"), prices.balance, 0.0, 1e3)?;
    checker.between(&field("unbudgeted"), prices.unbudgeted, 0.0, 1e3)?;
    checker.between(&field("least_gain"), prices.least_gain, 0.0, 1.0)
}

fn start(checker: &Checker, start: &StartOptions) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("methods.tilp.start.{name}");
    checker.single(&field("power"), start.power, 0.001, 0.999)?;
    checker.single(&field("compression"), start.compression, 0.001, 0.999)?;
    for deviation in start.deviations {
        checker.single(&field("deviations"), deviation, 1e-6, 10.0)?;
    }
    checker.bounds(&field("scheduled_bounds"), start.scheduled_bounds, 0.0, 1.0)?;
    for chance in start.scheduled_best {
        checker.single(&field("scheduled_best"), chance, 0.0, 1.0)?;
    }
    checker.single(&field("scheduled_rest"), start.scheduled_rest, 0.0, 1.0)?;
    checker.single(&field("cut_logit"), start.cut_logit, 0.0, 100.0)?;
    checker.single(&field("most_cut_logit"), start.most_cut_logit, 0.0, 100.0)?;
    checker.bounds(&field("actor_bounds"), start.actor_bounds, 0.0, 1.0)
}

fn suggestions(checker: &Checker, suggested: &SuggestionOptions) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("methods.tilp.suggestions.{name}");
    let lists = [
        ("sizes", suggested.sizes.len()),
        ("powers", suggested.powers.len()),
        ("compressions", suggested.compressions.len()),
    ];
    for (name, length) in lists {
        if length > 32 {
            let found = format!("{length} values");
            return Err(checker.wrong(&field(name), found, "at most 32 values"));
        }
    }
    for &size in &suggested.sizes {
        checker.within(&field("sizes"), size as u64, 1, 10_000)?;
    }
    for &power in &suggested.powers {
        checker.single(&field("powers"), power, 0.001, 1.0)?;
    }
    for &compression in &suggested.compressions {
        checker.single(&field("compressions"), compression, 0.0, 1.0)?;
    }
    Ok(())
}

fn actor_critic(checker: &Checker, one: &ActorCriticOptions) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("methods.tilp.actor_critic.{name}");
    checker.within(&field("width"), one.width as u64, 1, 4096)?;
    checker.within(&field("value_width"), one.value_width as u64, 1, 4096)?;
    checker.single(&field("actor_rate"), one.actor_rate, 0.0, 1.0)?;
    checker.single(&field("critic_rate"), one.critic_rate, 0.0, 1.0)?;
    checker.single(&field("temperature_rate"), one.temperature_rate, 0.0, 1.0)?;
    checker.single(&field("target_rate"), one.target_rate, 0.0, 1.0)?;
    checker.within(&field("samples"), one.samples as u64, 1, 4096)?;
    checker.single(&field("real_share"), one.real_share, 0.0, 1.0)?;
    checker.within(&field("real_replay"), one.real_replay as u64, 1, 1_000_000)?;
    checker.within(&field("imagined_replay"), one.imagined_replay as u64, 1, 1_000_000)?;
    checker.single(&field("relaxation"), one.relaxation, 0.01, 100.0)?;
    checker.single(&field("entropy_per_number"), one.entropy_per_number, -100.0, 100.0)?;
    checker.single(&field("mixed_entropy_divisor"), one.mixed_entropy_divisor, 1.0, 1e6)?;
    checker.single(&field("log_temperature"), one.log_temperature, -20.0, 20.0)?;
    checker.bounds(&field("log_deviation"), one.log_deviation, -20.0, 5.0)?;
    checker.single(&field("last_layer"), one.last_layer, 0.0, 10.0)
}

fn network(checker: &Checker, network: &NetworkOptions) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("methods.tilp.twin.network.{name}");
    let NetworkOptions { noise, speed, compute, radio, .. } = *network;
    let priors = [("noise", noise), ("speed", speed), ("compute", compute), ("radio", radio)];
    for (name, Prior { sd, limit }) in priors {
        checker.between(&field(&format!("{name}.sd")), sd, 1e-6, 10.0)?;
        checker.between(&field(&format!("{name}.limit")), limit, 0.0, 10.0)?;
    }
    checker.between(&field("drift"), network.drift, 0.0, 1.0)?;
    checker.between(&field("surprise"), network.surprise, 0.1, 1e3)?;
    checker.between(&field("closing_share"), network.closing_share, 0.0, 1.0)?;
    checker.within(&field("corrections"), network.corrections as u64, 1, 100)?;
    checker.between(&field("least_measurement"), network.least_measurement, 1e-9, 1.0)?;
    checker.between(&field("channel.memory"), network.channel.memory, 1.0, 1e9)?;
    checker.between(&field("channel.prior"), network.channel.prior, 0.0, 1e9)
}

fn training(checker: &Checker, training: &TrainingOptions) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("methods.tilp.twin.training.{name}");
    checker.between(&field("most"), training.most, 1e-6, 10.0)?;
    for (name, WeightPrior { mean, sd, least }) in training.named() {
        // The scatter of one terminal is divided by a power of the participants, so it may be large.
        let most = if name == "scatter" { 1e4 } else { training.most };
        checker.between(&field(&format!("{name}.least")), least, -10.0, most)?;
        checker.between(&field(&format!("{name}.mean")), mean, least, most)?;
        checker.between(&field(&format!("{name}.sd")), sd, 1e-9, 10.0)?;
    }
    checker.between(&field("group_sd"), training.group_sd, 1e-9, 10.0)?;
    checker.between(&field("rise_share"), training.rise_share, 0.0, 10.0)?;
    checker.within(&field("window"), training.window, 1, 100_000)?;
    checker.between(&field("memory"), training.memory, 1e-3, 1e9)?;
    checker.between(&field("minibatch"), training.minibatch, 1e-3, 10.0)?;
    checker.between(&field("drift"), training.drift, 0.0, 10.0)?;
    checker.between(&field("swing"), training.swing, 0.0, 1e3)?;
    checker.between(&field("common_swing"), training.common_swing, 0.0, 1e3)?;
    checker.between(&field("noise_memory"), training.noise_memory, 0.0, 1.0)?;
    checker.between(&field("most_square"), training.most_square, 1.0, 1e6)?;
    checker.bounds(&field("push_bounds"), training.push_bounds, 0.0, 1e3)?;
    checker.within(&field("lately"), training.lately, 0, 1_000_000)?;
    checker.within(&field("earliest"), training.earliest, 0, 1_000_000)?;
    checker.between(&field("forgetting"), training.forgetting, 0.0, 1.0)?;
    checker.within(&field("scatter_power"), training.scatter_power.into(), 1, 8)
}

fn task(checker: &Checker, task: &TaskOptions) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("methods.tilp.twin.task.{name}");
    checker.between(&field("start"), task.start, 1e-6, 1.0 - 1e-6)?;
    checker.between(&field("start_sd"), task.start_sd, 1e-6, 100.0)?;
    checker.between(&field("slope"), task.slope, 0.0, 100.0)?;
    checker.between(&field("slope_sd"), task.slope_sd, 1e-6, 100.0)?;
    checker.between(&field("group_sd"), task.group_sd, 1e-6, 100.0)?;
    checker.between(&field("group_slope_sd"), task.group_slope_sd, 1e-6, 100.0)?;
    checker.between(&field("keep"), task.keep, 0.0, 1.0)?;
    checker.between(&field("scatter"), task.scatter, 0.0, 3.0)?;
    checker.between(&field("wander_weight"), task.wander_weight, 1e-9, 1e6)?;
    checker.between(&field("wander_keep"), task.wander_keep, 0.0, 1.0)?;
    checker.between(&field("wander_most_square"), task.wander_most_square, 0.0, 1e6)?;
    checker.between(&field("wander_most"), task.wander_most, 0.0, 1e6)?;
    checker.within(&field("most_pairs"), task.most_pairs as u64, 1, 100_000)?;
    checker.within(&field("turns"), task.turns as u64, 1, 1000)?;
    checker.bounds(&field("anchor_bounds"), task.anchor_bounds, 1e-6, 1.0 - 1e-6)?;
    let TerminalOptions { sd, keep, drift, group_drift, all_drift } = task.terminal;
    checker.between(&field("terminal.sd"), sd, 1e-6, 100.0)?;
    checker.between(&field("terminal.keep"), keep, 0.0, 1.0)?;
    checker.between(&field("terminal.drift"), drift, 0.0, 100.0)?;
    checker.between(&field("terminal.group_drift"), group_drift, 0.0, 100.0)?;
    checker.between(&field("terminal.all_drift"), all_drift, 0.0, 100.0)
}
