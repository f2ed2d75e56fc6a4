"""openpi's client against `tilp policy serve`, and clients that break the rules."""

import contextlib
import logging
import os
import resource
import socket
import subprocess
import sys
import time

import numpy as np
from openpi_client import msgpack_numpy, websocket_client_policy
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

TOKEN = "a token for the check"
IDLE = 1000


class Server:
    """A server on a free port of loopback, ended by its own handle."""

    def __init__(self, program, model, *more):
        command = [program, "policy", "serve", model, "--listen", "127.0.0.1:0", *more]
        environment = {**os.environ, "TILP_TOKEN": TOKEN}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
        line = self.process.stdout.readline()
        address = line.split("ws://")[1].split(",")[0]
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(timeout=20) == 143, "SIGTERM ends the server with 143"

    def client(self):
        return websocket_client_policy.WebsocketClientPolicy(self.host, self.port, api_key=TOKEN)

    @contextlib.contextmanager
    def raw(self):
        """A socket of the same protocol that sends arbitrary data."""
        headers = {"Authorization": f"Api-Key {TOKEN}"}
        uri = f"ws://{self.host}:{self.port}"
        with connect(uri, compression=None, additional_headers=headers) as raw:
            raw.recv()
            yield raw


def observation(length):
    """A request of a LIBERO client of openpi, with a state that this policy reads."""
    return {
        "observation/image": np.zeros((224, 224, 3), np.uint8),
        "observation/wrist_image": np.zeros((224, 224, 3), np.uint8),
        "observation/state": np.linspace(-1.0, 1.0, length),
        "prompt": "pick up the cube and place it in the bin",
    }


def gets_actions(server):
    """The unmodified client gets the same finite action twice."""
    client = server.client()
    length = client.get_server_metadata()["state_length"]
    first, again = (client.infer(observation(length)) for _ in range(2))
    actions = first["actions"]
    assert actions.shape == (1, client.get_server_metadata()["action_length"]), actions.shape
    assert np.isfinite(actions).all() and (actions == again["actions"]).all()
    assert first["server_timing"]["infer_ms"] >= 0.0
    return length


def gets_actions_again(server):
    """The same, as soon as the slots of disconnected clients are free."""
    for _ in range(200):
        try:
            gets_actions(server)
            return
        except Exception as error:  # noqa: BLE001: the handshake may be cut anywhere
            last = error
            time.sleep(0.02)
    raise AssertionError("no place becomes free") from last


def refuses(server, message, expected):
    """A message is answered with a line of text, and the connection lives on."""
    with server.raw() as raw:
        raw.send(message)
        answer = raw.recv(timeout=10)
        assert isinstance(answer, str) and expected in answer, answer


def refuses_size(server):
    """A frame beyond the limit ends the connection."""
    with server.raw() as raw:
        try:
            raw.send(b"\0" * 3_000_000)
            while True:
                raw.recv(timeout=10)
        except Exception as error:  # noqa: BLE001: whichever way the library says "closed"
            assert "timed out" not in str(error), error


def refuses_without_token(server):
    """Clients without a token are refused."""
    try:
        with connect(f"ws://{server.host}:{server.port}", compression=None):
            pass
    except InvalidStatus as refusal:
        assert refusal.response.status_code == 401, refusal
        return
    raise AssertionError("a client without a token got in")


def survives_idle(server):
    """A thousand connections that say nothing do not end the server."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * IDLE), hard))
    idle = [socket.create_connection((server.host, server.port)) for _ in range(IDLE)]
    assert server.process.poll() is None
    for one in idle:
        one.close()


def main():
    """Runs every check in turn; the good client is tried again after each bad one."""
    program, model = sys.argv[1:]
    # A server that hangs up on a bad client is what is asked for, not an error to report.
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    with Server(program, model, "--message-bytes", "1000000") as server:
        length = gets_actions(server)
        print("openpi-client gets actions")
        packed = msgpack_numpy.packb
        cases = {
            "bad MessagePack": (b"\x81\xa5", "no MessagePack"),
            "no state": (packed({"prompt": "?"}), "is missing"),
            "a state of another length": (packed(observation(length + 1)), f"expected {length}"),
            "a state of words": (packed({"observation/state": "x"}), "no array of numbers"),
            "no number": (packed({"observation/state": np.full(length, np.nan)}), "finite"),
        }
        for name, (message, expected) in cases.items():
            refuses(server, message, expected)
            gets_actions(server)
            print(f"refused: {name}")
        for name, case in {
            "a frame that is too large": refuses_size,
            "no token": refuses_without_token,
            f"{IDLE} idle connections": survives_idle,
        }.items():
            case(server)
            gets_actions_again(server)
            print(f"survived: {name}")


if __name__ == "__main__":
    main()
