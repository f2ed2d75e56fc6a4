//! Whether bandwidth, power and cut matter: the least energy for recorded rounds, compared with an
//! even band, full power or a single cut.
//!
//! The rounds are those of `random`. Participants and compression are as recorded. So is whether a
//! terminal has to fetch layers and whether the round aggregates, but for every cut alike: a
//! terminal that held current layers is assumed to hold those of the cut that is tried.

use serde_json::json;

use super::Examination;
use super::criteria::{Criterion, Finding, table};
use super::runs::Found;
use crate::allocate::solve::{Allocation, CutChoice, LeastEnergy, Participant, total_joules};
use crate::cost::{CostModel, Downlink, FrontCopies, Hardware};
use crate::experiment::study::{Job, StudyError, StudyFolder};
use crate::record::{RoundRow, RunFolder, TerminalRow};
use crate::scenario::assemble_twin;
use crate::units::{Bits, Bytes, Seconds};
use crate::wireless::{RateModel, computation_delay, energy};

/// Distance of the solved rounds: no common divisor with the usual aggregation intervals.
const STRIDE: usize = 7;

/// Finishing times as factors on the earliest one, besides the latest that the rules allow.
const FACTORS: [f64; 4] = [1.1, 1.25, 1.5, 2.0];

/// The costs of the restrictions at one finishing time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllocationRow {
    /// Rounds in which all participants can finish by then.
    pub rounds: usize,
    /// Least joules of these rounds.
    pub least_j: f64,
    /// With an even band, at full power and with the best single cut: joules over the least, in the
    /// rounds in which that is possible, and the number of rounds in which it is not.
    pub restricted: [(f64, usize); 3],
    /// Each cut in the solutions of least energy, with its count.
    pub cuts: Vec<(usize, usize)>,
}

/// The restrictions, in the order of [`AllocationRow::restricted`].
const NAMES: [&str; 3] = ["even_band", "full_power", "single_cut"];

/// The least energy of the rounds of a run. `finish` gives the finishing time of a round; rounds
/// without one are skipped.
pub fn allocation_rows(
    rounds: &[LeastEnergy],
    finish: &dyn Fn(&LeastEnergy) -> Option<Seconds>,
) -> AllocationRow {
    let mut row = AllocationRow::default();
    let mut sums = [[0.0; 2]; 3];
    for round in rounds {
        let Some(finish) = finish(round) else { continue };
        let round = LeastEnergy { finish, ..round.clone() };
        let Some(least) = round.solve() else { continue };
        row.rounds += 1;
        row.least_j += total_joules(&least).0;
        count(&mut row.cuts, &least);
        let found = [round.with_even_band(), round.at_full_power(), round.with_single_cut()];
        for ((sum, place), found) in sums.iter_mut().zip(&mut row.restricted).zip(found) {
            match found {
                Some(found) => {
                    sum[0] += total_joules(&found).0;
                    sum[1] += total_joules(&least).0;
                }
                None => place.1 += 1,
            }
        }
    }
    for (sum, place) in sums.iter().zip(&mut row.restricted) {
        place.0 = sum[0] / sum[1];
    }
    row.cuts.sort_unstable();
    row
}

fn count(cuts: &mut Vec<(usize, usize)>, least: &[Allocation]) {
    for one in least {
        match cuts.iter_mut().find(|(cut, _)| *cut == one.cut) {
            Some((_, count)) => *count += 1,
            None => cuts.push((one.cut, 1)),
        }
    }
}

/// Every [`STRIDE`]-th round of a run as a problem of least energy, with the true hardware.
fn problems(
    cost: &CostModel,
    truth: &[Hardware],
    rounds: &[RoundRow],
    terminals: &[TerminalRow],
) -> Vec<LeastEnergy> {
    let of_round = |round: &RoundRow| {
        let start = terminals.partition_point(|row| row.round < round.round);
        let rows = terminals[start..].iter().take_while(|row| row.round == round.round);
        let rows: Vec<&TerminalRow> = rows.collect();
        let copies = rows.iter().map(|row| FrontCopies {
            held: row.held_layers as usize,
            pending: row.owed_layers as usize,
        });
        let participant = |row: &&TerminalRow| {
            let hardware = &truth[row.terminal as usize];
            participant(cost, hardware, row, round.aggregated)
        };
        LeastEnergy {
            participants: rows.iter().filter(|row| row.took_part).map(participant).collect(),
            band: cost.free_band(copies, round.aggregated, |n| rows[n].scheduled),
            power: cost.limits.power,
            finish: cost.limits.deadline,
        }
    };
    let all = rounds.iter().step_by(STRIDE).map(of_round);
    all.filter(|round| round.participants.len() > 1).collect()
}

