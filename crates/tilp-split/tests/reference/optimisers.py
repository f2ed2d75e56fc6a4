"""Reference training of the whole policy with PyTorch's optimisers, in double precision.

    python optimisers.py policy_gradients.safetensors optimisers.safetensors

Needs torch, numpy and safetensors, and `policy_gradients.py` beside it. Weights, observations and
targets are those of the first file. Every case is ten steps on the one batch. Where a case clips,
the layers up to CUT are clipped together and the layers behind it are clipped together, by
`torch.nn.utils.clip_grad_norm_`: a split model clips each half on the side where it is. The second
file holds for every case the loss before every step, the norms of both halves before clipping,
and the weights of some layers after the last step.
"""

import sys

import torch
from safetensors.torch import load_file, save_file

from policy_gradients import ARCHITECTURE, policy

CUT = 4
STEPS = 10
# The gradient of the biases of attention's keys is zero but for rounding; AdamW would divide the
# rounding by itself if epsilon were not well above it.
ADAMW = {"betas": (0.9, 0.95), "eps": 1e-5, "weight_decay": 0.05}
# name, optimiser, largest norm of a half
CASES = [
    ("sgd", lambda p: torch.optim.SGD(p, lr=0.01), None),
    ("sgd_clipped", lambda p: torch.optim.SGD(p, lr=0.01), 0.5),
    ("momentum", lambda p: torch.optim.SGD(p, lr=0.003, momentum=0.9), None),
    ("adamw", lambda p: torch.optim.AdamW(p, lr=1e-3, **ADAMW), None),
    ("adamw_clipped", lambda p: torch.optim.AdamW(p, lr=1e-3, **ADAMW), 0.5),
]
# The embedding, a block with a merge on either side of the cut, the head.
LAYERS = ("layer1.", "layer3.", "layer5.", "layer8.")


def layer(name):
    return int(name.split(".")[0].removeprefix("layer"))


def train(file, make, clip):
    p = {name: value.double().requires_grad_() for name, value in file.items() if name.startswith("layer")}
    halves = [[p[n] for n in p if layer(n) <= CUT], [p[n] for n in p if layer(n) > CUT]]
    optimiser = make(list(p.values()))
    weights = torch.tensor(ARCHITECTURE["loss_weights"], dtype=torch.float64)
    losses, norms = [], []
    for _ in range(STEPS):
        optimiser.zero_grad()
        outputs = policy(p, file["observations"].double())
        loss = (weights * (outputs - file["targets"].double()) ** 2).sum(1).mean() / weights.sum()
        loss.backward()
        most = float("inf") if clip is None else clip
        norms.append([torch.nn.utils.clip_grad_norm_(half, most).item() for half in halves])
        optimiser.step()
        losses.append(loss.item())
    return p, losses, norms


def main(source, path):
    file, tensors = load_file(source), {}
    for name, make, clip in CASES:
        p, losses, norms = train(file, make, clip)
        tensors[f"{name}/losses"] = torch.tensor(losses, dtype=torch.float32)
        tensors[f"{name}/norms"] = torch.tensor(norms, dtype=torch.float32)
        for tensor in (tensor for tensor in p if tensor.startswith(LAYERS)):
            tensors[f"{name}/{tensor}"] = p[tensor].detach().float().contiguous()
        print(f"torch {torch.__version__}, {name}: loss {losses[0]:.6f} to {losses[-1]:.6f}, norms {norms[0]}")
    save_file(tensors, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
