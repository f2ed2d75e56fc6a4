//! `tilp channel`.

use tilp::experiment::channel::{ChannelReport, figures, read, survey};
use tilp::record::write_beside;

use crate::arguments::{Channel, Format};
use crate::columns::{self, COLUMNS};
use crate::failure::Failure;
use crate::output;

/// Shows a channel: numbers, gains over time, a map.
pub(crate) fn channel(arguments: Channel) -> Result<(), Failure> {
    let channel = read(&arguments.channel, arguments.seed).map_err(Failure::input)?;
    let report = survey(&channel);
    let drawn = figures(&channel);
    let files: Vec<(String, Vec<u8>)> =
        drawn.into_iter().flat_map(|(name, figure)| figure.files(&name, None)).collect();
    let there = files.iter().map(|(name, _)| arguments.out.join(name)).find(|path| path.exists());
    if let (Some(path), false) = (there, arguments.replace) {
        let line = "exists, expected another --out, or --replace to write over it";
        return Err(Failure::input(format!("{}: {line}", path.display())));
    }
    write_beside(&arguments.out, &files).map_err(Failure::writing)?;
    output::print(&match arguments.format {
        Format::Json => serde_json::to_string_pretty(&report).expect("a report is plain data"),
        Format::Text => {
            let text = columns::within(&as_text(&report), COLUMNS);
            format!("{text}figures in {}", arguments.out.display())
        }
    })
}

fn as_text(report: &ChannelReport) -> String {
    let ChannelReport { scene, rounds, n_terminals, gain_db, fading_db, .. } = report;
    let [least, low, middle, high, most] = gain_db;
    let [deep, median, peak] = fading_db;
    let interval = report.interval_s.map_or(String::new(), |s| format!(", one every {s} s"));
    let mut text = format!("{scene}: {n_terminals} terminals, {rounds} rounds{interval}\n");
    let mut line = |name: &str, value: String| text += &format!("  {name:14}{value}\n");
    line(
        "gain",
        format!(
            "{least:.1} / {low:.1} / {middle:.1} / {high:.1} / {most:.1} dB (worst terminal, \
             quartiles, best)"
        ),
    );
    line("fading", format!("{deep:+.1} / {median:+.1} / {peak:+.1} dB (5, 50, 95 %)"));
    if let Some(share) = report.sight_share {
        line("in sight", format!("{:.0} % of terminals and rounds", 100.0 * share));
    }
    line("coherence", coherence(report));
    if let Some(spread) = report.delay_spread_s {
        line("delay spread", format!("{:.0} ns (median)", 1e9 * spread));
    }
    if let Some(doppler) = report.doppler_hz {
        line("Doppler", format!("{doppler:.2} Hz at most (median of the terminals)"));
    }
    text
}

fn coherence(report: &ChannelReport) -> String {
    let Some(next) = report.correlation else { return "nothing changes".into() };
    let rounds = report.coherence_rounds.map_or("never".into(), |n| format!("after {n:.0} rounds"));
    format!("correlation {next:.2} from round to round, below one half {rounds} (medians)")
}
