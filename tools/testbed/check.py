"""Runs small testbeds of processes and compares what they leave with `tilp run`, byte by byte.

    python3 tools/testbed/check.py target/release/tilp [CASE ...]

Standard library only; by hand, not part of .ci/run. Everything is on the loopback interface and in
a folder that is removed at the end. Each line says what was done and whether the bytes are the same.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib

RECORD = ["events.jsonl", "rounds.csv", "calibration.csv", "terminals.parquet", "episodes.parquet", "summary.json", "scenario.toml", "model.safetensors"]
LONG_S = 300
METHODS = ["tilp", "asfl+guard", "splitnn+guard"]


class Bed:
    def __init__(self, tilp, work, name, method, terminals="all", clock="virtual", extra="", sets=(), cell=("tiny", 6)):
        self.tilp, self.folder = tilp, os.path.join(work, name)
        os.makedirs(self.folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        which = '"all"' if terminals == "all" else str(terminals)
        scenario, n = cell
        self.ids = list(range(n)) if terminals == "all" else terminals
        quoted = ", ".join(f'"{one}"' for one in sets)
        text = f"""[testbed]
scenario = "{scenario}"
set = [{quoted}]
method = "{method}"
seed = 0
clock = "{clock}"
folder = "bed"
listen = "127.0.0.1:{self.port}"
terminals = {which}
evaluator = true
checkpoint_every = 4
{extra}
"""
        with open(os.path.join(self.folder, "bed.toml"), "w") as file:
            file.write(text)
        self.children = {}

    def call(self, *arguments):
        done = subprocess.run([self.tilp, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=LONG_S)
        if done.returncode != 0:
            raise SystemExit(f"tilp {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()[-600:]}")
        return done.stdout

    def start(self, who):
        server = f"--server=127.0.0.1:{self.port}"
        arguments = {"server": ["server", "bed.toml", "--quiet"], "evaluator": ["evaluator", server]}.get(who)
        if arguments is None:
            arguments = ["terminal", f"--id={who}", server, f"--data=bed/data/terminal-{who}.safetensors", f"--state=state-{who}"]
        log = open(os.path.join(self.folder, f"{who}.log"), "a")
        self.children[who] = subprocess.Popen([self.tilp, *arguments], cwd=self.folder, stdout=log, stderr=log)

    def start_all(self):
        self.call("testbed", "data", "bed.toml")
        for who in ["server", *self.ids, "evaluator"]:
            self.start(who)

    def kill(self, who):
        child = self.children.pop(who)
        child.send_signal(signal.SIGKILL)
        child.wait()

    def log(self, who):
        with open(os.path.join(self.folder, f"{who}.log")) as file:
            return file.read().strip()[-600:]

    def finish(self):
        try:
            code = self.children["server"].wait(LONG_S)
        except subprocess.TimeoutExpired:
            code = "none, it does not end"
        self.end()
        if code != 0:
            raise SystemExit(f"server: exit {code}: {self.log('server')}")

    def end(self):
        for child in self.children.values():
            child.kill()
            child.wait()
        self.children = {}

    def round(self):
        """Rounds done, by the rows of the run."""
        try:
            with open(os.path.join(self.folder, "bed/run/rounds.csv")) as file:
                return max(0, len(file.readlines()) - 1)
        except FileNotFoundError:
            return 0

    def wait_for(self, round_):
        until = time.monotonic() + LONG_S
        while self.round() < round_ and time.monotonic() < until:
            if self.children["server"].poll() is not None:
                return False
            time.sleep(0.002)
        return self.round() >= round_

    def differing(self, alone):
        return [name for name in RECORD if read(self.folder, "bed/run", name) != read(alone, name)]


def read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def alone(tilp, work, method, scenario="tiny", sets=()):
    out = os.path.join(work, f"alone-{scenario}-{method}-{zlib.crc32(' '.join(sets).encode())}")
    if not os.path.exists(out):
        overrides = [word for one in sets for word in ("--set", one)]
        subprocess.run([tilp, "run", scenario, *overrides, "--method", method, "--quiet", "--out", out], check=True, stdout=subprocess.DEVNULL)
    return out


def say(what, differing, seconds):
    print(f"{what}: {'same bytes' if not differing else 'DIFFERS: ' + ', '.join(differing)} ({seconds:.1f} s)", flush=True)
    return not differing


def up(tilp, work, method, terminals):
    bed, start = Bed(tilp, work, f"up-{method}-{len(terminals)}", method, terminals), time.monotonic()
    bed.call("testbed", "up", "--quiet", "bed.toml")
    return say(f"up, {method}, terminals {terminals}", bed.differing(alone(tilp, work, method)), time.monotonic() - start)


# The default cell, short: 8 rounds with two calibrations.
FIFTY = ["rounds=8", "evaluation.calibrate_every=4", "evaluation.measure_every=4", "evaluation.final_episodes=1", "methods.tilp.warm_up=2"]
# Tiny with eight terminals.
EIGHT = ["cell.n_terminals=8", "tasks.shares.bin=2", "tasks.shares.push=3"]


def many(tilp, work, method, cell, sets, terminals="all"):
    """More terminals than tiny has."""
    scenario, n = cell
    real = "all" if terminals == "all" else f"{len(terminals)} of them"
    name = f"up-{method}-{n}-{real}"
    bed, start = Bed(tilp, work, name, method, terminals, sets=sets, cell=cell), time.monotonic()
    bed.call("testbed", "up", "--quiet", "bed.toml")
    seconds = time.monotonic() - start
    return say(f"up, {method}, {n} terminals of {scenario}, {real} as processes, {bed.round()} rounds", bed.differing(alone(tilp, work, method, scenario, sets)), seconds)


def killed(tilp, work, method, kills):
    name = "-".join(str(who) for _, who in kills)
    bed, start, done = Bed(tilp, work, f"kill-{method}-{name}", method), time.monotonic(), 0
    bed.start_all()
    for round_, who in kills:
        if not bed.wait_for(round_):
            break
        bed.kill(who)
        bed.start(who)
        done += 1
    bed.finish()
    return say(f"SIGKILL, {method}, {done} of {len(kills)} (round, process) {kills}", bed.differing(alone(tilp, work, method)), time.monotonic() - start) and done == len(kills)


def wall(tilp, work):
    bed, start = Bed(tilp, work, "wall", "asfl+guard", clock="wall", extra="patience_s = 20", sets=["rounds=40", "limits.deadline_s=1"]), time.monotonic()
    bed.start_all()
    if not bed.wait_for(5):
        raise SystemExit(f"wall: {bed.log('server')}")
    bed.kill(2)
    bed.finish()
    print(f"wall clock, terminal 2 killed after round 5: {bed.round()} rounds, {time.monotonic() - start:.1f} s", flush=True)
    return bed.round() == 40


def main(tilp, wanted):
    tilp, work = os.path.realpath(tilp), tempfile.mkdtemp()
    everybody = list(range(6))
    cases = {
        "tilp": lambda: up(tilp, work, "tilp", everybody),
        "asfl": lambda: up(tilp, work, "asfl+guard", everybody),
        "splitnn": lambda: up(tilp, work, "splitnn+guard", everybody),
        "hybrid": lambda: up(tilp, work, "tilp", [1, 4]),
        **{f"eight-{method}": lambda method=method: many(tilp, work, method, ("tiny", 8), EIGHT) for method in METHODS},
        **{f"fifty-{method}": lambda method=method: many(tilp, work, method, ("quick", 50), FIFTY) for method in METHODS},
        "fifty-hybrid": lambda: many(tilp, work, "tilp", ("quick", 50), FIFTY, [0, 7, 31]),
        "kill-terminal": lambda: killed(tilp, work, "asfl+guard", [(3, 0), (6, 3), (11, 5)]),
        "kill-evaluator": lambda: killed(tilp, work, "tilp", [(2, "evaluator"), (9, "evaluator")]),
        "kill-server": lambda: killed(tilp, work, "tilp", [(2, "server"), (7, "server"), (13, "server")]),
        "wall": lambda: wall(tilp, work),
    }
    failed = []
    try:
        for name in wanted or cases:
            try:
                if not cases[name]():
                    failed.append(name)
            except (SystemExit, subprocess.SubprocessError, OSError) as error:
                print(f"{name}: FAILED: {error}", flush=True)
                failed.append(name)
    finally:
        shutil.rmtree(work)
    print("all cases hold" if not failed else f"do not hold: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
