//! Layers exchanged in fewer than 32 bits.

use std::sync::Mutex;

use super::*;
use crate::split::engine::Copies;
use crate::split::link::{LinkError, LocalLink};
use crate::split::message::{Kind, LayerWeights, peek};
use crate::split::rule::Rule;

fn encoded(exchange: Exchange) -> Settings {
    Settings { exchange, ..settings() }
}

/// Bytes of all layers that cross a link, downloads and uploads apart.
type Crossed = Arc<Mutex<[u64; 2]>>;

struct Counted(LocalLink<Policy>, Crossed);

impl TerminalLink for Counted {
    fn exchange(&mut self, message: &[u8]) -> Result<Vec<u8>, LinkError> {
        let answer = self.0.exchange(message)?;
        for (direction, bytes) in [message, &answer[..]].into_iter().enumerate() {
            if peek(bytes).unwrap().0.exchange().is_some() {
                self.1.lock().unwrap()[direction] += bytes.len() as u64;
            }
        }
        Ok(answer)
    }
}

/// An engine over counted links.
fn counted(settings: Settings) -> (Engine<Policy, Counted>, Crossed) {
    use crate::split::terminal::TerminalHalf;
    let (model, crossed) = (Arc::new(thin_policy()), Crossed::default());
    let base = model.initial(Seed::new(3));
    let links = (0..3).map(|n| {
        let data = data(&model, n as usize, 20);
        let half = TerminalHalf::new(TerminalId(n), model.clone(), settings.seed, data);
        (TerminalId(n), Counted(LocalLink::new(half.with_policy(&base)), crossed.clone()))
    });
    let links: Vec<_> = links.collect();
    (Engine::over_links(model.clone(), settings, &base, 8, links), crossed)
}

#[test]
fn downloads_and_uploads_have_the_length_that_is_known_beforehand() {
    for exchange in Exchange::ALL {
        let (mut engine, crossed) = counted(encoded(exchange));
        let sizes = |cut: usize| (1..=cut).map(|layer| thin_policy().n_parameters(layer));
        let copy = |cut: usize| LayerWeights::n_bytes(exchange, sizes(cut)) as u64;
        let mut all = all_at(&engine, 3, 0.0);
        all[1].cut = 5;
        engine.round(0, &all).unwrap();
        assert_eq!(*crossed.lock().unwrap(), [0, 0]);
        let pending = all.iter().map(|one| engine.pending_bytes(one.terminal).unwrap().0);
        assert_eq!(pending.collect::<Vec<_>>(), [copy(3), copy(5), copy(3)]);
        engine.aggregate(&everybody(&engine)).unwrap();
        assert_eq!(*crossed.lock().unwrap(), [0, 2 * copy(3) + copy(5)]);
        assert_eq!(engine.missing_bytes(TerminalId(2), 4).unwrap().0, copy(4));
        let outcomes = engine.round(1, &all).unwrap();
        assert_eq!(crossed.lock().unwrap()[0], 2 * copy(3) + copy(5));
        let sync: u64 = outcomes.iter().map(|one| one.sync_down.0).sum();
        assert_eq!(sync, 2 * copy(3) + copy(5));
    }
}

#[test]
fn the_virtual_mean_is_the_model_that_an_aggregation_gives() {
    for exchange in Exchange::ALL {
        let mut engine = engine(thin_policy(), encoded(exchange), &[20, 30, 9]);
        for round in 0..6 {
            engine.round(round, &all_at(&engine, 3 + round as usize % 3, 0.0)).unwrap();
            let mean = engine.virtual_mean();
            assert_eq!(mean, engine.virtual_mean(), "measuring changes nothing");
            if round % 2 == 1 {
                engine.aggregate(&everybody(&engine)).unwrap();
                assert_eq!(&mean, engine.server().weights());
            }
        }
    }
}

