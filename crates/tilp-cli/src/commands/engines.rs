//! `tilp scenario engines`.

use tilp::scenario::Scenario;

use crate::arguments::Format;
use crate::failure::Failure;

/// Compares the engines on a scenario's robot cells.
#[cfg(not(feature = "mujoco"))]
pub(super) fn engines(_: &Scenario, _: u64, _: usize, _: usize, _: Format) -> Result<(), Failure> {
    let expected = "expected a program built with `--features mujoco` (tools/mujoco/setup first)";
    Err(Failure::input(format!("scenario engines: MuJoCo is not built in, {expected}")))
}

#[cfg(feature = "mujoco")]
pub(super) use with_mujoco::engines;

#[cfg(feature = "mujoco")]
mod with_mujoco {
    use serde_json::{Value, json};
    use tilp::experiment::{Agreement, Apart, ENGINES, Effort, compare_engines, objection};
    use tilp::round::SuccessCount;

    use super::{Failure, Format, Scenario};
    use crate::output;

    /// Compares the engines on a scenario's robot cells.
    pub(in crate::commands) fn engines(
        scenario: &Scenario,
        seed: u64,
        cells: usize,
        episodes: usize,
        format: Format,
    ) -> Result<(), Failure> {
        let effort = Effort { seed, cells, episodes };
        let agreements = compare_engines(scenario, effort).map_err(Failure::input)?;
        output::print(&match format {
            Format::Json => as_json(&agreements),
            Format::Text => as_text(effort, &agreements),
        })?;
        objection(&agreements).map_or(Ok(()), |objection| Err(Failure::failed(objection)))
    }

    fn as_json(agreements: &[Agreement]) -> String {
        let pair = |counts: [SuccessCount; 2]| -> Value {
            let named = ENGINES.iter().zip(counts);
            let named = named.map(|(engine, count)| (engine.name().to_owned(), json!(rate(count))));
            Value::Object(named.collect())
        };
        let apart = |apart: Apart| json!({ "end_m": apart.end_m, "most_m": apart.most_m });
        let rows: Vec<Value> = (agreements.iter())
            .map(|one| {
                json!({
                    "task": one.family.name(),
                    "episodes": one.expert[0].episodes,
                    "expert": pair(one.expert),
                    "base": pair(one.base),
                    "hand": apart(one.hand),
                    "object": apart(one.object),
                })
            })
            .collect();
        serde_json::to_string_pretty(&rows).expect("plain data")
    }

    fn as_text(effort: Effort, agreements: &[Agreement]) -> String {
        let Effort { seed, cells, episodes } = effort;
        let [rapier, mujoco] = ENGINES.map(|engine| engine.name());
        let mut text = format!(
            "{cells} cells of each task, {episodes} episodes in each, seed {seed}\n\
             {:13} {:^15}  {:^15}  {:^27}\n\
             {:13} {rapier:>7} {mujoco:>7}  {rapier:>7} {mujoco:>7}  {:>13}  {:>13}\n",
            "",
            "expert, %",
            "base policy, %",
            "apart under the same actions",
            "task",
            "hand, cm",
            "object, cm",
        );
        let mut line = |name: &str, expert: [_; 2], base: [_; 2], apart: [String; 2]| {
            let [[e1, e2], [b1, b2]] = [expert, base].map(|pair| pair.map(|c| 100.0 * rate(c)));
            let [hand, object] = apart;
            text += &format!(
                "{name:13} {e1:7.1} {e2:7.1}  {b1:7.1} {b2:7.1}  {hand:>13}  {object:>13}\n"
            );
        };
        for one in agreements {
            let apart = [one.hand, one.object].map(centimetres);
            line(one.family.name(), one.expert, one.base, apart);
        }
        let total = |of: fn(&Agreement) -> [SuccessCount; 2]| {
            [0, 1].map(|engine| {
                let counts = agreements.iter().map(|one| of(one)[engine]);
                counts.fold(SuccessCount::default(), SuccessCount::plus)
            })
        };
        line("all", total(|one| one.expert), total(|one| one.base), Default::default());
        text + "apart: median over episodes, at the end / at the worst moment"
    }

    fn centimetres(apart: Apart) -> String {
        format!("{:.2} / {:.2}", 100.0 * apart.end_m, 100.0 * apart.most_m)
    }

    fn rate(count: SuccessCount) -> f64 {
        count.rate().unwrap_or(f64::NAN)
    }
}
