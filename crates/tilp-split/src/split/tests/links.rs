//! Only messages cross between the halves.

use std::sync::Mutex;

use super::*;
use crate::snapshot::{Persist, Snapshot};
use crate::split::engine::{Copies, Outcome, RoundError};
use crate::split::link::{LinkError, LocalLink};
use crate::split::message::{Kind, peek};
use crate::split::rule::Rule;
use crate::split::terminal::TerminalHalf;

const SAMPLES: [usize; 4] = [40, 9, 30, 16];

/// Every message of a run in order: direction, kind, bytes.
type Log = Arc<Mutex<Vec<(bool, Kind, u64)>>>;

/// Writes down every message in both directions.
struct Recorded(LocalLink<Policy>, Log);

impl TerminalLink for Recorded {
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
        let answer = self.0.exchange(message)?;
        let mut log = self.1.lock().unwrap();
        for (up, bytes) in [(false, message), (true, &answer)] {
            log.push((up, peek(bytes).unwrap().0, bytes.len() as u64));
        }
        Ok(answer)
    }
}

/// Keeps a terminal only as a snapshot: after every message the terminal is dropped.
struct Stored {
    id: TerminalId,
    data: Arc<Dataset>,
    state: Snapshot,
}

impl TerminalLink for Stored {
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
        let mut terminal = terminal(self.id, self.data.clone());
        terminal.restore(&self.state).unwrap();
        let answer = terminal.handle(message).map_err(LinkError::Refused)?;
        self.state = Snapshot::default();
        terminal.save(&mut self.state);
        Ok(answer)
    }
}

/// Loses every message from number `from` to number `to`, or the answers to them.
struct Broken {
    link: LocalLink<Policy>,
    lost: std::ops::Range<usize>,
    answers: bool,
    count: usize,
}

impl TerminalLink for Broken {
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
        let lost = self.lost.contains(&self.count);
        self.count += 1;
        if lost && !self.answers {
            return Err(LinkError::Lost("cable".to_string()));
        }
        let answer = self.link.exchange(message)?;
        if lost { Err(LinkError::Lost("cable".to_string())) } else { Ok(answer) }
    }
}

fn heavy() -> Settings {
    Settings { optimiser: momentum(0.9), server_rate: 0.01, client_rate: 0.02, ..settings() }
}

fn terminal(id: TerminalId, data: Arc<Dataset>) -> TerminalHalf<Policy> {
    let model = Arc::new(thin_policy());
    let base = model.initial(Seed::new(3));
    TerminalHalf::new(id, model, settings().seed, data).with_policy(&base)
}

/// An engine like that of [`engine`] over other links.
fn over<L: TerminalLink>(
    settings: Settings,
    link: impl Fn(TerminalHalf<Policy>) -> L,
) -> Engine<Policy, L> {
    let model = thin_policy();
    let links: Vec<_> = (0..)
        .zip(SAMPLES)
        .map(|(n, samples)| {
            let data = data(&model, n as usize, samples);
            (TerminalId(n), link(terminal(TerminalId(n), data)))
        })
        .collect();
    let base = model.initial(Seed::new(3));
    Engine::over_links(Arc::new(model), settings, &base, 8, links)
}

/// Rounds by every rule with changing cuts, compressions, tiers and aggregations.
fn run<L: TerminalLink>(engine: &mut Engine<Policy, L>) -> Vec<Outcome> {
    let rules = [
        Rule::Parallel,
        Rule::Tiered { edges: 2 },
        Rule::Sequential,
        Rule::Tiered { edges: 2 },
        Rule::Broadcast,
        Rule::Whole(Local::Steps(2)),
        Rule::Tiered { edges: 2 },
        Rule::Relay,
    ];
    let mut outcomes = Vec::new();
    for round in 0..24u64 {
        let rule = rules[round as usize % rules.len()];
        let own = 3 + round as usize % 4;
        let copies = Copies { own, edge: own + 1, n_edges: 2 };
        let mut all = all_at(engine, 2 + round as usize % 4, 0.25 * (round % 4) as f64);
        match rule {
            Rule::Whole(_) => all.iter_mut().for_each(|one| one.cut = 8),
            Rule::Broadcast => {}
            _ => all[1].cut = 1 + round as usize % 7,
        }
        all.remove(round as usize % 4);
        outcomes.extend(engine.train(rule, round, &all, copies).unwrap());
        if round % 5 == 4 {
            engine
                .aggregate_front(
                    copies.own,
                    &all.iter().map(|one| one.terminal).collect::<Vec<_>>(),
                )
                .unwrap();
        }
        if round % 3 == 2 {
            engine.aggregate_edges(copies).unwrap();
        }
    }
    outcomes
}

