"""What a testbed costs, against the same rounds in one process.

    python3 tools/testbed/cost.py target/release/tilp [PART ...]

Standard library and Linux's /proc only; everything on the loopback interface. Parts:

- `round`: time of a round with 50 terminals as processes and in one process, three methods
- `wire`: bytes on the wire against encoded payload, counted by `tilp proxy`, with and without TLS
- `thousand`: a base station with 1,000 terminals that are processes: its memory, time to decide, time to
  broadcast (a round in which every terminal takes part)
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from check import Bed
from kills import free_ports
from soak import proc, round_of

FIFTY = ["evaluation.calibrate_every=1000", "evaluation.measure_every=1000", "evaluation.final_episodes=1"]
# Tasks of a thousand terminals in the proportions of tiny.
THOUSAND = ["cell.n_terminals=1000", "tasks.shares.bin=167", "tasks.shares.push=333", "tasks.shares.drawer-open=167",
            "tasks.shares.drawer-close=167", "tasks.shares.button=166", "tasks.demonstrations=6", *FIFTY]


def timing(run):
    with open(os.path.join(run, "timing.json")) as file:
        return json.load(file)


def overrides(sets):
    return [word for one in sets for word in ("--set", one)]


def one_process(tilp, folder, scenario, method, sets):
    out = os.path.join(folder, f"alone-{method}")
    subprocess.run([tilp, "run", scenario, "--method", method, "--quiet", "--out", out, *overrides(sets)], check=True, stdout=subprocess.DEVNULL)
    return timing(out)


def rounds_of(tilp, work):
    print("| method | ms a round in one process | ms a round with 50 processes | ms of them for the decision |\n|---|---|---|---|")
    for method, rounds in [("tilp", 40), ("asfl+guard", 20), ("splitnn+guard", 20)]:
        sets = [f"rounds={rounds}", *FIFTY]
        bed = Bed(tilp, work, f"round-{method}", method, sets=sets, cell=("quick", 50))
        alone = one_process(tilp, bed.folder, "quick", method, sets)
        bed.call("testbed", "up", "--quiet", "bed.toml")
        beside = timing(os.path.join(bed.folder, "bed/run"))
        ms = [1e3 * one["rounds_s"] / rounds for one in (alone, beside)]
        print(f"| `{method}` | {ms[0]:.0f} | {ms[1]:.0f} | {beside['plan_ms_mean']:.0f} |", flush=True)


def metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
        return {name: int(value) for name, value in re.findall(r"^(tilp_\w+) (\d+)$", page.read().decode(), re.M)}


def link(control, terminal):
    """Bytes of a terminal's link so far, both ways."""
    with socket.socket(socket.AF_UNIX) as proxy:
        proxy.connect(control)
        proxy.sendall((json.dumps({"do": "status", "version": 1, "terminal": terminal}) + "\n").encode())
        status = json.loads(proxy.recv(4096))
    return status["up_bytes"] + status["down_bytes"]


