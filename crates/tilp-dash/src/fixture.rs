//! Folders and runs for tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder of one test, gone when it ends.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tilp-dash-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The lines of the events of a run with three terminals and two tasks: so many rounds, measured
/// every second one.
pub(crate) fn lines(rounds: u64) -> Vec<String> {
    let mut lines = vec![
        r#"{"kind":"header","id":[0,0],"format":"tilp-events","version":1,"method":"tilp","seed":3,"scenario_hash":"h","tasks":["push","<b>peg</b>"]}"#.to_owned(),
        measured(0, 1, "measured", [1, 0, 0]),
    ];
    for round in 1..=rounds {
        lines.push(decided(round));
        lines.push(executed(round));
        if round % 2 == 0 {
            lines.push(measured(round, 2, "measured", [2, 1, 0]));
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// A measurement of four episodes of each terminal.
pub(crate) fn measured(round: u64, index: u64, kind: &str, successes: [u64; 3]) -> String {
    format!(
        r#"{{"kind":"{kind}","id":[{round},{index}],"terminals":{{"terminal":[4,5,9],"task":[0,1,1],"successes":{successes:?},"episodes":[4,4,4]}}}}"#
    )
}

fn decided(round: u64) -> String {
    let clock = 2.0 * (round - 1) as f64;
    format!(
        r#"{{"kind":"decided","id":[{round},0],"clock_s":{clock},"fallback":false,"rule":"parallel","server_rate":0.1,"terminal_rate":0.1,"aggregates":false,"order":[4,9],"tiers":null,"terminals":{{"terminal":[4,5,9],"task":[0,1,1],"gain":[1e-10,1e-12,1e-11],"fading_power":[1.0,1.0,0.5],"held_layers":[8,8,8],"owed_layers":[0,0,0],"n_samples":[10,10,10],"memory_bytes":[1000,1000,1000],"scheduled":[true,false,true],"bandwidth_hz":[60.0,0.0,40.0],"power_w":[0.1,0.0,0.2],"cut":[2,2,3],"compression":[0.5,0.0,0.75]}},"rationale":{{"latency_s":1.9,"duration_s":1.9,"energy_j":0.5,"loss_decrease":0.01,"success_before":0.25,"success_after":0.26,"violation":0.0,"reward_task":0.1,"reward_communication":0.1,"reward_penalty":0.0,"planned_return":null,"terminals":{{"delay_s":[1.0,0.0,1.9],"sure_delay_s":[1.5,0.0,1.95],"energy_j":[0.2,0.0,0.3],"reason":[{{"kind":"gain","own_success":0.1,"return_difference":0.01}},{{"kind":"worth-less","return_difference":-0.2}},{{"kind":"gain","own_success":0.1,"return_difference":null}}]}}}}}}"#
    )
}

fn executed(round: u64) -> String {
    format!(
        r#"{{"kind":"executed","id":[{round},1],"duration_s":2.0,"loss":0.5,"terminals":{{"took_part":[true,false,true],"late":[false,false,false],"unfinished":[false,false,false],"delay_s":[1.1,0.0,2.0],"computation_s":[0.2,0.0,0.3],"energy_j":[0.21,0.0,0.31],"loss":[0.4,null,0.6],"gradient_norm":[1.0,null,1.0]}},"books":{{"latency_s":2.0,"duration_s":2.0,"violation":0.0,"violation_deadline_s":0.0,"violation_memory_bytes":0,"violation_spectrum_hz":0.0,"episodes":0,"terminals":{{"bandwidth_hz":[60.0,0.0,40.0],"delay_s":[1.0,0.0,2.0],"energy_radio_j":[0.1,0.0,0.25],"energy_compute_j":[0.1,0.0,0.05],"bytes_up":[100,0,200],"bytes_down":[90,0,180],"bytes_sync":[0,0,7]}},"losses":null}}}}"#
    )
}

/// `rounds.csv` of these events.
pub(crate) fn rows(lines: &[String]) -> String {
    let history = tilp::record::History::of_stream(lines.concat().as_bytes()).unwrap();
    tilp::record::rounds_to_csv(&history.rounds)
}
