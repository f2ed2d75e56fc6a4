//! Scenarios: written, loaded, checked, and turned into the parts of a run.

mod assemble;
mod cache;
mod check;
mod check_events;
mod check_tilp;
mod events;
mod format;
mod heterogeneity;
mod inspect;
mod knobs;
mod learning;
mod lerobot;
mod libero;
mod load;
mod near;
mod physical;
mod planner;
mod profile;
mod program;
mod raw;
mod raw_events;
mod registry;
mod robots;
mod terminals;
mod twin;

pub use assemble::{
    Parts, Seeds, World, assemble, assemble_world, evaluator, policy, read_recording, recording,
    untrained,
};
pub use cache::{Cache, CacheError};
pub use inspect::{Inspection, drawn_channel, inspect, merged_shares};
pub use knobs::Baselines;
pub use load::{BUILTIN, ScenarioError};
pub use physical::{CellMap, TrueChannel, TrueLink, cell_map, cut_profiles, fleet, true_channel};
pub use planner::{
    data_sheets, limits_of, n_layers, planner, rates_of, suite_of, tasks, tilp_options,
};
pub use profile::{PROFILE_NOTE, ProfileParts};
pub use program::ProgramError;
pub use registry::{Method, MethodInputs, Registry, method, methods};
pub use robots::{
    MeasuredCell, TerminalEpisodes, demonstration_episodes, measured_cell, narrow_demonstrations,
    sample_variants,
};
pub use twin::{TwinParts, assemble_twin};

use sha2::{Digest, Sha256};
use std::path::PathBuf;

use crate::record::EventMark;
use crate::record::FirstPassage;
use crate::round::Budget;
use crate::units::Seconds;
use load::Loaded;
use raw::Raw;

use crate::round::TerminalId;

/// A complete, checked scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    raw: Raw,
    place: String,
    folder: PathBuf,
}

impl Scenario {
    /// Loads a built-in name or a file, applies `key=value` overrides, checks every value.
    pub fn load(name: &str, overrides: &[String]) -> Result<Self, ScenarioError> {
        // Tables are read first: an override may change what came from one.
        if let Ok(mut plain) = load::load(name, &[])
            && plain.raw.profile.as_ref().is_some_and(profile::names_tables)
        {
            profile::read_tables(&mut plain)?;
            let table = toml::Table::try_from(&plain.raw).expect("a scenario is plain data");
            return Self::checked(load::vary(table, &plain.place, plain.folder, overrides)?);
        }
        Self::checked(load::load(name, overrides)?)
    }

    /// A scenario from the text that [`Scenario::to_toml`] gives: complete, and no file besides.
    pub fn from_text(text: &str, place: &str) -> Result<Self, ScenarioError> {
        Self::checked(load::from_text(text, place)?)
    }

    /// The same scenario with `key=value` overrides.
    pub fn varied(&self, overrides: &[String]) -> Result<Self, ScenarioError> {
        let table = toml::Table::try_from(&self.raw).expect("a checked scenario is plain data");
        Self::checked(load::vary(table, &self.place, self.folder.clone(), overrides)?)
    }

    /// The same scenario with separate learning rates for a method: server side, terminal side.
    pub fn with_rates(&self, method: &str, rates: [f64; 2]) -> Result<Self, ScenarioError> {
        let [server_rate, terminal_rate] = rates;
        let mut raw = self.raw.clone();
        let own = raw::MethodRates { server_rate, terminal_rate };
        raw.methods.rates.insert(method.to_owned(), own);
        Self::checked(Loaded { raw, place: self.place.clone(), folder: self.folder.clone() })
    }

    /// Learning rates of methods without rates of their own: server side, terminal side.
    pub fn common_rates(&self) -> [f64; 2] {
        [self.raw.learning.server_rate, self.raw.learning.terminal_rate]
    }

    fn checked(mut loaded: Loaded) -> Result<Self, ScenarioError> {
        profile::read_tables(&mut loaded)?;
        lerobot::note_digests(&mut loaded)?;
        check::check(&loaded)?;
        let Loaded { mut raw, place, folder } = loaded;
        // The resolved scenario is written to a run folder; paths must be valid from there too.
        let data = raw.tasks.libero.as_mut().map(|libero| &mut libero.data);
        let own = raw.terminals.iter_mut().map(|row| &mut row.data);
        for path in [&mut raw.cell.trace, &mut raw.model.base].into_iter().chain(data).chain(own) {
            if !path.is_empty() && !path.starts_with("builtin") {
                let absolute = std::path::absolute(folder.join(&*path));
                *path = absolute.map_or(std::mem::take(path), |path| path.display().to_string());
            }
        }
        Ok(Self { raw, place, folder })
    }

    /// Name of the scenario.
    pub fn name(&self) -> &str {
        &self.raw.name
    }

    /// Version of the scenario.
    pub fn version(&self) -> u32 {
        self.raw.version
    }

    /// Training rounds T; with a budget the rounds that a method may expect.
    pub fn rounds(&self) -> u64 {
        self.raw.rounds
    }

