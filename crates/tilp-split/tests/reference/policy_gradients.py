"""Reference gradients of the whole policy from PyTorch, in double precision.

    python policy_gradients.py policy_gradients.safetensors

Needs torch, numpy and safetensors. The model is written here once more, from its description:
token embedding, pre-norm blocks with a merge of neighbouring tokens after some of them, a linear
head on all tokens, a weighted squared error. Tensor names are those of the weight file.
"""

import json
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

TOKENS = [(0, 3), (3, 2), (5, 5), (10, 1), (11, 4), (15, 4), (19, 4), (23, 3), (26, 6), (32, 2), (34, 2), (36, 4)]
ARCHITECTURE = {
    "tokens": TOKENS,
    "width": 16,
    "heads": 4,
    "blocks": 6,
    "hidden_ratio": 2,
    "merge_after": [2, 4],
    "actions": 4,
    "loss_weights": [1.0, 1.0, 2.0, 0.5],
    "cuts": [2, 3, 4, 5, 6],
}
SAMPLES = 19


def parameters():
    generator = torch.Generator().manual_seed(20)
    width, named = ARCHITECTURE["width"], {}

    def tensor(name, *shape, mean=0.0, deviation=0.3):
        noise = torch.randn(*shape, generator=generator, dtype=torch.float32)
        named[name] = (mean + deviation * noise).double().requires_grad_()

    def linear(name, outputs, inputs):
        tensor(f"{name}weight", outputs, inputs, deviation=1.2 * inputs**-0.5)
        tensor(f"{name}bias", outputs)

    def norm(name, size):
        tensor(f"{name}.gain", size, mean=1.0)
        tensor(f"{name}.offset", size)

    for token, (_, length) in enumerate(TOKENS):
        tensor(f"layer1.token{token}.weight", width, length, deviation=length**-0.5)
    tensor("layer1.bias", len(TOKENS), width)
    tokens = len(TOKENS)
    for block in range(1, ARCHITECTURE["blocks"] + 1):
        layer, hidden = f"layer{block + 1}", width * ARCHITECTURE["hidden_ratio"]
        norm(f"{layer}.norm1", width)
        linear(f"{layer}.project.", 3 * width, width)
        linear(f"{layer}.output.", width, width)
        norm(f"{layer}.norm2", width)
        linear(f"{layer}.up.", hidden, width)
        linear(f"{layer}.down.", width, hidden)
        if block in ARCHITECTURE["merge_after"]:
            norm(f"{layer}.merge.norm", 2 * width)
            linear(f"{layer}.merge.", width, 2 * width)
            tokens //= 2
    head = f"layer{ARCHITECTURE['blocks'] + 2}"
    norm(f"{head}.norm", width * tokens)
    linear(f"{head}.", ARCHITECTURE["actions"], width * tokens)
    return named


def policy(p, observations):
    x = torch.stack(
        [F.linear(observations[:, s : s + n], p[f"layer1.token{t}.weight"], p["layer1.bias"][t]) for t, (s, n) in enumerate(TOKENS)],
        dim=1,
    )
    for block in range(1, ARCHITECTURE["blocks"] + 1):
        layer = f"layer{block + 1}"

        def norm(name, y):
            return F.layer_norm(y, y.shape[-1:], p[f"{layer}.{name}.gain"], p[f"{layer}.{name}.offset"])

        def linear(name, y):
            return F.linear(y, p[f"{layer}.{name}.weight"], p[f"{layer}.{name}.bias"])

        samples, tokens, width = x.shape
        parts = linear("project", norm("norm1", x)).split(width, dim=-1)
        q, k, v = (part.view(samples, tokens, ARCHITECTURE["heads"], -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + linear("output", mixed.transpose(1, 2).reshape(x.shape))
        x = x + linear("down", F.relu(linear("up", norm("norm2", x))))
        if block in ARCHITECTURE["merge_after"]:
            x = linear("merge", norm("merge.norm", x.reshape(samples, tokens // 2, 2 * width)))
    # Features of the head are ordered channel by channel, tokens inside.
    flat = x.transpose(1, 2).flatten(1)
    head = f"layer{ARCHITECTURE['blocks'] + 2}"
    flat = F.layer_norm(flat, flat.shape[-1:], p[f"{head}.norm.gain"], p[f"{head}.norm.offset"])
    return F.linear(flat, p[f"{head}.weight"], p[f"{head}.bias"])


def main(path):
    p = parameters()
    generator = torch.Generator().manual_seed(21)
    draw = lambda width: torch.randn(SAMPLES, width, generator=generator, dtype=torch.float32)
    observations, targets = draw(40), draw(4)
    outputs = policy(p, observations.double())
    weights = torch.tensor(ARCHITECTURE["loss_weights"], dtype=torch.float64)
    loss = (weights * (outputs - targets.double()) ** 2).sum(1).mean() / weights.sum()
    loss.backward()
    tensors = {name: value.detach().float() for name, value in p.items()}
    tensors |= {f"gradient/{name}": value.grad.float() for name, value in p.items()}
    tensors |= {"observations": observations, "targets": targets, "outputs": outputs.detach().float(), "loss": loss.detach().float().reshape(1)}
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, {"architecture": json.dumps(ARCHITECTURE)})
    print(f"torch {torch.__version__}: loss {loss.item():.9f}")


if __name__ == "__main__":
    main(sys.argv[1])
