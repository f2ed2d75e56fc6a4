"""One agent per terminal, for PettingZoo."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import ParallelEnv

from tilp._tilp import Observation
from tilp.envs._core import (
    BOUND,
    CELL_FEATURES,
    N_ACTIONS,
    TERMINAL_FEATURES,
    Reward,
    TwinLike,
    info_of,
    make,
)
from tilp.envs._gymnasium import SEEDS

Rows = dict[str, npt.NDArray[np.float32]]


class ParallelCellEnv(ParallelEnv[str, Any, Any]):
    """A cell, or its twin, in which every terminal is an agent. All agents get the same reward.

    An agent sees the features of the cell and of its own terminal. Its action are five numbers
    between -1 and 1: whether to take part, weight in sharing the band, power, cut, compression.
    """

    metadata = {"name": "tilp/Cell-v0", "render_modes": [], "is_parallelizable": True}

    def __init__(
        self,
        scenario: str | os.PathLike[str] = "tiny",
        *,
        twin: TwinLike | None = None,
        observation: Observation | None = None,
        reward: Reward | None = None,
        set: Mapping[str, Any] | None = None,
        rounds: int | None = None,
        cell_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._copies = make(scenario, twin, observation, set, rounds, 1, 1)
        self._reward, self._cell_seed = reward, cell_seed
        self._rng = np.random.default_rng()
        self.render_mode = render_mode
        self.possible_agents = [f"terminal_{n}" for n in range(self._copies.n_terminals)]
        self.agents: list[str] = []
        length = len(CELL_FEATURES) + len(TERMINAL_FEATURES)
        self._seen = {
            agent: spaces.Box(-BOUND, BOUND, (length,), np.float32) for agent in self.possible_agents
        }
        self._done = {
            agent: spaces.Box(-1.0, 1.0, (N_ACTIONS,), np.float32) for agent in self.possible_agents
        }

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The observation space of an agent."""
        return self._seen[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The action space of an agent."""
        return self._done[agent]

    def _rows(self, rows: npt.NDArray[np.float32]) -> Rows:
        cell, terminals = np.split(rows[0], [len(CELL_FEATURES)])
        own = terminals.reshape(len(self.possible_agents), len(TERMINAL_FEATURES))
        return {agent: np.concatenate([cell, own[n]]) for n, agent in enumerate(self.possible_agents)}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Rows, dict[str, dict[str, Any]]]:
        """Start an episode."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        drawn = int(self._rng.integers(SEEDS))
        rows = self._copies.reset([0], [drawn if self._cell_seed is None else self._cell_seed])
        self.agents = list(self.possible_agents)
        return self._rows(rows), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[Rows, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Execute one round. An agent without an action does not take part."""
        idle = np.full(N_ACTIONS, -1.0)
        given = [np.asarray(actions.get(agent, idle), np.float64) for agent in self.possible_agents]
        rows, ended, columns = self._copies.step(np.concatenate(given)[None, :], False, [True])
        info = info_of(columns, 0)
        reward = info["reward"] if self._reward is None else float(self._reward(info))
        agents = self.agents
        self.agents = [] if ended[0] else agents
        return (
            self._rows(rows),
            {agent: reward for agent in agents},
            {agent: ended[0] for agent in agents},
            {agent: False for agent in agents},
            {agent: dict(info) for agent in agents},
        )

    def render(self) -> None:
        """There is nothing to show; ``tilp dash`` shows runs."""

    def close(self) -> None:
        """Nothing has to be closed."""
