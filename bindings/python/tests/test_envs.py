"""Environments: the checks of their libraries, and that cell, twin and study agree."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tilp

gymnasium = pytest.importorskip("gymnasium")
pettingzoo = pytest.importorskip("pettingzoo")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from pettingzoo.test import parallel_api_test, parallel_seed_test  # noqa: E402

from tilp.envs import CellEnv, CellVectorEnv  # noqa: E402
from tilp.envs.agent import PolicyAllocator  # noqa: E402
from tilp.envs.parallel import ParallelCellEnv  # noqa: E402

SHORT: dict[str, Any] = {"scenario": "tiny", "rounds": 4}


@pytest.mark.parametrize("view", ["flat", "dict"])
@pytest.mark.parametrize("twin", [None, True])
def test_check_env(view: str, twin: bool | None) -> None:
    env = gymnasium.make("tilp/Cell-v0", **SHORT, view=view, twin=twin)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*")
        check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("twin", [None, True])
def test_parallel_api(twin: bool | None) -> None:
    parallel_api_test(ParallelCellEnv(**SHORT, twin=twin), num_cycles=12)
    parallel_seed_test(lambda: ParallelCellEnv(**SHORT, twin=twin), num_cycles=6)


def episode(env: CellEnv, seed: int) -> list[tuple[list[float], float]]:
    seen, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    steps, over = [], False
    while not over:
        seen, reward, over, truncated, info = env.step(env.action_space.sample())
        assert not truncated and info["reward"] == reward
        steps.append((seen.tolist(), reward))
    return steps


@pytest.mark.parametrize("twin", [None, True])
def test_an_episode_is_as_long_as_the_training_and_repeats(twin: bool | None) -> None:
    env = CellEnv(**SHORT, twin=twin)
    first = episode(env, 3)
    assert len(first) == 4
    assert episode(env, 3) == first
    assert episode(CellEnv(**SHORT, twin=twin), 3) == first
    assert episode(env, 4) != first


@pytest.mark.parametrize("twin", [None, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_vector_is_its_copies_whatever_the_threads(twin: bool | None, threads: int) -> None:
    vector = gymnasium.make_vec(
        "tilp/Cell-v0", num_envs=3, vectorization_mode="vector_entry_point", **SHORT, twin=twin, threads=threads
    )
    seen, _ = vector.reset(seed=[7, 8, 9])
    actions = np.random.default_rng(0).uniform(-1, 1, (5, *vector.action_space.shape)).astype(np.float32)
    single = CellEnv(**SHORT, twin=twin)
    first, _ = single.reset(seed=8)
    assert (first == seen[1]).all()
    for n in range(4):
        rows, rewards, over, _, info = vector.step(actions[n])
        row, reward, ended, _, one = single.step(actions[n][1])
        assert (rows[1] == row).all() and rewards[1] == reward and over[1] == ended
        assert info["latency_s"][1] == one["latency_s"]
    assert over.all()
    rows, rewards, over, _, info = vector.step(actions[4])
    assert (rewards == 0).all() and not over.any() and not info["_reward"].any()
    assert vector.observation_space.contains(rows)


def test_a_reward_of_ones_own() -> None:
    env = CellEnv(**SHORT, twin=True, reward=lambda info: -info["energy_j"])
    env.reset(seed=0)
    _, reward, _, _, info = env.step(env.action_space.sample())
    assert reward == -info["energy_j"] < 0
    vector = CellVectorEnv(2, **SHORT, twin=True, reward=lambda info: info["n_late"] + 1.0)
    vector.reset(seed=0)
    assert (vector.step(vector.action_space.sample())[1] >= 1.0).all()


class Constant(PolicyAllocator):
    """The same action in every round."""

    name = "constant"
    action = np.tile([0.5, 0.2, 1.0, -1.0, 1.0], 6)
    seen: list[list[float]] = []

    def act(self, observation: Any) -> Any:
        self.seen.append(observation.tolist())
        return self.action


def test_a_policy_sees_in_a_run_what_it_saw_in_the_environment() -> None:
    Constant.seen.clear()
    run = tilp.run("tiny", Constant, seed=5, rounds=4)
    env = CellEnv(**SHORT, cell_seed=5)
    seen, _ = env.reset()
    for n in range(4):
        assert seen.tolist() == Constant.seen[n]
        seen, _, over, _, info = env.step(Constant.action.astype(np.float64))
        assert info["duration_s"] == run.rounds["duration_s"][n]
    assert over


def test_the_twin_of_a_run_is_an_environment() -> None:
    run = tilp.run("tiny", "random", rounds=10)
    env = CellEnv(twin=run.path, rounds=5)
    assert len(episode(env, 0)) == 5
    twin = tilp.Twin.from_run(run.path, rounds=5)
    assert twin.observation is not None
    env = CellEnv(twin=twin, observation=twin.observation, rounds=3)
    assert len(episode(env, 1)) == 3


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"view": "round"}, "view = 'round'"),
        ({"scenario": "nowhere"}, "nowhere"),
        ({"twin": "nowhere"}, "nowhere"),
        ({"num_envs": 0}, "n_envs = 0"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(tilp.InputError, match=expected):
        CellVectorEnv(**{"num_envs": 1, **SHORT, **arguments})


def test_an_action_that_is_no_number_is_refused() -> None:
    env = CellEnv(**SHORT, twin=True)
    env.reset(seed=0)
    action = np.ones(env.action_space.shape)
    action[1] = np.nan
    with pytest.raises(tilp.TilpError, match=r"actions\[0, 1\] = NaN"):
        env.step(action)
