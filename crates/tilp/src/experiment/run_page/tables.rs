//! The tables of a run: metrics, violations by kind, and every robot.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::RunPage;
use super::levelled::{self, Levelled};
use crate::experiment::study::escaped;
use crate::record::{EpisodeKind, RoundRow};

/// Totals of a robot over all rounds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Robot {
    /// Id of the terminal.
    pub id: u64,
    task: String,
    /// Large-scale gain in its first round.
    gain_db: f64,
    /// Rounds in which it was present.
    there: u64,
    scheduled: u64,
    took_part: u64,
    late: u64,
    /// Sums over the rounds in which it was scheduled.
    delay_s: f64,
    energy_j: f64,
    bytes: u64,
    /// Final success.
    pub success: Option<f64>,
}

impl Robot {
    /// Share of rounds in which it was scheduled.
    pub(super) fn scheduled_share(&self) -> f64 {
        self.scheduled as f64 / self.there.max(1) as f64
    }

    /// Share of rounds in which it counted in learning.
    pub(super) fn part_share(&self) -> f64 {
        self.took_part as f64 / self.there.max(1) as f64
    }
}

/// The robots, from the best channel to the worst.
pub(super) fn robots_of(page: &RunPage) -> Vec<Robot> {
    let finals = page.history.episodes.iter().filter(|row| row.kind == EpisodeKind::Final);
    let rate = |successes: u64, episodes: u64| successes as f64 / episodes.max(1) as f64;
    let success: BTreeMap<u64, f64> =
        finals.map(|row| (row.terminal, rate(row.successes, row.episodes))).collect();
    let mut robots: BTreeMap<u64, Robot> = BTreeMap::new();
    for row in &page.history.terminals {
        let one = robots.entry(row.terminal).or_insert_with(|| Robot {
            id: row.terminal,
            task: page.tasks.get(row.task as usize).cloned().unwrap_or_default(),
            gain_db: row.gain_db,
            there: 0,
            scheduled: 0,
            took_part: 0,
            late: 0,
            delay_s: 0.0,
            energy_j: 0.0,
            bytes: 0,
            success: success.get(&row.terminal).copied(),
        });
        one.there += 1;
        one.scheduled += u64::from(row.scheduled);
        one.took_part += u64::from(row.took_part);
        one.late += u64::from(row.late);
        one.delay_s += if row.scheduled { row.delay_s } else { 0.0 };
        one.energy_j += row.energy_radio_j + row.energy_compute_j;
        one.bytes += row.bytes_up + row.bytes_down + row.bytes_sync;
    }
    let mut robots: Vec<Robot> = robots.into_values().collect();
    robots.sort_by(|a, b| b.gain_db.total_cmp(&a.gain_db));
    robots
}

const HEAD: [&str; 10] = [
    "robot",
    "task",
    "final success, %",
    "scheduled, % of rounds",
    "took part, % of rounds",
    "late",
    "gain, dB",
    "mean delay, s",
    "energy, J",
    "on the air, MB",
];

fn cells(robot: &Robot) -> [String; 10] {
    let delay = robot.delay_s / robot.scheduled.max(1) as f64;
    [
        robot.id.to_string(),
        robot.task.clone(),
        robot.success.map_or("-".into(), |success| format!("{:.1}", 1e2 * success)),
        format!("{:.1}", 1e2 * robot.scheduled_share()),
        format!("{:.1}", 1e2 * robot.part_share()),
        robot.late.to_string(),
        format!("{:.1}", robot.gain_db),
        if robot.scheduled == 0 { "-".into() } else { format!("{delay:.3}") },
        format!("{:.2}", robot.energy_j),
        format!("{:.3}", 1e-6 * robot.bytes as f64),
    ]
}

/// Every robot, from the best channel to the worst.
pub(super) fn robots(page: &RunPage) -> String {
    let row = |robot: Robot| {
        let [name, rest @ ..] = cells(&robot);
        let rest: String = rest.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        format!("<tr><th scope=\"row\">{name}</th>{rest}</tr>\n")
    };
    let body: String = robots_of(page).into_iter().map(row).collect();
    table("robots", "Robots, from the best channel to the worst", &HEAD, &body)
}

/// What one decision being the same for all participants of a round would have cost.
pub(super) fn levelled(page: &RunPage) -> String {
    let found =
        page.replay.as_ref().and_then(|replay| levelled::levelled(replay, &page.history.rounds));
    let Some((rounds, parts)) = found else { return String::new() };
    let more = |factor: f64| format!("{:+.1} %", 1e2 * (factor - 1.0));
    let row = |one: &Levelled| {
        let (part, missed) = (one.part.name(), one.missed);
        let (seconds, joules) = (more(one.seconds), more(one.joules));
        format!(
            "<tr><th scope=\"row\">{part}</th><td>{seconds}</td><td>{joules}</td><td>{missed}</td></tr>\n"
        )
    };
    let head = ["the same for all", "seconds", "joules", "rounds that miss the deadline then"];
    let caption = format!(
        "If all participants of a round had its mean of one decision ({rounds} rounds, true channels)"
    );
    table("facts", &caption, &head, &parts.iter().map(row).collect::<String>())
}

