"""A long testbed of `tiny` with every terminal as a process: do memory, descriptors and threads stay flat?

    python3 tools/testbed/soak.py target/release/tilp [ROUNDS [METHOD]]

Standard library and Linux's /proc only. Prints one line of JSON for every sample, then a table: for each
process the memory after the first twentieth of the rounds (1,000 of 20,000) and at the end, the largest
deviation in between, and the most and fewest descriptors and threads. Ends with exit code 1 if memory
moved by more than 5 % or descriptors or threads grew.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

from check import Bed

SAMPLES = 200
TOLERANCE = 0.05


def proc(pid):
    """Resident kilobytes without file pages, descriptors and threads of a process."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    anonymous = int(fields["RssAnon"].split()[0])
    return {"kb": anonymous, "fds": len(os.listdir(f"/proc/{pid}/fd")), "threads": int(fields["Threads"])}


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(one) for one in file.read().split()]


def name(pid):
    with open(f"/proc/{pid}/cmdline") as file:
        words = file.read().split("\0")
    ids = [word.removeprefix("--id=") for word in words if word.startswith("--id=")]
    return " ".join([words[1], *ids])


def round_of(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
            lines = page.read().decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("tilp_round "))
    except (OSError, StopIteration):
        return None


def watch(up, port, rounds):
    """Samples of the run until it ends: (round, {process: numbers})."""
    samples, start = [], time.monotonic()
    while up.poll() is None:
        done = round_of(port)
        if done and (not samples or done >= samples[-1][0] + rounds // SAMPLES):
            try:
                numbers = {name(pid): proc(pid) for pid in children(up.pid)}
                numbers["server"] = proc(up.pid)
            except (FileNotFoundError, ProcessLookupError, KeyError):
                continue  # it ends just now
            samples.append((done, numbers))
            print(json.dumps({"round": done, "seconds": round(time.monotonic() - start, 1), **numbers}), flush=True)
        time.sleep(0.2)
    return samples


def judge(samples, rounds):
    late = [numbers for done, numbers in samples if done > rounds // 20]
    holds = bool(late) and samples[-1][0] > rounds * 0.97
    print(f"| process | MB after {rounds // 20} rounds | at the end | furthest away | descriptors | threads |\n|---|---|---|---|---|---|")
    for who in sorted(late[0]):
        kb, fds, threads = ([numbers[who][key] for numbers in late if who in numbers] for key in ["kb", "fds", "threads"])
        first = kb[0]
        far = max(kb, key=lambda one: abs(one - first)) / first - 1
        holds &= abs(far) <= TOLERANCE and max(fds[len(fds) // 2:]) <= max(fds[: len(fds) // 2]) and max(threads) == min(threads)
        print(f"| {who} | {first / 1024:.1f} | {kb[-1] / 1024:.1f} | {100 * far:+.1f} % | {min(fds)} to {max(fds)} | {min(threads)} to {max(threads)} |")
    return holds


def main(tilp, rounds=20000, method="tilp"):
    with tempfile.TemporaryDirectory() as work:
        bed = Bed(os.path.realpath(tilp), work, "soak", method, sets=[f"rounds={rounds}"])
        port = bed.port + 1 if bed.port < 65000 else bed.port - 1
        with open(os.path.join(bed.folder, "bed.toml"), "a") as file:
            file.write(f'status = "127.0.0.1:{port}"\n')
        start = time.monotonic()
        log = open(os.path.join(bed.folder, "up.log"), "w+")
        up = subprocess.Popen([bed.tilp, "testbed", "up", "--quiet", "bed.toml"], cwd=bed.folder, stdout=log, stderr=log)
        samples = watch(up, port, rounds)
        if up.returncode != 0:
            log.seek(0)
            raise SystemExit(f"up: exit {up.returncode}: {log.read()[-600:]}")
        print(f"{rounds} rounds of tiny with {method} in {time.monotonic() - start:.0f} s, {len(samples)} samples")
        return 0 if judge(samples, rounds) else 1


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main(arguments[0], *map(int, arguments[1:2]), *arguments[2:3]))
