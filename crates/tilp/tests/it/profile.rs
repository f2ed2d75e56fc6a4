//! Profile scenarios: tables, published sizes, every method, books.

use std::fs;
use std::path::{Path, PathBuf};

use tilp::cost::CutProfile;
use tilp::round::{Cell, Experimenter, Question};
use tilp::run::{RoundRecord, Stop, round};
use tilp::scenario::{
    PROFILE_NOTE, ProfileParts, Scenario, ScenarioError, World, assemble, assemble_world,
    data_sheets, method, methods,
};
use tilp::snapshot::{Persist, Snapshot};
use tilp::units::{Bytes, Gain, Hertz};

use crate::rounds::{Keep, books};

const ROUNDS: u64 = 10;

/// A model of four parts, small enough to check by hand.
const MODEL: &str = "\
# A model of four parts.
name, activation_elements, operations, trained_parameters, memory_bytes
first, 1000, 1e9, 100, 1e6
second, 500, 2e9, 300, 2e6
third, 250, 3e9, 600, 3e6
whole, 10, 4e9, 1000, 8e6
";

/// A folder with files, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profile-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        files.iter().for_each(|(name, text)| fs::write(path.join(name), text).unwrap());
        Self(path)
    }

    fn load(&self, overrides: &[&str]) -> Result<Scenario, ScenarioError> {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        Scenario::load(self.0.join("mine.toml").to_str().unwrap(), &overrides)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Six terminals with the small model.
fn small(name: &str) -> Folder {
    let scenario = "extends = \"profile-smolvla\"\nname = \"small\"\nrounds = 40\n\
                    [cell]\nn_terminals = 6\n[model]\ncuts = [1, 2, 3]\n\
                    [methods]\ncut = 2\n[methods.reference]\nn_scheduled = 3\n\
                    [learning]\naggregate_every = 4\n\
                    [evaluation]\ncalibrate_every = 5\nmeasure_every = 5\n\
                    [profile]\nmodel = \"model.csv\"\n";
    Folder::new(name, &[("mine.toml", scenario), ("model.csv", MODEL)])
}

fn parts(scenario: &Scenario, name: &str, seed: u64) -> ProfileParts {
    let method = method(name).unwrap();
    match assemble_world(scenario, method, seed.into(), None, None, &|_, _| {}) {
        Ok(World::Profile(parts)) => *parts,
        Ok(World::Robots(_)) => panic!("a profile scenario has no robots"),
        Err(error) => panic!("{name}: {error}"),
    }
}

fn go_on(parts: &mut ProfileParts, last: u64, keep: &mut Keep) -> Stop {
    let ProfileParts { cell, station, evaluator, laboratory, .. } = parts;
    while station.round() <= last {
        let record = round(cell, station, evaluator, laboratory, keep).unwrap();
        let record = record.expect("there is no budget");
        let stops = Some(record.seen.round) == keep.stop_after;
        keep.rounds.push(record);
        if stops {
            return Stop::Asked;
        }
    }
    Stop::Finished
}

fn until(parts: &mut ProfileParts, last: u64) -> Vec<RoundRecord> {
    let mut keep = Keep::default();
    assert_eq!(go_on(parts, last, &mut keep), Stop::Finished);
    keep.rounds
}

fn every_name() -> Vec<String> {
    let plain = methods().iter().map(|method| method.name().to_owned());
    let names: Vec<String> = plain.collect();
    let guarded = names.iter().map(|name| format!("{name}+guard"));
    let guarded = guarded.filter(|name| method(name).is_ok());
    let compressed = ["fedavg+guard+q0.75", "ga-sfl+guard+q0.9"].map(str::to_owned);
    names.iter().cloned().chain(guarded).chain(compressed).collect()
}

#[test]
fn every_method_runs_and_goes_on_from_a_snapshot_as_if_nothing_had_happened() {
    let folder = small("methods");
    let scenario = folder.load(&["methods.tilp.warm_up=3"]).unwrap();
    let names = every_name();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let whole = until(&mut parts(&scenario, &name, 3), ROUNDS);
        assert_eq!(whole.len() as u64, ROUNDS);
        for stop in [1, 6] {
            let mut first = parts(&scenario, &name, 3);
            let mut keep = Keep { stop_after: Some(stop), ..Keep::default() };
            go_on(&mut first, ROUNDS, &mut keep);
            let mut snapshot = Snapshot::default();
            first.cell.save(&mut snapshot);
            first.station.save(&mut snapshot);
            let mut second = parts(&scenario, &name, 3);
            second.cell.restore(&snapshot).unwrap();
            second.station.restore(&snapshot).unwrap();
            keep.stop_after = None;
            go_on(&mut second, ROUNDS, &mut keep);
            assert!(keep.rounds == whole, "{name} after round {stop}");
        }
    }
}

