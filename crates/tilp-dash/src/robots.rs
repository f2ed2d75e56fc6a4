//! Robots: an episode that a run has measured, run again with every state of it.
//!
//! Nothing of it is in the record. Episodes are drawn from the seed, so the scenario and the weights
//! of a run give the same states again, on the same type of processor.

use serde_json::{Value, json};
use tilp::experiment::{Brain, EpisodeSpec, RecordedEpisode};
use tilp::round::TerminalId;
use tilp::scenario::Scenario;
use tilp::tasks::{EpisodeSet, Form, Scene, Solid};

use crate::bounded;
use crate::http::{Request, Response};
use crate::origin::{one_line, origin};
use crate::run::Run;

/// Bytes of the weights of a policy.
const MOST_WEIGHTS: u64 = 256 << 20;
/// Control steps of an episode. Those of scenarios are below 500.
const MOST_STEPS: usize = 2000;
/// Episodes of a terminal that are run for one answer.
const MOST_EPISODES: u64 = 32;

/// What is asked for.
struct Asked {
    terminal: u32,
    index: u64,
    mover: Mover,
}

/// What moves the robots, and the set of episodes in which the run has measured that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mover {
    Base,
    Trained,
    Expert,
}

impl Mover {
    fn from_name(name: Option<&str>) -> Option<Self> {
        match name? {
            "base" => Some(Self::Base),
            "trained" => Some(Self::Trained),
            "expert" => Some(Self::Expert),
            _ => None,
        }
    }

    /// The base policy is measured on report episodes before the first round. The expert is shown
    /// on the final ones, to be compared with.
    fn set(self) -> (EpisodeSet, &'static str) {
        match self {
            Self::Base => (EpisodeSet::Report, "report"),
            Self::Trained | Self::Expert => (EpisodeSet::Final, "final"),
        }
    }
}

/// What an episode is made from.
struct Source {
    scenario: Scenario,
    seed: u64,
    last_round: u64,
    weights: Option<Vec<u8>>,
}

/// One episode with its states.
pub(crate) fn episode(run: &Run, request: &Request) -> Result<Response, Response> {
    let asked = asked(request)?;
    let source = source(run, asked.mover)?;
    let found = source.record(&asked)?;
    let mut answer = described(&found);
    let (_, set) = asked.mover.set();
    let round = if asked.mover == Mover::Base { 0 } else { source.last_round };
    let measured = matches!(asked.mover, Mover::Base | Mover::Trained);
    let counts = measured.then(|| run.counts(set, round, asked.terminal)).flatten();
    answer["terminal"] = json!(asked.terminal);
    answer["index"] = json!(asked.index);
    answer["set"] = json!(set);
    answer["measured"] = json!(counts);
    Ok(Response::json(answer.to_string()))
}

/// How the episodes of a terminal ended, from the first on.
pub(crate) fn outcomes(run: &Run, request: &Request) -> Result<Response, Response> {
    let asked = asked(request)?;
    let source = source(run, asked.mover)?;
    let n = asked.index.min(MOST_EPISODES);
    let of = |index| source.record(&Asked { index, ..asked }).map(|found| found.is_success);
    let ended = (0..n).map(of).collect::<Result<Vec<bool>, Response>>()?;
    Ok(Response::json(json!({ "success": ended }).to_string()))
}

fn asked(request: &Request) -> Result<Asked, Response> {
    let number = |name: &str, most: u64| -> Result<u64, Response> {
        let given = request.asked(name).and_then(|text| text.parse().ok());
        given.filter(|value| *value <= most).ok_or_else(|| {
            Response::error(400, format!("{name} is missing, expected a number up to {most}"))
        })
    };
    let mover = Mover::from_name(request.asked("policy")).ok_or_else(|| {
        Response::error(400, "policy is missing, expected base, trained or expert")
    })?;
    let terminal = number("terminal", u64::from(u32::MAX))? as u32;
    Ok(Asked { terminal, index: number("index", 1 << 20)?, mover })
}

