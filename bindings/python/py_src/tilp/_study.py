"""Methods against each other."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilp import _tilp
from tilp._allocator import Allocator
from tilp._run import Run
from tilp._values import overrides


class Text(str):
    """A text that a session shows as it is."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Study:
    """A finished study. Its folder has the page, the figures and the tables as files."""

    #: The folder.
    path: Path
    #: Method, seed and reason of every run that failed.
    failures: list[tuple[str, int, str]]
    _table: str
    _rows: str
    _runs: list[tuple[str, int, Path]]

    def table(self) -> Text:
        """The table over all seeds, as Markdown."""
        return Text(self._table)

    def rows(self) -> list[dict[str, str]]:
        """Every metric of every method with its interval, as in ``table.csv``."""
        return list(csv.DictReader(io.StringIO(self._rows)))

    def runs(self) -> dict[tuple[str, int], Run]:
        """The finished runs by method and seed."""
        return {(method, seed): Run(path) for method, seed, path in self._runs}


def compare(
    scenario: str | os.PathLike[str] = "default",
    methods: Sequence[str | type[Allocator] | Callable[[], Allocator]] = (),
    seeds: Iterable[int] = range(5),
    *,
    rounds: int | None = None,
    set: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    checkpoint_every: int = 100,
    on_round: Callable[[dict[str, Any]], object] | None = None,
) -> Study:
    """Run every method with every seed; without methods, those of the paper.

    Finished runs are kept, interrupted ones are resumed. A run that fails does not stop the
    others: see ``Study.failures``. ``on_round`` is called from several threads, with ``method`` and
    ``seed`` beside the row of the round.
    """
    found = _tilp.compare(
        os.fspath(scenario),
        list(methods),
        [int(seed) for seed in seeds],
        overrides(set, rounds),
        None if out is None else Path(out),
        jobs,
        checkpoint_every,
        on_round,
    )
    return Study(
        Path(found["path"]),
        found["failures"],
        found["table"],
        found["rows"],
        [(method, seed, Path(path)) for method, seed, path in found["runs"]],
    )