#[test]
fn the_books_hold_what_the_table_says() {
    let folder = small("books");
    let plain = [
        "learning.payload=nominal",
        "learning.exchange_bits=16",
        "hardware.short_memory_share=0",
        "cell.outer_radius_m=50",
    ];
    let scenario = folder.load(&plain).unwrap();
    let rounds = until(&mut parts(&scenario, "random", 1), 8);
    let mut seen = 0;
    for round in &rounds {
        let books = books(round);
        for (n, one) in round.order.plan.decision().terminals.iter().enumerate() {
            let outcome = &round.outcome.terminals[n];
            if !outcome.took_part {
                continue;
            }
            seen += 1;
            assert_eq!(one.cut, 2);
            // Eight samples of 500 numbers in 32 bits, a quarter of which is sent.
            let up = (4.0 * 500.0 * 8.0 * (1.0 - one.compression)).round() as u64;
            assert_eq!(books.terminals[n].bytes_up, Bytes(up));
            assert_eq!(books.terminals[n].bytes_down, Bytes(up));
        }
    }
    assert!(seen > 10);
    // Two layers with 300 trained parameters in two bytes, fetched once after every aggregation and
    // delivered once before it. In the first four rounds everybody still holds the base model.
    let sync: u64 =
        rounds[..3].iter().flat_map(|r| &books(r).terminals).map(|t| t.bytes_sync.0).sum();
    assert_eq!(sync, 0);
    let delivered = &books(&rounds[3]).terminals;
    let header = delivered.iter().map(|one| one.bytes_sync.0).max().unwrap() - 600;
    assert!((1..64).contains(&header), "{header}");
    assert!(delivered.iter().all(|one| [0, 600 + header].contains(&one.bytes_sync.0)));
}

#[test]
fn losses_fall_success_rises_and_the_oracle_is_told_the_law() {
    let folder = small("curve");
    let scenario = folder.load(&["rounds=400", "profile.samples=[500,500]"]).unwrap();
    let mut parts = parts(&scenario, "random", 2);
    let question = Question { rounds: Some(2), samples: Some(1), episodes: Some(200) };
    let truth = |parts: &mut ProfileParts| {
        let truth = parts.laboratory.reveal(&mut parts.cell, &question).unwrap();
        let success = truth.success.unwrap();
        let rate: f64 = success.iter().map(|count| count.rate().unwrap()).sum();
        (truth.losses.unwrap(), rate / 6.0, truth.network.unwrap().hardware.len())
    };
    let (losses, success, n) = truth(&mut parts);
    assert_eq!(n, 6);
    let rounds = until(&mut parts, 400);
    let (later, better, _) = truth(&mut parts);
    assert!(later.iter().zip(&losses).all(|(later, first)| later < first));
    assert!(better > success + 0.1, "{success} then {better}");
    let reported: Vec<_> = rounds.iter().filter_map(|r| books(r).losses.as_ref()).collect();
    assert_eq!(reported.len(), 400 / 7);
    // The mean of copies may take back a little of what a terminal alone had gained.
    for changes in reported {
        assert!(changes.iter().all(|one| one.after <= 1.001 * one.before));
        let fall: f64 = changes.iter().map(|one| one.before - one.after).sum();
        assert!(fall > 0.0);
    }
}