/// How far weights are from those of an exchange in 32 bits, and how far these moved.
fn deviation(exchange: Exchange) -> (f64, f64) {
    let run = |exchange: Exchange| {
        let rates = Settings { server_rate: 0.02, client_rate: 0.02, ..encoded(exchange) };
        let mut engine = engine(thin_policy(), rates, &[20, 30, 9]);
        let base = engine.server().weights().clone();
        for round in 0..10 {
            engine.round(round, &all_at(&engine, 4, 0.0)).unwrap();
            engine.aggregate(&everybody(&engine)).unwrap();
        }
        (base, engine.server().weights().clone())
    };
    let ((base, exact), (_, rounded)) = (run(Exchange::Single), run(exchange));
    let change = |to: &Weights| {
        let mut change = Weights::zeros(&thin_policy());
        for layer in 1..=4 {
            let pairs = exact.layer(layer).iter().zip(to.layer(layer));
            *change.layer_mut(layer) = pairs.map(|(a, b)| a - b).collect();
        }
        change.norm(1..=4)
    };
    (change(&rounded), change(&base))
}

#[test]
fn fewer_bits_move_the_weights_by_less_than_training_does() {
    let (half, moved) = deviation(Exchange::Half);
    let (byte, _) = deviation(Exchange::Byte);
    assert!(half > 0.0 && half < 0.1 * moved, "{half} of {moved}");
    assert!(byte > half && byte < moved, "{byte} of {moved}");
}

#[test]
fn a_restored_engine_rounds_as_the_first_one() {
    use crate::snapshot::{Persist, Snapshot};
    for exchange in [Exchange::Half, Exchange::Byte] {
        let mut first = engine(thin_policy(), encoded(exchange), &[20, 30, 9]);
        for round in 0..3 {
            first.round(round, &all_at(&first, 3, 0.5)).unwrap();
        }
        let mut snapshot = Snapshot::default();
        first.save(&mut snapshot);
        let mut second = engine(thin_policy(), encoded(exchange), &[20, 30, 9]);
        second.restore(&snapshot).unwrap();
        assert_eq!(first.virtual_mean(), second.virtual_mean());
        for engine in [&mut first, &mut second] {
            engine.aggregate(&ids(&[0, 1, 2])).unwrap();
            engine.round(3, &all_at(engine, 5, 0.5)).unwrap();
        }
        assert_eq!(first.virtual_mean(), second.virtual_mean());
    }
}

#[test]
fn a_compressed_change_of_the_whole_model_is_not_rounded_again() {
    let whole = |exchange: Exchange, q: f64| {
        let mut engine = engine(thin_policy(), encoded(exchange), &[20, 30, 9]);
        let all = all_at(&engine, 8, q);
        engine.train(Rule::Whole(Local::Steps(2)), 0, &all, Copies::default()).unwrap();
        engine.aggregate(&everybody(&engine)).unwrap();
        engine.server().weights().clone()
    };
    assert_eq!(whole(Exchange::Byte, 0.9), whole(Exchange::Single, 0.9));
    assert_ne!(whole(Exchange::Byte, 0.0), whole(Exchange::Single, 0.0));
}

#[test]
fn a_terminal_takes_layers_in_any_encoding_and_answers_in_the_one_asked_for() {
    use crate::split::control::{Aggregated, Collect};
    let model = thin_policy();
    let engine = engine(thin_policy(), settings(), &[20]);
    let context = Context { round: 4, terminal: TerminalId(0), cut: 3 };
    let layers = engine.server().weights().layers()[..3].to_vec();
    let message = LayerWeights { context, first: 1, layers };
    let mut link = locked(&engine.links[&TerminalId(0)]);
    for exchange in Exchange::ALL {
        let optimiser_state = StateAtAggregation::Reset;
        link.exchange(&Aggregated { context, optimiser_state }.to_bytes()).unwrap();
        let bytes = message.encoded(exchange, &mut Seed::new(1).rng());
        link.exchange(&bytes).unwrap();
        let sizes: Vec<usize> = (1..=8).map(|layer| model.n_parameters(layer)).collect();
        let sent = LayerWeights::from_bytes(&bytes, &sizes).unwrap();
        assert_eq!(link.terminal().weights().layers()[..3], sent.layers);
        let collect = Collect { context, first: 1, exchange: Exchange::Half };
        let answer = link.exchange(&collect.to_bytes()).unwrap();
        assert_eq!(peek(&answer).unwrap().0, Kind::HalfWeights);
    }
}