/// Reads what the run has. Nothing outside its folder is read.
fn source(run: &Run, mover: Mover) -> Result<Source, Response> {
    let (scenario, seed) = origin(run)?;
    if scenario.episode_steps() > MOST_STEPS {
        let line = format!("episodes of {} steps are too long", scenario.episode_steps());
        return Err(Response::error(422, line));
    }
    let weights = match mover {
        Mover::Trained => {
            let path = run.place.path.join("model.safetensors");
            if bounded::about(&path).is_none() {
                let line = "model.safetensors is not there: a run writes it when it is finished";
                return Err(Response::error(404, line));
            }
            let read = bounded::bytes(&path, MOST_WEIGHTS);
            let unread = |error| Response::error(422, format!("model.safetensors: {error}"));
            Some(read.map_err(unread)?)
        }
        Mover::Base | Mover::Expert => None,
    };
    Ok(Source { scenario, seed, last_round: run.last_round(), weights })
}

impl Source {
    fn record(&self, asked: &Asked) -> Result<RecordedEpisode, Response> {
        let brain = match (asked.mover, &self.weights) {
            (Mover::Trained, Some(bytes)) => Brain::Trained(bytes),
            (Mover::Expert, _) => Brain::Expert,
            _ => Brain::Base,
        };
        let spec = EpisodeSpec {
            scenario: &self.scenario,
            seed: self.seed,
            terminal: TerminalId(asked.terminal),
            round: if asked.mover == Mover::Base { 0 } else { self.last_round },
            set: asked.mover.set().0,
            index: asked.index,
            brain,
        };
        spec.record().map_err(|error| Response::error(422, one_line(&error)))
    }
}

/// Forms once, places step by step.
fn described(found: &RecordedEpisode) -> Value {
    let solids = found.scenes.first().map_or(&[][..], |scene| &scene.solids);
    let points = |of: fn(&Scene) -> [f32; 3]| -> Vec<Vec<f64>> {
        found.scenes.iter().map(|scene| of(scene).iter().map(|x| rounded(*x)).collect()).collect()
    };
    let poses = |scene: &Scene| -> Vec<Vec<f64>> { scene.solids.iter().map(pose).collect() };
    json!({
        "task": found.task,
        "steps_per_second": found.steps_per_second,
        "success": found.is_success,
        "solids": solids.iter().map(form).collect::<Vec<_>>(),
        "poses": found.scenes.iter().map(poses).collect::<Vec<_>>(),
        "hand": points(|scene| scene.hand),
        "object": points(|scene| scene.object),
        "goal": points(|scene| scene.goal),
    })
}

fn form(solid: &Solid) -> Value {
    let (kind, sizes) = match solid.form {
        Form::Box(half) => ("box", half.to_vec()),
        Form::Cylinder(sizes) => ("cylinder", sizes.to_vec()),
    };
    json!({ "part": solid.part.name(), "form": kind, "sizes": sizes })
}

fn pose(solid: &Solid) -> Vec<f64> {
    solid.position.iter().chain(&solid.rotation).map(|value| rounded(*value)).collect()
}