fn participant(
    cost: &CostModel,
    hardware: &Hardware,
    row: &TerminalRow,
    aggregates: bool,
) -> Participant {
    let choice = |&cut: &usize| {
        let held = if row.held_layers > 0 { cut } else { 0 };
        let deliver = if aggregates { cut } else { 0 };
        let samples = cost.profile.samples(row.n_samples as usize);
        let (profile, q) = (&cost.profile, row.compression);
        let job = cost.accounting.training(profile, samples, cut, q, held, deliver);
        let power = cost.limits.power;
        let (compute, _) =
            energy(job.work, hardware.energy_coefficient, hardware.clock, power, Seconds(0.0));
        CutChoice {
            cut,
            bits: Bits::from_bytes(job.air()).0,
            sent_bits: Bits::from_bytes(job.up + job.sync_up).0,
            computation: computation_delay(job.work, hardware.operations_per_cycle, hardware.clock),
            compute,
            sure: None,
        }
    };
    let fits = |cut: &&usize| cost.profile.memory(**cut) <= Bytes(row.memory_bytes);
    Participant {
        noise_over_gain: hardware.noise_w_per_hz / (row.gain * row.fading_power),
        choices: cost.limits.cuts.iter().filter(fits).map(choice).collect(),
    }
}

/// The finding; the number of missing runs if not all are complete.
pub(super) fn finding(examined: &Examination, study: &StudyFolder) -> Found<Finding> {
    let criterion = Criterion::Allocation;
    if let Err(missing) = examined.finished(criterion, study, "measured", "random")? {
        return Ok(Err(missing));
    }
    let wanted = examined.jobs_of(criterion)?;
    let mut rounds = Vec::new();
    for job in &wanted {
        match recorded(study, job)? {
            Some(found) => rounds.extend(found),
            None => {
                let measured =
                    "not measured: fading is averaged, or the way down has its own power"
                        .to_owned();
                return Ok(Ok(Finding::new(criterion, measured, None, serde_json::Value::Null)));
            }
        }
    }
    let latest = examined.scenario.reference_finish();
    let mut rows = Vec::new();
    for factor in FACTORS {
        let finish = |round: &LeastEnergy| Some(round.earliest(latest)? * factor);
        let label = format!("{factor} x the earliest");
        rows.push(as_json(&label, &allocation_rows(&rounds, &finish)));
    }
    let row = allocation_rows(&rounds, &|_| Some(latest));
    rows.push(as_json(&format!("{:.1} s", latest.0), &row));
    let [even, full, single] = row.restricted;
    let says = |(ratio, impossible): (f64, usize)| {
        let more = format!("{:+.0} %", 100.0 * (ratio - 1.0));
        if impossible > 0 { format!("{more} (impossible in {impossible} rounds)") } else { more }
    };
    let measured = format!(
        "even band {}, full power {}, single cut {}, all finishing at {:.1} s; {} rounds",
        says(even),
        says(full),
        says(single),
        latest.0,
        row.rounds
    );
    let is_live =
        |&(ratio, impossible): &(f64, usize)| ratio >= 1.1 || 2 * impossible >= row.rounds.max(1);
    let holds = (row.rounds > 0).then(|| row.restricted.iter().all(is_live));
    Ok(Ok(Finding::new(criterion, measured, holds, table(&COLUMNS, rows))))
}

/// The rounds of a run as problems; `None` if the solver does not support its radio.
fn recorded(study: &StudyFolder, job: &Job) -> Result<Option<Vec<LeastEnergy>>, StudyError> {
    let parts = assemble_twin(&job.scenario, &job.method, job.seed.seed)?;
    let cost = &parts.nominal.cost;
    if cost.rate_model == RateModel::Averaged || cost.downlink != Downlink::Shared {
        return Ok(None);
    }
    let folder = RunFolder::open(&study.path().join(job.folder()))?;
    let (rounds, terminals) = (folder.read_rounds()?, folder.read_terminals()?);
    Ok(Some(problems(cost, &parts.truth, &rounds, &terminals)))
}

/// Columns of the table.
const COLUMNS: [&str; 10] = [
    "finishing",
    "rounds",
    "least_J_a_round",
    "even_band_%_more",
    "even_band_impossible",
    "full_power_%_more",
    "full_power_impossible",
    "single_cut_%_more",
    "single_cut_impossible",
    "cuts",
];

fn as_json(label: &str, row: &AllocationRow) -> serde_json::Value {
    let all: usize = row.cuts.iter().map(|(_, count)| count).sum();
    let share = |(cut, count): &(usize, usize)| {
        format!("{cut}: {:.0} %", 100.0 * *count as f64 / all.max(1) as f64)
    };
    let cuts: Vec<String> = row.cuts.iter().map(share).collect();
    let mut value = json!({
        "finishing": label,
        "rounds": row.rounds,
        "least_J_a_round": row.least_j / row.rounds.max(1) as f64,
    });
    for (name, (ratio, impossible)) in NAMES.iter().zip(row.restricted) {
        value[format!("{name}_%_more")] = json!(100.0 * (ratio - 1.0));
        value[format!("{name}_impossible")] = json!(impossible);
    }
    value["cuts"] = json!(cuts.join(", "));
    value
}
