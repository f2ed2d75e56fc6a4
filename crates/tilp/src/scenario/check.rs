//! Checks every number of a scenario against its range, once, so that the core cannot fail later.

use std::fmt::{Debug, Display};

use super::format::FORMAT;
use super::load::{Loaded, ScenarioError};
use super::raw::{Downlink, Heterogeneity, Raw, SuiteName};
use crate::tasks::tabletop::Engine;
use crate::twin::MAX_CUTS;

/// Refuses a scenario with a value out of range; the message names field, value and expectation.
pub(super) fn check(loaded: &Loaded) -> Result<(), ScenarioError> {
    let checker = Checker { place: &loaded.place };
    let raw = &loaded.raw;
    checker.within("format", raw.format.into(), 1, FORMAT.into())?;
    checker.at_least("rounds", raw.rounds, 1)?;
    cell(&checker, raw)?;
    radio(&checker, raw)?;
    limits(&checker, raw)?;
    hardware(&checker, raw)?;
    model(&checker, raw)?;
    raw.learning.check(&checker)?;
    if raw.profile.is_some() {
        raw.learning.check_profile(&checker)?;
    }
    tasks(&checker, raw)?;
    evaluation(&checker, raw)?;
    methods(&checker, raw)?;
    super::profile::check(&checker, raw)?;
    super::terminals::check(&checker, raw)?;
    super::check_events::events(&checker, raw)
}

fn cell(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let cell = &raw.cell;
    checker.within("cell.n_terminals", cell.n_terminals as u64, 1, 10_000)?;
    checker.between("cell.inner_radius_m", cell.inner_radius_m, 0.0, 1e5)?;
    checker.between("cell.outer_radius_m", cell.outer_radius_m, cell.inner_radius_m, 1e5)?;
    checker.between("cell.carrier_hz", cell.carrier_hz, 0.5e9, 100e9)?;
    checker.between("cell.station_height_m", cell.station_height_m, 0.1, 500.0)?;
    checker.between("cell.terminal_height_m", cell.terminal_height_m, 0.1, 100.0)?;
    checker.between("cell.shadowing_distance_m", cell.shadowing_distance_m, 1e-3, 1e4)?;
    checker.between("cell.doppler_hz", cell.doppler_hz, 0.0, 1e4)?;
    checker.between("cell.round_interval_s", cell.round_interval_s, 0.0, 1e6)?;
    checker.between("cell.noise_dbm_per_hz", cell.noise_dbm_per_hz, -250.0, 0.0)?;
    checker.between("cell.noise_figure_db", cell.noise_figure_db, 0.0, 50.0)?;
    checker.between("cell.hidden_noise_figure_db", cell.hidden_noise_figure_db, 0.0, 20.0)?;
    if !cell.trace.is_empty() && raw.heterogeneity != Heterogeneity::Default {
        let expected = "default: the channel is recorded (cell.trace)";
        return Err(checker.wrong("heterogeneity", raw.heterogeneity.name(), expected));
    }
    Ok(())
}

fn radio(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let field = "radio.station_power_w";
    match (raw.radio.downlink, raw.radio.station_power_w) {
        (_, Some(power)) => checker.between(field, power, 1e-9, 1e6),
        (Downlink::Own, None) => {
            Err(checker.wrong(field, "absent", "the power of the base station with downlink = own"))
        }
        (Downlink::Shared, None) => Ok(()),
    }
}

fn limits(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let limits = &raw.limits;
    checker.between("limits.deadline_s", limits.deadline_s, 1e-6, 1e6)?;
    checker.between("limits.bandwidth_hz", limits.bandwidth_hz, 1.0, 1e12)?;
    checker.between("limits.power_w", limits.power_w, 1e-9, 1e3)?;
    checker.between("limits.compression", limits.compression, 0.0, 0.99)?;
    checker.between("limits.give_up_s", limits.give_up_s, limits.deadline_s, 1e9)?;
    let budget = &limits.budget;
    let budgets = [
        ("seconds", budget.seconds, 1e-6, 1e9),
        ("joules", budget.joules, 1e-9, 1e12),
        ("joules_per_terminal", budget.joules_per_terminal, 1e-9, 1e12),
        ("bytes", budget.bytes, 1.0, 1e15),
    ];
    let set = budgets.into_iter().filter_map(|(name, value, least, most)| {
        Some((format!("limits.budget.{name}"), value?, least, most))
    });
    set.into_iter()
        .try_for_each(|(name, value, least, most)| checker.between(&name, value, least, most))
}

fn hardware(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let hardware = &raw.hardware;
    checker.between("hardware.clock_hz", hardware.clock_hz, 1e3, 1e12)?;
    checker.range("hardware.operations_per_cycle", hardware.operations_per_cycle, 1e-6, 1e6)?;
    checker.range("hardware.energy_coefficient", hardware.energy_coefficient, 0.0, 1e-15)?;
    checker.between("hardware.hidden_share", hardware.hidden_share, 0.0, 10.0)?;
    checker.between("hardware.short_memory_share", hardware.short_memory_share, 0.0, 1.0)?;
    checker.between("hardware.ample_memory", hardware.ample_memory, 1.0, 1e6)?;
    checker.between("hardware.measurement_noise", hardware.measurement_noise, 0.0, 1.0)
}

