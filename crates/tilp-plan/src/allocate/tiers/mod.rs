//! The planner behind AdaptSFL and HSFL: cuts and averaging intervals by tier for the least time
//! to a convergence bound.

mod desk;
mod estimate;
mod solver;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use estimate::Estimate;
use solver::{Instance, solve};

use super::published::{Planner, Setup};
use crate::round::{
    Decision, Observation, Outcome, ProjectedDecision, TerminalId, Tiers, TrainingPlan,
};
use crate::snapshot::{Persist, Snapshot, SnapshotError};
use crate::units::Bits;

/// Knobs of both methods of tiers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TierKnobs {
    /// Rounds between averages, at most.
    pub longest_interval: u64,
    /// Weight of a new observation in the running means behind the convergence bound.
    pub pace: f64,
}

/// The wired side of a hierarchy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hierarchy {
    /// Edge servers between the terminals and the cloud.
    pub edges: usize,
    /// Rate between an edge server and the cloud.
    pub backhaul_bps: f64,
}

/// Cuts and intervals, kept until all tiers have been averaged.
#[derive(Clone, Debug, PartialEq)]
struct Course {
    /// A terminal that joins later has its shallowest cut until the next course.
    cuts: BTreeMap<TerminalId, usize>,
    own: usize,
    edge: usize,
    every_own: u64,
    every_edge: u64,
}

impl Course {
    /// Rounds until a new one is made.
    fn length(&self) -> u64 {
        self.every_own.max(self.every_edge)
    }

    /// The terminals that are averaged after round `age` of the course, counted from 1; all at its end.
    fn tiers(&self, age: u64) -> Tiers {
        let last = age >= self.length();
        Tiers {
            own: self.own,
            average_own: last || age.is_multiple_of(self.every_own),
            edge: self.edge,
            average_edge: self.edge > self.own && (last || age.is_multiple_of(self.every_edge)),
        }
    }
}

/// Plans cuts and intervals. Every terminal takes part with an even share of the band at full power.
pub(super) struct TierPlanner {
    setup: Setup,
    hierarchy: Option<Hierarchy>,
    longest: u64,
    estimate: Estimate,
    course: Option<Course>,
    /// Rounds of the course that have been executed.
    age: u64,
    /// The course of the plan made last, if that was a new one.
    drafted: Option<Course>,
}

impl TierPlanner {
    /// A planner of two tiers, or of three with a hierarchy.
    pub(super) fn new(setup: Setup, hierarchy: Option<Hierarchy>, knobs: TierKnobs) -> Self {
        let estimate = Estimate::new(setup.terminal_rate, setup.rounds, knobs.pace);
        let longest = knobs.longest_interval;
        Self { setup, hierarchy, longest, estimate, course: None, age: 0, drafted: None }
    }

    /// The problem of a new course among these terminals.
    fn instance(&self, seen: &Observation, among: &[usize]) -> Instance {
        let setup = &self.setup;
        let profile = &setup.problem.cost.profile;
        let share = setup.problem.cost.limits.bandwidth / among.len() as f64;
        let times = |n: usize, cut: usize| {
            let job = setup.job(seen, n, cut, true);
            let up = setup.channel(seen, n).rate(share).0;
            let down = setup.channel_down(seen, n).rate(share).0;
            let seconds = |bytes, rate: f64| Bits::from_bytes(bytes).0 / rate;
            let work = setup.computation_s(seen, n, &job);
            [
                work / 3.0 + seconds(job.up, up),
                seconds(job.down, down) + work * 2.0 / 3.0,
                seconds(job.sync_up, up) + seconds(job.sync_up, down),
            ]
        };
        let options: Vec<Vec<usize>> = among.iter().map(|&n| setup.fitting_cuts(seen, n)).collect();
        let of = |(&n, cuts): (&usize, &Vec<usize>)| cuts.iter().map(|&c| times(n, c)).collect();
        let times = among.iter().zip(&options).map(of).collect();
        let last = profile.cuts.len();
        let whole = profile.parameters(0, last).0 as f64;
        let weight = |layer: usize| profile.parameters(0, layer).0 as f64 / whole;
        Instance {
            options,
            times,
            weight: (0..=last).map(weight).collect(),
            crossing_s: self.crossing(seen, among),
            model_s: self.hierarchy.map_or(0.0, |wired| 2.0 * 8.0 * whole / wired.backhaul_bps),
            drift: self.estimate.drift(whole / 4.0),
            longest: self.longest,
        }
    }

    /// Time of activation and gradient of a group between edge and cloud, by layer; empty without
    /// edge servers.
    fn crossing(&self, seen: &Observation, among: &[usize]) -> Vec<f64> {
        let Some(wired) = self.hierarchy else { return Vec::new() };
        let profile = &self.setup.problem.cost.profile;
        let group = among.len().div_ceil(wired.edges.max(1)) as f64;
        let minibatch = |&n: &usize| profile.samples(seen.terminals[n].report.n_samples);
        let samples = among.iter().map(minibatch).sum::<usize>() as f64 / among.len().max(1) as f64;
        let time = |layer: usize| {
            let values = profile.activation(layer) as f64 * samples;
            2.0 * group * 32.0 * values / wired.backhaul_bps
        };
        (1..profile.cuts.len()).map(time).collect()
    }

