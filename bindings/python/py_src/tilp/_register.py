"""Names of the environments for Gymnasium, which calls this when it is imported."""

from __future__ import annotations


def register() -> None:
    """Register ``tilp/Cell-v0``."""
    from gymnasium.envs.registration import register as add
    from gymnasium.envs.registration import registry

    if "tilp/Cell-v0" not in registry:
        add(
            id="tilp/Cell-v0",
            entry_point="tilp.envs:CellEnv",
            vector_entry_point="tilp.envs:CellVectorEnv",
            order_enforce=True,
        )
