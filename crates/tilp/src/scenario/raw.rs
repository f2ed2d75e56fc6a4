//! A scenario in its file: one struct per section, every field required.
//!
//! Nothing that changes a result has a default in code; a file may instead name a scenario it
//! `extends`. Units are part of the field names.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use super::heterogeneity::Heterogeneity;
use super::knobs::{Baselines, Oracle};
use super::learning::Learning;
use super::profile::Profile;
pub(super) use super::raw_events::{Change, Event, TerminalRef};
use super::terminals::ListedTerminal;
use crate::allocate::{ReferenceKnobs, TilpSettings};
use crate::record::FirstPassage;
use crate::tasks::tabletop::Frame;
use crate::wireless::{Environment, RateModel};
use crate::world::Late;

/// A complete scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    /// Format of the file: 2, or none in files of format 1.
    pub format: u32,
    /// Name of the scenario.
    pub name: String,
    /// Version: changes whenever a number in here changes.
    pub version: u32,
    /// Training rounds T.
    pub rounds: u64,
    /// How much the terminals differ; `docs/heterogeneity.md` has the mapping. Not written at its
    /// default, which changes nothing.
    #[serde(default, skip_serializing_if = "Heterogeneity::is_default")]
    pub heterogeneity: Heterogeneity,
    /// The radio cell.
    pub cell: Cell,
    /// How the base station sends.
    #[serde(default, skip_serializing_if = "Radio::is_default")]
    pub radio: Radio,
    /// Limits of the problem.
    pub limits: Limits,
    /// Hardware of the terminals.
    pub hardware: Hardware,
    /// The policy.
    pub model: Model,
    /// How the policy is trained.
    pub learning: Learning,
    /// The robots.
    pub tasks: Tasks,
    /// When success is measured, and on how many episodes.
    pub evaluation: Evaluation,
    /// Knobs of the allocation methods.
    pub methods: Methods,
    /// Sizes from tables and learning by a law, instead of a policy and robots; none for those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Terminals one by one, from id 0 on; those beyond the list are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminals: Vec<ListedTerminal>,
    /// Dated events, in the order of their rounds; none if the list is absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
}

/// The radio cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cell {
    /// Number of terminals N.
    pub n_terminals: usize,
    /// Least distance of a terminal from the base station.
    pub inner_radius_m: f64,
    /// Largest distance of a terminal from the base station.
    pub outer_radius_m: f64,
    /// Propagation environment of 3GPP TR 38.901.
    pub environment: Environment,
    /// Carrier frequency.
    pub carrier_hz: f64,
    /// Height of the base station's antenna.
    pub station_height_m: f64,
    /// Height of the terminals' antennas.
    pub terminal_height_m: f64,
    /// Distance over which shadowing decorrelates to 1/e.
    pub shadowing_distance_m: f64,
    /// Whether fading is held during a round or averaged over it.
    pub fading: RateModel,
    /// Maximum Doppler shift; with `round_interval_s` it sets the correlation of the fading
    /// between rounds, J0(2 pi f_D dt).
    pub doppler_hz: f64,
    /// Time between rounds for the correlation of the fading.
    pub round_interval_s: f64,
    /// A recorded channel instead of a drawn one: a file of `tools/sionna`, a table of gains in dB, a
    /// folder of DeepMIMO, or `builtin:factory-rt` or `builtin:street-rt`; empty for none.
    pub trace: String,
    /// Noise power spectral density N_0.
    pub noise_dbm_per_hz: f64,
    /// Nominal noise figure of every link.
    pub noise_figure_db: f64,
    /// The true noise figure of a link differs from the nominal by up to this much, hidden.
    pub hidden_noise_figure_db: f64,
}

/// How the base station sends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Radio {
    /// Rate of the downlink.
    #[serde(default)]
    pub downlink: Downlink,
    /// Transmit power of the base station to a terminal, with `downlink = "own"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub station_power_w: Option<f64>,
}

/// Rate of the downlink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Downlink {
    /// The rate of the uplink, as in the paper.
    #[default]
    Shared,
    /// The base station sends with its own power, over the terminal's band.
    Own,
}

impl Radio {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Limits of the problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    /// Per-round deadline.
    pub deadline_s: f64,
    /// Total bandwidth.
    pub bandwidth_hz: f64,
    /// Largest transmit power of a terminal.
    pub power_w: f64,
    /// Largest share of a payload that may be omitted.
    pub compression: f64,
    /// Upper bound of the latency that a round counts with.
    pub give_up_s: f64,
    /// Treatment of a terminal that misses the deadline.
    pub late: Late,
    /// Budgets of the whole run. With one, `rounds` is no limit.
    #[serde(default, skip_serializing_if = "Budget::is_none")]
    pub budget: Budget,
}

