"""Runs whose terminals are behind a function."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import tilp
from tilp.federated import Terminal, run

VALUES = {"cell.n_terminals": 4}


def same(one: Path, other: Path) -> bool:
    names = ("rounds.csv", "terminals.parquet", "model.safetensors", "summary.json", "events.jsonl")
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_terminals_elsewhere_leave_the_bytes_of_a_simulation() -> None:
    alone = tilp.run("tiny", rounds=8, set=VALUES, out="alone")
    lock = threading.Lock()
    states: dict[int, bytes] = {}

    def exchange(terminal: int, message: bytes) -> bytes:
        # Every message is answered by a new object, as in a process of its own.
        half = Terminal("tiny", terminal, set={**VALUES, "rounds": 8}, state=states.get(terminal))
        answer = half.handle(message)
        with lock:
            states[terminal] = half.save()
        return answer

    rows: list[dict[str, object]] = []
    remote = run("tiny", exchange, rounds=8, set=VALUES, out="remote", on_round=rows.append)
    assert same(alone.path, remote.path)
    assert len(rows) == 8 and states.keys() == {0, 1, 2, 3}


def test_a_terminal_that_is_gone_is_left_out() -> None:
    halves = {n: Terminal("tiny", n, set={**VALUES, "rounds": 12}) for n in range(4)}
    reached: set[int] = set()

    def exchange(terminal: int, message: bytes) -> bytes:
        if terminal == 2 and len(reached) == 4:
            raise ConnectionError("gone")
        reached.add(terminal)
        return halves[terminal].handle(message)

    done = run("tiny", exchange, "asfl", rounds=12, set=VALUES, out="gone")
    # A terminal that does not answer has left from the next round on.
    rows = done.terminals
    lost, later = rows["terminal"] == 2, rows["round"] > 3
    assert len(done.rounds) == 12 and not (lost & later).any()
    assert rows["took_part"][later].any()


def test_bad_terminals_and_messages_are_refused() -> None:
    with pytest.raises(tilp.InputError, match="terminal = 9, expected 0 to 3"):
        Terminal("tiny", 9, set=VALUES)
    half = Terminal("tiny", 0, set=VALUES)
    with pytest.raises(tilp.InputError):
        half.handle(b"hello")
    with pytest.raises(tilp.InputError):
        Terminal("tiny", 0, set=VALUES, state=b"hello")
    with pytest.raises(tilp.InputError, match="method = nonsense"):
        run("tiny", lambda terminal, message: b"", "nonsense")
