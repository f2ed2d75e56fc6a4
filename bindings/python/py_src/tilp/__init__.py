"""Planning and simulation of federated split learning over a wireless cell.

``run`` runs a method on a scenario, ``compare`` several methods with several seeds, ``plan`` decides one
round for a cell of your own. ``Allocator`` is the base class of a method of your own, ``Twin`` TiLP's
model of a cell. ``tilp.envs`` has environments for Gymnasium and PettingZoo.
"""

from tilp._allocator import Allocator, Hardware, Layer, Limits, Model, Setup
from tilp._decision import Decision
from tilp._plan import example_observation, method_names, plan, scenario_text
from tilp._profile import profile_torch
from tilp._run import Run, run
from tilp._study import Study, Text, compare
from tilp._tilp import (
    InputError,
    Observation,
    Outcome,
    RunError,
    Table,
    TilpError,
    __version__,
)
from tilp._twin import Prediction, Twin

__all__ = [
    "Allocator",
    "Decision",
    "Hardware",
    "InputError",
    "Layer",
    "Limits",
    "Model",
    "Observation",
    "Outcome",
    "Prediction",
    "Run",
    "RunError",
    "Setup",
    "Study",
    "Table",
    "Text",
    "TilpError",
    "Twin",
    "__version__",
    "compare",
    "example_observation",
    "method_names",
    "plan",
    "profile_torch",
    "run",
    "scenario_text",
]
