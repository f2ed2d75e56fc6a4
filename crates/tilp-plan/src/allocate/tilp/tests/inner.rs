//! Quality of the plans of the search with an inner solver.

use super::*;
use crate::allocate::InnerOptions;
use crate::allocate::tilp::plan::Planned;
use crate::twin::COMPRESSION_LEVELS;

/// The inner solver with the fades and reward of the sampled search, so that returns are
/// comparable.
fn inner_options(horizon: usize, start_scheduled: f64) -> TilpOptions {
    let inner = InnerOptions { drawn_fades: false, waits: false, ..InnerOptions::default() };
    let cem = Cem::improved(200, 25, 5);
    TilpOptions { inner: Some(inner), ..options(cem, horizon, start_scheduled, PARTS) }
}

/// A planner with an inner solver in a state of a fake cell.
pub(in crate::allocate::tilp) fn inner_planner(n: usize, seed: u64) -> (Tilp, Observation) {
    let mut fake = Fake::new(n, DEFAULT, 4000 + seed);
    after(&mut fake, 5 * seed % 24, inner_options(8, 4.0), seed)
}

/// A whole plan.
pub(in crate::allocate::tilp) fn planned_by(tilp: &mut Tilp, seen: &Observation) -> Planned {
    let inputs = tilp.inputs(seen, tilp.options.horizon);
    let now = inputs.features.agent_state(&inputs.rollout, inputs.rollout.start(), 0);
    tilp.plan(seen, &inputs, &now)
}

/// The return of the best plan of the inner solver.
fn inner_planned(tilp: &mut Tilp, seen: &Observation) -> f32 {
    planned_by(tilp, seen).found.expect("a search").best.score
}

#[test]
fn fifty_terminals_over_sixteen_steps_beat_sampling_and_random_search() {
    let mut ahead = [0; 3];
    let mut all = Vec::new();
    for state in 0..20 {
        let mut fake = Fake::new(50, DEFAULT, 2000 + state);
        let (mut tilp, seen) = after(&mut fake, 3 * state, inner_options(16, 10.0), state);
        let rival = |options: TilpOptions| {
            let mut rival = Tilp::new(fake.nominal.clone(), options, Seed::new(state));
            rival.twin = tilp.twin.clone();
            rival
        };
        let improved = options(Cem::improved(200, 25, 5), 16, 10.0, PARTS);
        let mut sampled = rival(improved);
        let plain = Parts { repair: false, seeds: false, ..PARTS };
        let mut plain = rival(options(Cem::paper(200, 25, 5), 16, 10.0, plain));
        let rivals =
            [planned(&mut sampled, &seen), planned(&mut plain, &seen), at_random(&sampled, &seen)];
        let own = inner_planned(&mut tilp, &seen);
        for (ahead, rival) in ahead.iter_mut().zip(rivals) {
            *ahead += usize::from(own > rival);
        }
        all.push((own, rivals));
    }
    assert!(ahead.iter().all(|one| *one >= 19), "{ahead:?} of 20: {all:?}");
}

/// The best and the median return over all schedules, all cuts, six compressions and sixteen
/// finishing times; band and power are solved for.
fn enumerated_first_steps(tilp: &Tilp, inputs: &PlanInputs) -> [f32; 2] {
    let n = inputs.rollout.n_terminals();
    let mut ways = Vec::new();
    for terminal in 0..n {
        let idle = Choice { reals: [0.5, 1.0, 1.0], category: 0, flag: false };
        let mut own = vec![idle];
        for category in 0..=inputs.rollout.deepest_fitting(terminal) {
            for level in [52, 80, 102, 110, 119, 127] {
                let share = level as f32 / (COMPRESSION_LEVELS - 1) as f32;
                own.push(Choice { reals: [0.5, 1.0, share], category, flag: true });
            }
        }
        ways.push(own);
    }
    let total: usize = ways.iter().map(Vec::len).product();
    let mut returns = Vec::new();
    for mut number in 1..total {
        let mut choices = Vec::with_capacity(n);
        for own in &ways {
            choices.push(own[number % own.len()]);
            number /= own.len();
        }
        let best = tilp.returns_over_times(inputs, &choices).into_iter();
        returns.push(best.fold(f32::NEG_INFINITY, f32::max));
    }
    returns.sort_by(f32::total_cmp);
    [returns[returns.len() - 1], returns[returns.len() / 2]]
}

