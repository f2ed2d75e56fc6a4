"""Ten thousand idle connections at the door of a running base station.

    python3 tools/testbed/crowd.py target/release/tilp [CONNECTIONS [ROUNDS]]

Standard library and Linux's /proc only. A testbed of `tiny` with certificates runs; after some rounds
clients open so many connections, which say nothing, speak garbage, or stop in the middle of a handshake.
Connections that are closed are opened again until the run ends. Checks that the run ends with the bytes
of `tilp run`, that it did not stand still meanwhile, and that the base station's memory grew by less than
96 MB, the limit stated in docs/reference/testbed-protocol.md. Needs `ulimit -n` of twice the connections.
"""

import os
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import time

from check import Bed, alone
from soak import proc, round_of

MOST_GROWTH_KB = 96 * 1024
WORDS = [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\xff" * 512]


class Crowd:
    """Connections of which those that were closed are opened again."""

    def __init__(self, port, n):
        self.port, self.n, self.opened, self.most = port, n, 0, 0
        self.all, self.select = set(), selectors.DefaultSelector()

    def open(self, most):
        """Opens some of the connections that are missing."""
        for _ in range(min(most, self.n - len(self.all))):
            one = socket.socket()
            one.settimeout(2)
            try:
                one.connect(("127.0.0.1", self.port))
                one.sendall(WORDS[self.opened % len(WORDS)])
            except OSError:
                one.close()
                return
            one.setblocking(False)
            self.all.add(one)
            self.select.register(one, selectors.EVENT_READ)
            self.opened += 1
        self.most = max(self.most, len(self.all))

    def drop_closed(self):
        for key, _ in self.select.select(0):
            try:
                is_open = bool(key.fileobj.recv(4096))
            except BlockingIOError:
                is_open = True
            except OSError:
                is_open = False
            if not is_open:
                self.select.unregister(key.fileobj)
                self.all.discard(key.fileobj)
                key.fileobj.close()


def main(tilp, n=10_000, rounds=1000):
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * n + 1000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    with tempfile.TemporaryDirectory() as work:
        tilp, sets = os.path.realpath(tilp), [f"rounds={rounds}"]
        bed = Bed(tilp, work, "crowd", "asfl+guard", sets=sets)
        status = bed.port + 1
        with open(os.path.join(bed.folder, "bed.toml"), "a") as file:
            file.write(f'status = "127.0.0.1:{status}"\n')
        log = open(os.path.join(bed.folder, "up.log"), "w+")
        up = subprocess.Popen([tilp, "testbed", "up", "--quiet", "bed.toml"], cwd=bed.folder, stdout=log, stderr=log)
        while (round_of(status) or 0) < rounds // 5:
            if up.poll() is not None:
                raise SystemExit("the run ended before the crowd came")
            time.sleep(0.02)
        before, first, start = proc(up.pid), round_of(status), time.monotonic()
        crowd, peak, last = Crowd(bed.port, n), before["kb"], first
        seconds = start
        while up.poll() is None:
            crowd.open(200)
            crowd.drop_closed()
            try:
                peak = max(peak, proc(up.pid)["kb"])
            except (FileNotFoundError, KeyError, ProcessLookupError):
                break
            last, seconds = round_of(status) or last, time.monotonic()
        code = up.wait()
        growth = peak - before["kb"]
        print(f"before: {before['kb'] / 1024:.1f} MB; {crowd.opened} connections, at most {crowd.most} at a time; at most {growth / 1024:+.1f} MB meanwhile")
        print(f"rounds {first} to {last} in {seconds - start:.1f} s; exit code {code}")
        differing = bed.differing(alone(tilp, work, "asfl+guard", sets=sets))
        print("same bytes" if not differing else f"DIFFERS: {differing}")
        return 0 if code == 0 and not differing and growth < MOST_GROWTH_KB and crowd.most >= n * 0.4 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:4])))