fn model(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let model = &raw.model;
    checker.within("model.width", model.width as u64, 4, 4096)?;
    checker.within("model.heads", model.heads as u64, 1, 64)?;
    if !model.width.is_multiple_of(model.heads) {
        return Err(checker.wrong("model.heads", model.heads, "a divisor of model.width"));
    }
    checker.within("model.blocks", model.blocks as u64, 1, 64)?;
    checker.within("model.mlp_ratio", model.mlp_ratio as u64, 1, 16)?;
    for &block in &model.merge_after {
        checker.within("model.merge_after", block as u64, 1, model.blocks as u64 - 1)?;
    }
    let ascending = model.cuts.windows(2).all(|pair| pair[0] < pair[1]);
    // The last part stays with the server.
    let parts = raw.profile.as_ref().map(|profile| profile.cuts.len().saturating_sub(1));
    let layers = parts.unwrap_or(model.blocks + 1);
    let inside = model.cuts.iter().all(|cut| (1..=layers).contains(cut));
    if model.cuts.is_empty() || model.cuts.len() > MAX_CUTS || !ascending || !inside {
        let expected = format!("ascending layers of 1..={layers}, at most {MAX_CUTS}");
        return Err(checker.wrong("model.cuts", format!("{:?}", model.cuts), &expected));
    }
    Ok(())
}

fn tasks(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let tasks = &raw.tasks;
    if Engine::from_name(tasks.engine.name()).is_none() {
        let expected = "rapier, or a program built with `--features mujoco`";
        return Err(checker.wrong("tasks.engine", tasks.engine.name(), expected));
    }
    if tasks.shares.total() == 0 {
        return Err(checker.wrong("tasks.shares", "all zero", "at least one task"));
    }
    for (name, value, most) in tasks.range.fields() {
        checker.between(&format!("tasks.range.{name}"), f64::from(value), 0.0, most)?;
    }
    checker.within("tasks.demonstrations", tasks.demonstrations as u64, 1, 10_000)?;
    let spread = tasks.demonstrations_spread;
    checker.between("tasks.demonstrations_spread", spread, 1.0, 100.0)?;
    checker.between("tasks.demonstration_noise", tasks.demonstration_noise, 0.0, 2.0)?;
    checker.within("tasks.episode_steps", tasks.episode_steps as u64, 1, 10_000)?;
    checker.between("tasks.extra_mass_kg", tasks.extra_mass_kg, 0.0, 100.0)?;
    match (&tasks.libero, tasks.suite) {
        (Some(libero), _) => {
            checker.between("tasks.libero.yaw_rad", f64::from(libero.yaw_rad), 0.0, 3.2)
        }
        (None, SuiteName::LiberoObject) => {
            Err(checker.wrong("tasks.suite", "libero-object", "a section tasks.libero with it"))
        }
        (None, SuiteName::Tabletop) => Ok(()),
    }
}

fn evaluation(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let evaluation = &raw.evaluation;
    checker.at_least("evaluation.calibrate_every", evaluation.calibrate_every, 1)?;
    checker.at_least("evaluation.measure_every", evaluation.measure_every, 1)?;
    let counts = [
        ("calibration_episodes", evaluation.calibration_episodes),
        ("report_episodes", evaluation.report_episodes),
        ("final_episodes", evaluation.final_episodes),
    ];
    for (name, count) in counts {
        checker.within(&format!("evaluation.{name}"), count as u64, 1, 1000)?;
    }
    checker.at_least("evaluation.loss_every", evaluation.loss_every, 1)?;
    checker.within("evaluation.loss_samples", evaluation.loss_samples as u64, 1, 100_000)
}

fn methods(checker: &Checker, raw: &Raw) -> Result<(), ScenarioError> {
    let reference = &raw.methods.reference;
    checker.at_least("methods.cut", raw.methods.cut as u64, 1)?;
    checker.at_least("methods.reference.n_scheduled", reference.n_scheduled as u64, 1)?;
    checker.between("methods.reference.compression", reference.compression, 0.0, 0.99)?;
    checker.between("methods.reference.margin", reference.margin, 0.01, 1.0)?;
    checker.between("methods.reference.skip_far_share", reference.skip_far_share, 0.0, 0.99)?;
    // Not zero: a task without a deficit would never be drawn.
    checker.between("methods.reference.uniform_share", reference.uniform_share, 1e-6, 1.0)?;
    if let Some(near) = reference.near_compression {
        checker.between("methods.reference.near_compression", near, 0.0, 0.99)?;
    }
    checker.between("methods.reference.deficit_prior", reference.deficit_prior, 0.0, 1e6)?;
    let told = reference.clairvoyant_episodes as u64;
    checker.within("methods.reference.clairvoyant_episodes", told, 1, 1000)?;
    for (name, rates) in &raw.methods.rates {
        if super::method(name).is_err() {
            let known: Vec<&str> = super::methods().iter().map(super::Method::name).collect();
            let expected = format!("one of {}, or a variant of one", known.join(", "));
            return Err(checker.wrong("methods.rates", name, &expected));
        }
        let field = |rate: &str| format!("methods.rates.{name}.{rate}");
        checker.between(&field("server_rate"), rates.server_rate, 0.0, 100.0)?;
        checker.between(&field("terminal_rate"), rates.terminal_rate, 0.0, 100.0)?;
    }
    raw.methods.baselines.check(checker)?;
    let oracle = &raw.methods.oracle;
    checker.within("methods.oracle.loss_samples", oracle.loss_samples as u64, 1, 100_000)?;
    checker.within("methods.oracle.success_episodes", oracle.success_episodes as u64, 1, 1000)?;
    super::check_tilp::tilp(checker, &raw.methods.tilp)
}

