//! Demonstrations as a LeRobotDataset of version 3.

use serde_json::{Map, Value, json};

use super::parquet::{Column, Values, to_parquet};
use super::statistics::Statistics;
use crate::experiment::export::ExportError;
use crate::scenario::TerminalEpisodes;
use crate::tasks::Suite;

/// Version of the format.
const VERSION: &str = "v3.0";
/// Most bytes of numbers in one file of frames, as in LeRobot's own datasets.
const FILE_BYTES: usize = 100_000_000;
/// Most files in one folder, likewise.
const FILES_PER_CHUNK: usize = 1000;

/// Numbers and text of all frames and of all episodes, in order.
struct Frames {
    state: Vec<f32>,
    action: Vec<f32>,
    timestamp: Vec<f32>,
    /// Columns of one whole number: `frame_index`, `episode_index`, `index`, `task_index`, `terminal`.
    whole: [Vec<i64>; 5],
    lengths: Vec<usize>,
    /// Name of the task of every episode.
    tasks: Vec<String>,
}

const WHOLE: [&str; 5] = ["frame_index", "episode_index", "index", "task_index", "terminal"];

/// The files of a dataset by their paths. An episode without frames is left out.
pub(super) fn dataset_files(
    suite: &Suite,
    terminals: &[TerminalEpisodes],
) -> Result<Vec<(String, Vec<u8>)>, ExportError> {
    let tasks = present_tasks(terminals);
    let frames = Frames::of(suite, terminals, &tasks);
    if frames.lengths.is_empty() {
        return Err(ExportError::Empty);
    }
    let features = frames.features(suite);
    let mut files = vec![
        ("meta/info.json".to_owned(), info(suite, &frames, &tasks, &features)),
        ("meta/stats.json".to_owned(), statistics(&features)),
        ("meta/tasks.parquet".to_owned(), task_file(suite, &tasks)?),
    ];
    let parts = frames.parts(suite);
    files.push((path("meta/episodes", 0), frames.episode_file(&features, &parts)?));
    for (file, part) in parts.iter().enumerate() {
        files.push((path("data", file), frames.frame_file(suite, part)?));
    }
    Ok(files)
}