/// Budgets of the whole run; an absent one has no bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Budget {
    /// Simulated seconds, including the wait for pending uploads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Joules of all terminals together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// Joules of each terminal. A terminal that has used them up leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules_per_terminal: Option<f64>,
    /// Bytes on the air, both ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
}

impl Budget {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Hardware of the terminals. Ranges are drawn log-uniformly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Hardware {
    /// Processor frequency g_n.
    pub clock_hz: f64,
    /// Nominal operations per cycle nu_n, lowest and highest.
    pub operations_per_cycle: [f64; 2],
    /// Nominal energy coefficient kappa_n in J s^2 per operation, lowest and highest.
    pub energy_coefficient: [f64; 2],
    /// True values differ from nominal ones by up to this share, hidden.
    pub hidden_share: f64,
    /// Share of the terminals whose memory cannot hold the deepest cut.
    pub short_memory_share: f64,
    /// Memory of the others divided by the requirement of the deepest cut.
    pub ample_memory: f64,
    /// Standard deviation of the log-normal error of observed delays and energies.
    pub measurement_noise: f64,
}

/// The transformer policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    /// Width of a token.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Transformer blocks.
    pub blocks: usize,
    /// Hidden width of the feed-forward part over `width`.
    pub mlp_ratio: usize,
    /// After these blocks adjacent tokens are merged in pairs.
    pub merge_after: Vec<usize>,
    /// Admissible cuts: the terminal runs layers 1..=cut. Layer 1 is the embedding.
    pub cuts: Vec<usize>,
    /// Base policy to start from: `builtin` or a safetensors file.
    pub base: String,
}

/// The robots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tasks {
    /// Physics engine of the robots. Not written at its default: scenarios without the key are older than
    /// the second engine, and keep their hash.
    #[serde(default, skip_serializing_if = "Engine::is_default")]
    pub engine: Engine,
    /// How many terminals do each task, in proportion.
    pub shares: TaskShares,
    /// How far the variants of the terminals are spread.
    pub range: VariantRange,
    /// Demonstrations per terminal.
    pub demonstrations: usize,
    /// The number of demonstrations of a terminal is drawn log-uniformly between `demonstrations`
    /// over this factor and times this factor; 1 for the same number everywhere.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub demonstrations_spread: f64,
    /// Noise added to the expert's motion in demonstrations.
    pub demonstration_noise: f64,
    /// Control steps after which an episode has failed.
    pub episode_steps: usize,
    /// Mass added to every payload when success is measured.
    pub extra_mass_kg: f64,
    /// The suite of tasks; shares and range are the table-top's.
    #[serde(default, skip_serializing_if = "SuiteName::is_default")]
    pub suite: SuiteName,
    /// The cells of LIBERO's suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libero: Option<Libero>,
}

fn one() -> f64 {
    1.0
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

/// A suite of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SuiteName {
    /// Eight families of tasks for a gantry with two fingers.
    #[default]
    Tabletop,
    /// LIBERO's ten tasks with objects, in MuJoCo.
    LiberoObject,
}

impl SuiteName {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The cells of LIBERO's suite; terminals are spread evenly over its tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Libero {
    /// Folder of LIBERO's data as `tools/libero/export.py` writes it. Empty: the environment
    /// variable `TILP_LIBERO`, otherwise `../shared/libero`.
    pub data: String,
    /// Expected hash of the data, as in the manifest of a run. Empty: any.
    pub assets: String,
    /// Largest angle of a cell's camera against the robot.
    pub yaw_rad: f32,
}

/// A physics engine; scenarios may name it even if this program is built without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Engine {
    /// Rapier, which is built in.
    #[default]
    Rapier,
    /// MuJoCo, in a program built with `--features mujoco`.
    Mujoco,
}

impl Engine {
    /// The name in scenarios.
    pub(super) fn name(self) -> &'static str {
        match self {
            Engine::Rapier => "rapier",
            Engine::Mujoco => "mujoco",
        }
    }

    fn is_default(&self) -> bool {
        *self == Engine::default()
    }
}

