"""The numbers that define a policy."""

from __future__ import annotations

from dataclasses import dataclass, field

from lerobot.configs import FeatureType, NormalizationMode, PolicyFeature, PreTrainedConfig
from lerobot.optim import AdamWConfig
from lerobot.utils.constants import ACTION, OBS_STATE


@PreTrainedConfig.register_subclass("tilp")
@dataclass
class TilpConfig(PreTrainedConfig):
    """A pyramid transformer over groups of numbers of the state."""

    # Start and length of the group of numbers that each token reads.
    tokens: list[list[int]] = field(default_factory=lambda: [[0, 1]])
    width: int = 32
    heads: int = 4
    blocks: int = 6
    hidden_ratio: int = 2
    # After these blocks adjacent tokens are merged in pairs.
    merge_after: list[int] = field(default_factory=list)
    # How much an error in each number of an action counts.
    loss_weights: list[float] = field(default_factory=list)

    input_features: dict[str, PolicyFeature] = field(default_factory=dict)
    output_features: dict[str, PolicyFeature] = field(default_factory=dict)
    # The observation is bounded already.
    normalization_mapping: dict[str, NormalizationMode] = field(
        default_factory=lambda: {
            "STATE": NormalizationMode.IDENTITY,
            "ACTION": NormalizationMode.IDENTITY,
        }
    )
    learning_rate: float = 3e-4

    @property
    def observation_delta_indices(self) -> None:
        return None

    @property
    def action_delta_indices(self) -> list[int]:
        return [0]

    @property
    def reward_delta_indices(self) -> None:
        return None

    def get_optimizer_preset(self) -> AdamWConfig:
        return AdamWConfig(lr=self.learning_rate)

    def get_scheduler_preset(self) -> None:
        return None

    def validate_features(self) -> None:
        """Refuses features that are not those of the tokens and of the loss."""
        n_state = max(start + length for start, length in self.tokens)
        state, action = self.robot_state_feature, self.action_feature
        if state is None or state.type is not FeatureType.STATE or tuple(state.shape) != (n_state,):
            raise ValueError(f"{OBS_STATE} = {state}, expected {n_state} numbers")
        if action is None or tuple(action.shape) != (len(self.loss_weights),):
            raise ValueError(f"{ACTION} = {action}, expected {len(self.loss_weights)} numbers")
