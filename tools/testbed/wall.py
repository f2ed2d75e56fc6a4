"""Three methods under the wall clock, with every link behind `tilp proxy`.

    python3 tools/testbed/wall.py target/release/tilp [ROUNDS [OUT]]

Standard library only; everything on the loopback interface. Twelve terminals are processes, the deadline
is three seconds of the machine's clock, and the proxy replays the channel of the scenario: the base station
tells it every round, and what each terminal is granted. The hardware table of the scenario is what
`tilp profile device` measures here. A modelled meter of each terminal adds the energy
of its computation by the cost model, and the granted power for the time that its bytes take on the link.
The three runs go on at the same time; they mostly wait. Prints a table, and for `tilp` what its network
twin predicted before and after it was calibrated with the measured delays (`tilp twin`).
"""

import concurrent.futures
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from check import Bed
from kills import free_ports

METHODS = ["tilp", "asfl+guard", "random"]
N = 12
DEADLINE_S = 3.0
SETS = [f"cell.n_terminals={N}", "tasks.shares.bin=2", "tasks.shares.push=4", "tasks.shares.drawer-open=2", "tasks.shares.drawer-close=2",
        "tasks.shares.button=2", f"limits.deadline_s={DEADLINE_S}", "limits.bandwidth_hz=40e6", "methods.reference.n_scheduled=6"]


def profiled(tilp):
    """The table [hardware] of this machine, and what a meter is modelled by."""
    table = subprocess.run([tilp, "profile", "device", "tiny", "--seconds", "0.3"], capture_output=True, text=True, check=True).stdout
    clock, low, high = (float(re.search(pattern, table).group(1)) for pattern in
                        [r"clock_hz = (\S+)", r"energy_coefficient = \[([^,]+),", r"energy_coefficient = \[[^,]+, ([^\]]+)\]"])
    return table, ["--clock-hz", str(clock), "--energy-coefficient", str((low + high) / 2)]


def run(tilp, work, method, rounds, hardware, model):
    sets = [f"rounds={rounds}", *SETS]
    bed = Bed(tilp, work, f"wall-{method}", method, clock="wall", extra='proxy = "proxy.sock"\npatience_s = 120\nsilence_s = 120', sets=sets, cell=("cell.toml", N))
    with open(os.path.join(bed.folder, "cell.toml"), "w") as file:
        file.write(f'extends = "tiny"\nname = "wall"\n{hardware}')
    lane = free_ports(N)
    with open(os.path.join(bed.folder, "bed.toml"), "a") as file:
        command = [tilp, "adapter", "meter", "--modelled", "--proxy", os.path.join(bed.folder, "proxy.sock"), "--terminal", "{terminal}", *model]
        file.write(f"\n[adapters]\nmeter = {{ command = {json.dumps(command)} }}\n")
    bed.call("testbed", "data", "bed.toml")
    overrides = [word for one in sets for word in ("--set", one)]
    # A link has at least the signalling rate, 64 kbit/s: so slow that it does not hide small grants. The
    # start weights take half a minute at it.
    commands = {
        "proxy": ["proxy", "cell.toml", *overrides, f"--server=127.0.0.1:{bed.port}", f"--listen=127.0.0.1:{lane}", "--control=proxy.sock",
                  "--advance=rounds"],
        "server": ["server", "--quiet", "bed.toml"],
        "evaluator": ["evaluator", f"--server=127.0.0.1:{bed.port}"],
    }
    for n in range(N):
        commands[n] = ["terminal", f"--id={n}", f"--server=127.0.0.1:{lane + n}", f"--data=bed/data/terminal-{n}.safetensors", f"--state=state-{n}", "--adapters=bed.toml"]
    start = time.monotonic()
    for who, arguments in commands.items():
        log = open(os.path.join(bed.folder, f"{who}.log"), "a")
        bed.children[who] = subprocess.Popen([tilp, *arguments], cwd=bed.folder, stdout=log, stderr=log)
        if who == "proxy":
            while not os.path.exists(os.path.join(bed.folder, "proxy.sock")):
                time.sleep(0.05)
    try:
        code = bed.children["server"].wait(180 + rounds * (DEADLINE_S + 2))
        if code != 0:
            raise SystemExit(f"{method}: server: exit {code}: {bed.log('server')}")
    finally:
        bed.end()
    return os.path.join(bed.folder, "bed/run"), time.monotonic() - start


def row(method, folder, seconds):
    with open(os.path.join(folder, "rounds.csv")) as file:
        rounds = list(csv.DictReader(file))
    numbers = lambda name: [float(one[name]) for one in rounds if one[name]]
    scheduled, late = sum(numbers("n_scheduled")), sum(numbers("n_late"))
    latencies = sorted(min(one, DEADLINE_S) for one in numbers("latency_s"))
    return (f"| `{method}` | {len(rounds)} | {scheduled / len(rounds):.1f} | {100 * late / scheduled:.1f} % | {statistics.median(latencies):.3f} | "
            f"{latencies[int(0.95 * len(latencies))]:.3f} | {sum(numbers('energy_j')):.2f} | {numbers('loss')[0]:.3f} to {numbers('loss')[-1]:.3f} | {seconds:.0f} |")


def main(tilp, rounds=200, out=None):
    tilp, work = os.path.realpath(tilp), out or tempfile.mkdtemp()
    os.makedirs(work, exist_ok=True)
    hardware, model = profiled(tilp)
    print(hardware)
    with concurrent.futures.ThreadPoolExecutor(len(METHODS)) as pool:
        runs = list(pool.map(lambda method: run(tilp, work, method, rounds, hardware, model), METHODS))
    print("| method | rounds | scheduled a round | late of them | median latency, s (cut at the deadline) | 95th percentile | J as metered | loss | s in all |\n|---|---|---|---|---|---|---|---|---|")
    for method, (folder, seconds) in zip(METHODS, runs):
        print(row(method, folder, seconds))
    for method, (folder, _) in zip(METHODS, runs):
        said = subprocess.run([tilp, "twin", folder, "--format", "json"], capture_output=True, text=True, check=True).stdout
        for one in json.loads(said)["sub_twins"]:
            if one["name"].startswith("network"):
                print(f"{method}: {json.dumps(one)}")
    print(f"runs in {work}")
    return 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main(arguments[0], *map(int, arguments[1:2]), *arguments[2:3]))
