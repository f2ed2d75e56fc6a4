"""The common part of all environments: the copies behind them, and their views."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from tilp._tilp import Envs, InputError, Observation
from tilp._twin import Twin
from tilp._values import overrides

#: A user-defined reward, computed from the ``info`` of a step.
Reward = Callable[[Mapping[str, float]], float]
#: A twin, the folder of a run to make it from, or ``True`` for the one of the scenario.
TwinLike = Union[Twin, str, "os.PathLike[str]", bool]

#: Numbers of an action for one terminal: schedule, bandwidth, power, cut, compression.
N_ACTIONS = 5
CELL_FEATURES, TERMINAL_FEATURES, BOUND = Envs.features()


def make(
    scenario: str | os.PathLike[str],
    twin: TwinLike | None,
    observation: Observation | None,
    values: Mapping[str, Any] | None,
    rounds: int | None,
    n_envs: int,
    threads: int,
) -> Envs:
    """Copies of the cell, or of the twin if there is one."""
    if n_envs < 1 or threads < 1:
        raise InputError(f"n_envs = {n_envs}, threads = {threads}, expected at least 1")
    if twin is None or twin is False:
        return Envs.of_cell(os.fspath(scenario), overrides(values, rounds), n_envs, threads)
    if twin is True:
        found = Twin.from_scenario(scenario, set=values)
    elif isinstance(twin, Twin):
        found = twin
    else:
        found = Twin.from_run(Path(twin))
    return Envs.of_twin(found._model, observation, rounds or 100, n_envs, threads)


class View:
    """How observations and actions look: ``flat`` boxes, or ``dict`` with the mixed action."""

    def __init__(self, kind: str, n_terminals: int, n_cuts: int) -> None:
        from gymnasium import spaces

        self.mixed = kind == "dict"
        self.n_terminals = n_terminals
        shape = (n_terminals, len(TERMINAL_FEATURES))
        length = len(CELL_FEATURES) + shape[0] * shape[1]
        self.observation_space: spaces.Space[Any]
        self.action_space: spaces.Space[Any]
        if kind == "flat":
            self.observation_space = spaces.Box(-BOUND, BOUND, (length,), np.float32)
            self.action_space = spaces.Box(-1.0, 1.0, (N_ACTIONS * n_terminals,), np.float32)
        elif kind == "dict":
            shares = spaces.Box(0.0, 1.0, (n_terminals,), np.float32)
            self.observation_space = spaces.Dict(
                {
                    "cell": spaces.Box(-BOUND, BOUND, (len(CELL_FEATURES),), np.float32),
                    "terminals": spaces.Box(-BOUND, BOUND, shape, np.float32),
                }
            )
            self.action_space = spaces.Dict(
                {
                    "scheduled": spaces.MultiBinary(n_terminals),
                    "bandwidth": shares,
                    "power": spaces.Box(0.0, 1.0, (n_terminals,), np.float32),
                    "cut": spaces.MultiDiscrete([n_cuts] * n_terminals),
                    "compression": spaces.Box(0.0, 1.0, (n_terminals,), np.float32),
                }
            )
        else:
            raise InputError(f"view = {kind!r}, expected 'flat' or 'dict'")

    def actions(self, given: Any, n_envs: int) -> npt.NDArray[np.float64]:
        """Actions as the copies take them: a row per copy, five numbers per terminal."""
        shape = (n_envs, self.n_terminals)
        if self.mixed:
            names = ("scheduled", "bandwidth", "power", "cut", "compression")
            columns = [np.asarray(given[name], dtype=np.float64).reshape(shape) for name in names]
            return np.stack(columns, axis=-1).reshape(n_envs, -1)
        return np.asarray(given, dtype=np.float64).reshape(n_envs, N_ACTIONS * self.n_terminals)

    def observations(self, rows: npt.NDArray[np.float32]) -> Any:
        """The observations of the copies, with the rows of all copies."""
        if not self.mixed:
            return rows
        cell, terminals = np.split(rows, [len(CELL_FEATURES)], axis=1)
        shape = (len(rows), self.n_terminals, len(TERMINAL_FEATURES))
        return {"cell": cell, "terminals": terminals.reshape(shape)}

    def observation(self, rows: npt.NDArray[np.float32]) -> Any:
        """The observation of the only copy."""
        found = self.observations(rows)
        return {key: one[0] for key, one in found.items()} if self.mixed else found[0]


def info_of(columns: Mapping[str, npt.NDArray[np.float64]], place: int) -> dict[str, float]:
    """The ``info`` of one copy; values without a measurement are left out."""
    found = {name: float(one[place]) for name, one in columns.items()}
    return {name: value for name, value in found.items() if not math.isnan(value)}
