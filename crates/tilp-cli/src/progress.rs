//! Progress of long work: a bar on a terminal, plain lines when piped, nothing when quiet.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tilp::record::event::Executed;
use tilp::record::{Event, ProcessEvent};
use tilp::run::Observer;

use crate::output::tell;
use crate::signals::Signals;

/// Shows progress on standard error.
pub(crate) struct Progress {
    mode: Mode,
    signals: Option<Signals>,
    state: Mutex<State>,
}

enum Mode {
    Bar(ProgressBar),
    Lines,
    Quiet,
}

#[derive(Default)]
struct State {
    /// Rounds in all.
    total: u64,
    success: Option<f64>,
    /// Success was measured in the round in progress.
    measured: bool,
    latency_s: f64,
    first_round: Option<(u64, Instant)>,
    last_line: Option<Instant>,
}

impl Progress {
    /// Progress that suits standard error; `signals` may ask to stop.
    pub(crate) fn new(quiet: bool, signals: Option<Signals>) -> Self {
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
        Self { mode, signals, state: Mutex::default() }
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
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

    /// Number of terminals whose demonstrations are complete.
    pub(crate) fn demonstrations(&self, done: usize, total: usize) {
        let message = "terminals (kept for next time)";
        self.show("demonstrations", done as u64, total as u64, message, done == total);
    }
}

impl State {
    fn time_left(&mut self, round: u64) -> String {
        let (first, since) = *self.first_round.get_or_insert((round, Instant::now()));
        let done = round - first;
        if done == 0 {
            return String::from("-");
        }
        let ahead = self.total.saturating_sub(round) as f64;
        let left = since.elapsed().as_secs_f64() / done as f64 * ahead;
        format!("{}:{:02}", left as u64 / 60, left as u64 % 60)
    }
}

/// Latency of a round: true where the truth is known, else as measured.
fn latency_s(event: &Executed) -> f64 {
    let measured = event.terminals.delay_s.iter().map(|delay| delay.value());
    match &event.books {
        Some(books) => books.latency_s.value(),
        None => measured.fold(0.0, f64::max),
    }
}

impl Observer for Progress {
    fn event(&mut self, event: &Event) {
        let state = self.state.get_mut().unwrap_or_else(|state| state.into_inner());
        match event {
            Event::Decided(decided) => {
                state.measured = false;
                // With a budget the end is where its used share leads to.
                let share = decided.budget_share.map_or(0.0, |share| share.value());
                if share > 0.0 {
                    state.total = ((decided.id.0 - 1) as f64 / share).ceil() as u64;
                }
            }
            Event::Executed(executed) => state.latency_s = latency_s(executed),
            Event::Calibrated(event) | Event::Measured(event) => {
                state.success = event.rate().or(state.success);
                state.measured = true;
            }
            Event::Header(_) | Event::Finished(_) => {}
        }
    }

    fn process(&mut self, event: &ProcessEvent<'_>) {
        let state = self.state.get_mut().unwrap_or_else(|state| state.into_inner());
        match *event {
            ProcessEvent::Demonstrations { done, total } => self.demonstrations(done, total),
            ProcessEvent::Started { rounds } | ProcessEvent::Resumed { rounds, .. } => {
                state.total = rounds;
            }
            _ => {}
        }
    }

    fn completed(&mut self, round: u64) {
        if matches!(self.mode, Mode::Quiet) {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(|state| state.into_inner());
        let (total, left) = (state.total, state.time_left(round));
        let success = state.success.map_or("-".into(), |rate| format!("{:.1} %", 100.0 * rate));
        let message = format!("success {success}, latency {:.2} s, left {left}", state.latency_s);
        let important = state.measured || round == total;
        self.show("round", round, total, &message, important);
    }

    fn asked_to_stop(&self) -> bool {
        self.signals.as_ref().is_some_and(|signals| signals.asked().is_some())
    }
}
