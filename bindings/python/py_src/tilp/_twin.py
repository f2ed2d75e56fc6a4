"""The digital twin."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tilp._decision import Decision
from tilp._tilp import Observation, TwinModel
from tilp._values import overrides

if TYPE_CHECKING:
    _Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """The twin's prediction for a round. For a batch of decisions every array has a leading axis."""

    #: Slowest scheduled terminal, in seconds.
    latency_s: _Reals
    #: By how much the clock advances.
    duration_s: _Reals
    #: Energy of all terminals involved.
    energy_j: _Reals
    #: Violation of deadline, memory and spectrum, relative to the limits.
    violation: _Reals
    n_scheduled: _Reals
    #: Scheduled terminals that miss the deadline or do not fit their memory.
    n_late: _Reals
    #: Mean loss of the terminals, before minus after.
    loss_decrease: _Reals
    #: Success at the end of training, as it looks after the round.
    success: _Reals
    #: The reward of the round and its three terms.
    reward: _Reals
    reward_task: _Reals
    reward_communication: _Reals
    reward_penalty: _Reals
    #: Success at the end of training, as it looks before the round.
    success_before: float
    #: Delay and energy of each terminal: the last axis.
    delay_s: _Reals
    terminal_energy_j: _Reals


class Twin:
    """TiLP's model of a cell: predicts the effect of a decision."""

    _model: TwinModel

    def __init__(self) -> None:
        raise TypeError("a Twin is made by Twin.from_run or Twin.from_scenario")

    @classmethod
    def _of(cls, model: TwinModel) -> Twin:
        own = object.__new__(cls)
        own._model = model
        return own

    @classmethod
    def from_run(cls, path: str | os.PathLike[str], rounds: int | None = None) -> Twin:
        """The twin of a run, calibrated by all of its rounds, or by the first so many."""
        return cls._of(TwinModel.from_run(Path(path), rounds))

    @classmethod
    def from_scenario(
        cls,
        scenario: str | os.PathLike[str],
        *,
        seed: int = 0,
        set: Mapping[str, Any] | None = None,
    ) -> Twin:
        """The twin of a scenario before anything was measured."""
        return cls._of(TwinModel.of_scenario(os.fspath(scenario), overrides(set, None), seed))

    @property
    def rounds(self) -> int:
        """Rounds that it learned from."""
        return self._model.rounds

    @property
    def n_terminals(self) -> int:
        """Terminals that are present."""
        return self._model.n_terminals

    @property
    def observation(self) -> Observation | None:
        """The observation before the last round of its calibration."""
        return self._model.observation

    def predict(
        self,
        observation: Observation | Mapping[str, Any],
        decisions: Decision | dict[str, Any],
    ) -> Prediction:
        """The predicted effect of each decision in the observed round. A batch is computed in parallel.

        The observation may also be a dict with the fields that ``tilp plan`` reads.
        """
        given = observation if isinstance(observation, Observation) else json.dumps(observation)
        columns = self._model.predict(given, decisions)
        if isinstance(decisions, dict) or decisions.scheduled.ndim == 1:
            single = {name: one[0] for name, one in columns.items() if name != "success_before"}
            columns = {**columns, **single}
        return Prediction(**columns)

    def __repr__(self) -> str:
        return f"Twin(n_terminals={self.n_terminals}, rounds={self.rounds})"