/// How many terminals do each task, in proportion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TaskShares {
    /// Pick a cube up and drop it into a bin.
    pub bin: u32,
    /// Set a cube on a raised shelf.
    pub shelf: u32,
    /// Set a cube on top of a loose block.
    pub stack: u32,
    /// Push a puck along the table to a marked place.
    pub push: u32,
    /// Pull a drawer open by its post.
    pub drawer_open: u32,
    /// Push a drawer shut.
    pub drawer_close: u32,
    /// Press a spring-loaded button.
    pub button: u32,
    /// Put a peg into a hole.
    pub peg: u32,
}

/// Half the width of the distribution of each parameter of a robot cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantRange {
    /// Middle of the part of the table in use, around the middle of the table.
    pub centre_m: f32,
    /// Angle of the camera against the robot.
    pub yaw_rad: f32,
    /// The frame in which motion is commanded.
    pub commands: Frame,
    /// Half the edge of the object.
    pub size_m: f32,
    /// Mass of the object.
    pub mass_kg: f32,
    /// Horizontal offset between the tracked marker and the point of grasp.
    pub grasp_offset_m: f32,
    /// Direction of the goal.
    pub goal_angle_rad: f32,
    /// Distance of the goal.
    pub goal_distance_m: f32,
    /// Height of the shelf.
    pub shelf_height_m: f32,
    /// Direction of the drawer.
    pub axis_rad: f32,
    /// Factor on the drawer's damping and the button's spring.
    pub resistance: f32,
    /// Half the width of the square in which the object starts, fresh in each episode.
    pub spread_m: f32,
}

/// When success is measured, and on how many episodes per terminal. Calibration, report and final
/// episodes are three disjoint sets; a method sees those for calibration only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Evaluation {
    /// Rounds between calibration measurements E_A.
    pub calibrate_every: u64,
    /// Calibration episodes per terminal.
    pub calibration_episodes: usize,
    /// Rounds between points of the success curve.
    pub measure_every: u64,
    /// Report episodes per terminal.
    pub report_episodes: usize,
    /// Final episodes per terminal.
    pub final_episodes: usize,
    /// Rounds between entries of the deployed policy's losses in the record.
    pub loss_every: u64,
    /// Samples of each terminal for such an entry.
    pub loss_samples: usize,
    /// When `rta`, `tta_s` and `eta_j` count a success threshold as reached.
    #[serde(default, skip_serializing_if = "FirstPassage::is_default")]
    pub first_passage: FirstPassage,
}

/// Knobs of the allocation methods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Methods {
    /// The cut of methods that do not choose one.
    pub cut: usize,
    /// The reference methods `random`, `greedy` and `deficit`.
    pub reference: ReferenceKnobs,
    /// The published methods.
    pub baselines: Baselines,
    /// Learning rates by method, for methods that need others than those of `learning`.
    pub rates: BTreeMap<String, MethodRates>,
    /// TiLP.
    pub tilp: TilpSettings,
    /// The reference `oracle`.
    pub oracle: Oracle,
}

/// Learning rates of one method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MethodRates {
    /// Learning rate of the server side.
    pub server_rate: f64,
    /// Learning rate of the terminal side.
    pub terminal_rate: f64,
}

impl TaskShares {
    /// The shares in the order of the task families.
    pub(super) fn in_order(&self) -> [u32; 8] {
        [
            self.bin,
            self.shelf,
            self.stack,
            self.push,
            self.drawer_open,
            self.drawer_close,
            self.button,
            self.peg,
        ]
    }

    /// Sum of the shares.
    pub(super) fn total(&self) -> u64 {
        self.in_order().iter().map(|&share| u64::from(share)).sum()
    }
}

impl VariantRange {
    /// Name, value and largest allowed value of every field.
    pub(super) fn fields(&self) -> [(&'static str, f32, f64); 11] {
        [
            ("centre_m", self.centre_m, 0.15),
            ("yaw_rad", self.yaw_rad, 3.2),
            ("size_m", self.size_m, 0.008),
            ("mass_kg", self.mass_kg, 0.17),
            ("grasp_offset_m", self.grasp_offset_m, 0.05),
            ("goal_angle_rad", self.goal_angle_rad, 3.2),
            ("goal_distance_m", self.goal_distance_m, 0.05),
            ("shelf_height_m", self.shelf_height_m, 0.05),
            ("axis_rad", self.axis_rad, 3.2),
            ("resistance", self.resistance, 0.9),
            ("spread_m", self.spread_m, 0.08),
        ]
    }
}
