"""Methods that the tests use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tilp


class EvenShare(tilp.Allocator):
    """What `splitfed` does in Rust: everybody, an even share each, one cut, nothing compressed."""

    name = "even-share"
    stateless = True
    cut = 2

    def decide(self, seen: tilp.Observation) -> tilp.Decision:
        limits, n = self.setup.limits, len(seen)
        everybody = np.ones(n, dtype=np.bool_)
        return tilp.Decision(everybody, limits.bandwidth_hz / n, limits.power_w, self.cut)


class Roots(tilp.Allocator):
    """Terminals in turn, shares of the band by square roots. It remembers who took part."""

    name = "roots"

    def begin(self) -> None:
        self.counts: list[int] = []

    def decide(self, seen: tilp.Observation) -> tilp.Decision:
        limits, n = self.setup.limits, len(seen)
        self.counts.extend([0] * (n - len(self.counts)))
        order = sorted(range(n), key=lambda one: (self.counts[one], one))[:3]
        weights = {one: 1.0 / math.sqrt(seen.gain[one] * seen.fading_power[one]) for one in order}
        total = 0.0
        for one in order:
            total += weights[one]
        decision = tilp.Decision.idle(n, limits.cuts[0])
        for one in order:
            decision.scheduled[one] = True
            decision.bandwidth_hz[one] = limits.bandwidth_hz * (weights[one] / total)
            decision.power_w[one] = limits.power_w * (0.5 + 0.5 / (1.0 + self.counts[one]))
            decision.cut[one] = limits.cuts[seen.round % len(limits.cuts)]
            decision.compression[one] = limits.compression * (one + 1.0) / 6.0
        return decision

    def learn(
        self, seen: tilp.Observation, decision: tilp.Decision, outcome: tilp.Outcome
    ) -> None:
        self.counts = [count + int(part) for count, part in zip(self.counts, outcome.took_part)]

    def state(self) -> Any:
        return self.counts

    def restore(self, state: Any) -> None:
        self.counts = state


class Failing(EvenShare):
    """Raises in round 3."""

    name = "failing"

    def decide(self, seen: tilp.Observation) -> tilp.Decision:
        if seen.round == 3:
            raise ValueError("no idea\nwhat to do")
        return super().decide(seen)
