#!/usr/bin/env python3
"""Runs a study on Ray: one task for each shard, then the tables.

    python3 cluster/ray/study.py SHARDS FOLDER compare scarce --seeds 0..3

FOLDER must be seen by all machines. A shard that was killed or stopped is started again and continues;
exit code 2 of tilp, bad usage or bad input, is final. The variable TILP names the program, RAY_ADDRESS
the cluster (default: this machine), SHARD_CPUS the cores of a shard (default 1).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import ray

TRIES = 4
BAD_INPUT = 2


class Again(Exception):
    """A shard ended before it was done; the same command continues it."""


class Refused(Exception):
    """A shard that would end in the same way again."""


def end_with_parent() -> None:
    """A shard whose worker is killed must not go on beside the next try."""
    parent_death = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(parent_death, signal.SIGTERM)


def run_shard(command: list[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, preexec_fn=end_with_parent)
    if ended.returncode == 0:
        return ended.stdout.strip()
    lines = ended.stderr.strip().splitlines()
    reason = f"exit code {ended.returncode}: {lines[-1] if lines else 'no message'}"
    raise (Refused if ended.returncode == BAD_INPUT else Again)(reason)


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return BAD_INPUT
    shards, folder, study = int(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    tilp, cpus = os.environ.get("TILP", "tilp"), int(os.environ.get("SHARD_CPUS", "1"))
    ray.init(address=os.environ.get("RAY_ADDRESS"), include_dashboard=False, log_to_driver=False)
    task = ray.remote(num_cpus=cpus, max_retries=TRIES - 1, retry_exceptions=[Again])(run_shard)
    common = [tilp, *study, "--quiet", "--jobs", str(cpus), "--out", folder]
    waiting = [task.remote([*common, "--shard", f"{n}/{shards}"]) for n in range(shards)]
    status = 0
    for n, one in enumerate(waiting):
        try:
            print(ray.get(one), flush=True)
        except (ray.exceptions.RayTaskError, ray.exceptions.WorkerCrashedError) as error:
            cause = getattr(error, "cause", error)
            print(f"shard {n}: {cause}", file=sys.stderr, flush=True)
            status = BAD_INPUT if isinstance(cause, Refused) else max(status, 1)
    ray.shutdown()
    if status != 0:
        return status
    return subprocess.run([tilp, "report", folder]).returncode


if __name__ == "__main__":
    sys.exit(main())