/// Tasks of the terminals, in the order of the suite.
fn present_tasks(terminals: &[TerminalEpisodes]) -> Vec<usize> {
    let mut tasks: Vec<usize> = terminals.iter().map(|one| one.task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    tasks
}

fn path(folder: &str, file: usize) -> String {
    let (chunk, file) = (file / FILES_PER_CHUNK, file % FILES_PER_CHUNK);
    format!("{folder}/chunk-{chunk:03}/file-{file:03}.parquet")
}

/// A feature: name, kind, numbers in it, and its values over all frames.
struct Feature {
    name: &'static str,
    kind: &'static str,
    width: usize,
    values: Vec<f64>,
}

impl Frames {
    fn of(suite: &Suite, terminals: &[TerminalEpisodes], tasks: &[usize]) -> Self {
        let mut all = Self {
            state: Vec::new(),
            action: Vec::new(),
            timestamp: Vec::new(),
            whole: Default::default(),
            lengths: Vec::new(),
            tasks: Vec::new(),
        };
        for one in terminals {
            let task = tasks.iter().position(|task| *task == one.task).unwrap_or_default();
            for episode in one.episodes.iter().filter(|episode| !episode.actions.is_empty()) {
                let n = episode.actions.len() / suite.action();
                for frame in 0..n {
                    all.timestamp.push(frame as f32 / suite.steps_per_second as f32);
                    let index = all.whole[2].len();
                    let row = [frame, all.lengths.len(), index, task, one.terminal.0 as usize];
                    for (column, value) in all.whole.iter_mut().zip(row) {
                        column.push(value as i64);
                    }
                }
                all.state.extend(&episode.observations);
                all.action.extend(&episode.actions);
                all.lengths.push(n);
                all.tasks.push(suite.task_name(one.task).to_owned());
            }
        }
        all
    }

    fn features(&self, suite: &Suite) -> Vec<Feature> {
        let real = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect();
        let feature = |name, width, values: &[f32]| {
            let values = real(values);
            Feature { name, kind: "float32", width, values }
        };
        let mut all = vec![
            feature("observation.state", suite.observation(), &self.state),
            feature("action", suite.action(), &self.action),
            feature("timestamp", 1, &self.timestamp),
        ];
        for (name, values) in WHOLE.into_iter().zip(&self.whole) {
            let values = values.iter().map(|value| *value as f64).collect();
            all.push(Feature { name, kind: "int64", width: 1, values });
        }
        all
    }

    /// Episodes of each file, first and one past the last.
    fn parts(&self, suite: &Suite) -> Vec<std::ops::Range<usize>> {
        let bytes = 4 * (suite.observation() + suite.action() + 1) + 8 * WHOLE.len();
        let (mut parts, mut first, mut held) = (Vec::new(), 0, 0);
        for (episode, length) in self.lengths.iter().enumerate() {
            if held > 0 && held + length * bytes > FILE_BYTES {
                parts.push(first..episode);
                (first, held) = (episode, 0);
            }
            held += length * bytes;
        }
        parts.push(first..self.lengths.len());
        parts
    }

    /// First frame of an episode.
    fn start(&self, episode: usize) -> usize {
        self.lengths[..episode].iter().sum()
    }

    /// A file of frames, one group of rows for each episode.
    fn frame_file(
        &self,
        suite: &Suite,
        episodes: &std::ops::Range<usize>,
    ) -> Result<Vec<u8>, ExportError> {
        let rows = self.start(episodes.start)..self.start(episodes.end);
        let wide = |width: usize, all: &[f32]| {
            Values::Singles(width, all[rows.start * width..rows.end * width].to_vec())
        };
        let mut columns = vec![
            Column::new("observation.state", wide(suite.observation(), &self.state)),
            Column::new("action", wide(suite.action(), &self.action)),
            Column::new("timestamp", Values::Single(self.timestamp[rows.clone()].to_vec())),
        ];
        for (name, values) in WHOLE.into_iter().zip(&self.whole) {
            columns.push(Column::new(name, Values::Whole(values[rows.clone()].to_vec())));
        }
        Ok(to_parquet(&columns, &self.lengths[episodes.clone()], &[])?)
    }

    /// The file of episodes: where their frames are, and the statistics of each.
    fn episode_file(
        &self,
        features: &[Feature],
        parts: &[std::ops::Range<usize>],
    ) -> Result<Vec<u8>, ExportError> {
        let n = self.lengths.len();
        let file_of = |episode: &usize| {
            parts.iter().position(|part| part.contains(episode)).unwrap_or_default()
        };
        let whole = |name: &str, value: &dyn Fn(usize) -> usize| {
            Column::new(name, Values::Whole((0..n).map(|one| value(one) as i64).collect()))
        };
        let mut columns = vec![
            whole("episode_index", &|one| one),
            Column::new("tasks", Values::Texts(self.tasks.clone())),
            whole("length", &|one| self.lengths[one]),
            whole("data/chunk_index", &|one| file_of(&one) / FILES_PER_CHUNK),
            whole("data/file_index", &|one| file_of(&one) % FILES_PER_CHUNK),
            whole("dataset_from_index", &|one| self.start(one)),
            whole("dataset_to_index", &|one| self.start(one + 1)),
            whole("meta/episodes/chunk_index", &|_| 0),
            whole("meta/episodes/file_index", &|_| 0),
        ];
        for feature in features {
            columns.extend(self.episode_statistics(feature));
        }
        Ok(to_parquet(&columns, &[n], &[])?)
    }

    /// Columns with the statistics of a feature in each episode.
    fn episode_statistics(&self, feature: &Feature) -> Vec<Column> {
        let Feature { name, width, values, .. } = feature;
        let of = |episode: usize| {
            let rows = self.start(episode) * width..self.start(episode + 1) * width;
            Statistics::of(&values[rows], *width)
        };
        let each: Vec<Statistics> = (0..self.lengths.len()).map(of).collect();
        let named = |place: usize| {
            let all = each.iter().flat_map(|one| one.named[place].1.clone()).collect();
            let kind = each[0].named[place].0;
            Column::new(format!("stats/{name}/{kind}"), Values::Reals(*width, all))
        };
        let mut columns: Vec<Column> = (0..each[0].named.len()).map(named).collect();
        let counts = each.iter().map(|one| one.count).collect();
        columns.push(Column::new(format!("stats/{name}/count"), Values::Wholes(1, counts)));
        columns
    }
}

fn info(suite: &Suite, frames: &Frames, tasks: &[usize], features: &[Feature]) -> Vec<u8> {
    let described = |one: &Feature| {
        let about = json!({ "dtype": one.kind, "shape": [one.width], "names": null });
        (one.name.to_owned(), about)
    };
    let features: Map<String, Value> = features.iter().map(described).collect();
    let n_episodes = frames.lengths.len();
    let all = json!({
        "codebase_version": VERSION,
        "robot_type": format!("tilp-{}", suite.name),
        "fps": suite.steps_per_second,
        "total_episodes": n_episodes,
        "total_frames": frames.timestamp.len(),
        "total_tasks": tasks.len(),
        "chunks_size": FILES_PER_CHUNK,
        "data_files_size_in_mb": FILE_BYTES / 1_000_000,
        "video_files_size_in_mb": 200,
        "splits": { "train": format!("0:{n_episodes}") },
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": null,
        "features": features,
    });
    text(&all)
}

fn statistics(features: &[Feature]) -> Vec<u8> {
    let of = |one: &Feature| (one.name.to_owned(), Statistics::of(&one.values, one.width).json());
    text(&Value::Object(features.iter().map(of).collect()))
}

fn text(value: &Value) -> Vec<u8> {
    let text = serde_json::to_string_pretty(value).expect("a table of plain values");
    (text + "\n").into_bytes()
}

/// Tasks and their numbers. The note makes the names the index of the table in pandas, where LeRobot
/// looks for them.
fn task_file(suite: &Suite, tasks: &[usize]) -> Result<Vec<u8>, ExportError> {
    let names = tasks.iter().map(|task| suite.task_name(*task).to_owned()).collect();
    let columns = [
        Column::new("task_index", Values::Whole((0..tasks.len() as i64).collect())),
        Column::new("task", Values::Text(names)),
    ];
    let about = |name: &str, pandas: &str, kind: &str| {
        json!({
            "name": name, "field_name": name, "pandas_type": pandas, "numpy_type": kind,
            "metadata": null,
        })
    };
    let note = json!({
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [about("task_index", "int64", "int64"), about("task", "unicode", "object")],
        "creator": { "library": "tilp", "version": env!("CARGO_PKG_VERSION") },
        "pandas_version": "2.0.0",
    });
    Ok(to_parquet(&columns, &[tasks.len()], &[("pandas", note.to_string())])?)
}
