"""Policies trained by TiLP as LeRobot policies."""

from .configuration_tilp import TilpConfig
from .modeling_tilp import TilpPolicy
from .processor_tilp import make_tilp_pre_post_processors

__all__ = ["TilpConfig", "TilpPolicy", "make_tilp_pre_post_processors"]