/// A tenth of a millimetre is enough to be drawn.
fn rounded(value: f32) -> f64 {
    (f64::from(value) * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::Place;
    use crate::fixture::{Scratch, lines, rows};

    fn run(scratch: &Scratch, scenario: &str, manifest: &str) -> Run {
        let lines = lines(2);
        scratch.put("run/events.jsonl", lines.concat());
        scratch.put("run/rounds.csv", rows(&lines));
        scratch.put("run/manifest.json", manifest);
        scratch.put("run/scenario.toml", scenario);
        let (id, path) = ("0/run".to_owned(), scratch.path().join("run"));
        Run::new(Place { id, path, study: None })
    }

    fn tiny(more: &[&str]) -> String {
        let more: Vec<String> = more.iter().map(|&one| one.to_owned()).collect();
        Scenario::load("tiny", &more).unwrap().to_toml()
    }

    fn request(query: &[(&str, &str)]) -> Request {
        let query = query.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Request { query, ..Request::default() }
    }

    fn ask(run: &Run, policy: &str, terminal: &str) -> Result<Value, (u16, String)> {
        let query = [("policy", policy), ("terminal", terminal), ("index", "0")];
        match episode(run, &request(&query)) {
            Ok(found) => Ok(serde_json::from_slice(&found.body).unwrap()),
            Err(refusal) => Err((refusal.status, String::from_utf8(refusal.body).unwrap())),
        }
    }

    const MANIFEST: &str = r#"{"method":"tilp","seed":3,"scenario":"tiny"}"#;

    #[test]
    fn an_episode_has_its_solids_once_and_their_places_in_every_step() {
        let scratch = Scratch::new("robots");
        let run = run(&scratch, &tiny(&[]), MANIFEST);
        let found = ask(&run, "base", "4").unwrap();
        let solids = found["solids"].as_array().unwrap();
        let poses = found["poses"].as_array().unwrap();
        assert!(solids.len() >= 4 && poses.len() > 2);
        for step in poses {
            let step = step.as_array().unwrap();
            assert_eq!(step.len(), solids.len());
            assert!(step.iter().all(|pose| pose.as_array().unwrap().len() == 7));
        }
        // The record has one success in four report episodes of terminal 4 before the first round.
        assert_eq!(found["measured"], json!([1, 4]));
        assert_eq!(ask(&run, "base", "4").unwrap(), found, "it is the same every time");
        assert_eq!(ask(&run, "expert", "5").unwrap()["measured"], Value::Null);
        let query = [("policy", "base"), ("terminal", "4"), ("index", "3")];
        let all = outcomes(&run, &request(&query)).unwrap();
        let all: Value = serde_json::from_slice(&all.body).unwrap();
        assert_eq!(all["success"].as_array().unwrap().len(), 3);
        assert_eq!(all["success"][0], found["success"]);
    }

    #[test]
    fn what_is_asked_wrongly_or_not_there_is_refused() {
        let scratch = Scratch::new("robots-refused");
        let run = run(&scratch, &tiny(&[]), MANIFEST);
        for (policy, terminal, status) in [
            ("other", "0", 400),
            ("base", "x", 400),
            ("base", "99999999999", 400),
            ("base", "6", 422),
            ("trained", "0", 404),
        ] {
            let (found, line) = ask(&run, policy, terminal).unwrap_err();
            assert_eq!(found, status, "{policy} {terminal}: {line}");
            assert_eq!(line.matches('\n').count(), 1, "{line}");
        }
        for bytes in [vec![], b"not a policy".to_vec(), vec![0xff; 1 << 20]] {
            scratch.put("run/model.safetensors", bytes);
            let (status, line) = ask(&run, "trained", "0").unwrap_err();
            assert!(status == 422 && line.contains("model.safetensors"), "{line}");
        }
    }

    #[test]
    fn nothing_outside_the_folder_is_read() {
        let scratch = Scratch::new("robots-outside");
        let text = tiny(&["model.base=\"/etc/passwd\""]);
        let run = run(&scratch, &text, MANIFEST);
        let (_, line) = ask(&run, "base", "0").unwrap_err();
        assert!(line.contains("expected a policy of the program"), "{line}");
        // A profile whose tables are elsewhere.
        let profile = Scenario::load("profile-openvla", &[]).unwrap().to_toml();
        let named = profile.replace("model = \"\"", "model = \"/etc/passwd\"");
        scratch.put("run/scenario.toml", &named);
        let (_, line) = ask(&run, "base", "0").unwrap_err();
        assert!(line.contains("scenario.toml") || line.contains("no robots"), "{line}");
        assert!(!line.contains("root"), "{line}");
        #[cfg(unix)]
        {
            scratch.put("run/scenario.toml", tiny(&[]));
            let path = scratch.path().join("run/model.safetensors");
            std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
            assert_eq!(ask(&run, "trained", "0").unwrap_err().0, 404);
        }
    }

    #[test]
    fn damaged_files_are_one_line() {
        let scratch = Scratch::new("robots-damaged");
        for (scenario, manifest) in [
            ("= =".to_owned(), MANIFEST),
            ("[tasks]\nepisode_steps = 1".to_owned(), MANIFEST),
            (tiny(&["tasks.episode_steps=9999"]), MANIFEST),
            (tiny(&[]), "{}"),
            (tiny(&[]), "[1,"),
        ] {
            let run = run(&scratch, &scenario, manifest);
            let (status, line) = ask(&run, "base", "0").unwrap_err();
            assert_eq!((status, line.matches('\n').count()), (422, 1), "{line}");
        }
    }
}