#[test]
fn the_bytes_of_an_outcome_are_the_lengths_of_the_tensor_messages() {
    let log = Log::default();
    let mut engine = over(heavy(), |half| Recorded(LocalLink::new(half), log.clone()));
    let outcomes = run(&mut engine);
    let recorded = log.lock().unwrap().clone();
    let sum = |up: bool, kind: Kind| -> u64 {
        recorded.iter().filter(|one| (one.0, one.1) == (up, kind)).map(|one| one.2).sum()
    };
    let total = |bytes: fn(&Outcome) -> u64| outcomes.iter().map(bytes).sum::<u64>();
    assert_eq!(sum(true, Kind::Activation), total(|one| one.up.0));
    assert_eq!(sum(false, Kind::CutGradient), total(|one| one.down.0));
    assert_eq!(sum(false, Kind::LayerWeights), total(|one| one.sync_down.0));
    let moved = sum(false, Kind::MovedCopies) + sum(true, Kind::MovedCopies);
    assert_eq!(moved, total(|one| one.moved.0));
    assert!(moved > 0 && sum(true, Kind::LayerWeights) > 0, "the run moves and uploads copies");
    let control = recorded.iter().filter(|one| !one.1.is_billed() && one.1 != Kind::MovedCopies);
    assert!(control.clone().all(|one| one.2 <= 64), "orders and acknowledgements are small");
}

#[test]
fn an_upload_is_the_message_that_the_cost_model_bills() {
    let log = Log::default();
    let mut engine = over(settings(), |half| Recorded(LocalLink::new(half), log.clone()));
    let all = all_at(&engine, 3, 0.0);
    engine.round(0, &all).unwrap();
    let pending: u64 = all.iter().map(|one| engine.pending_bytes(one.terminal).unwrap().0).sum();
    log.lock().unwrap().clear();
    engine.aggregate(&everybody(&engine)).unwrap();
    let recorded = log.lock().unwrap();
    let uploads = recorded.iter().filter(|one| one.1 == Kind::LayerWeights);
    assert_eq!(uploads.map(|one| one.2).sum::<u64>(), pending);
    assert_eq!(recorded.iter().filter(|one| one.1 == Kind::Aggregated).count(), 4);
}

#[test]
fn terminals_stored_between_any_two_messages_give_the_same_bits() {
    let keep = StateAtAggregation::Keep;
    let clipped = Settings { optimiser: adamw(), clip: 0.5, ..heavy() };
    let keeping = Settings { state_at_aggregation: keep, ..clipped };
    for settings in [settings(), heavy(), clipped, keeping] {
        let mut together = over(settings, LocalLink::new);
        let mut apart = over(settings, |half| {
            let mut state = Snapshot::default();
            half.save(&mut state);
            Stored { id: half.id(), data: half.data().clone(), state }
        });
        assert_eq!(run(&mut together), run(&mut apart));
        assert_eq!(together.virtual_mean(), apart.try_virtual_mean().unwrap());
        assert_eq!(together.server().weights(), apart.server().weights());
    }
}

#[test]
fn a_copy_that_changes_sides_trains_as_if_it_had_stayed() {
    let heavy = Settings { server_rate: 0.02, ..heavy() };
    for settings in [heavy, Settings { optimiser: adamw(), ..heavy }] {
        trains_as_if_it_had_stayed(settings);
    }
}

fn trains_as_if_it_had_stayed(settings: Settings) {
    use crate::split::central::Trainer;
    let mut split = engine(thin_policy(), settings, &[40]);
    let model = thin_policy();
    let base = split.server().weights().clone();
    let mut whole = Trainer::by(&model, base, settings.optimiser, settings.server_rate);
    let copies = Copies { own: 8, edge: 0, n_edges: 0 };
    let mut moved = 0;
    for (round, cut) in (0..).zip([2, 5, 8, 3, 3, 7, 1, 6]) {
        let batch = union_batch(&split, &[0], round);
        let all = all_at(&split, cut, 0.0);
        moved += split.round_with(round, &all, copies).unwrap()[0].moved.0;
        whole.step(&batch.observations, &batch.actions);
        assert_eq!(&own_weights(&split, 0), whole.weights(), "round {round}");
    }
    assert!(moved > 0);
}

