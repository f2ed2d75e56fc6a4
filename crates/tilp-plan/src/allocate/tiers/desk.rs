//! A choice of cuts with its slowest terminals, so that one change is evaluated quickly.

use super::solver::{Choice, Instance};
use crate::allocate::solve::Board;

/// How much a terminal's own time counts beside the slowest: enough to let it move where the
/// slowest does not notice, which in turn lets the next one move.
const NUDGE: f64 = 1e-7;

/// The largest of some values, and the largest without its owner.
#[derive(Clone, Copy, Default)]
struct Top {
    most: f64,
    owner: usize,
    next: f64,
}

impl Top {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut top = Self { most: 0.0, owner: usize::MAX, next: 0.0 };
        for (index, value) in values.enumerate() {
            if value > top.most {
                top = Self { most: value, owner: index, next: top.most };
            } else {
                top.next = top.next.max(value);
            }
        }
        top
    }

    fn without(&self, index: usize) -> f64 {
        if index == self.owner { self.next } else { self.most }
    }
}

/// What a choice is worth at given intervals: numerator minus lambda times denominator.
pub(super) struct Desk<'a> {
    instance: &'a Instance,
    every: [u64; 2],
    lambda: f64,
    /// The choice so far.
    pub choice: Choice,
    /// Of the three kinds of time, and of the cut.
    tops: [Top; 4],
    /// Own times of all terminals, nudged.
    nudge: f64,
}

impl<'a> Desk<'a> {
    /// A choice to start from.
    pub(super) fn new(
        instance: &'a Instance,
        every: [u64; 2],
        lambda: f64,
        choice: Choice,
    ) -> Self {
        let mut desk =
            Self { instance, every, lambda, choice, tops: [Top::default(); 4], nudge: 0.0 };
        desk.survey();
        desk
    }

    /// Value of the present choice.
    pub(super) fn worth(&self) -> f64 {
        let edge = self.choice.len() - 1;
        self.value(edge, self.choice[edge])
    }

    fn survey(&mut self) {
        let Self { instance, choice, .. } = self;
        let times = || instance.times.iter().zip(choice.iter()).map(|(times, &pick)| times[pick]);
        let cuts = instance.options.iter().zip(choice.iter());
        self.tops = [
            Top::of(times().map(|times| times[0])),
            Top::of(times().map(|times| times[1])),
            Top::of(times().map(|times| times[2])),
            Top::of(cuts.map(|(options, &pick)| options[pick] as f64)),
        ];
        self.nudge = NUDGE * times().map(own_time).sum::<f64>() / self.n_terminals() as f64;
    }

    fn n_terminals(&self) -> usize {
        self.instance.times.len().max(1)
    }
}

fn own_time([first, second, exchange]: [f64; 3]) -> f64 {
    first + second + exchange
}

impl Board for Desk<'_> {
    fn value(&self, terminal: usize, option: usize) -> f64 {
        let last = self.choice.len() - 1;
        let (mut slowest, mut own, mut nudge, mut edge) =
            ([0.0; 3], self.tops[3].most, self.nudge, self.choice[last]);
        if terminal == last {
            edge = option;
            slowest = [self.tops[0].most, self.tops[1].most, self.tops[2].most];
        } else {
            let times = &self.instance.times[terminal];
            let (now, then) = (&times[self.choice[terminal]], &times[option]);
            for kind in 0..3 {
                slowest[kind] = self.tops[kind].without(terminal).max(then[kind]);
            }
            let cut = self.instance.options[terminal][option] as f64;
            own = self.tops[3].without(terminal).max(cut);
            let change = own_time(*then) - own_time(*now);
            nudge += NUDGE * change / self.n_terminals() as f64;
        }
        let (over, under) = self.instance.fraction_at(slowest, own as usize, edge, self.every);
        if under > 0.0 { over - self.lambda * under + nudge } else { f64::INFINITY }
    }

    fn take(&mut self, terminal: usize, option: usize) {
        self.choice[terminal] = option;
        self.survey();
    }
}
