//! Adapters of terminals and evaluator, and the proxy that follows a testbed.

use std::path::Path;
use std::process::{Child, Stdio};

use tilp_testbed::proxy::{Command, Reply, ask_proxy};

use super::bed::{Bed, Who, wait_until};
use super::{assert_same, record, undisturbed};
use crate::{Scratch, succeed, tilp};

const TILP: &str = env!("CARGO_BIN_EXE_tilp");

/// A probe that always measures the same gain.
const PROBE: &str = r#"#!/bin/sh
echo '{"version":1,"adapter":"probe","name":"fixed","modelled":true}'
while read -r line; do
  id=${line#*'"id":'}
  echo "{\"version\":1,\"id\":${id%%,*},\"answer\":{\"gain_db\":-77.5}}"
done
"#;

#[test]
fn robots_behind_adapters_count_what_simulated_robots_count() {
    let scratch = Scratch::new("testbed-robots");
    let wanted = undisturbed(&scratch, "deficit");
    let bed = Bed::new(&scratch, "deficit", "[0]", &[]);
    let scenario = scratch.path().join("alone/scenario.toml");
    let scenario = scenario.display();
    bed.set(&format!(
        "[adapters]\n\
         robot = {{ command = [\"{TILP}\", \"adapter\", \"robot\", \"{scenario}\", \"--terminal\", \
         \"{{terminal}}\"], timeout_s = 60 }}\n\
         actuator = {{ command = [\"{TILP}\", \"adapter\", \"actuator\", \"--simulated\"] }}\n\
         meter = {{ command = [\"{TILP}\", \"adapter\", \"meter\", \"--modelled\"] }}"
    ));
    succeed(scratch.path(), &["testbed", "up", "--quiet", "bed.toml"]);
    assert_same(&record(&bed.run_folder()), &wanted);
    let log = std::fs::read_to_string(scratch.path().join("bed/terminal-0.log")).unwrap();
    assert!(log.contains("meter") && log.contains("actuator"), "{log}");
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn proxy(folder: &Path, server: &str, socket: &Path) -> Running {
    let mut command = tilp(folder);
    command.args(["proxy", "tiny", "--advance", "rounds", "--server", server, "--control"]);
    command.arg(socket).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().unwrap());
    assert!(wait_until(|| socket.exists()));
    running
}

#[test]
fn under_the_wall_clock_gains_are_probed_energy_is_metered_and_the_proxy_is_told() {
    let scratch = Scratch::new("testbed-equipment");
    let folder = scratch.path();
    let some = [Who::Terminal(0), Who::Terminal(1)];
    let mut bed = Bed::new(&scratch, "asfl+guard", "[0, 1]", &some);
    bed.replace("clock = \"virtual\"", "clock = \"wall\"\npatience_s = 20");
    bed.replace("\"rounds=12\"", "\"rounds=200\", \"limits.deadline_s=2\"");
    // Socket paths are short.
    let socket = std::env::temp_dir().join(format!("tilp-bed-{}.sock", std::process::id()));
    let _proxy = proxy(folder, &bed.address(), &socket);
    scratch.put("probe", PROBE);
    let probe = folder.join("probe");
    bed.set(&format!(
        "proxy = \"{}\"\n[adapters]\nprobe = {{ command = [\"sh\", \"{}\"] }}\n\
         meter = {{ command = [\"{TILP}\", \"adapter\", \"meter\", \"--modelled\", \
         \"--energy-coefficient\", \"1e-18\"] }}",
        socket.display(),
        probe.display()
    ));
    bed.with_adapters();
    bed.start_all();
    bed.finish();
    let folder = tilp::record::RunFolder::open(&bed.run_folder()).unwrap();
    let rows = folder.read_terminals().unwrap();
    let last: Vec<_> = rows.iter().filter(|row| row.round == 200).collect();
    assert_eq!(last.len(), 6);
    assert!(last[..2].iter().all(|row| (row.gain_db - -77.5).abs() < 1e-9));
    assert!(last[2..].iter().all(|row| (row.gain_db - -77.5).abs() > 1e-3));
    // With that coefficient a minibatch has more joules than any simulated one.
    let metered =
        |row: &&tilp::record::TerminalRow| row.terminal < 2 && row.energy_observed_j > 1e3;
    assert!(rows.iter().filter(metered).count() > 100);
    assert!(rows.iter().filter(|row| row.terminal >= 2).all(|row| row.energy_observed_j < 1e3));
    let status = ask_proxy(&socket, &Command::Status { version: 1, terminal: 0 }).unwrap();
    let Reply::Status { round, .. } = status else { panic!("no status") };
    assert_eq!(round, 200);
}
