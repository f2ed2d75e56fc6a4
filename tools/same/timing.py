"""Times two programs alternately: one run of 60 rounds and one plan."""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

N_PLANS = 20  # per sample: one call takes some milliseconds only


class Program:
    """A program with a cache and a scratch folder of its own."""

    def __init__(self, path, scratch):
        self.path = Path(path).resolve()
        self.scratch = scratch
        self.environment = {**os.environ, "TILP_CACHE": str(scratch / "cache")}
        self.n_runs = 0
        # Each program prints its own example: the format may differ between the two.
        self.observation = self.call("plan", "--example", "default").stdout

    def call(self, *arguments, given=b""):
        done = subprocess.run([self.path, *arguments], input=given, capture_output=True, env=self.environment)
        if done.returncode != 0:
            reason = done.stderr.decode(errors="replace").strip()
            raise RuntimeError(f"{self.path} ended with exit code {done.returncode}: {reason}")
        return done

    def run(self, rounds=60):
        """One run; returns the mean time of a plan in it, if the program records it."""
        self.n_runs += 1
        folder = self.scratch / f"run-{self.n_runs}"
        self.call("run", "default", "--method", "tilp", "--rounds", str(rounds), "--seed", "0",
                  "--out", folder, "--quiet")
        try:
            return json.loads((folder / "timing.json").read_text())["plan_ms_mean"] / 1000
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def plans(self):
        for _ in range(N_PLANS):
            self.call("plan", "default", given=self.observation)


def main():
    parser = argparse.ArgumentParser(prog="tools/same/time", description=__doc__)
    parser.add_argument("old", metavar="OLD", help="a program")
    parser.add_argument("new", metavar="NEW", help="another program")
    parser.add_argument("--repeat", type=int, default=5, help="times per program (default: %(default)s)")
    settings = parser.parse_args()
    if settings.repeat < 1:
        parser.error(f"--repeat {settings.repeat}, expected at least 1")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            old, new = (Program(path, Path(scratch) / side)
                        for side, path in (("old", settings.old), ("new", settings.new)))
            # Not counted: this fills the caches with demonstrations.
            old.run(rounds=1)
            new.run(rounds=1)
            print(f"{'medians of ' + str(settings.repeat):<28}{'old':>11}{'new':>11}{'new/old':>10}")
            report("run", Program.run, old, new, settings.repeat)
            report("plan", Program.plans, old, new, settings.repeat, N_PLANS)
        except (OSError, RuntimeError) as problem:
            print(f"time: {problem}", file=sys.stderr)
            return 2 if isinstance(problem, OSError) else 1
    return 0


def report(name, act, old, new, repeat, n_calls=1):
    """Prints the medians of both programs and their ratio."""
    samples = {old: [], new: []}
    for turn in range(repeat):
        # Alternate who goes first: a drift of the machine's speed then affects both alike.
        for program in (old, new) if turn % 2 == 0 else (new, old):
            samples[program].append(measure(act, program, n_calls))
    for clock in samples[old][0]:
        taken = [[sample[clock] for sample in samples[side]] for side in (old, new)]
        if None in taken[0] + taken[1]:
            continue
        before, after = map(statistics.median, taken)
        print(f"{name + ', ' + clock:<28}{before:>9.4f} s{after:>9.4f} s{after / before:>10.3f}", flush=True)


def measure(act, program, n_calls):
    """Seconds per call, by clock."""
    start, used = time.perf_counter(), processor_s()
    plan_s = act(program)
    wall, processor = time.perf_counter() - start, processor_s() - used
    return {"wall time": wall / n_calls, "processor time": processor / n_calls, "plan within": plan_s}


def processor_s():
    """Processor time of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