/// An engine whose terminal 1 loses some messages, or the answers to them.
fn broken(lost: std::ops::Range<usize>, answers: bool) -> Engine<Policy, Broken> {
    over(heavy(), |half| {
        let lost = if half.id() == TerminalId(1) { lost.clone() } else { 0..0 };
        Broken { link: LocalLink::new(half), lost, answers, count: 0 }
    })
}

#[test]
fn a_lost_message_is_a_typed_error_and_the_round_is_complete_without_the_terminal() {
    for answers in [false, true] {
        // The first message of terminal 1 is its order, the second the gradient at the cut.
        for lost in [0..1, 1..2] {
            let mut engine = broken(lost, answers);
            let mut without = over(heavy(), LocalLink::new);
            let mut all = all_at(&engine, 3, 0.75);
            let error = engine.round(0, &all).unwrap_err();
            assert_eq!(error.to_string(), "terminal 1: no answer: cable");
            let RoundError::Links { failed, done } = error else { panic!() };
            assert_eq!(failed.iter().map(|one| one.terminal.0).collect::<Vec<_>>(), [1]);
            let removed = all.remove(1);
            assert_eq!(done, without.round(0, &all).unwrap());
            let lost = without.server.terminals.get_mut(&TerminalId(1)).unwrap();
            lost.lose(StateAtAggregation::Reset);
            all.insert(1, removed);
            // The link works again: the terminal downloads the layers and takes part.
            let again = engine.round(1, &all).unwrap();
            assert_eq!(again, without.round(1, &all).unwrap());
            assert!(again[1].sync_down.0 > 0 && again[0].sync_down.0 == 0);
            assert_eq!(engine.try_virtual_mean().unwrap(), without.virtual_mean());
        }
    }
}

#[test]
fn an_upload_that_fails_is_lost_like_a_copy_that_did_not_arrive() {
    // Order, gradient, then the failing upload and the failing notice.
    let mut engine = broken(2..4, false);
    let mut without = over(heavy(), LocalLink::new);
    let all = all_at(&engine, 3, 0.0);
    engine.round(0, &all).unwrap();
    without.round(0, &all).unwrap();
    let error = engine.aggregate(&everybody(&engine)).unwrap_err();
    assert!(matches!(&error, RoundError::Links { failed, .. } if failed.len() == 1), "{error}");
    without.aggregate(&ids(&[0, 2, 3])).unwrap();
    assert_eq!(engine.server().weights(), without.server().weights());
    assert_eq!(engine.round(1, &all).unwrap(), without.round(1, &all).unwrap());
    assert_eq!(engine.try_virtual_mean().unwrap(), without.virtual_mean());
}

#[test]
fn every_rule_survives_a_link_that_fails_at_any_message() {
    for rule in [Rule::Parallel, Rule::Sequential, Rule::Relay, Rule::Broadcast] {
        for lost in 0..8 {
            let mut engine = broken(lost..lost + 1, lost % 2 == 0);
            for round in 0..4 {
                let all = all_at(&engine, 2 + round as usize % 2, 0.5);
                match engine.train(rule, round, &all, Copies::default()) {
                    Ok(done) => assert_eq!(done.len(), 4),
                    Err(RoundError::Links { failed, done }) => {
                        assert!(failed.iter().all(|one| one.terminal == TerminalId(1)));
                        assert!(done.len() >= 3);
                    }
                    Err(other) => panic!("{other}"),
                }
                let _ = engine.aggregate(&everybody(&engine));
            }
            let mean = engine.try_virtual_mean().unwrap();
            assert!(mean.layers().iter().flatten().all(|value| value.is_finite()), "{rule:?}");
        }
    }
}

/// A terminal behind a link that answers with other bytes.
struct Forged(LocalLink<Policy>, fn(Vec<u8>) -> Vec<u8>);

impl TerminalLink for Forged {
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
        Ok((self.1)(self.0.exchange(message)?))
    }
}