#[test]
fn one_step_is_within_one_percent_of_the_best_of_all_cuts_and_compressions() {
    let mut short = [Vec::new(), Vec::new()];
    for instance in 0..100 {
        let mut fake = Fake::new(2 + usize::from(instance % 5 == 0), DEFAULT, 5000 + instance);
        let (mut tilp, seen) = after(&mut fake, instance % 24, inner_options(1, 2.0), instance);
        let inputs = tilp.inputs(&seen, 1);
        let [best, median] = enumerated_first_steps(&tilp, &inputs);
        let missing = best - inner_planned(&mut tilp, &seen);
        short[0].push(missing / best.abs());
        short[1].push(missing / (best - median).max(1e-9));
    }
    for shares in &mut short {
        shares.sort_by(f32::total_cmp);
        assert!(shares[94] <= 0.01, "{:?}", &shares[85..]);
    }
}

#[test]
fn plans_do_not_depend_on_the_number_of_threads_and_go_on_from_a_snapshot() {
    use crate::snapshot::{Persist, Snapshot};
    let decide = |threads: usize, resumes: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let (mut tilp, seen) = inner_planner(12, 3);
            let first = tilp.decide(&seen).unwrap();
            if resumes {
                let mut snapshot = Snapshot::default();
                tilp.save(&mut snapshot);
                let (mut other, _) = inner_planner(12, 3);
                other.restore(&snapshot).unwrap();
                tilp = other;
            }
            [first, tilp.decide(&seen).unwrap()]
        })
    };
    let found = decide(1, false);
    assert_eq!(found, decide(3, false));
    assert_eq!(found, decide(2, true));
}

#[test]
fn a_plan_of_the_inner_solver_is_explained() {
    for seed in 0..4 {
        let (mut tilp, seen) = inner_planner(12, 10 + seed);
        let plan = tilp.explain(&seen);
        assert_eq!(plan.terminals.len(), 12);
        assert!(plan.planned_return.is_some() && plan.predicted.n_late == 0);
        assert!(plan.decision.scheduled().count() > 0 && !plan.decision.fallback);
        let reasons: Vec<_> = plan.terminals.iter().map(|one| &one.reason).collect();
        let overlooked =
            reasons.iter().filter(|one| matches!(one, crate::round::Reason::Overlooked { .. }));
        assert!(overlooked.count() <= 2, "{reasons:?}");
    }
}

/// The cost of a decision in which power, cut or compression is replaced by its mean over the
/// round: the larger of the ratios of time and of energy, for each of the three.
fn costs_of_means(tilp: &Tilp, seen: &Observation, decision: &Decision) -> [f64; 3] {
    let limits = tilp.decoder.limits();
    let mean = |value: &dyn Fn(usize) -> f64| {
        decision.scheduled().map(value).sum::<f64>() / decision.scheduled().count() as f64
    };
    let of = |one: usize| &decision.terminals[one];
    let power = mean(&|n| of(n).power.0);
    let cut = mean(&|n| of(n).cut as f64);
    let compression = mean(&|n| of(n).compression);
    let distance = |one: &&usize| (**one as f64 - cut).abs();
    let cut = *limits.cuts.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap();
    let cost = |which: usize| {
        let mut actions = decision.terminals.clone();
        for one in actions.iter_mut().filter(|one| one.scheduled) {
            match which {
                0 => one.power.0 = power,
                1 => one.cut = cut,
                2 => one.compression = compression,
                _ => {}
            }
        }
        let (mut state, mut scratch) = (tilp.twin.state(seen), tilp.twin.scratch());
        let step = tilp.twin.step(&mut state, &actions, Sureness::Likely, &mut scratch);
        [step.latency.0, step.energy.0]
    };
    let base = cost(3);
    [0, 1, 2].map(|which| {
        let found = cost(which);
        (found[0] / base[0]).max(found[1] / base[1])
    })
}

#[test]
fn powers_differ_because_it_pays() {
    let mut ratios = [0.0; 3];
    for state in 0..10 {
        let mut fake = Fake::new(50, DEFAULT, 6000 + state);
        let (mut tilp, seen) = after(&mut fake, 10 + 3 * state, inner_options(8, 10.0), state);
        let planned = planned_by(&mut tilp, &seen);
        let found = costs_of_means(&tilp, &seen, &planned.decision);
        ratios.iter_mut().zip(found).for_each(|(sum, one)| *sum += one / 10.0);
    }
    assert!(ratios[0] >= 1.05, "{ratios:?}");
}
