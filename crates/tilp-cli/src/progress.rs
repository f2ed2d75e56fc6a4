//! Progress of long work: a bar on a terminal, plain lines when piped, nothing when quiet.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tilp::experiment::{Time, Watcher};
use tilp::record::RoundRow;

use crate::clock::WallTime;
use crate::output::tell;
use crate::signals::Signals;

/// Shows progress on standard error.
pub struct Progress {
    mode: Mode,
    signals: Option<Signals>,
    time: WallTime,
    state: Mutex<State>,
}

enum Mode {
    Bar(ProgressBar),
    Lines,
    Quiet,
}

#[derive(Default)]
struct State {
    success: Option<f64>,
    first_round: Option<(u64, Instant)>,
    last_line: Option<Instant>,
}

impl Progress {
    /// Progress that suits standard error; `signals` may ask to stop.
    pub fn new(quiet: bool, signals: Option<Signals>) -> Self {
        let mode = if quiet {
            Mode::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {msg}");
            bar.set_style(style.expect("the template is valid").progress_chars("=> "));
            Mode::Bar(bar)
        } else {
            Mode::Lines
        };
        Self { mode, signals, time: WallTime::start(), state: Mutex::default() }
    }

    /// Takes the bar off the screen.
    pub fn clear(&self) {
        if let Mode::Bar(bar) = &self.mode {
            bar.finish_and_clear();
        }
    }

    fn show(&self, what: &str, done: u64, total: u64, message: &str, important: bool) {
        match &self.mode {
            Mode::Quiet => {}
            Mode::Bar(bar) => {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_prefix(what.to_owned());
                bar.set_message(message.to_owned());
            }
            Mode::Lines => {
                let mut state = self.state.lock().unwrap_or_else(|state| state.into_inner());
                let due =
                    state.last_line.is_none_or(|last| last.elapsed() > Duration::from_secs(10));
                if due || important {
                    state.last_line = Some(Instant::now());
                    tell(&format!("{what} {done}/{total} {message}"));
                }
            }
        }
    }

    fn time_left(&self, row: &RoundRow, total: u64) -> String {
        let mut state = self.state.lock().unwrap_or_else(|state| state.into_inner());
        let (first, since) = *state.first_round.get_or_insert((row.round, Instant::now()));
        let done = row.round - first;
        if done == 0 {
            return String::from("-");
        }
        let left = since.elapsed().as_secs_f64() / done as f64 * (total - row.round) as f64;
        format!("{}:{:02}", left as u64 / 60, left as u64 % 60)
    }
}

impl Watcher for Progress {
    fn demonstrations(&self, done: usize, total: usize) {
        let message = "terminals (kept for next time)";
        self.show("demonstrations", done as u64, total as u64, message, done == total);
    }

    fn round(&self, row: &RoundRow, total: u64) {
        if matches!(self.mode, Mode::Quiet) {
            return;
        }
        let left = self.time_left(row, total);
        let measured = row.report_success.or(row.calibration_success);
        let success = {
            let mut state = self.state.lock().unwrap_or_else(|state| state.into_inner());
            state.success = measured.or(state.success);
            state.success
        };
        let success = success.map_or("-".into(), |rate| format!("{:.1} %", 100.0 * rate));
        let message = format!("success {success}, latency {:.2} s, left {left}", row.latency_s);
        self.show("round", row.round, total, &message, measured.is_some() || row.round == total);
    }

    fn asked_to_stop(&self) -> bool {
        self.signals.as_ref().is_some_and(|signals| signals.asked().is_some())
    }

    fn time(&self) -> &dyn Time {
        &self.time
    }
}