/// Refuses what only some methods use: their cut, the compression of the reference rules, and numbers
/// of the search that do not fit each other. Other methods run whatever these are.
pub(super) fn knobs_of(raw: &Raw, place: &str, uses: Uses) -> Result<(), ScenarioError> {
    let checker = Checker { place };
    if uses.cut && !raw.model.cuts.contains(&raw.methods.cut) {
        let expected = format!("one of model.cuts {:?}", raw.model.cuts);
        return Err(checker.wrong("methods.cut", raw.methods.cut, &expected));
    }
    if uses.compression {
        let (reference, most) = (&raw.methods.reference, raw.limits.compression);
        checker.between("methods.reference.compression", reference.compression, 0.0, most)?;
        if let Some(near) = reference.near_compression {
            checker.between("methods.reference.near_compression", near, 0.0, most)?;
        }
    }
    if uses.search {
        super::check_tilp::consistent(&checker, &raw.methods.tilp)?;
    }
    Ok(())
}

/// Which shared knobs a method uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    /// `methods.cut`.
    pub(super) cut: bool,
    /// `methods.reference.compression`.
    pub(super) compression: bool,
    /// The search of `methods.tilp`.
    pub(super) search: bool,
}

pub(super) struct Checker<'a> {
    place: &'a str,
}

impl Checker<'_> {
    pub(super) fn wrong(&self, field: &str, value: impl Display, expected: &str) -> ScenarioError {
        ScenarioError::Range {
            field: field.to_owned(),
            value: value.to_string(),
            expected: expected.to_owned(),
            place: self.place.to_owned(),
        }
    }

    pub(super) fn at_least(
        &self,
        field: &str,
        value: u64,
        least: u64,
    ) -> Result<(), ScenarioError> {
        if value >= least {
            return Ok(());
        }
        Err(self.wrong(field, value, &format!("at least {least}")))
    }

    pub(super) fn within(
        &self,
        field: &str,
        value: u64,
        least: u64,
        most: u64,
    ) -> Result<(), ScenarioError> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(self.wrong(field, value, &format!("{least} to {most}")))
    }

    pub(super) fn between(
        &self,
        field: &str,
        value: f64,
        least: f64,
        most: f64,
    ) -> Result<(), ScenarioError> {
        if value >= least && value <= most {
            return Ok(());
        }
        Err(self.wrong(field, short(value), &format!("{} to {}", short(least), short(most))))
    }

    /// A number in single precision.
    pub(super) fn single(
        &self,
        field: &str,
        value: f32,
        least: f64,
        most: f64,
    ) -> Result<(), ScenarioError> {
        // Compared in single precision: a bound may be written in the file too.
        if value >= least as f32 && value <= most as f32 {
            return Ok(());
        }
        Err(self.wrong(field, value, &format!("{} to {}", short(least), short(most))))
    }

    /// Two bounds in order.
    pub(super) fn bounds<T: Copy + Debug + Into<f64>>(
        &self,
        field: &str,
        ends: [T; 2],
        least: f64,
        most: f64,
    ) -> Result<(), ScenarioError> {
        let [low, high] = ends.map(Into::into);
        if least <= low && low <= high && high <= most {
            return Ok(());
        }
        let (least, most) = (short(least), short(most));
        let expected = format!("two ascending values within {least} to {most}");
        Err(self.wrong(field, format!("{ends:?}"), &expected))
    }

    fn range(
        &self,
        field: &str,
        ends: [f64; 2],
        least: f64,
        most: f64,
    ) -> Result<(), ScenarioError> {
        if ends[0] > least && ends[0] <= ends[1] && ends[1] <= most {
            return Ok(());
        }
        let (least, most) = (short(least), short(most));
        let expected = format!("two ascending values, above {least}, up to {most}");
        Err(self.wrong(field, format!("{ends:?}"), &expected))
    }
}

/// A number as people write it: very large and very small ones in powers of ten.
fn short(value: f64) -> String {
    match value.abs() {
        plain if plain == 0.0 || (1e-4..1e6).contains(&plain) || !plain.is_finite() => {
            value.to_string()
        }
        _ => format!("{value:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn very_large_and_very_small_numbers_are_written_in_powers_of_ten() {
        let cases =
            [(0.0, "0"), (0.25, "0.25"), (100e9, "1e11"), (-1e-6, "-1e-6"), (5e5, "500000")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!(short(f64::NAN), "NaN");
    }
}
