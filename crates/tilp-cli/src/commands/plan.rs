//! `tilp plan`.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use tilp::experiment::{LossDecreaseRow, MOST_BYTES, PlanReport, PlanServer, PlanSpec, ReasonRow};
use tilp::scenario::Scenario;

use super::run::identified;
use crate::arguments::{Format, Plan, PlanServe, PlanVerb};
use crate::clock;
use crate::columns::{self, COLUMNS};
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;

/// Overrides that do not touch what a run has learned begin with this.
const KNOBS: &str = "methods.tilp.";

/// Plans one round for an observation, or prints an observation to begin with, or serves.
pub(crate) fn plan(arguments: Plan) -> Result<(), Failure> {
    match arguments.verb {
        Some(PlanVerb::Serve(serve)) => return serve_lines(&serve),
        Some(PlanVerb::Schema) => {
            let schema = serde_json::to_string_pretty(&tilp::exchange::schema());
            return output::print(&schema.expect("a schema is plain data"));
        }
        None => {}
    }
    let spec = planned(&Asked {
        scenario: arguments.scenario.as_deref(),
        seed: arguments.seed,
        overrides: &arguments.overrides,
        from: arguments.from.as_deref(),
        budget_ms: arguments.budget_ms,
    })?;
    if arguments.example {
        return example(&spec);
    }
    let bytes = standard_input()?;
    let report = spec.plan(&bytes, Some(clock::milliseconds)).map_err(Failure::input)?;
    output::print(&match arguments.format {
        Format::Json => serde_json::to_string_pretty(&report).expect("a plan is plain data"),
        Format::Text => as_text(&report),
    })
}

/// The inputs of a plan, from the command line.
struct Asked<'a> {
    scenario: Option<&'a str>,
    seed: Option<u64>,
    overrides: &'a [String],
    from: Option<&'a Path>,
    budget_ms: Option<f64>,
}

fn planned(arguments: &Asked<'_>) -> Result<PlanSpec, Failure> {
    if let Some(folder) = arguments.from {
        return learned(arguments, folder);
    }
    let name = arguments.scenario.unwrap_or("default");
    let scenario = Scenario::load(name, &overrides(arguments)).map_err(Failure::input)?;
    Ok(PlanSpec { scenario, seed: arguments.seed.unwrap_or(0), learned: None })
}

/// Answers lines until there are no more.
fn serve_lines(arguments: &PlanServe) -> Result<(), Failure> {
    let spec = planned(&Asked {
        scenario: arguments.scenario.as_deref(),
        seed: arguments.seed,
        overrides: &arguments.overrides,
        from: arguments.from.as_deref(),
        budget_ms: arguments.budget_ms,
    })?;
    let server = PlanServer::open(spec, &arguments.state, Some(clock::milliseconds));
    let mut server = server.map_err(Failure::input)?;
    let output = std::io::stdout().lock();
    server.serve(std::io::stdin().lock(), output).map_err(|error| {
        Failure::failed(format!("cannot read or write a line of the exchange: {error}"))
    })
}

fn overrides(arguments: &Asked<'_>) -> Vec<String> {
    let budget = arguments.budget_ms.map(|ms| format!("{KNOBS}plan_budget_ms={ms:?}"));
    arguments.overrides.iter().cloned().chain(budget).collect()
}

/// The scenario, the seed and the checkpoint of a run.
fn learned(arguments: &Asked<'_>, folder: &Path) -> Result<PlanSpec, Failure> {
    let overrides = overrides(arguments);
    if let Some(other) = overrides.iter().find(|text| !text.trim_start().starts_with(KNOBS)) {
        return Err(Failure::input(format!(
            "--set {other}, expected a key that begins with {KNOBS}: with --from everything else \
             is as in the run"
        )));
    }
    let (run, opened) = identified(folder)?;
    if run.method.name() != "tilp" {
        return Err(Failure::input(format!(
            "{}: method = {}, expected a run of tilp",
            folder.display(),
            run.method.name()
        )));
    }
    let checkpoint = opened.read_planner(&run.identity()).map_err(Failure::input)?;
    let name = folder.join("scenario.toml").display().to_string();
    let scenario = Scenario::load(&name, &overrides).map_err(Failure::input)?;
    Ok(PlanSpec { scenario, seed: run.seed, learned: Some(checkpoint) })
}

fn example(spec: &PlanSpec) -> Result<(), Failure> {
    let progress = Progress::new(false, None);
    let watch = |done, total| progress.demonstrations(done, total);
    let text = spec.example(super::cache().as_ref(), &watch);
    progress.clear();
    output::print(&text.map_err(Failure::input)?)
}