#[test]
fn terminals_of_a_table_are_as_it_says_and_the_rest_is_drawn() {
    let folder = small("listed");
    let table = "name,gain_db,x_m,y_m,operations_per_cycle,clock_hz,energy_coefficient,memory_bytes,n_samples,task\n\
                 arm 1,-80.5,,,1000,2e9,1e-29,4e9,700,pick\n\
                 arm 2,,30,40,,,,,,place\n\
                 arm 3,,,,,,,,90,pick\n";
    fs::write(folder.0.join("arms.csv"), table).unwrap();
    let text = fs::read_to_string(folder.0.join("mine.toml")).unwrap();
    fs::write(folder.0.join("mine.toml"), text + "terminals = \"arms.csv\"\n").unwrap();
    let scenario = folder.load(&[]).unwrap();
    assert_eq!(scenario.n_terminals(), 3);
    let reports = parts(&scenario, "random", 1).cell.sense().unwrap();
    let first = &reports[0];
    assert!((first.gain.0 / 10f64.powf(-8.05) - 1.0).abs() < 1e-12);
    assert_eq!(first.hardware.clock, Hertz(2e9));
    assert_eq!((first.hardware.operations_per_cycle, first.memory), (1000.0, Bytes(4_000_000_000)));
    assert_eq!((first.hardware.energy_coefficient, first.n_samples), (1e-29, 700));
    assert_eq!(reports.iter().map(|one| one.task).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(reports[2].n_samples, 90);
    assert_eq!(data_sheets(&scenario, 1)[0], first.hardware);
    // 50 m away: the gain differs from seed to seed by shadowing alone.
    let gains: Vec<Gain> = (0..20)
        .map(|seed| parts(&scenario, "random", seed).cell.sense().unwrap()[1].gain)
        .collect();
    assert!(gains.iter().all(|gain| (60.0..140.0).contains(&gain.loss_db())));
    assert_ne!(gains[0], gains[1]);
    let refused = folder.load(&["cell.n_terminals=5"]).unwrap_err().to_string();
    assert!(refused.contains("cell.n_terminals = 5, expected 3"), "{refused}");
}

#[test]
fn a_scenario_holds_its_tables_and_needs_no_file_any_more() {
    let folder = small("inline");
    let scenario = folder.load(&[]).unwrap();
    let resolved = Folder::new("inline-resolved", &[("mine.toml", &scenario.to_toml())]);
    let again = resolved.load(&[]).unwrap();
    assert_eq!(again.hash(), scenario.hash());
    assert_eq!(again.note(), Some(PROFILE_NOTE));
    fs::write(folder.0.join("model.csv"), MODEL.replace("2e9", "2.5e9")).unwrap();
    assert_ne!(folder.load(&[]).unwrap().hash(), scenario.hash(), "other sizes, another scenario");
    // A table may be exchanged from the command line, and single values of it may not be misread.
    let other = folder.load(&["profile.model=builtin:openvla"]).unwrap();
    assert!(other.to_toml().contains("language layer 16 of 32"));
}

#[test]
fn robots_and_policies_of_a_profile_scenario_are_refused_in_one_line() {
    let scenario = Scenario::load("profile-smolvla", &[]).unwrap();
    let said = assemble(&scenario, method("random").unwrap(), 0, None, &|_, _| {}).err().unwrap();
    let said = said.to_string();
    assert!(said.contains("neither policy nor robots") && !said.contains('\n'), "{said}");
    assert_eq!(Scenario::load("tiny", &[]).unwrap().note(), None);
}

/// The sizes of a built-in scenario's model per cut.
fn sizes(name: &str) -> Vec<CutProfile> {
    let scenario = Scenario::load(name, &[]).unwrap();
    parts(&scenario, "random", 0).cell.radio().cost.profile.cuts.clone()
}

/// A linear layer with frozen weights and an adapter: operations of forward and backward pass, and
/// trained parameters.
fn linear(inputs: f64, outputs: f64, tokens: f64, rank: f64) -> [f64; 2] {
    let adapter = rank * (inputs + outputs);
    [4.0 * inputs * outputs * tokens + 6.0 * adapter * tokens, adapter]
}

#[test]
fn the_published_sizes_of_openvla_are_those_of_llama_2_with_7_billion_parameters() {
    let cuts = sizes("profile-openvla");
    assert_eq!(cuts.len(), 11);
    assert_eq!(cuts[3].activation_elements, 256 * (1024 + 1152));
    assert_eq!(cuts[4].activation_elements, 256 * 4096);
    assert_eq!(cuts[5].activation_elements, (256 + 30 + 7) * 4096);
    // One decoder layer: four square projections, three of the gated perceptron, attention.
    let (width, hidden, tokens) = (4096.0, 11008.0, 293.0);
    let square = linear(width, width, tokens, 32.0);
    let wide = linear(width, hidden, tokens, 32.0);
    let operations = 4.0 * square[0] + 3.0 * wide[0] + 12.0 * tokens * tokens * width;
    let parameters = 4.0 * square[1] + 3.0 * wide[1];
    assert_eq!(cuts[6].operations.0 - cuts[5].operations.0, operations);
    // Accounted in four bytes each.
    assert_eq!((cuts[6].parameters.0 - cuts[5].parameters.0) as f64, 4.0 * parameters);
    // 1.4 % of 7.5 billion are trained, as published.
    let whole = cuts[10].parameters.0 as f64 / 4.0;
    assert!((whole / 110.8e6 - 1.0).abs() < 0.01, "{whole}");
    // Weights in 16 bits alone take 15 GB.
    assert!(cuts[10].memory.0 > 15_000_000_000);
}

#[test]
fn the_connector_of_smolvla_leaves_a_thirteenth_of_what_the_vision_encoder_gives() {
    let cuts = sizes("profile-smolvla");
    assert_eq!(cuts.len(), 11);
    assert!(cuts[..6].iter().all(|cut| cut.activation_elements == 2 * 1024 * 768));
    assert_eq!(cuts[6].activation_elements, 2 * 64 * 960);
    // Two layers of SigLIP-B on 1024 patches of two frames.
    let (width, patches) = (768.0, 1024.0);
    let square = linear(width, width, 2.0 * patches, 16.0);
    let wide = linear(width, 4.0 * width, 2.0 * patches, 16.0);
    let layer = 4.0 * square[0] + 2.0 * wide[0] + 2.0 * 12.0 * patches * patches * width;
    assert_eq!(cuts[1].operations.0 - cuts[0].operations.0, 2.0 * layer);
}
