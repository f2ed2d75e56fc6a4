"""A trained policy as a method for runs and studies."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tilp import _tilp
from tilp._allocator import Allocator
from tilp._decision import Decision
from tilp._tilp import Observation


class PolicyAllocator(Allocator):
    """Override ``act``: it gets the observation of ``CellEnv`` with ``view="flat"`` and returns its action.

    The twin that the observation is made with learns from every round, as in the environment.
    """

    uses_twin: ClassVar[bool] = True
    #: A resumed run takes the twin back by itself.
    stateless: ClassVar[bool] = True

    def act(self, observation: npt.NDArray[np.float32]) -> npt.ArrayLike:
        """The action for an observation."""
        raise NotImplementedError(f"{type(self).__name__} has no method act")

    def decide(self, seen: Observation) -> Decision | dict[str, Any]:
        """The decision that the action means."""
        model = self.twin._model
        action = np.asarray(self.act(_tilp.agent_view(model, seen)), dtype=np.float64)
        decision: Decision = _tilp.agent_decision(model, seen, action.ravel().tolist(), False)
        return decision
