"""Faults in every phase of a round: is the run the one that nothing disturbed, byte by byte?

    python3 tools/testbed/kills.py target/release/tilp [PROCESS/PHASE/FAULT ...]

Standard library only; everything on the loopback interface. A cell names the process that the fault
strikes, the phase in which the run is then, and the fault. The process in which the phase takes place is
held there (TILP_HOLD) until the fault was applied; a terminal is terminal 2, whose links all pass through
`tilp proxy`.

| phase | where the run is held |
|---|---|
| deciding | the base station asks the method |
| downloading, forward, backward | terminal 2 has computed its answer and not yet written its journal |
| waiting | the base station has the activation of terminal 2 and its gradient is about to leave |
| aggregating | the base station begins to collect the copies |
| evaluating | the evaluator has counted and not yet answered |
| checkpointing | the base station collects what the checkpoint contains |

| fault | what happens |
|---|---|
| kill | SIGKILL, and the process is started again with the same command |
| stop | SIGSTOP for 10 s, which is longer than the other side accepts silence |
| cut | server: all links are closed and refused for 2 s; terminal, evaluator: its own link; proxy: its links stay and pass nothing for 6 s |

Four cells run at a time. A cell fails if its phase is not reached, too. Exit code 1 if any fails.
"""

import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from check import Bed, LONG_S, alone

PROCESSES = ["server", "terminal", "evaluator", "proxy"]
PHASES = ["deciding", "downloading", "forward", "waiting", "backward", "aggregating", "evaluating", "checkpointing"]
FAULTS = ["kill", "stop", "cut"]
METHOD = "tilp"
TERMINAL = 2
LANES = 7  # six terminals and the evaluator
EVALUATOR_LANE = 6
STOP_S, CUT_S, OUTAGE_S = 10, 2, 6
AT_ONCE = 4
# Phases before this round have little behind them.
ROUND = 4


def free_ports(n):
    """The first of n free ports in a row."""
    while True:
        sockets = []
        try:
            with socket.socket() as first:
                first.bind(("127.0.0.1", 0))
                port = first.getsockname()[1]
            for one in range(port, port + n):
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", one))
            return port
        except (OSError, OverflowError):
            continue
        finally:
            for one in sockets:
                one.close()


class Proxied(Bed):
    """A testbed whose links pass through a proxy that is fast enough not to matter."""

    def __init__(self, tilp, work, name):
        super().__init__(tilp, work, name, METHOD, extra="heartbeat_s = 0.5\nsilence_s = 4")
        self.holds = os.path.join(self.folder, "holds")
        os.makedirs(self.holds)
        self.lane = free_ports(LANES)
        rows = ["terminal,start_s,rate_bps,delay_s,outage", *[f"{n},0,1e9,0,0" for n in range(LANES)]]
        with open(os.path.join(self.folder, "lanes.csv"), "w") as file:
            file.write("\n".join(rows) + "\n")
        self.call("testbed", "data", "bed.toml")

    def start(self, who):
        lane = f"--server=127.0.0.1:{self.lane + (EVALUATOR_LANE if who == 'evaluator' else who if isinstance(who, int) else 0)}"
        arguments = {
            "server": ["server", "bed.toml", "--quiet"],
            "evaluator": ["evaluator", lane],
            "proxy": ["proxy", "lanes.csv", f"--server=127.0.0.1:{self.port}", f"--listen=127.0.0.1:{self.lane}", "--control=proxy.sock"],
        }.get(who, ["terminal", f"--id={who}", lane, f"--data=bed/data/terminal-{who}.safetensors", f"--state=state-{who}"])
        log = open(os.path.join(self.folder, f"{who}.log"), "a")
        environment = {**os.environ, "TILP_HOLD": self.holds}
        self.children[who] = subprocess.Popen([self.tilp, *arguments], cwd=self.folder, stdout=log, stderr=log, env=environment)

    def start_all(self):
        for who in ["server", "proxy", *self.ids, "evaluator"]:
            self.start(who)

    def control(self, command, lanes, on):
        """Switches lanes at the proxy."""
        for lane in lanes:
            with socket.socket(socket.AF_UNIX) as proxy:
                proxy.settimeout(10)
                proxy.connect(os.path.join(self.folder, "proxy.sock"))
                line = {"do": command, "version": 1, "terminal": lane, "on": on}
                proxy.sendall((json.dumps(line) + "\n").encode())
                if "ok" not in json.loads(proxy.recv(4096)):
                    raise SystemExit(f"proxy: {line}")

    def wait_held(self, point):
        """Waits until a process is held at a point."""
        held, until = os.path.join(self.holds, f"{point}.held"), time.monotonic() + LONG_S
        while not os.path.exists(held):
            if self.children["server"].poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{point} was not reached: {self.log('server')}")
            time.sleep(0.002)
        return held


def strike(bed, process, fault, held):
    """Applies a fault while the run is held, then lets it go on."""
    who = TERMINAL if process == "terminal" else process
    if fault == "kill":
        bed.kill(who)
        os.remove(held)
        bed.start(who)
        return
    if fault == "stop":
        bed.children[who].send_signal(signal.SIGSTOP)
        os.remove(held)
        time.sleep(STOP_S)
        bed.children[who].send_signal(signal.SIGCONT)
        return
    lanes = {"terminal": [TERMINAL], "evaluator": [EVALUATOR_LANE]}.get(process, range(LANES))
    command, seconds = ("outage", OUTAGE_S) if process == "proxy" else ("cut", CUT_S)
    bed.control(command, lanes, True)
    os.remove(held)
    time.sleep(seconds)
    bed.control(command, lanes, False)


def cell(tilp, work, wanted, name):
    process, phase, fault = name.split("/")
    bed, start = Proxied(tilp, work, name.replace("/", "-")), time.monotonic()
    point = f"{phase}-{TERMINAL}" if phase in ["downloading", "forward", "waiting", "backward"] else phase
    try:
        bed.start_all()
        if not bed.wait_for(ROUND):
            raise SystemExit(f"the run ends before round {ROUND}: {bed.log('server')}")
        open(os.path.join(bed.holds, point), "w").close()
        held = bed.wait_held(point)
        round_ = bed.round()
        strike(bed, process, fault, held)
        bed.finish()
        differing = bed.differing(wanted)
        said = f"{'same bytes' if not differing else 'DIFFERS: ' + ', '.join(differing)}, held after round {round_}"
    except (SystemExit, subprocess.SubprocessError, OSError) as error:
        differing, said = [str(error)], f"FAILED: {error}"
    finally:
        bed.end()
    print(f"{name}: {said} ({time.monotonic() - start:.1f} s)", flush=True)
    if not differing:
        shutil.rmtree(bed.folder)
    return not differing


def main(tilp, names):
    tilp, work = os.path.realpath(tilp), tempfile.mkdtemp()
    names = names or [f"{process}/{phase}/{fault}" for fault in FAULTS for phase in PHASES for process in PROCESSES]
    wanted = alone(tilp, work, METHOD)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        held = list(pool.map(lambda name: cell(tilp, work, wanted, name), names))
    print(f"{sum(held)} of {len(names)} cells leave the bytes of the undisturbed run")
    if all(held):
        shutil.rmtree(work)
    else:
        print(f"what the others left is in {work}")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
