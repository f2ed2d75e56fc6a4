"""Sizes, work and memory of a PyTorch model by cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

#: Numbers that an optimiser keeps for every parameter.
STATE = {"sgd": 0, "momentum": 1, "adamw": 2}
#: Forward, and backward for the input and for the parameters.
PASSES = 3


def profile_torch(
    model: Any, inputs: Any, cuts: Sequence[str], *, batch: int = 64, optimiser: str = "adamw"
) -> str:
    """A table for ``[profile] model`` of a scenario, as CSV.

    ``cuts`` are names of submodules in the order in which they are executed, each once; a terminal runs the model
    up to the end of one. ``inputs`` are the arguments of the model for one sample: a tensor, a tuple or a dict. One
    forward pass is executed. Work counts the products of matrices and convolutions that PyTorch's own counter
    knows, forward and backward. Attention is executed without fused kernels, so memory contains its matrices.
    Only parameters with ``requires_grad`` count as trained, so adapters can be profiled; memory contains all.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    if optimiser not in STATE:
        raise ValueError(f"optimiser = {optimiser}, expected one of {', '.join(STATE)}")
    modules = dict(model.named_modules())
    missing = [name for name in cuts if name not in modules]
    if missing or not cuts:
        raise ValueError(f"cuts = {missing or 'none'}, expected names of submodules")
    counter = FlopCounterMode(display=False)
    kept: dict[int, int] = {}
    used: dict[str, Any] = {}
    rows: list[tuple[str, int, int, int, int]] = []

    def keep(tensor: Any) -> Any:
        kept[tensor.untyped_storage().data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    def executed(name: str) -> Any:
        def note(module: Any, arguments: Any, output: Any) -> None:
            for own, parameter in module.named_parameters(recurse=False):
                used[f"{name}.{own}"] = parameter

        return note

    def crossed(name: str) -> Any:
        def note(module: Any, arguments: Any, output: Any) -> None:
            parameters = {id(one): one for one in used.values()}.values()
            trained = sum(one.numel() for one in parameters if one.requires_grad)
            own = {one.untyped_storage().data_ptr() for one in parameters}
            activations = sum(size for place, size in kept.items() if place not in own)
            weights = sum(one.numel() * one.element_size() for one in parameters)
            memory = weights + 4 * (1 + STATE[optimiser]) * trained + batch * activations
            rows.append((name, _numel(output), PASSES * counter.get_total_flops(), trained, memory))

        return note

    hooks = [module.register_forward_hook(executed(name)) for name, module in modules.items()]
    hooks += [modules[name].register_forward_hook(crossed(name)) for name in cuts]
    given = inputs if isinstance(inputs, dict) else {}
    placed = () if isinstance(inputs, dict) else inputs if isinstance(inputs, tuple) else (inputs,)
    try:
        # The counter knows matrix products, but not every fused kernel of attention.
        saved = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with saved, sdpa_kernel(SDPBackend.MATH), counter:
            model(*placed, **given)
    finally:
        for hook in hooks:
            hook.remove()
    found = [row[0] for row in rows]
    if found != list(cuts):
        raise ValueError(f"cuts are executed as {found}, expected every one once, in this order")
    lines = [f"# {type(model).__name__}: minibatch of {batch}, {optimiser}"]
    lines.append("name,activation_elements,operations,trained_parameters,memory_bytes")
    lines += [",".join(str(value) for value in row) for row in rows]
    return "\n".join(lines) + "\n"


def _numel(output: Any) -> int:
    """Numbers of all tensors in an output."""
    if hasattr(output, "shape"):
        return math.prod(output.shape)
    if isinstance(output, dict):
        output = list(output.values())
    return sum(_numel(one) for one in output if one is not None)
