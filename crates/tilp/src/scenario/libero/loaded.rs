//! The cells with their worlds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::RngExt;
use sha2::{Digest, Sha256};
use tilp_mujoco::libero::Task;
use tilp_mujoco::mujoco_version;

use super::Camera;
use crate::rng::Seed;
use crate::scenario::{Scenario, ScenarioError};
use crate::tasks::Workcell;
use crate::tasks::libero::{Cell, SUITE};

/// The largest angle that a scenario may ask for.
const MOST_YAW: f32 = 3.2;

/// LIBERO's cells, their worlds loaded, and the data they came from.
pub(in crate::scenario) struct LiberoRoster {
    cells: Vec<Cell>,
    assets: String,
    place: String,
}

impl LiberoRoster {
    /// Loads the tasks and draws the cells, their cameras out of a share of the range.
    pub(in crate::scenario) fn draw(
        scenario: &Scenario,
        tasks: Vec<usize>,
        camera: Camera,
        seed: Seed,
    ) -> Result<Self, ScenarioError> {
        let libero = scenario.raw.tasks.libero.as_ref().expect("checked with the scenario");
        let folder = folder(scenario, &libero.data)?;
        let wrong = |reason: String| wrong(&scenario.place, reason);
        let assets = hash(&folder).map_err(wrong)?;
        if !libero.assets.is_empty() && libero.assets != assets {
            return Err(ScenarioError::Range {
                field: "tasks.libero.assets".into(),
                value: libero.assets.clone(),
                expected: format!("{assets}, the hash of {}, or nothing", folder.display()),
                place: scenario.place.clone(),
            });
        }
        let load = |name: &&str| Task::load(&folder.join(name), name).map(Arc::new);
        let worlds: Vec<Arc<Task>> = (SUITE.tasks.iter().map(load))
            .collect::<Result<_, _>>()
            .map_err(|error| wrong(error.to_string()))?;
        if let Some(task) = worlds.iter().find(|task| task.n_states() < 50) {
            let (name, states) = (task.object(), task.n_states());
            return Err(wrong(format!("{name} has {states} initial states, expected 50")));
        }
        let cell = |(n, &index): (usize, &usize)| {
            let place = tasks[..n].iter().filter(|&&task| task == index).count();
            let of = tasks.iter().filter(|&&task| task == index).count();
            let width = camera.range * libero.yaw_rad;
            let unit = |seed: Seed| seed.rng().random_range(-1.0f32..=1.0);
            let own = unit(seed.named("camera").at(n as u64));
            let turn = match camera.share {
                1.0 => own,
                share => {
                    let common = unit(seed.named("camera/common").at(index as u64));
                    share * own + (1.0 - share) * common
                }
            };
            let yaw = (width * turn).clamp(-MOST_YAW, MOST_YAW);
            Cell { task: Arc::clone(&worlds[index]), index, yaw, share: (place, of) }
        };
        let cells = tasks.iter().enumerate().map(cell).collect();
        Ok(Self { cells, assets, place: scenario.place.clone() })
    }

    /// The task of each terminal.
    pub(in crate::scenario) fn tasks(&self) -> Vec<usize> {
        self.cells.iter().map(|cell| cell.index).collect()
    }

    /// The cell of a terminal with this much more to carry.
    pub(in crate::scenario) fn cell(
        &self,
        n: usize,
        extra_mass_kg: f64,
    ) -> Result<Box<dyn Workcell>, ScenarioError> {
        let mut cell = self.cells[n].clone();
        if extra_mass_kg > 0.0 {
            let heavy = cell.task.with_extra_mass(extra_mass_kg);
            cell.task = Arc::new(heavy.map_err(|error| wrong(&self.place, error.to_string()))?);
        }
        Ok(Box::new(cell))
    }

    /// What demonstrations depend on besides their seed.
    pub(in crate::scenario) fn key(&self) -> String {
        let cell = |cell: &Cell| (cell.index, cell.yaw, cell.share);
        let cells: Vec<_> = self.cells.iter().map(cell).collect();
        format!("libero {} {} {cells:?}", self.assets, mujoco_version())
    }

    /// The fingerprint of the physics: engine and data.
    pub(in crate::scenario) fn environment(&self) -> BTreeMap<String, String> {
        let entries = [("mujoco", mujoco_version()), ("libero_assets", &self.assets)];
        entries.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }
}

fn wrong(place: &str, reason: String) -> ScenarioError {
    ScenarioError::Field { field: "tasks.libero.data".into(), reason, place: place.to_owned() }
}

/// The folder of the data: as the scenario says, else the environment, else beside the checkout.
fn folder(scenario: &Scenario, data: &str) -> Result<PathBuf, ScenarioError> {
    let folder = match data {
        "" => std::env::var_os("TILP_LIBERO").map_or("../shared/libero".into(), PathBuf::from),
        path => scenario.folder.join(path),
    };
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(ScenarioError::Range {
        field: "tasks.libero.data".into(),
        value: format!("\"{data}\""),
        expected: format!(
            "a folder of LIBERO's tasks (tools/libero/export.py), {} is none; TILP_LIBERO may name one",
            folder.display()
        ),
        place: scenario.place.clone(),
    })
}

/// One hash over worlds, initial states and meshes, names included.
fn hash(folder: &Path) -> Result<String, String> {
    let read = |path: &Path| {
        fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let mut names: Vec<PathBuf> = Vec::new();
    for task in SUITE.tasks {
        names.extend(["phys.xml", "init_states.npy"].map(|file| Path::new(task).join(file)));
    }
    let meshes = fs::read_dir(folder.join("meshes"));
    let mut meshes: Vec<PathBuf> = (meshes.into_iter().flatten().flatten())
        .map(|entry| Path::new("meshes").join(entry.file_name()))
        .collect();
    meshes.sort();
    let mut all = Sha256::new();
    for name in names.into_iter().chain(meshes) {
        let bytes = read(&folder.join(&name))?;
        all.update(name.to_string_lossy().as_bytes());
        all.update((bytes.len() as u64).to_le_bytes());
        all.update(&bytes);
    }
    Ok(all.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
