//! Exported files, read again: demonstrations as a terminal's data, the costs of a policy's cuts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rand::RngExt;
use tilp::experiment::{
    ModelProfileSpec, lerobot_dataset, model_table, policy_to_onnx, profile_onnx,
};
use tilp::rng::Seed;
use tilp::scenario::{Scenario, TerminalEpisodes, demonstration_episodes, untrained};
use tilp::split::model::SplitModel;
use tilp::split::optimiser::Optimiser;

use crate::worlds;

/// A folder of one test, gone when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = path.join(format!("exports-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, files: &[(String, Vec<u8>)]) {
        for (name, bytes) in files {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const FEW: [&str; 1] = ["tasks.demonstrations=3"];

/// The demonstrations of terminal 1 of `tiny` with seed 3 as a dataset, and themselves.
fn exported(name: &str) -> (Scratch, TerminalEpisodes) {
    let (scratch, scenario) = (Scratch::new(name), worlds::tiny(&FEW));
    scratch.write(&lerobot_dataset(&scenario, 3, Some(1)).unwrap());
    let mut own = demonstration_episodes(&scenario, 3, Some(1)).unwrap();
    (scratch, own.remove(0))
}

/// `tiny` whose first terminal has the data of a folder.
fn importing(folder: &Path, more: &str) -> Result<Scenario, tilp::scenario::ScenarioError> {
    let list = format!("terminals=[{{data='{}'{more}}}]", folder.display());
    worlds::tiny(&FEW).varied(&[list])
}

#[test]
fn exported_demonstrations_come_back_as_the_data_of_a_terminal() {
    let (scratch, own) = exported("back");
    let kept: Vec<_> = own.episodes.iter().filter(|one| !one.actions.is_empty()).collect();
    assert!(kept.len() > 1);
    let scenario = importing(&scratch.0, "").unwrap();
    let found = demonstration_episodes(&scenario, 0, None).unwrap();
    assert_eq!(found[0].episodes.iter().collect::<Vec<_>>(), kept);
    // The others have their own.
    let usual = demonstration_episodes(&worlds::tiny(&FEW), 0, Some(2)).unwrap();
    assert_eq!(found[2].episodes, usual[0].episodes);
    let second = importing(&scratch.0, ", data_episodes=[1, 2]").unwrap();
    let second = demonstration_episodes(&second, 0, Some(0)).unwrap();
    assert_eq!(second[0].episodes.iter().collect::<Vec<_>>(), kept[1..2]);
}

#[test]
fn a_run_trains_on_imported_data_and_its_scenario_covers_them() {
    let (scratch, own) = exported("train");
    let scenario = importing(&scratch.0, "").unwrap();
    assert!(scenario.to_toml().contains("data_sha256"));
    assert_ne!(scenario.hash(), worlds::tiny(&FEW).hash());
    let rows: usize = own.episodes.iter().map(|one| one.actions.len() / 4).sum();
    let method = tilp::scenario::method("random").unwrap();
    let parts =
        tilp::scenario::assemble(&scenario, method, 0, Some(&worlds::cache()), &|_, _| {}).unwrap();
    let first = tilp::round::TerminalId(0);
    assert_eq!(parts.cell.engine().data(first).unwrap().len(), rows);
    // Changed data are another scenario, and are refused where the old ones are expected.
    let path = scratch.0.join("meta/info.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("tilp-tabletop", "tilp-other")).unwrap();
    let said = demonstration_episodes(&scenario, 0, Some(0)).err().unwrap().to_string();
    assert!(said.contains("expected the data as it was"), "{said}");
    assert_ne!(importing(&scratch.0, "").unwrap().hash(), scenario.hash());
}

#[test]
fn data_that_does_not_fit_is_refused_in_one_line() {
    let (scratch, _) = exported("refused");
    let info = fs::read_to_string(scratch.0.join("meta/info.json")).unwrap();
    for (old, new, expected) in [
        ("\"v3.0\"", "\"v2.1\"", "codebase_version = v2.1, expected v3"),
        ("43\n", "44\n", "feature observation.state = float32 of shape [44], expected float32"),
        ("\"action\"", "\"actions\"", "feature action = missing"),
        ("\"total_frames\": ", "\"total_frames\": 1", "frames, expected total_frames"),
    ] {
        let changed = info.replacen(old, new, 1);
        assert_ne!(changed, info, "{old}");
        fs::write(scratch.0.join("meta/info.json"), changed).unwrap();
        let scenario = importing(&scratch.0, "").unwrap();
        let said = demonstration_episodes(&scenario, 0, Some(0)).err().unwrap().to_string();
        assert!(said.contains(expected) && !said.contains('\n'), "{said}");
        assert!(said.contains("terminals[0].data"), "{said}");
    }
    for (more, expected) in [
        (", demonstrations=2", "terminals[0].demonstrations = 2, expected none beside data"),
        (", data_episodes=[2, 2]", "terminals[0].data_episodes = [2, 2], expected the first"),
        (", data_sha256='x'", "terminals[0].data_sha256 = x, expected 64 hexadecimal digits"),
    ] {
        let said = importing(&scratch.0, more).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
    let said = importing(&scratch.0.join("nowhere"), "").unwrap_err().to_string();
    assert!(said.contains("cannot read") && said.contains("terminals[0].data"), "{said}");
}

#[test]
fn a_damaged_table_never_panics() {
    let (scratch, _) = exported("damaged");
    let path = scratch.0.join("data/chunk-000/file-000.parquet");
    let bytes = fs::read(&path).unwrap();
    let mut n_refused = 0;
    for index in 0..400 {
        let mut rng = Seed::new(index).named("damaged").rng();
        let mut damaged = bytes.clone();
        for _ in 0..rng.random_range(1..4) {
            // The structure is at the end of the file and of its pages.
            let from = if rng.random() { bytes.len().saturating_sub(3000) } else { 0 };
            let place = rng.random_range(from..bytes.len());
            damaged[place] ^= 1 << rng.random_range(0..8);
        }
        if index % 10 == 0 {
            damaged.truncate(rng.random_range(0..bytes.len()));
        }
        fs::write(&path, damaged).unwrap();
        let scenario = importing(&scratch.0, "").unwrap();
        n_refused += usize::from(demonstration_episodes(&scenario, 0, Some(0)).is_err());
    }
    assert!(n_refused > 100, "{n_refused}");
}

#[test]
fn the_table_of_an_exported_policy_has_the_costs_of_its_cuts() {
    let policy = untrained(&worlds::tiny(&["learning.trainable='all'"])).unwrap();
    let weights = policy.initial(Seed::new(1));
    let spec = ModelProfileSpec { batch: 16, state_per_parameter: 0, sizes: BTreeMap::new() };
    let found = profile_onnx(&policy_to_onnx(&policy, &weights), &spec).unwrap();
    for (cut, name) in
        [(2, "layer2.sum"), (3, "layer3.merged"), (5, "layer5.merged"), (7, "layer7.sum")]
    {
        let own = policy.profile(cut, 16, Optimiser::Sgd { momentum: 0.0 });
        let row = found.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{found:?}"));
        assert_eq!(row.activation_elements, own.activation_elements as u64, "{name}");
        assert_eq!(row.operations as f64, own.operations.0, "{name}");
        assert_eq!(4 * row.trained_parameters, own.parameters.0, "{name}");
    }
    for pair in found.windows(2) {
        assert!(pair[0].operations < pair[1].operations);
        assert!(pair[0].memory_bytes < pair[1].memory_bytes);
        assert!(pair[0].trained_parameters < pair[1].trained_parameters);
    }
    let text = model_table(&found, "policy", &spec);
    assert_eq!(text.lines().count(), found.len() + 2);
}

#[test]
fn a_damaged_model_never_panics() {
    let policy = untrained(&worlds::tiny(&[])).unwrap();
    let bytes = policy_to_onnx(&policy, &policy.initial(Seed::new(1)));
    let spec = ModelProfileSpec { batch: 16, state_per_parameter: 2, sizes: BTreeMap::new() };
    for index in 0..3000 {
        let mut rng = Seed::new(index).named("model").rng();
        let mut damaged = bytes.clone();
        for _ in 0..rng.random_range(1..5) {
            let place = rng.random_range(0..damaged.len());
            damaged[place] = rng.random();
        }
        damaged.truncate(rng.random_range(0..=bytes.len()).max(bytes.len() * (index as usize % 2)));
        let _ = profile_onnx(&damaged, &spec);
    }
}
