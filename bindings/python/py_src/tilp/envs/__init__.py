"""Environments: the simulated cell, or TiLP's twin of it, decided for round by round.

``gymnasium.make("tilp/Cell-v0")`` is ``CellEnv``, ``gymnasium.make_vec`` with it ``CellVectorEnv``. The
module ``tilp.envs.parallel`` has one agent per terminal for PettingZoo, ``tilp.envs.agent`` makes a
trained policy a method for runs and studies.
"""

from tilp._register import register
from tilp.envs._gymnasium import CellEnv, CellVectorEnv

register()

__all__ = ["CellEnv", "CellVectorEnv"]
