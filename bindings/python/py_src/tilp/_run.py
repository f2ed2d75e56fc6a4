"""One run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from tilp import _tilp
from tilp._allocator import Allocator
from tilp._tilp import InputError, Table
from tilp._values import overrides


class Run:
    """A run folder. Tables are read when they are asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not (self.path / "manifest.json").is_file():
            raise InputError(f"{self.path}: no manifest.json, expected the folder of a run")

    def _json(self, name: str) -> dict[str, Any]:
        try:
            text = (self.path / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InputError(f"{self.path / name}: missing, expected a finished run") from None
        found: dict[str, Any] = json.loads(text)
        return found

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The metrics."""
        return self._json("summary.json")

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Method, seed, scenario, versions and host."""
        return self._json("manifest.json")

    @cached_property
    def _tables(self) -> tuple[Table, Table, Table]:
        return _tilp.tables(self.path)

    @property
    def rounds(self) -> Table:
        """One row per round."""
        return self._tables[0]

    @property
    def terminals(self) -> Table:
        """One row per terminal and round."""
        return self._tables[1]

    @property
    def episodes(self) -> Table:
        """One row per terminal and measurement of success."""
        return self._tables[2]

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"


def run(
    scenario: str | os.PathLike[str] = "default",
    method: str | type[Allocator] | Callable[[], Allocator] = "tilp",
    *,
    seed: int = 0,
    replicate: int = 0,
    rounds: int | None = None,
    set: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_every: int = 100,
    on_round: Callable[[dict[str, Any]], object] | None = None,
) -> Run:
    """Run a method on a scenario: a built-in name or a file.

    ``set`` overrides values of the scenario by their dotted keys. ``on_round`` is called after every
    round with its row of ``rounds.csv``; an exception in it stops the run. A run that was stopped
    continues with ``resume=True``.
    """
    path = _tilp.run(
        os.fspath(scenario),
        method,
        seed,
        replicate,
        overrides(set, rounds),
        None if out is None else Path(out),
        resume,
        checkpoint_every,
        on_round,
    )
    return Run(path)
