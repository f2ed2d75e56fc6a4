"""Arrays without copies, tables for Arrow."""

from __future__ import annotations

import csv
import json
from typing import Any

import numpy as np
import pytest
from methods import EvenShare

import tilp

SEEN: list[tilp.Observation] = []


class Keeping(EvenShare):
    def decide(self, seen: tilp.Observation) -> tilp.Decision:
        SEEN.append(seen)
        return super().decide(seen)

    def learn(self, seen: tilp.Observation, decision: tilp.Decision, outcome: tilp.Outcome) -> None:
        assert len(outcome) == len(seen) == len(decision)
        assert outcome.round == seen.round and outcome.took_part.dtype == np.bool_
        assert np.isfinite(outcome.delay_s).all() and outcome.duration_s > 0
        assert decision.scheduled.all()


def test_observation_arrays_are_not_copied() -> None:
    SEEN.clear()
    run = tilp.run("tiny", Keeping, rounds=2)
    seen = SEEN[0]
    for name in (*seen.reals, *seen.wholes):
        array = getattr(seen, name)
        assert array.__array_interface__["data"][0] == seen.address(name)
        assert array.base is seen and not array.flags.writeable and not array.flags.owndata
        assert array.shape == (len(seen),)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert np.shares_memory(seen.table, seen.gain)
    # An array outlives every other reference to its observation.
    gain = seen.gain
    expected = gain.copy()
    SEEN.clear()
    del seen, array
    assert (gain == expected).all()
    assert run.terminals["gain"][: len(gain)].tolist() == gain.tolist()


def test_an_observation_is_the_one_that_programs_get() -> None:
    SEEN.clear()
    tilp.run("tiny", Keeping, rounds=2)
    seen = SEEN[1]
    message = json.loads(seen.to_json())
    assert message["round"] == seen.round == 2
    terminals = message["terminals"]
    assert [one["gain"] for one in terminals] == seen.gain.tolist()
    losses = [None if np.isnan(loss) else loss for loss in seen.loss.tolist()]
    assert [one["loss"] for one in terminals] == losses and any(losses)
    assert [seen.tasks[task] for task in seen.task] == [one["task"] for one in terminals]


def test_tables_are_those_of_the_files() -> None:
    run = tilp.run("tiny", "random", rounds=10)
    with (run.path / "rounds.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert run.rounds.column_names == list(rows[0])
    assert run.rounds["latency_s"].tolist() == [float(row["latency_s"]) for row in rows]
    assert len(run.terminals) == 60 and "task_name" in run.terminals
    assert run.terminals["scheduled"].dtype == np.bool_
    assert np.isnan(run.rounds["report_success"][0]) and np.isfinite(run.rounds["report_success"][9])
    latency = run.rounds["latency_s"]
    assert latency.base is run.rounds and not latency.flags.writeable
    with pytest.raises(KeyError, match="no column"):
        run.rounds["nothing"]


def test_arrow_reads_tables() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    run = tilp.run("tiny", "random", rounds=10)
    table = pyarrow.table(run.terminals)
    table.validate(full=True)
    written = parquet.read_table(run.path / "terminals.parquet")
    assert table.column_names == written.column_names
    for name in written.column_names:
        ours, theirs = table[name].to_pylist(), written[name].to_pylist()
        assert [str(one) for one in ours] == [str(one) for one in theirs], name
    rounds = pyarrow.table(run.rounds)
    rounds.validate(full=True)
    assert rounds["report_success"].null_count == 9
    assert rounds["aggregated"].to_pylist() == run.rounds["aggregated"].tolist()
    assert set(pyarrow.table(run.episodes)["kind"].to_pylist()) == {"calibration", "report", "final"}


def test_callbacks_get_every_round_as_it_is_written() -> None:
    rows: list[dict[str, Any]] = []
    run = tilp.run("tiny", "random", rounds=10, on_round=rows.append)
    assert list(rows[0]) == run.rounds.column_names
    for name in ("round", "latency_s", "n_late", "aggregated"):
        assert [row[name] for row in rows] == run.rounds[name].tolist()
    assert rows[0]["report_success"] is None and rows[9]["report_success"] is not None
