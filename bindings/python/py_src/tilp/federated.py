"""Runs whose terminals are elsewhere: a framework of federated learning carries the messages.

The base station and the server half run here, in :func:`run`. Each terminal is a :class:`Terminal`, in a
process of its own. Between them pass bytes only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilp import _tilp
from tilp._run import Run
from tilp._values import overrides

__all__ = ["Terminal", "run"]


class Terminal:
    """The front half of the policy with the private data of one terminal.

    ``state`` is what :meth:`save` of an earlier object gave; without it the terminal is as before the first
    round.
    """

    def __init__(
        self,
        scenario: str | os.PathLike[str],
        terminal: int,
        *,
        seed: int = 0,
        set: Mapping[str, Any] | None = None,
        state: bytes | None = None,
    ) -> None:
        self._half = _tilp.TerminalHalf(os.fspath(scenario), seed, overrides(set, None), terminal)
        if state is not None:
            self._half.restore(state)

    def handle(self, message: bytes) -> bytes:
        """The answer to a message of the server half."""
        return self._half.handle(message)

    def save(self) -> bytes:
        """Everything that changes."""
        return self._half.save()


def run(
    scenario: str | os.PathLike[str],
    exchange: Callable[[int, bytes], bytes],
    method: str = "tilp",
    *,
    seed: int = 0,
    rounds: int | None = None,
    set: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    on_round: Callable[[dict[str, Any]], object] | None = None,
) -> Run:
    """Run a method of the library with terminals behind ``exchange``.

    ``exchange(terminal, message)`` delivers a message and returns the answer. It is called from several threads,
    one for each terminal of a round. If it raises, the round completes without the terminal, which has
    left from the next round on. Radio and time are
    simulated as in :func:`tilp.run`, and with all terminals there the rows are the same.
    """
    folder = None if out is None else Path(out)
    values = overrides(set, rounds)
    path = _tilp.run_federated(os.fspath(scenario), method, seed, values, folder, exchange, on_round)
    return Run(path)
