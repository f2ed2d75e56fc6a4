//! `tilp export`.

use std::fs;
use std::path::{Path, PathBuf};

use tilp::experiment::{
    ExportedFiles, lerobot_dataset, lerobot_policy, policy_to_onnx, read_policy, read_run_identity,
};
use tilp::record::{RunFolder, unique_name, write_beside};
use tilp::scenario::{Registry, Scenario};

use crate::arguments::{Export, ExportVerb};
use crate::failure::Failure;
use crate::output;

/// Writes files for other programs.
pub(crate) fn export(arguments: Export) -> Result<(), Failure> {
    match arguments.verb {
        ExportVerb::Lerobot { source, out, terminal, seed, overrides } => {
            let source = Source::open(&source, seed, &overrides)?;
            check_place(&out)?;
            lerobot(&source, terminal, &out)
        }
        ExportVerb::Onnx { source, out } => onnx(&source, &out),
    }
}

/// Where demonstrations come from.
struct Source {
    scenario: Scenario,
    seed: u64,
    run: Option<RunFolder>,
}

impl Source {
    fn open(name: &str, seed: Option<u64>, overrides: &[String]) -> Result<Self, Failure> {
        if !Path::new(name).join("manifest.json").exists() {
            let scenario = Scenario::load(name, overrides).map_err(Failure::input)?;
            return Ok(Self { scenario, seed: seed.unwrap_or(0), run: None });
        }
        if seed.is_some() || !overrides.is_empty() {
            let flag = if seed.is_some() { "--seed" } else { "--set" };
            return Err(Failure::input(format!("{flag}: {name} is a run, expected a scenario")));
        }
        let run = RunFolder::open(Path::new(name)).map_err(Failure::input)?;
        let (scenario, _, seeds) =
            read_run_identity(&run, &Registry::builtin()).map_err(Failure::input)?;
        Ok(Self { scenario, seed: seeds.seed, run: Some(run) })
    }
}

/// A folder with something in it is not written to.
fn check_place(out: &Path) -> Result<(), Failure> {
    match fs::read_dir(out).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            let out = out.display();
            Err(Failure::input(format!("{out} is not empty, expected a new folder")))
        }
        Ok(false) => Ok(()),
        Err(_) if !out.exists() => Ok(()),
        Err(error) => Err(Failure::input(format!("cannot use {}: {error}", out.display()))),
    }
}

fn lerobot(source: &Source, terminal: Option<u32>, out: &Path) -> Result<(), Failure> {
    let Source { scenario, seed, run } = source;
    let policy = run.as_ref().map(lerobot_policy).transpose().map_err(Failure::input)?;
    let dataset = lerobot_dataset(scenario, *seed, terminal).map_err(Failure::input)?;
    let below = |name: &str, files: ExportedFiles| {
        let name = name.to_owned();
        files.into_iter().map(move |(path, bytes)| (format!("{name}/{path}"), bytes))
    };
    let mut files: ExportedFiles = below("dataset", dataset).collect();
    let has_policy = policy.is_some();
    files.extend(below("policy", policy.unwrap_or_default()));
    write_aside(out, &files)?;
    let mut said = format!("dataset in {}", out.join("dataset").display());
    if has_policy {
        said += &format!("\npolicy in {}", out.join("policy").display());
    }
    output::print(&said)
}

/// Writes a folder under another name, and gives it its own when it is complete.
fn write_aside(out: &Path, files: &ExportedFiles) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", out.display()));
    let name = out.file_name().and_then(|name| name.to_str()).unwrap_or("export");
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let part: PathBuf = parent.unwrap_or(Path::new(".")).join(unique_name(name));
    let written = write_beside(&part, files).map_err(Failure::writing).and_then(|()| {
        if out.exists() {
            fs::remove_dir(out).map_err(failed)?;
        }
        fs::rename(&part, out).map_err(failed)
    });
    if written.is_err() {
        let _ = fs::remove_dir_all(&part);
    }
    written
}

fn onnx(source: &Path, out: &Path) -> Result<(), Failure> {
    let is_run = source.is_dir();
    let file = if is_run { source.join("model.safetensors") } else { source.to_owned() };
    let (policy, weights, _) = read_policy(&file).map_err(Failure::input)?;
    let bytes = policy_to_onnx(&policy, &weights);
    let unusable =
        || Failure::input(format!("--out = {}, expected a path of a file", out.display()));
    let name = out.file_name().and_then(|name| name.to_str()).ok_or_else(unusable)?;
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let files = [(name.to_owned(), bytes)];
    write_beside(parent.unwrap_or(Path::new(".")), &files).map_err(Failure::writing)?;
    output::print(&format!("model in {}", out.display()))
}
