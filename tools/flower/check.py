"""Flower's SuperLink and SuperNodes as processes; a run of TiLP on them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import tilp

TERMINALS = 4
LINK, NODE = 19091, 19100


class Federation:
    """A SuperLink and its SuperNodes, ended by their own handles."""

    def __init__(self, name: str) -> None:
        self.log = open(f"{name}.log", "w")
        link = ["flower-superlink", "--insecure", "--disable-runtime-dependency-installation"]
        self.processes = [self._start([*link, "--port", str(LINK)])]
        time.sleep(5)
        for terminal in range(TERMINALS):
            node = ["flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{LINK}"]
            node += ["--port", str(NODE + terminal)]
            self.processes.append(self._start([*node, "--node-config", f"terminal={terminal}"]))

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, stdout=self.log, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )

    def kill_node(self, terminal: int) -> None:
        """The SuperNode and what it started, at once."""
        os.killpg(self.processes[1 + terminal].pid, signal.SIGKILL)
        self.processes[1 + terminal].wait()

    def __enter__(self) -> Federation:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.log.close()


def n_rounds(out: Path) -> int:
    """Rounds that are in the record so far."""
    try:
        return len((out / "rounds.csv").read_text().splitlines()) - 1
    except FileNotFoundError:
        return 0


def conduct(app: str, name: str, rounds: int, kill_after: int | None) -> Path:
    """One run on a federation of its own; its folder."""
    out = Path(name).absolute()
    with Federation(name) as federation:
        config = f'rounds={rounds} out="{out}" answer-s=30.0'
        start = time.monotonic()
        command = ["flwr", "run", app, "local", "--run-config", config]
        subprocess.run(command, check=True, stdout=federation.log, stderr=subprocess.STDOUT)
        while not (out / "summary.json").exists():
            if kill_after is not None and n_rounds(out) >= kill_after:
                federation.kill_node(TERMINALS - 1)
                kill_after = None
            if time.monotonic() - start > 900:
                raise TimeoutError(f"{name}: {n_rounds(out)} of {rounds} rounds after 15 minutes, see {name}.log")
            time.sleep(0.5)
        seconds = time.monotonic() - start
        print(f"{name}: {rounds} rounds in {seconds:.0f} s, {seconds / rounds:.2f} s a round", flush=True)
    return out


def main() -> None:
    app, rounds = sys.argv[1], int(sys.argv[2])
    home = Path(os.environ["FLWR_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    connection = f'[superlink.local]\naddress = "127.0.0.1:{LINK}"\ninsecure = true\n'
    (home / "config.toml").write_text(f'[superlink]\ndefault = "local"\n{connection}')
    print(f"flwr {version('flwr')}, tilp {tilp.__version__}")
    alone = tilp.run("tiny", rounds=rounds, set={"cell.n_terminals": TERMINALS}, out="alone")
    whole = conduct(app, "whole", rounds, None)
    for name in ("rounds.csv", "model.safetensors", "summary.json"):
        assert (whole / name).read_bytes() == (alone.path / name).read_bytes(), f"{name} differs"
    print("undisturbed: rows, model and summary are those of tilp run, byte for byte")
    killed = tilp.Run(conduct(app, "killed", rounds, rounds // 3))
    rows = killed.terminals
    last = int(rows["round"][rows["terminal"] == TERMINALS - 1].max())
    assert len(killed.rounds) == rounds and rounds // 3 <= last < rounds, last
    others = int(rows["took_part"][rows["round"] > last].sum())
    assert others > 0
    print(f"one SuperNode killed after round {rounds // 3}: it left after round {last}, all {rounds} rounds done, {others} participations of the others after that")


if __name__ == "__main__":
    main()
