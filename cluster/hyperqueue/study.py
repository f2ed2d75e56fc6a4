#!/usr/bin/env python3
"""Runs a study on HyperQueue: one task for each shard, then the tables.

    python3 cluster/hyperqueue/study.py SHARDS FOLDER compare scarce --seeds 0..3

FOLDER must be seen by all workers. A shard that failed or was killed is submitted again and continues; exit
code 2 of tilp, bad usage or bad input, is final. The variable TILP names the program, HQ_SERVER_DIR the
server's folder (without it a server with one worker is started for this study on this machine), SHARD_CPUS
the cores of a shard (default 1).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hyperqueue

TRIES = 4
BAD_INPUT = 2


def submit(client: hyperqueue.Client, commands: dict[int, list[str]], folder: str) -> dict[int, str]:
    """Runs the shards and says why some of them failed."""
    job = hyperqueue.Job(max_fails=None)
    cpus = int(os.environ.get("SHARD_CPUS", "1"))
    logs = Path(folder + ".log")
    logs.mkdir(parents=True, exist_ok=True)
    places = list(commands)
    for n in places:
        job.program(
            commands[n],
            env=dict(os.environ),
            cwd=os.getcwd(),
            stdout=logs / f"{n}.out",
            stderr=logs / f"{n}.err",
            name=f"shard {n}",
            resources=hyperqueue.ffi.protocol.ResourceRequest(cpus=cpus),
        )
    submitted = client.submit(job)
    if client.wait_for_jobs([submitted], raise_on_error=False):
        return {}
    failed = client.get_failed_tasks(submitted)
    return {places[task]: context.error for task, context in failed.items()}


def run(client: hyperqueue.Client, shards: int, folder: str, study: list[str]) -> int:
    tilp = os.environ.get("TILP", "tilp")
    cpus = os.environ.get("SHARD_CPUS", "1")
    common = [tilp, *study, "--quiet", "--jobs", cpus, "--out", folder]
    left = {n: [*common, "--shard", f"{n}/{shards}"] for n in range(shards)}
    for _ in range(TRIES):
        failed = submit(client, left, folder)
        left = {n: left[n] for n in failed}
        if not left:
            return subprocess.run([tilp, "report", folder]).returncode
        if any(f"exit code {BAD_INPUT}" in error for error in failed.values()):
            break
    for n, error in sorted(failed.items()):
        lines = Path(f"{folder}.log/{n}.err").read_text().strip().splitlines()
        print(f"shard {n}: {error}: {lines[-1] if lines else 'no message'}", file=sys.stderr)
    return BAD_INPUT if any(f"exit code {BAD_INPUT}" in error for error in failed.values()) else 1


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return BAD_INPUT
    shards, folder, study = int(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    if "HQ_SERVER_DIR" in os.environ:
        return run(hyperqueue.Client(os.environ["HQ_SERVER_DIR"]), shards, folder, study)
    with hyperqueue.LocalCluster() as cluster:
        cluster.start_worker()
        return run(cluster.client(), shards, folder, study)


if __name__ == "__main__":
    sys.exit(main())