#[test]
fn an_answer_about_another_round_terminal_or_cut_is_refused() {
    let forgeries: [fn(Vec<u8>) -> Vec<u8>; 5] = [
        |bytes| [&bytes[..4], &[7], &bytes[5..]].concat(), // cut
        |bytes| [&bytes[..8], &[9], &bytes[9..]].concat(), // terminal
        |bytes| [&bytes[..12], &[9], &bytes[13..]].concat(), // round
        |bytes| bytes[..bytes.len() - 1].to_vec(),
        |_| Vec::new(),
    ];
    for forge in forgeries {
        let mut engine = over(settings(), |half| Forged(LocalLink::new(half), forge));
        let error = engine.round(0, &all_at(&engine, 3, 0.0)).unwrap_err();
        let RoundError::Links { failed, done } = error else { panic!() };
        assert!(done.is_empty() && failed.len() == 4);
        assert!(failed.iter().all(|one| matches!(one.error, LinkError::Answer(_))));
    }
}

#[test]
fn a_terminal_refuses_messages_that_do_not_fit_and_stays_as_it_was() {
    use crate::split::control::{Aggregated, Collect, HandOver, Notice};
    let model = thin_policy();
    let mut half = terminal(TerminalId(0), data(&model, 0, 20));
    let order = order(&settings(), 4, 0, 3, 0.5);
    let context = order.context;
    let other = Context { terminal: TerminalId(1), ..context };
    let mut said = |bytes: &[u8]| half.handle(bytes).unwrap_err().field;
    assert_eq!(said(&TrainOrder { context: other, ..order }.to_bytes()), "terminal");
    assert_eq!(said(&Notice { context }.to_bytes(Kind::Acknowledged)), "kind");
    let gradient = crate::split::message::CutGradient { context, loss: 0.0, payload: vec![] };
    assert_eq!(said(&gradient.to_bytes()), "round", "no order is pending");
    assert_eq!(said(&[]), "mark");
    let activation = half.handle(&order.to_bytes()).unwrap();
    assert!(half.handle(&gradient.to_bytes()).is_err(), "the payload is empty");
    let later = Context { round: 5, ..context };
    let late = crate::split::message::CutGradient { context: later, ..gradient };
    assert_eq!(half.handle(&late.to_bytes()).unwrap_err().field, "round");
    // The order is still pending, and its answer the same.
    assert_eq!(half.handle(&order.to_bytes()).unwrap(), activation);
    let optimiser_state = StateAtAggregation::Reset;
    half.handle(&Aggregated { context, optimiser_state }.to_bytes()).unwrap();
    assert_eq!(half.handle(&order.to_bytes()).unwrap_err().field, "layer", "nothing is held");
    let collect = Collect { context, first: 1, exchange: Exchange::Single };
    assert_eq!(half.handle(&collect.to_bytes()).unwrap_err().field, "layer");
    let hand_over = HandOver { context, first: 1 };
    assert_eq!(half.handle(&hand_over.to_bytes()).unwrap_err().field, "layer");
}

#[test]
fn no_bytes_make_a_terminal_panic() {
    let model = thin_policy();
    let log = Arc::new(Mutex::new(Vec::<Vec<u8>>::new()));
    struct Copied(LocalLink<Policy>, Arc<Mutex<Vec<Vec<u8>>>>);
    impl TerminalLink for Copied {
        fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
            self.1.lock().unwrap().push(message.to_vec());
            self.0.exchange(message)
        }
    }
    for settings in [heavy(), Settings { optimiser: adamw(), ..heavy() }] {
        run(&mut over(settings, |half| Copied(LocalLink::new(half), log.clone())));
    }
    let messages = log.lock().unwrap().clone();
    let mut half = terminal(TerminalId(0), data(&model, 0, 20));
    for (place, noise) in values(6000, 17).iter().enumerate() {
        let mut bytes = messages[place * 7919 % messages.len()].clone();
        bytes[8..12].fill(0); // to this terminal
        let at = place * 104_729 % bytes.len().min(64);
        bytes[at] ^= (noise * 128.0 + 128.0) as u8 | 1;
        if place % 3 == 0 {
            bytes.truncate(at);
        }
        let _ = half.handle(&bytes);
    }
}