/// Style of narrow screens: names and values of a table of facts wrap, so that both are visible.
pub(super) const NARROW: &str =
    "@media (max-width: 640px) { .facts th, .facts td { white-space: normal; } }\n";

/// The same as CSV.
pub(super) fn robots_csv(page: &RunPage) -> String {
    let quoted = |cell: &str| match cell.contains([',', '"']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    };
    let line =
        |cells: Vec<String>| cells.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(",");
    let head = line(HEAD.map(str::to_owned).to_vec());
    let lines = robots_of(page).iter().map(|robot| line(cells(robot).to_vec())).collect::<Vec<_>>();
    format!("{head}\n{}\n", lines.join("\n"))
}

/// A table; `kind` is its class in [`NARROW`].
fn table(kind: &str, caption: &str, head: &[&str], body: &str) -> String {
    let titles: String = head.iter().map(|title| format!("<th>{title}</th>")).collect();
    format!(
        "<h2>{caption}</h2>\n<div class=\"scroll\"><table class=\"{kind}\">\n<thead>\n<tr>{titles}</tr>\n</thead>\n\
         <tbody>\n{body}</tbody>\n</table></div>\n"
    )
}

/// The metrics that matter first; nothing for a run that is not complete.
pub(super) fn metrics(page: &RunPage) -> String {
    let Some(summary) = &page.summary else { return String::new() };
    let percent =
        |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{:.1} %", 1e2 * rate));
    let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.3}"));
    let interval = summary.success_final_interval.map_or(String::new(), |[low, high]| {
        format!(" (95 %: {:.1} to {:.1})", 1e2 * low, 1e2 * high)
    });
    let reached = |of: [Option<f64>; 3]| {
        of.map(|one| one.map_or("-".into(), |one| format!("{one:.0}"))).join(" / ")
    };
    let (rta, tta, eta) = (&summary.rta, &summary.tta_s, &summary.eta_j);
    let rounds = [rta.at_60, rta.at_70, rta.at_80].map(|round| round.map(|round| round as f64));
    let rows: [(&str, String); 12] = [
        ("final success", percent(summary.success_final) + &interval),
        ("success of the far third", percent(summary.success_far)),
        ("success of the worst task", percent(summary.success_worst_task)),
        ("rounds to 60 / 70 / 80 %", reached(rounds)),
        ("seconds to 60 / 70 / 80 %", reached([tta.at_60, tta.at_70, tta.at_80])),
        ("joules to 60 / 70 / 80 %", reached([eta.at_60, eta.at_70, eta.at_80])),
        (
            "latency of a round, median / mean / p95, s",
            [summary.latency_p50_s, summary.latency_mean_s, summary.latency_p95_s]
                .map(number)
                .join(" / "),
        ),
        ("energy, J (radio, computation)", {
            let (radio, compute) = (summary.energy_radio_j, summary.energy_compute_j);
            format!("{:.1} ({radio:.1}, {compute:.1})", summary.energy_total_j)
        }),
        ("activations sent up, MB", format!("{:.2}", 1e-6 * summary.volume_total_bytes as f64)),
        ("on the air in all, MB", format!("{:.2}", 1e-6 * summary.air_total_bytes as f64)),
        ("least scheduled robot, share of rounds", percent(summary.participation_min)),
        ("simulated time, s", format!("{:.1}", summary.clock_total_s)),
    ];
    let mut body = String::new();
    for (name, value) in rows {
        let _ = writeln!(body, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
    }
    table("facts", "Metrics", &["metric", "value"], &body)
}

/// Rounds with a violation of each kind, and by how much in all.
pub(super) fn violations(page: &RunPage) -> String {
    let rows = &page.history.rounds;
    let count =
        |is_violated: fn(&RoundRow) -> bool| rows.iter().filter(|row| is_violated(row)).count();
    let seconds: f64 = rows.iter().map(|row| row.violation_deadline_s).sum();
    let bytes: u64 = rows.iter().map(|row| row.violation_memory_bytes).sum();
    let hertz: f64 = rows.iter().map(|row| row.violation_spectrum_hz).sum();
    let late: u64 = rows.iter().map(|row| row.n_late).sum();
    let kinds = [
        (
            "deadline",
            count(|row| row.violation_deadline_s > 0.0),
            format!("{seconds:.1} s, {late} late"),
        ),
        ("memory", count(|row| row.violation_memory_bytes > 0), format!("{bytes} bytes")),
        (
            "spectrum",
            count(|row| row.violation_spectrum_hz > 0.0),
            format!("{:.3} MHz", 1e-6 * hertz),
        ),
    ];
    let mut body = String::new();
    for (kind, rounds, amount) in kinds {
        let cells = format!("<td>{rounds}</td><td>{amount}</td>");
        let _ = writeln!(body, "<tr><th scope=\"row\">{kind}</th>{cells}</tr>");
    }
    table("facts", "Violations by kind", &["limit", "rounds beyond it", "beyond it in all"], &body)
}
