"""The base class of user-defined methods."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

from tilp._decision import Decision
from tilp._tilp import InputError, Observation, Outcome, TwinModel

if TYPE_CHECKING:
    from tilp._twin import Twin


@dataclass(frozen=True)
class Limits:
    """The limits of every round."""

    deadline_s: float
    bandwidth_hz: float
    power_w: float
    compression: float
    cuts: list[int]


@dataclass(frozen=True)
class Layer:
    """Costs of a cut after a layer for a terminal."""

    activation_elements: int
    operations: float
    parameter_bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class Model:
    """Sizes of the policy; the first layer is the cut after layer 1."""

    batch: int
    layers: list[Layer]


@dataclass(frozen=True)
class Hardware:
    """Hardware of a terminal by data sheet; the true values differ."""

    clock_hz: float
    operations_per_cycle: float
    energy_coefficient: float
    noise_w_per_hz: float


@dataclass(frozen=True)
class Setup:
    """Prior information of a method, before the first round."""

    scenario: str
    rounds: int
    seed: int
    aggregate_every: int
    limits: Limits
    model: Model
    tasks: list[str]
    fading_correlation: float
    hardware: list[Hardware]

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Setup:
        """The setup in a message of the exchange format."""
        own = {key: value for key, value in message.items() if key not in ("version", "type")}
        own["limits"] = Limits(**own["limits"])
        layers = [Layer(**layer) for layer in own["model"]["layers"]]
        own["model"] = Model(own["model"]["batch"], layers)
        own["hardware"] = [Hardware(**one) for one in own["hardware"]]
        return cls(**own)


class Allocator:
    """A method of your own: override ``decide``, and whatever else it needs.

    The class is instantiated without arguments, once for every run. What it declares are class
    attributes, with the meaning that they have for programs outside.
    """

    #: Name in tables and folders; that of the class if it is not set.
    name: ClassVar[str | None] = None
    #: How the participants of a round train.
    training: ClassVar[str | Mapping[str, Any]] = "parallel"
    #: Learning rates; those of the scenario if they are not set.
    server_rate: ClassVar[float | None] = None
    terminal_rate: ClassVar[float | None] = None
    #: Rounds between aggregations; those of the scenario if they are not set.
    aggregate_every: ClassVar[int | None] = None
    #: Whether a run can be resumed although the method keeps nothing between rounds.
    stateless: ClassVar[bool] = False
    #: Whether to get a twin of the cell, which learns from every round before ``learn`` is called.
    uses_twin: ClassVar[bool] = False

    #: What is known before the first round.
    setup: Setup
    #: The twin of the cell, if ``uses_twin``.
    twin: Twin

    def begin(self) -> None:
        """Called once before the first round; ``setup`` is there."""

    def decide(self, seen: Observation) -> Decision | dict[str, Any]:
        """The decision for the round seen: a ``Decision``, or a dict as in the exchange format."""
        raise NotImplementedError(f"{type(self).__name__} has no method decide")

    def learn(self, seen: Observation, decision: Decision, outcome: Outcome) -> None:
        """Called after the round with the executed decision and its observed outcome."""

    def state(self) -> Any:
        """State that the method needs to resume after this round, as plain JSON data."""
        raise NotImplementedError(f"{type(self).__name__} has no method state")

    def restore(self, state: Any) -> None:
        """Restores the result of ``state`` before a run resumes."""
        raise NotImplementedError(f"{type(self).__name__} has no method restore")


def _class_of(method: Any) -> type[Allocator]:
    """The class behind a method: a class, or a ``functools.partial`` of one."""
    found = getattr(method, "func", method)
    if isinstance(found, type) and issubclass(found, Allocator):
        return found
    kind = type(method).__name__
    raise InputError(f"method is of type {kind}, expected a name or a subclass of tilp.Allocator")


def _declaration(method: Any) -> str:
    """The declarations of a class, as JSON."""
    found = _class_of(method)
    declared: dict[str, Any] = {
        "version": 1,
        "name": found.name or found.__name__,
        "training": found.training,
    }
    for field in ("server_rate", "terminal_rate", "aggregate_every"):
        if getattr(found, field) is not None:
            declared[field] = getattr(found, field)
    if found.stateless:
        declared["state"] = "none"
    elif found.state is not Allocator.state:
        declared["state"] = "given"
    return json.dumps(declared)


def _digest(method: Any) -> str:
    """A digest of the code of a class: a run of another version of it is another run."""
    found, parts = _class_of(method), [repr(getattr(method, "args", ())), repr(getattr(method, "keywords", {}))]
    for base in found.__mro__[: found.__mro__.index(Allocator)]:
        for name, value in sorted(vars(base).items()):
            code = getattr(getattr(value, "__func__", value), "__code__", None)
            if code is not None:
                parts.append(f"{name} {_code(code)}")
            elif isinstance(value, (bool, int, float, str, tuple, list, dict)) and not name.startswith("__"):
                parts.append(f"{name} {value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _code(code: CodeType) -> str:
    """The code of a function, without its place in a file."""
    constants = [_code(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return repr((code.co_code, code.co_names, constants))


def _uses_twin(method: Any) -> bool:
    return bool(_class_of(method).uses_twin)


def _start(method: Callable[[], Allocator], setup: str, twin: TwinModel | None) -> Allocator:
    """A new object for a run."""
    from tilp._twin import Twin

    made = method()
    made.setup = Setup.from_message(json.loads(setup))
    if twin is not None:
        made.twin = Twin._of(twin)
    made.begin()
    return made


def _plain(value: Any) -> Any:
    """NumPy values as plain ones."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise InputError(f"state has a value of type {type(value).__name__}, expected plain JSON data")


def _state(method: Allocator) -> str:
    return json.dumps(method.state(), allow_nan=False, default=_plain)


def _restore(method: Allocator, state: str) -> None:
    method.restore(json.loads(state))


def _describe(error: BaseException) -> str:
    """An exception in one line: type, message, file and line."""
    message = " ".join(str(error).split())[:300]
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({PurePath(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{place}"