    fn draft(&self, seen: &Observation, among: &[usize]) -> Course {
        let found = solve(&self.instance(seen, among));
        let id = |n: usize| seen.terminals[n].report.id;
        let shallowest = |n: usize| (id(n), self.setup.fitting_cuts(seen, n)[0]);
        let mut cuts: BTreeMap<TerminalId, usize> =
            (0..seen.terminals.len()).map(shallowest).collect();
        cuts.extend(among.iter().zip(&found.cuts).map(|(&n, &cut)| (id(n), cut)));
        let own = cuts.values().copied().max().unwrap_or(1);
        let [every_own, every_edge] = found.every;
        Course { cuts, own, edge: found.edge.max(own), every_own, every_edge }
    }
}

/// Name of the course in a snapshot.
const COURSE: &str = "tiers/course";

impl TierPlanner {
    /// Cuts out of pairs of id and cut.
    fn checked_cuts(&self, pairs: &[u64]) -> Result<BTreeMap<TerminalId, usize>, SnapshotError> {
        let cuts = &self.setup.problem.cost.limits.cuts;
        let one = |&[id, cut]: &[u64; 2]| match (u32::try_from(id), cuts.contains(&(cut as usize)))
        {
            (Ok(id), true) => Ok((TerminalId(id), cut as usize)),
            (Err(_), _) => Err(SnapshotError::value(COURSE, id, "an id of a terminal")),
            (_, false) => Err(SnapshotError::value(COURSE, cut, format!("one of {cuts:?}"))),
        };
        pairs.as_chunks::<2>().0.iter().map(one).collect()
    }
}

impl Persist for TierPlanner {
    fn save(&self, snapshot: &mut Snapshot) {
        self.estimate.save(snapshot);
        let mut course = vec![self.age];
        if let Some(Course { cuts, own, edge, every_own, every_edge }) = &self.course {
            course.extend([*own as u64, *edge as u64, *every_own, *every_edge]);
            course.extend(cuts.iter().flat_map(|(id, &cut)| [id.0.into(), cut as u64]));
        }
        snapshot.put_u64(COURSE, course);
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.estimate.restore(snapshot)?;
        let numbers = snapshot.u64_up_to(COURSE, snapshot.len_of(COURSE), u32::MAX.into())?;
        self.age = numbers.first().copied().unwrap_or(0);
        self.course = match *numbers {
            [_, own, edge, every_own, every_edge, ref cuts @ ..] => {
                let cuts = self.checked_cuts(cuts)?;
                let last = self.setup.problem.cost.profile.cuts.len();
                let (own, edge) = (own as usize, edge as usize);
                if !(own <= edge && edge <= last && every_own > 0 && every_edge > 0) {
                    let found = format!("{:?}", [own as u64, edge as u64, every_own, every_edge]);
                    let expected = format!("layers up to {last} in order, and two intervals");
                    return Err(SnapshotError::value(COURSE, found, expected));
                }
                Some(Course { cuts, own, edge, every_own, every_edge })
            }
            _ => None,
        };
        Ok(())
    }
}

impl Planner for TierPlanner {
    fn plan(&mut self, seen: &Observation, among: &[usize]) -> Decision {
        let alive: Vec<usize> =
            among.iter().copied().filter(|&n| !self.setup.dead(seen, n)).collect();
        let serve = if alive.is_empty() { among.to_vec() } else { alive };
        self.drafted = match &self.course {
            Some(course) if self.age < course.length() => None,
            _ => Some(self.draft(seen, &serve)),
        };
        let age = if self.drafted.is_some() { 1 } else { self.age + 1 };
        let course = self.drafted.as_ref().or(self.course.as_ref());
        let course = course.expect("a course is drafted where there is none");
        let share = self.setup.problem.cost.limits.bandwidth / serve.len() as f64;
        let cut = |n: usize| {
            let known = course.cuts.get(&seen.terminals[n].report.id);
            known.copied().unwrap_or_else(|| self.setup.fitting_cuts(seen, n)[0])
        };
        let chosen = serve.iter().map(|&n| (n, share, cut(n)));
        let mut decision = self.setup.decision(seen, chosen);
        decision.fallback = serve.len() < among.len()
            || among.iter().all(|&n| self.setup.dead(seen, n))
            || serve.iter().any(|&n| !self.setup.fits(seen, n));
        let tiers = Some(course.tiers(age));
        Decision { training: TrainingPlan { order: Vec::new(), tiers }, ..decision }
    }

    fn learn(&mut self, _seen: &Observation, plan: &ProjectedDecision, outcome: &Outcome) {
        match self.drafted.take() {
            Some(course) => (self.course, self.age) = (Some(course), 1),
            None => self.age += 1,
        }
        let profile = &self.setup.problem.cost.profile;
        let parameters = |n: usize| {
            let cut = plan.decision().terminals[n].cut;
            profile.parameters(0, cut).0 as f64 / 4.0
        };
        self.estimate.learn(outcome, parameters);
    }
}
