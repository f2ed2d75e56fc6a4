"""The policy in PyTorch. Names of parameters are those in TiLP's model.safetensors."""

from __future__ import annotations

from typing import Any

import torch
from lerobot.policies.pretrained import PreTrainedPolicy
from lerobot.utils.constants import ACTION, OBS_STATE
from torch import Tensor, nn
from torch.nn import functional

from .configuration_tilp import TilpConfig


class Norm(nn.Module):
    """Layer normalisation of the last dimension."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.offset = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, self.gain.shape, self.gain, self.offset, eps=1e-5)


class Embedding(nn.Module):
    """One linear map for the numbers of each token."""

    def __init__(self, tokens: list[list[int]], width: int) -> None:
        super().__init__()
        self.tokens = tokens
        for n, (_, length) in enumerate(tokens):
            setattr(self, f"token{n}", nn.Linear(length, width, bias=False))
        self.bias = nn.Parameter(0.1 * torch.randn(len(tokens), width))

    def forward(self, x: Tensor) -> Tensor:
        parts = [
            getattr(self, f"token{n}")(x[:, start : start + length])
            for n, (start, length) in enumerate(self.tokens)
        ]
        return torch.stack(parts, dim=1) + self.bias


class Merge(nn.Module):
    """Adjacent tokens in pairs."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = Norm(2 * width)
        self.weight = nn.Parameter(torch.randn(width, 2 * width) / (2 * width) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        pairs = x.reshape(x.shape[0], x.shape[1] // 2, 2 * x.shape[2])
        return functional.linear(self.norm(pairs), self.weight, self.bias)


class Block(nn.Module):
    """Attention and a perceptron of two layers, both residual."""

    def __init__(self, width: int, heads: int, hidden: int, merges: bool) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.merge = Merge(width) if merges else None

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        split = self.project(self.norm1(x)).reshape(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, tokens, width))
        x = x + self.down(functional.relu(self.up(self.norm2(x))))
        return x if self.merge is None else self.merge(x)


class Head(nn.Module):
    """All features of a sample, normalised, to the action."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm = Norm(inputs)
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        # Features are stored feature by feature, the tokens of each side by side.
        features = x.transpose(1, 2).reshape(x.shape[0], -1)
        return functional.linear(self.norm(features), self.weight, self.bias)


class TilpPolicy(PreTrainedPolicy):
    """A policy that TiLP trained."""

    config_class = TilpConfig
    name = "tilp"

    def __init__(self, config: TilpConfig, **kwargs: Any) -> None:
        super().__init__(config)
        config.validate_features()
        self.n_layers = config.blocks + 2
        self.layer1 = Embedding(config.tokens, config.width)
        tokens = len(config.tokens)
        for block in range(1, config.blocks + 1):
            merges = block in config.merge_after
            shape = (config.width, config.heads, config.width * config.hidden_ratio)
            setattr(self, f"layer{block + 1}", Block(*shape, merges))
            tokens = tokens // 2 if merges else tokens
        setattr(self, f"layer{self.n_layers}", Head(config.width * tokens, len(config.loss_weights)))
        weights = torch.tensor(config.loss_weights)
        self.register_buffer("loss_weights", weights / weights.sum(), persistent=False)

    def act(self, state: Tensor) -> Tensor:
        """Actions for a batch of states."""
        for layer in range(1, self.n_layers + 1):
            state = getattr(self, f"layer{layer}")(state)
        return state

    def get_optim_params(self) -> Any:
        return self.parameters()

    def reset(self) -> None:
        """A policy without memory has nothing to reset."""

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, dict[str, float] | None]:
        target = batch[ACTION]
        # One step of a chunk of one.
        target = target[:, 0] if target.ndim == 3 else target
        error = (self.act(batch[OBS_STATE]) - target) ** 2
        loss = (error * self.loss_weights).sum(dim=1).mean()
        return loss, {"loss": loss.item()}

    @torch.no_grad()
    def predict_action_chunk(self, batch: dict[str, Tensor], **kwargs: Any) -> Tensor:
        return self.act(batch[OBS_STATE]).unsqueeze(1)

    @torch.no_grad()
    def select_action(self, batch: dict[str, Tensor], **kwargs: Any) -> Tensor:
        return self.act(batch[OBS_STATE])