def wire_of(tilp, work, method, tls):
    """Bytes of payload and on the links between two moments of a run."""
    sets = ["rounds=4000", *FIFTY]
    bed = Bed(tilp, work, f"wire-{method}-{tls}", method, sets=sets)
    bed.call("testbed", "data", "bed.toml")
    lane, status = free_ports(6), free_ports(1)
    with open(os.path.join(bed.folder, "bed.toml"), "a") as file:
        file.write(f'status = "127.0.0.1:{status}"\n')
        file.write('tls = { server = "authority/server" }\n' if tls else "")
    # Without the evaluator: its models are no payload of training.
    text = open(os.path.join(bed.folder, "bed.toml")).read().replace("evaluator = true", "evaluator = false")
    open(os.path.join(bed.folder, "bed.toml"), "w").write(text)
    with open(os.path.join(bed.folder, "lanes.csv"), "w") as file:
        file.write("terminal,start_s,rate_bps,delay_s,outage\n" + "".join(f"{n},0,1e9,0,0\n" for n in range(6)))
    if tls:
        bed.call("enrol", "init", "authority", "--host", "localhost", "--host", "127.0.0.1")
        for n in range(6):
            token = bed.call("enrol", "token", "authority", "--terminal", str(n))
            open(os.path.join(bed.folder, "token.txt"), "w").write(token)
            bed.call("enrol", "request", f"identity-{n}", "--token-file", "token.txt")
            bed.call("enrol", "approve", "authority", f"identity-{n}/request.json")
            for name in ["ca.pem", "cert.pem"]:
                os.replace(os.path.join(bed.folder, f"authority/issued/terminal-{n}", name), os.path.join(bed.folder, f"identity-{n}", name))
    commands = {"server": ["server", "--quiet", "bed.toml"],
                "proxy": ["proxy", "lanes.csv", f"--server=127.0.0.1:{bed.port}", f"--listen=127.0.0.1:{lane}", "--control=proxy.sock"]}
    for n in range(6):
        identity = [f"--tls=identity-{n}"] if tls else []
        commands[n] = ["terminal", f"--id={n}", f"--server=127.0.0.1:{lane + n}", f"--data=bed/data/terminal-{n}.safetensors", f"--state=state-{n}", *identity]
    for who, arguments in commands.items():
        log = open(os.path.join(bed.folder, f"{who}.log"), "a")
        bed.children[who] = subprocess.Popen([tilp, *arguments], cwd=bed.folder, stdout=log, stderr=log)
    control, samples = os.path.join(bed.folder, "proxy.sock"), []
    try:
        for round_ in [20, 220]:
            while (round_of(status) or 0) < round_:
                if bed.children["server"].poll() is not None:
                    raise SystemExit(f"wire: {bed.log('server')}")
                time.sleep(0.01)
            # The base station is stopped, and what is on its way arrives.
            bed.children["server"].send_signal(19)
            time.sleep(0.5)
            on_links = sum(link(control, n) for n in range(6))
            bed.children["server"].send_signal(18)
            numbers = metrics(status)
            samples.append((numbers["tilp_payload_down_bytes_total"] + numbers["tilp_payload_up_bytes_total"], on_links, numbers["tilp_round"]))
    finally:
        bed.end()
    (payload, on_links, first), (payload_after, on_links_after, last) = samples
    return payload_after - payload, on_links_after - on_links, last - first


def wire(tilp, work):
    print("| method | TLS | rounds | MB of payload | MB on the links | more than the payload |\n|---|---|---|---|---|---|")
    for method in ["asfl+guard", "tilp", "splitnn+guard"]:
        for tls in [False, True]:
            payload, on_links, rounds = wire_of(tilp, work, method, tls)
            more = 100 * (on_links / payload - 1)
            print(f"| `{method}` | {'yes' if tls else 'no'} | {rounds} | {payload / 1e6:.2f} | {on_links / 1e6:.2f} | {more:.2f} % |", flush=True)


def thousand(tilp, work):
    for method, what in [("tilp", "decides"), ("splitfed+guard+q0.9", "broadcasts")]:
        sets = ["rounds=4", *THOUSAND]
        bed = Bed(tilp, work, f"thousand-{what}", method, sets=sets, cell=("tiny", 1000))
        text = open(os.path.join(bed.folder, "bed.toml")).read().replace("evaluator = true", "evaluator = false")
        status = free_ports(1)
        open(os.path.join(bed.folder, "bed.toml"), "w").write(f'{text}status = "127.0.0.1:{status}"\npatience_s = 600\nheartbeat_s = 10\nsilence_s = 120\n')
        alone = one_process(tilp, bed.folder, "tiny", method, sets)
        bed.call("testbed", "data", "bed.toml")
        start = time.monotonic()
        log = open(os.path.join(bed.folder, "up.log"), "w+")
        up = subprocess.Popen([tilp, "testbed", "up", "--quiet", "bed.toml"], cwd=bed.folder, stdout=log, stderr=log)
        attached, peak = 0, 0
        while up.poll() is None:
            try:
                attached, peak = max(attached, metrics(status)["tilp_parties_attached"]), max(peak, proc(up.pid)["kb"])
            except (OSError, KeyError):
                pass
            time.sleep(0.1)
        log.seek(0)
        if up.returncode != 0:
            raise SystemExit(f"thousand: exit {up.returncode}: {log.read()[-600:]}")
        times = timing(os.path.join(bed.folder, "bed/run"))
        print(f"{method}: {attached} terminals attached at most, base station at most {peak / 1024:.0f} MB; decision {times['plan_ms_mean']:.0f} ms; "
              f"a round {times['rounds_s'] / 4:.2f} s ({alone['rounds_s'] / 4:.2f} s in one process, decision {alone['plan_ms_mean']:.0f} ms); all {time.monotonic() - start:.0f} s", flush=True)


def main(tilp, parts):
    tilp = os.path.realpath(tilp)
    with tempfile.TemporaryDirectory() as work:
        for part in parts or ["round", "wire", "thousand"]:
            {"round": rounds_of, "wire": wire, "thousand": thousand}[part](tilp, work)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
