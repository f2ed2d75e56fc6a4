"""Knobs of a method by Optuna's ask and tell, on tuning seeds only (1000 and up). Needs `pip install optuna`.

The study is kept in a journal file: several of these processes may share one.
"""

import functools
import sys

import numpy as np
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

import tilp

TUNING_SEEDS = (1000, 1001)


class BestChannels(tilp.Allocator):
    """The best channels of the round share the band; how many, and how compressed, are its knobs."""

    name = "best-channels"
    stateless = True

    def __init__(self, n_scheduled: int, compression: float) -> None:
        self.n_scheduled, self.compression = n_scheduled, compression

    def decide(self, seen: tilp.Observation) -> tilp.Decision:
        limits = self.setup.limits
        best = np.argsort(-seen.gain * seen.fading_power, kind="stable")[: self.n_scheduled]
        decision = tilp.Decision.idle(len(seen), limits.cuts[0])
        decision.scheduled[best] = True
        decision.bandwidth_hz[best] = limits.bandwidth_hz / len(best)
        decision.power_w[best] = limits.power_w
        decision.compression[best] = self.compression * limits.compression
        return decision


def main(n_trials: int) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend("knobs.log")),
        study_name="best-channels",
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=0),
        load_if_exists=True,
    )
    for _ in range(n_trials):
        trial = study.ask()
        method = functools.partial(
            BestChannels, trial.suggest_int("n_scheduled", 1, 6), trial.suggest_float("compression", 0.0, 1.0)
        )
        found = tilp.compare("tiny", [method], TUNING_SEEDS, out=f"trials/{trial.number}")
        success = [run.summary["success_final"] for run in found.runs().values()]
        # A trial with a failed run has no value.
        state = optuna.trial.TrialState.FAIL if found.failures else None
        study.tell(trial, None if found.failures else float(np.mean(success)), state=state)
        print(f"trial {trial.number}: {trial.params} -> {success}")
    print(f"best: {study.best_params}, success {study.best_value:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