    /// What happens during a run, in the order of the rounds.
    pub fn events(&self) -> Vec<EventMark> {
        events::marks(&self.raw)
    }

    /// Names of the terminals by id, empty for those without; none if no terminal has a name.
    pub fn terminal_names(&self) -> Vec<String> {
        terminals::names(&self.raw)
    }

    /// Number of terminals N, those that join later included.
    pub fn n_terminals(&self) -> usize {
        self.raw.cell.n_terminals
    }

    /// Terminals that the reference rules schedule per round, at most.
    pub fn reference_scheduled(&self) -> usize {
        self.raw.methods.reference.n_scheduled
    }

    /// The latest time at which the reference rules let a round finish.
    pub fn reference_finish(&self) -> Seconds {
        Seconds(self.raw.limits.deadline_s * self.raw.methods.reference.margin)
    }

    /// The deadline of a round.
    pub fn deadline(&self) -> Seconds {
        Seconds(self.raw.limits.deadline_s)
    }

    /// The largest compression.
    pub fn most_compression(&self) -> f64 {
        self.raw.limits.compression
    }

    /// Budgets of the whole run. With one, [`Scenario::rounds`] is no limit.
    pub fn budget(&self) -> Budget {
        assemble::budget(&self.raw)
    }

    /// When a success threshold counts as reached.
    pub fn first_passage(&self) -> FirstPassage {
        self.raw.evaluation.first_passage
    }

    /// The terminals that are there in a round, in the order of their ids.
    pub fn members(&self, round: u64) -> Vec<TerminalId> {
        events::presence(&self.raw).at(round).into_iter().collect()
    }

    /// Number of terminals in the last round: success at the end is measured on these.
    pub fn n_terminals_at_end(&self) -> usize {
        events::presence(&self.raw).at(self.raw.rounds).len()
    }

    /// Final episodes of each terminal.
    pub fn final_episodes(&self) -> usize {
        self.raw.evaluation.final_episodes
    }

    /// Control steps after which an episode has failed.
    pub fn episode_steps(&self) -> usize {
        self.raw.tasks.episode_steps
    }

    /// What everything says that is made in this scenario; none if there is nothing to say.
    pub fn note(&self) -> Option<&'static str> {
        self.raw.profile.as_ref().map(|_| PROFILE_NOTE)
    }

    /// What moves the robots.
    pub fn engine(&self) -> &'static str {
        self.raw.tasks.engine.name()
    }

    /// The policy that a run starts from: the name of one that comes with the program, or a file.
    pub fn base(&self) -> &str {
        &self.raw.model.base
    }

    /// Whether that policy comes with the program.
    pub fn has_builtin_base(&self) -> bool {
        assemble::BASES.iter().any(|(name, _)| *name == self.base())
    }

    /// Admissible cuts, shallowest first.
    pub fn cuts(&self) -> &[usize] {
        &self.raw.model.cuts
    }

    /// Noise figure of the receivers, as the base station knows it.
    pub fn noise_figure_db(&self) -> f64 {
        self.raw.cell.noise_figure_db
    }

    /// Rounds between aggregations F, for methods without a rule of their own.
    pub fn aggregate_every(&self) -> u64 {
        self.raw.learning.aggregate_every
    }

    /// The complete scenario as TOML: loading it gives the same scenario.
    pub fn to_toml(&self) -> String {
        format::text(&self.raw)
    }

    /// What is set apart from the built-in scenario of the same name, as `key = value`; none if there
    /// is no such built-in.
    pub fn set_apart(&self) -> Option<Vec<String>> {
        let (name, _) = BUILTIN.iter().find(|(name, _)| *name == self.name())?;
        let usual = Self::load(name, &[]).ok()?.values();
        let is_own = |entry: &(String, String)| !usual.contains(entry);
        let own = self.values().into_iter().filter(is_own);
        Some(own.map(|(key, value)| format!("{key} = {value}")).collect())
    }

    /// Every value under its dotted key, as TOML.
    pub fn values(&self) -> Vec<(String, String)> {
        let mut table = toml::Table::try_from(&self.raw).expect("a checked scenario is plain data");
        table.remove("format");
        let mut values = Vec::new();
        flatten("", &table, &mut values);
        values
    }

    /// SHA-256 of the complete scenario, in hexadecimal.
    pub fn hash(&self) -> String {
        hexadecimal(&self.to_toml())
    }

    /// SHA-256 of the problem alone: the scenario without the knobs of the methods. This is what
    /// is frozen while methods are added and tuned.
    pub fn problem_hash(&self) -> String {
        let mut table = format::written(&self.raw);
        table.remove("methods");
        hexadecimal(&table.to_string())
    }

    /// JSON schema of a complete scenario.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Raw).to_value()
    }
}

fn flatten(prefix: &str, table: &toml::Table, values: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let key = format!("{prefix}{key}");
        match value {
            toml::Value::Table(inner) => flatten(&format!("{key}."), inner, values),
            value => values.push((key, value.to_string())),
        }
    }
}

/// SHA-256 of a text, in hexadecimal.
pub(crate) fn hexadecimal(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
