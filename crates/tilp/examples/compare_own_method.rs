//! A user-defined method in a table beside methods of the library, as `tilp compare` makes it.
//! `cargo run --release -p tilp --example compare_own_method`

#[allow(dead_code)]
pub mod own_method;

use std::path::Path;
use std::time::{Instant, SystemTime};

use tilp::experiment::Time;
use tilp::experiment::study::{Executor, Question, Report, Shard, StudyFolder, comparison};
use tilp::run::Observer;
use tilp::scenario::{Registry, Scenario};

/// The clock of the program. The library has none.
struct Wall(Instant);

impl Time for Wall {
    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }

    fn epoch_seconds(&self) -> f64 {
        SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |since| since.as_secs_f64())
    }
}

/// Compares the method with `random` and `deficit` on two seeds. Returns the table in Markdown; the folder
/// has the same files as that of `tilp compare`.
pub fn table(folder: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut registry = Registry::builtin();
    registry.add(own_method::turns(3))?;
    let methods = ["turns-3", "random", "deficit"].map(str::to_owned).to_vec();
    let scenario = Scenario::load("tiny", &[])?;
    let question = Question { scenario, methods, seeds: vec![0, 1], replicates: 1 };
    let plan = comparison(&question);
    let study = StudyFolder::create_with(folder, plan, &question.scenario, &registry)?;

    let executor = Executor {
        workers: 2,
        threads: 1,
        cache: None,
        about: Default::default(),
        checkpoint_every: 25,
    };
    let observers = |_| Box::new(()) as Box<dyn Observer>;
    executor.execute(&study, Shard::WHOLE, &Wall(Instant::now()), &observers)?;

    let report = Report::of(&[study])?;
    for (name, bytes) in report.files(None) {
        std::fs::write(folder.join(name), bytes)?;
    }
    Ok(report.sections[0].table.markdown())
}

/// Prints the table.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", table(Path::new("studies/own-method"))?);
    Ok(())
}
