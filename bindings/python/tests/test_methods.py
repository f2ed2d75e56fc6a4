"""Methods that are Python classes: the same decisions as in Rust and as a program, resumed, failing."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from methods import EvenShare, Failing, Roots

import tilp

PROGRAM = Path(__file__).parents[3] / "crates/tilp/tests/it/programs/roots.py"
DECIDED = ("scheduled", "bandwidth_asked_hz", "power_w", "cut", "compression")
FILES = ("rounds.csv", "terminals.parquet", "episodes.parquet", "summary.json", "model.safetensors")


def decisions(run: tilp.Run) -> list[bytes]:
    return [run.terminals[name].tobytes() for name in DECIDED]


def files(run: tilp.Run) -> list[bytes]:
    return [(run.path / name).read_bytes() for name in FILES]


def test_the_same_rule_in_rust_and_in_python_decides_the_same_to_the_last_bit() -> None:
    rust = tilp.run("tiny", "splitfed", rounds=6)
    python = tilp.run("tiny", EvenShare, rounds=6)
    assert decisions(python) == decisions(rust)
    assert python.terminals["scheduled"].all()


def test_with_the_same_rates_the_whole_run_is_the_same(empty_folder: Path) -> None:
    rates = {"server_rate": 0.03, "terminal_rate": 0.1}

    class Same(EvenShare):
        aggregate_every = 1
        server_rate = rates["server_rate"]
        terminal_rate = rates["terminal_rate"]

    values = {"methods.rates.splitfed": rates}
    rust = tilp.run("tiny", "splitfed", rounds=6, set=values)
    python = tilp.run("tiny", Same, rounds=6, set=values)
    assert files(python)[1:3] == files(rust)[1:3]
    assert files(python)[4] == files(rust)[4]


def test_a_class_and_a_program_decide_the_same_to_the_last_bit() -> None:
    command = f"exec:{sys.executable} '{PROGRAM}'"
    program = tilp.run("tiny", command, rounds=8, out="program")
    own = tilp.run("tiny", Roots, rounds=8, out="own")
    assert decisions(own) == decisions(program)
    assert files(own) == files(program)


def test_a_method_with_a_state_goes_on_where_it_was() -> None:
    whole = tilp.run("tiny", Roots, rounds=9, out="whole")

    def stop(row: dict[str, Any]) -> None:
        if row["round"] == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tilp.run("tiny", Roots, rounds=9, out="parts", on_round=stop)
    assert not (Path("parts") / "summary.json").exists()
    parts = tilp.run("tiny", Roots, rounds=9, out="parts", resume=True)
    assert files(parts) == files(whole)
    # A finished run is kept as it is.
    assert tilp.run("tiny", Roots, rounds=9, out="parts", resume=True).summary == whole.summary


def test_a_method_without_a_state_cannot_be_resumed() -> None:
    class Mute(Roots):
        state = tilp.Allocator.state

    def stop(row: dict[str, Any]) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tilp.run("tiny", Mute, rounds=4, out="mute", on_round=stop)
    with pytest.raises(tilp.InputError, match="stateless = True"):
        tilp.run("tiny", Mute, rounds=4, out="mute", resume=True)


def test_an_exception_ends_the_run_with_its_reason() -> None:
    with pytest.raises(tilp.RunError) as raised:
        tilp.run("tiny", Failing, rounds=6)
    message = str(raised.value)
    assert message.startswith("round 3: the method failed: ValueError: no idea what to do (methods.py")
    assert "\n" not in message
    assert isinstance(raised.value.__cause__, ValueError)


def test_an_exception_does_not_stop_a_study() -> None:
    study = tilp.compare("tiny", ["random", EvenShare, Failing], seeds=range(2), rounds=4)
    assert [(method, seed) for method, seed, _ in study.failures] == [("failing", 0), ("failing", 1)]
    assert all("ValueError: no idea" in reason for _, _, reason in study.failures)
    assert sorted(study.runs()) == [(name, seed) for name in ("even-share", "random") for seed in (0, 1)]
    table = study.table()
    assert "even-share" in table and "2 failed" in table and repr(table) == str(table)
    rows = study.rows()
    assert {row["method"] for row in rows} == {"random", "even-share", "failing"}
    assert (study.path / "report.html").is_file()
    # The command of the wheel reads a study with a method that only Python knows.
    from tilp import _tilp

    assert _tilp.command(["tilp", "report", str(study.path)]) == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "decision is of type NoneType, expected a tilp.Decision or a dict"),
        ({"terminals": []}, "0 terminals, expected 6"),
        (tilp.Decision.idle(5), "5 terminals, expected 6"),
        (tilp.Decision.idle(6, cut=9), "cut = 9, expected 0 to 8"),
        (tilp.Decision(np.ones(6, bool), np.nan, 0.1, 2), "bandwidth_hz = NaN"),
        (tilp.Decision.idle(6, batch=2), "a batch of decisions, expected one"),
    ],
)
def test_what_is_no_decision_is_refused_in_one_line(given: Any, expected: str) -> None:
    class Given(tilp.Allocator):
        def decide(self, seen: tilp.Observation) -> Any:
            return given

    with pytest.raises(tilp.RunError) as raised:
        tilp.run("tiny", Given, rounds=1)
    assert expected in str(raised.value) and "\n" not in str(raised.value)


def test_a_class_that_cannot_be_made_ends_the_run() -> None:
    class Unmade(EvenShare):
        def begin(self) -> None:
            raise OSError("no weights")

    with pytest.raises(tilp.RunError, match="OSError: no weights"):
        tilp.run("tiny", Unmade, rounds=1)


def test_runs_of_another_version_of_a_class_are_not_taken_for_its_own() -> None:
    def version(power: float) -> type[tilp.Allocator]:
        if power < 0.15:

            class Mine(EvenShare):
                name = "mine"
        else:

            class Mine(EvenShare):  # type: ignore[no-redef]
                name = "mine"
                cut = 3

        return Mine

    first, second = version(0.1), version(0.2)
    tilp.compare("tiny", [first, "random"], seeds=[0], rounds=2)
    assert tilp.compare("tiny", [first, "random"], seeds=[0, 1], rounds=2).failures == []
    with pytest.raises(tilp.InputError, match="another version of the class mine"):
        tilp.compare("tiny", [second, "random"], seeds=[0, 1], rounds=2)


def test_a_partial_gives_a_class_its_knobs() -> None:
    class Knob(EvenShare):
        def __init__(self, cut: int) -> None:
            self.cut = cut

    run = tilp.run("tiny", functools.partial(Knob, 3), rounds=1)
    assert set(run.terminals["cut"].tolist()) == {3}


def test_bad_declarations_are_refused() -> None:
    class Rates(EvenShare):
        server_rate = -1.0

    class Named(EvenShare):
        name = "a/b"

    for given, expected in [
        (Rates, "server_rate = -1"),
        (Named, "letters, digits"),
        (EvenShare(), "subclass of tilp.Allocator"),
        (3, "is of type int"),
    ]:
        with pytest.raises(tilp.InputError, match=expected):
            tilp.run("tiny", given, rounds=1)  # type: ignore[arg-type]


def test_a_method_may_use_the_twin() -> None:
    class Best(EvenShare):
        uses_twin = True

        def decide(self, seen: tilp.Observation) -> tilp.Decision:
            n, limits = len(seen), self.setup.limits
            each = tilp.Decision.idle(n, limits.cuts[0], batch=n)
            each.scheduled[np.arange(n), np.arange(n)] = True
            each.bandwidth_hz[:], each.power_w[:] = limits.bandwidth_hz, limits.power_w
            found = self.twin.predict(seen, each)
            assert self.twin.rounds == seen.round - 1
            best = int(np.argmax(found.reward))
            return tilp.Decision(each.scheduled[best], limits.bandwidth_hz, limits.power_w, 2)

    run = tilp.run("tiny", Best, rounds=5)
    assert run.rounds["n_scheduled"].tolist() == [1] * 5
