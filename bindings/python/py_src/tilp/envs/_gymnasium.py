"""Environments for Gymnasium."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from tilp._tilp import Observation
from tilp.envs._core import Reward, TwinLike, View, info_of, make

#: Seeds of episodes are below this.
SEEDS = 2**31


class CellEnv(gymnasium.Env[Any, Any]):
    """One cell, or one twin. An episode is the training of a scenario; a step is a round.

    ``twin`` makes it the twin: a ``tilp.Twin``, the folder of a run, or ``True`` for the twin of the
    scenario before anything was measured. ``reward`` replaces the reward of the paper: a function of
    what ``info`` tells of a step. The seed of an episode draws the cell, and on the twin the fading;
    ``cell_seed`` keeps the cell the same in all episodes.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        scenario: str | os.PathLike[str] = "tiny",
        *,
        twin: TwinLike | None = None,
        observation: Observation | None = None,
        view: str = "flat",
        reward: Reward | None = None,
        set: Mapping[str, Any] | None = None,
        rounds: int | None = None,
        cell_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._copies = make(scenario, twin, observation, set, rounds, 1, 1)
        self._view = View(view, self._copies.n_terminals, self._copies.n_cuts)
        self._reward, self._cell_seed = reward, cell_seed
        self.observation_space = self._view.observation_space
        self.action_space = self._view.action_space
        self.render_mode = render_mode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(SEEDS))
        rows = self._copies.reset([0], [drawn if self._cell_seed is None else self._cell_seed])
        return self._view.observation(rows), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Execute one round."""
        actions = self._view.actions(action, 1)
        rows, ended, columns = self._copies.step(actions, self._view.mixed, [True])
        info = info_of(columns, 0)
        reward = info["reward"] if self._reward is None else float(self._reward(info))
        return self._view.observation(rows), reward, ended[0], False, info


class CellVectorEnv(VectorEnv[Any, Any, Any]):
    """Several of them, stepped at once in threads of Rust. An episode that ended restarts with the
    next step."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str | os.PathLike[str] = "tiny",
        *,
        twin: TwinLike | None = None,
        observation: Observation | None = None,
        view: str = "flat",
        reward: Reward | None = None,
        set: Mapping[str, Any] | None = None,
        rounds: int | None = None,
        cell_seed: int | None = None,
        threads: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        workers = threads or min(num_envs, os.cpu_count() or 1)
        self._copies = make(scenario, twin, observation, set, rounds, num_envs, workers)
        self._view = View(view, self._copies.n_terminals, self._copies.n_cuts)
        self._reward, self._cell_seed = reward, cell_seed
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space = self._view.observation_space
        self.single_action_space = self._view.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._over = np.zeros(num_envs, dtype=np.bool_)

    def _restart(
        self, places: Sequence[int], seeds: Sequence[int]
    ) -> npt.NDArray[np.float32]:
        own = [self._cell_seed] * len(places) if self._cell_seed is not None else list(seeds)
        return self._copies.reset(list(places), own)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in every copy."""
        if seed is None or isinstance(seed, int):
            super().reset(seed=seed)
            drawn = self.np_random.integers(SEEDS, size=self.num_envs).tolist()
        else:
            rngs = [np.random.default_rng(one) for one in seed]
            drawn = [int(one.integers(SEEDS)) for one in rngs]
        self._over[:] = False
        return self._view.observations(self._restart(range(self.num_envs), drawn)), {}

    def step(
        self, actions: Any
    ) -> tuple[Any, npt.NDArray[np.float64], Any, Any, dict[str, Any]]:
        """Execute one round in every copy; those whose episode ended start a new one instead."""
        over = np.flatnonzero(self._over).tolist()
        given = self._view.actions(actions, self.num_envs)
        active = (~self._over).tolist()
        rows, ended, columns = self._copies.step(given, self._view.mixed, active)
        if over:
            rows[over] = self._restart(over, self.np_random.integers(SEEDS, size=len(over)).tolist())
        self._over = np.asarray(ended, dtype=np.bool_)
        rewards = columns["reward"].copy()
        if self._reward is not None:
            each = range(self.num_envs)
            rewards = np.array([self._reward(info_of(columns, n)) for n in each], dtype=np.float64)
        rewards[over] = 0.0
        known = np.asarray(active, dtype=np.bool_)
        info: dict[str, Any] = dict(columns)
        info.update({f"_{name}": known & ~np.isnan(one) for name, one in columns.items()})
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        return self._view.observations(rows), rewards, self._over.copy(), truncated, info
