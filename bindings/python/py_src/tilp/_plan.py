"""Plans for the user's own cell."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilp import _tilp
from tilp._values import overrides


def plan(
    observation: Mapping[str, Any],
    scenario: str | os.PathLike[str] = "default",
    *,
    set: Mapping[str, Any] | None = None,
    seed: int = 0,
    from_run: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """TiLP's decision for an observation, with its predictions and a reason for every terminal.

    Both have the fields of ``tilp plan``. With ``from_run`` the planner starts from what that run
    has learned, and the run says scenario and seed.
    """
    text = _tilp.plan(
        json.dumps(observation),
        os.fspath(scenario),
        overrides(set, None),
        seed,
        None if from_run is None else Path(from_run),
    )
    found: dict[str, Any] = json.loads(text)
    return found


def example_observation(
    scenario: str | os.PathLike[str] = "default",
    *,
    set: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """The observation of the first round of a scenario."""
    text = _tilp.example(os.fspath(scenario), overrides(set, None), seed)
    found: dict[str, Any] = json.loads(text)
    return found


def scenario_text(
    scenario: str | os.PathLike[str] = "default", *, set: Mapping[str, Any] | None = None
) -> str:
    """The complete scenario as TOML."""
    return _tilp.scenario_text(os.fspath(scenario), overrides(set, None))


def method_names() -> list[str]:
    """The methods of the library."""
    return _tilp.method_names()
