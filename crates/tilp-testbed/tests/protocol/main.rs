//! The protocol in a simulated network: frames are delayed, streams cut, processes killed at any
//! moment. Whatever happens, every request is worked on once, and the result is that of a run
//! without faults.
//!
//! `TILP_SEEDS=10000 cargo test -p tilp-testbed --test protocol` tries more seeds.

mod network;
mod program;

use network::{Faults, Network};
use program::{Program, expected};

fn seeds() -> u64 {
    std::env::var("TILP_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

#[test]
fn whatever_fails_the_result_is_that_of_a_run_without_faults() {
    for seed in 0..seeds() {
        let program = Program::drawn(seed);
        let run = Network::new(seed, program.clone(), Faults::Many).run();
        assert_eq!(run.result, expected(&program), "seed {seed}");
        for (terminal, worked) in run.worked.iter().enumerate() {
            let wanted = program.n_requests(terminal);
            assert_eq!(*worked, wanted, "seed {seed}, terminal {terminal}: requests worked on");
        }
    }
}

#[test]
fn without_faults_nothing_is_sent_twice() {
    for seed in 0..20 {
        let program = Program::drawn(seed);
        let run = Network::new(seed, program.clone(), Faults::None).run();
        assert_eq!(run.result, expected(&program), "seed {seed}");
        let requests: u64 = (0..program.terminals).map(|one| program.n_requests(one)).sum();
        assert_eq!(run.requests_delivered, requests, "seed {seed}");
    }
}

#[test]
fn the_same_seed_has_the_same_trace() {
    for seed in 0..seeds().min(30) {
        let trace = || Network::new(seed, Program::drawn(seed), Faults::Many).run().trace;
        let (first, again) = (trace(), trace());
        assert!(first.iter().any(|line| line.contains(" round ")), "seed {seed}: {first:?}");
        assert_eq!(first, again, "seed {seed}");
    }
}

#[test]
fn faults_do_happen() {
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..seeds().min(60) {
        let trace = Network::new(seed, Program::drawn(seed), Faults::Many).run().trace;
        kinds.extend(trace.iter().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned));
    }
    for kind in ["cut", "kill-terminal", "kill-station", "replayed", "repeated", "late-frame"] {
        assert!(kinds.contains(kind), "no {kind} in the traces: {kinds:?}");
    }
}
