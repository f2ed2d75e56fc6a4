"""What stands before and behind the policy: batch dimension and device, no normalisation."""

from __future__ import annotations

from typing import Any

from lerobot.processor import make_default_pre_post_processors

from .configuration_tilp import TilpConfig


def make_tilp_pre_post_processors(config: TilpConfig, dataset_stats: Any = None) -> Any:
    """LeRobot's usual steps; features are taken as they are."""
    return make_default_pre_post_processors(config, dataset_stats, normalizer_device=config.device)
