"""A method of your own in a table beside TiLP."""

import numpy as np

import tilp


class BestThree(tilp.Allocator):
    """The three best channels of the round share the band."""

    name = "best-three"
    stateless = True

    def decide(self, seen: tilp.Observation) -> tilp.Decision:
        limits = self.setup.limits
        best = np.argsort(-seen.gain * seen.fading_power, kind="stable")[:3]
        decision = tilp.Decision.idle(len(seen), limits.cuts[0])
        decision.scheduled[best] = True
        decision.bandwidth_hz[best] = limits.bandwidth_hz / len(best)
        decision.power_w[best] = limits.power_w
        decision.compression[best] = limits.compression
        return decision


class BestOfMany(BestThree):
    """Tries a hundred random decisions in the twin and takes the one with the largest reward."""

    name = "best-of-many"
    uses_twin = True

    def begin(self) -> None:
        self.rng = np.random.default_rng(self.setup.seed)

    def decide(self, seen: tilp.Observation) -> tilp.Decision:
        limits, shape = self.setup.limits, (100, len(seen))
        scheduled = self.rng.random(shape) < 0.5
        share = limits.bandwidth_hz / np.maximum(scheduled.sum(axis=1, keepdims=True), 1)
        cut = self.rng.choice(limits.cuts, shape)
        tried = tilp.Decision(scheduled, share, limits.power_w, cut, limits.compression)
        best = int(np.argmax(self.twin.predict(seen, tried).reward))
        return tilp.Decision(scheduled[best], share[best], limits.power_w, cut[best], limits.compression)


if __name__ == "__main__":
    study = tilp.compare("tiny", methods=["tilp", "deficit", BestThree, BestOfMany], seeds=range(2))
    print(study.table())
    for method, seed, reason in study.failures:
        print(f"{method}, seed {seed}: {reason}")
