//! Methods defined at run time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::allocate::Random;

#[test]
fn a_study_runs_a_method_that_was_made_at_run_time_and_captures_state() {
    let scratch = Scratch::new("own-method");
    let (path, name) = (scratch.path("study"), format!("{}-{}", "own", 7));
    let built = Arc::new(AtomicUsize::new(0));
    let counter = built.clone();
    let mut registry = Registry::builtin();
    let own = Method::own(name.clone(), "random, counted", move |inputs| {
        counter.fetch_add(1, Ordering::SeqCst);
        Box::new(Random::new(inputs.problem, inputs.knobs, inputs.seed))
    });
    registry.add(own).unwrap();
    let plan = comparison(&question(&["random", &name], &[0, 1]));
    let study = StudyFolder::create_with(&path, plan, &scenario(), &registry).unwrap();
    let host = Silent::stopping_after(usize::MAX);
    let tally = execute(&executor(), &study, Shard::WHOLE, &host).unwrap();
    assert_eq!(tally, Tally { done: 4, failed: 0, left: 0 });
    assert_eq!(built.load(Ordering::SeqCst), 2, "once per run");
    let model = |index: usize| {
        let folder = path.join(study.jobs[index].folder());
        fs::read(folder.join("model.safetensors")).unwrap()
    };
    assert_eq!(study.jobs[1].subject.method, name);
    assert_eq!(model(0), model(1), "it decides as `random` does");
    let said = StudyFolder::open(&path).unwrap_err().to_string();
    assert!(said.contains(&name) && said.contains("one of tilp"), "{said}");
    assert!(StudyFolder::open_with(&path, &registry).is_ok());
}
