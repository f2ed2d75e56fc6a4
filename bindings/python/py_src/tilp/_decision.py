"""Decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tilp._tilp import InputError

if TYPE_CHECKING:
    _Flags = npt.NDArray[np.bool_]
    _Reals = npt.NDArray[np.float64]
    _Wholes = npt.NDArray[np.int64]


class Decision:
    """The decision for every terminal in a round; arrays have one entry per terminal of the observation.

    With a leading axis the arrays are a batch of decisions, as ``Twin.predict`` takes it.
    """

    __slots__ = (
        "scheduled",
        "bandwidth_hz",
        "power_w",
        "cut",
        "compression",
        "fallback",
        "order",
        "tiers",
    )

    def __init__(
        self,
        scheduled: npt.ArrayLike,
        bandwidth_hz: npt.ArrayLike,
        power_w: npt.ArrayLike,
        cut: npt.ArrayLike,
        compression: npt.ArrayLike = 0.0,
        *,
        fallback: bool = False,
        order: Sequence[int] = (),
        tiers: tuple[int, bool, int, bool] | None = None,
    ) -> None:
        """A single value for an array but ``scheduled`` holds for every terminal."""
        self.scheduled: _Flags = np.asarray(scheduled, dtype=np.bool_)
        shape = self.scheduled.shape
        self.bandwidth_hz: _Reals = _filled("bandwidth_hz", bandwidth_hz, shape, np.float64)
        self.power_w: _Reals = _filled("power_w", power_w, shape, np.float64)
        self.cut: _Wholes = _filled("cut", cut, shape, np.int64)
        self.compression: _Reals = _filled("compression", compression, shape, np.float64)
        self.fallback = fallback
        self.order = list(order)
        self.tiers = tiers

    @classmethod
    def idle(cls, n_terminals: int, cut: int = 1, batch: int | None = None) -> Decision:
        """No terminal scheduled, every terminal at ``cut``; with ``batch`` that number of such decisions."""
        shape = (n_terminals,) if batch is None else (batch, n_terminals)
        return cls(np.zeros(shape, dtype=np.bool_), 0.0, 0.0, cut)

    def __len__(self) -> int:
        """Number of terminals."""
        return int(self.scheduled.shape[-1])

    def __repr__(self) -> str:
        scheduled = np.flatnonzero(self.scheduled).tolist() if self.scheduled.ndim == 1 else "batch"
        return f"Decision(n_terminals={len(self)}, scheduled={scheduled})"

    def _columns(self) -> tuple[Any, ...]:
        scheduled = np.atleast_2d(np.asarray(self.scheduled, dtype=np.bool_))
        shape = scheduled.shape
        if scheduled.ndim != 2:
            raise InputError(f"scheduled has {scheduled.ndim} axes, expected 1, or 2 for a batch")
        return (
            scheduled,
            _filled("bandwidth_hz", self.bandwidth_hz, shape, np.float64),
            _filled("power_w", self.power_w, shape, np.float64),
            _filled("cut", self.cut, shape, np.int64),
            _filled("compression", self.compression, shape, np.float64),
        )


def _filled(name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    array = np.asarray(value)
    if dtype is np.int64 and not np.issubdtype(array.dtype, np.integer):
        if not np.all(array == np.floor(array)):
            raise InputError(f"{name} has values that are no whole numbers, expected layers")
    try:
        whole = np.broadcast_to(array.astype(dtype), shape)
    except ValueError:
        message = f"{name} has shape {array.shape}, expected {shape} or a single value"
        raise InputError(message) from None
    return whole.copy()
