"""Runs, plans, the twin, the command, and what is refused."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tilp


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"scenario": "nowhere"}, "nowhere"),
        ({"method": "magic"}, "method"),
        ({"set": {"limits.deadline_s": -1.0}}, "deadline_s"),
        ({"set": {"limits.dead": 1.0}}, "limits.dead"),
        ({"set": {"rounds": object()}}, "expected a number"),
    ],
)
def test_bad_input_is_one_line(arguments: dict[str, object], expected: str) -> None:
    with pytest.raises(tilp.InputError) as raised:
        tilp.run(**{"scenario": "tiny", "method": "random", **arguments})  # type: ignore[arg-type]
    assert expected in str(raised.value) and "\n" not in str(raised.value)


def test_a_folder_that_is_there_is_not_written_over() -> None:
    first = tilp.run("tiny", "random", rounds=1)
    with pytest.raises(tilp.InputError, match="resume=True continues it"):
        tilp.run("tiny", "random", rounds=1)
    with pytest.raises(tilp.InputError, match="another scenario"):
        tilp.run("tiny", "random", rounds=2, out=first.path, resume=True)
    with pytest.raises(tilp.InputError, match="expected the folder of a run"):
        tilp.Run("nowhere")


def test_values_have_their_types() -> None:
    values = {"limits.deadline_s": 2, "model.cuts": [2, 3], "cell.fading": "averaged", "rounds": np.int64(7)}
    text = tilp.scenario_text("tiny", set=values)
    for line in ("deadline_s = 2.0", "rounds = 7", 'fading = "averaged"'):
        assert line in text


def test_other_threads_go_on_while_rust_works() -> None:
    ticks, done = [0], threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    tilp.run("tiny", "random", rounds=20)
    done.set()
    thread.join()
    assert ticks[0] > 20


def test_the_twin_of_a_run_predicts_a_batch_as_one_by_one() -> None:
    run = tilp.run("tiny", "random", rounds=10)
    twin = tilp.Twin.from_run(run.path)
    seen = twin.observation
    assert seen is not None and twin.rounds == 10 and twin.n_terminals == 6
    rng = np.random.default_rng(0)
    batch = tilp.Decision(
        rng.random((20, 6)) < 0.5,
        rng.random((20, 6)) * 3e7,
        rng.random((20, 6)) * 0.2,
        rng.integers(2, 7, (20, 6)),
        rng.random((20, 6)) * 0.9,
    )
    found = twin.predict(seen, batch)
    assert found.reward.shape == (20,) and found.delay_s.shape == (20, 6)
    terms = found.reward_task + found.reward_communication - found.reward_penalty
    assert np.allclose(found.reward, terms)
    for n in range(20):
        one = tilp.Decision(
            batch.scheduled[n], batch.bandwidth_hz[n], batch.power_w[n], batch.cut[n], batch.compression[n]
        )
        assert twin.predict(seen, one).latency_s == found.latency_s[n]
    assert twin.predict(seen, batch).reward.tolist() == found.reward.tolist()
    # Calibrated forecasts of what was executed are near what was measured.
    late = tilp.Twin.from_run(run.path, rounds=9)
    rows = slice(54, 60)
    table = run.terminals
    executed = tilp.Decision(
        table["scheduled"][rows],
        table["bandwidth_asked_hz"][rows],
        table["power_w"][rows],
        table["cut"][rows],
        table["compression"][rows],
    )
    delays = late.predict(seen, executed).delay_s
    measured = table["delay_observed_s"][rows]
    busy = table["took_part"][rows]
    assert np.abs(np.log(delays[busy] / measured[busy])).max() < 0.5
    with pytest.raises(tilp.InputError, match="expected 6"):
        twin.predict(seen, tilp.Decision.idle(5))


def test_a_plan_for_a_cell_of_ones_own() -> None:
    seen = tilp.example_observation("tiny")
    found = tilp.plan(seen, "tiny")
    assert found["round"] == 1 and len(found["terminals"]) == 6
    assert all(one["why"] for one in found["terminals"])
    prediction = tilp.Twin.from_scenario("tiny").predict(seen, {"terminals": found["terminals"]})
    assert prediction.latency_s == pytest.approx(found["predicted"]["latency_s"])
    del seen["terminals"][0]["gain_db"]
    with pytest.raises(tilp.InputError, match="gain"):
        tilp.plan(seen, "tiny")


def test_the_command_is_in_the_wheel() -> None:
    def tilp_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tilp", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    listed = tilp_command("scenario", "list")
    assert listed.returncode == 0 and "tiny" in listed.stdout
    run = tilp_command("run", "tiny", "--method", "random", "--rounds", "3", "--quiet")
    assert run.returncode == 0, run.stderr
    wrong = tilp_command("nonsense")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1
    # The same run from Python gives the same bytes.
    own = tilp.run("tiny", "random", rounds=3, out="own")
    theirs = tilp.Run("runs/tiny-random-0")
    for name in ("rounds.csv", "terminals.parquet", "summary.json", "model.safetensors"):
        assert (own.path / name).read_bytes() == (theirs.path / name).read_bytes()


def test_the_methods_of_the_library_are_named() -> None:
    assert {"tilp", "random", "deficit"} <= set(tilp.method_names())