/// Everything on standard input, but never more than one byte too much.
fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = MOST_BYTES as u64 + 1;
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::input(format!("cannot read the observation: {error}")))?;
    Ok(bytes)
}

/// The note on the kind of scenario is one line, whatever its length.
fn as_text(report: &PlanReport) -> String {
    let note = report.note.map_or(String::new(), |note| format!("{note}\n"));
    let mut text = headline(report);
    if !report.on_priors.is_empty() {
        let what = report.on_priors.join(", ");
        text += &format!("  on priors alone (see --from): {what}\n");
    }
    text += &loss_line(report);
    text += &scheduled(report);
    text += &left_out(report);
    text += &runner_ups(report);
    note + &columns::within(&text, COLUMNS)
}

fn headline(report: &PlanReport) -> String {
    let scheduled = report.terminals.iter().filter(|row| row.scheduled).count();
    let (all, expects) = (report.terminals.len(), &report.predicted);
    let how = match (&report.search, report.fallback) {
        (_, true) => ", no terminal surely in time: the least infeasible plan".into(),
        (Some(search), _) => format!(", {} iterations of search", search.iterations),
        (None, _) => ", the actor alone".into(),
    };
    format!(
        "round {}: {scheduled} of {all} terminals{how}\n  success {:.2} to {:.2} %, latency {:.3} s, \
         energy {:.3} J, loss {:+.4}, violation {:.3}\n  reward {:+.2e} = task {:+.2e}, \
         communication {:+.2e}, penalty {:+.2e}; return {}\n",
        report.round,
        100.0 * expects.success_before,
        100.0 * expects.success_after,
        expects.latency_s,
        expects.energy_j,
        -expects.loss_decrease,
        expects.violation,
        expects.reward,
        expects.reward_task,
        expects.reward_communication,
        -expects.reward_penalty,
        expects.planned_return.map_or("-".into(), |total| format!("{total:+.2e}")),
    )
}

/// Predicted decrease of the loss of each task.
fn loss_line(report: &PlanReport) -> String {
    let one = |row: &LossDecreaseRow| format!("{} {:+.2}", row.task, -100.0 * row.share);
    let tasks: Vec<String> = report.loss_decreases.iter().map(one).collect();
    format!("  loss by task, %: {}\n", tasks.join(", "))
}

/// The scheduled terminals, one line each. A reason that the last two columns do not say has a line of
/// its own.
fn scheduled(report: &PlanReport) -> String {
    const LONGEST: usize = 14;
    let rows = || report.terminals.iter().filter(|row| row.scheduled);
    let width = rows().map(|row| row.task.chars().count()).max().unwrap_or_default();
    let width = width.clamp(4, LONGEST);
    let mut text = format!(
        "\n  n  {:width$}    band  power  cut     q  likely    sure  success    return\n     \
         {:width$}     MHz     mW                  s       s   points\n",
        "task", ""
    );
    for row in rows() {
        let task: String = row.task.chars().take(width).collect();
        let _ = write!(
            text,
            "{:3}  {task:width$}  {:6.2} {:6.0}  {:3}  {:4.2}  {:6.3}  {:6.3}",
            row.terminal,
            row.bandwidth_hz / 1e6,
            row.power_w * 1e3,
            row.cut,
            row.compression,
            row.delay_s,
            row.sure_delay_s,
        );
        text += &match row.reason {
            ReasonRow::Gain { own_success, return_difference: Some(difference) } => {
                format!("  {:+7.2}  {difference:+.2e}\n", 100.0 * own_success)
            }
            _ => format!("\n     {}\n", row.why),
        };
    }
    text + "likely, sure: delay as expected, and with the safety margin; success: the terminal's \
            own, and return of the plan, compared with a plan without it\n"
}

/// The unscheduled terminals by reason, in the order in which the reasons first occur.
fn left_out(report: &PlanReport) -> String {
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for row in report.terminals.iter().filter(|row| !row.scheduled) {
        let (kind, who) = (row.reason.name(), row.terminal.to_string());
        match kinds.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, all)) => all.push(who),
            None => kinds.push((kind, vec![who])),
        }
    }
    let mut text = String::new();
    for (kind, who) in kinds {
        let more = if who.len() > 12 { ", ..." } else { "" };
        let some = who.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "{} out, {kind}: {some}{more}", who.len());
    }
    text
}

fn runner_ups(report: &PlanReport) -> String {
    let mut text = String::new();
    for (place, one) in (2..).zip(&report.runner_ups) {
        let (behind, n) = (one.behind, one.n_scheduled);
        let _ = writeln!(
            text,
            "{place}. return {:+.4e}, {behind:.1e} behind, {n} scheduled: {}",
            one.score, one.difference
        );
    }
    text
}
