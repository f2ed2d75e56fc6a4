"""The front layers of the policy in NumPy: forward, backward, and one step of the optimiser.

Written from the description of the model, not from the Rust code: token embedding, pre-norm
blocks, neighbouring tokens merged in pairs after some of them. Parameters of a layer are one flat
array; `tensors` has the order in which the tensors stand in it.
"""

import numpy as np

EPSILON = 1e-5


def tensors(a, layer):
    """Names and shapes of the tensors of a layer, in the order of storage."""
    width, last = a.width, a.blocks + 2
    if layer == 1:
        named = [(f"token{n}.weight", (width, group.length)) for n, group in enumerate(a.tokens)]
        return named + [("bias", (len(a.tokens), width))]
    if layer == last:
        inputs = width * n_tokens(a, last - 1)
        return [("norm.gain", (inputs,)), ("norm.offset", (inputs,)), ("weight", (a.actions, inputs)), ("bias", (a.actions,))]
    hidden = width * a.hidden_ratio
    named = [
        ("norm1.gain", (width,)), ("norm1.offset", (width,)),
        ("project.weight", (3 * width, width)), ("project.bias", (3 * width,)),
        ("output.weight", (width, width)), ("output.bias", (width,)),
        ("norm2.gain", (width,)), ("norm2.offset", (width,)),
        ("up.weight", (hidden, width)), ("up.bias", (hidden,)),
        ("down.weight", (width, hidden)), ("down.bias", (width,)),
    ]
    if layer - 1 in a.merge_after:
        named += [
            ("merge.norm.gain", (2 * width,)), ("merge.norm.offset", (2 * width,)),
            ("merge.weight", (width, 2 * width)), ("merge.bias", (width,)),
        ]
    return named


def n_tokens(a, layer):
    """Tokens behind a layer."""
    tokens = len(a.tokens)
    for block in range(1, layer):
        tokens //= 2 if block in a.merge_after else 1
    return tokens


def n_parameters(a, layer):
    return sum(int(np.prod(shape)) for _, shape in tensors(a, layer))


def named(a, layer, flat):
    """Views of the tensors in a flat array."""
    views, at = {}, 0
    for name, shape in tensors(a, layer):
        size = int(np.prod(shape))
        views[name] = flat[at : at + size].reshape(shape)
        at += size
    return views


def _norm(p, name, x):
    mean, scale = x.mean(-1, keepdims=True), 1 / np.sqrt(x.var(-1, keepdims=True) + EPSILON)
    normal = (x - mean) * scale
    return normal * p[f"{name}.gain"] + p[f"{name}.offset"], (normal, scale)


def _norm_back(p, g, name, cache, dy):
    normal, scale = cache
    axes = tuple(range(dy.ndim - 1))
    g[f"{name}.gain"][...] = (dy * normal).sum(axes)
    g[f"{name}.offset"][...] = dy.sum(axes)
    d = dy * p[f"{name}.gain"]
    return scale * (d - d.mean(-1, keepdims=True) - normal * (d * normal).mean(-1, keepdims=True))


def _linear(p, name, x):
    return x @ p[f"{name}weight"].T + p[f"{name}bias"]


def _linear_back(p, g, name, x, dy):
    wide, narrow = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
    g[f"{name}weight"][...] = wide.T @ narrow
    g[f"{name}bias"][...] = wide.sum(0)
    return dy @ p[f"{name}weight"]


def _heads(a, x):
    samples, tokens, width = x.shape
    return x.reshape(samples, tokens, a.heads, width // a.heads).transpose(0, 2, 1, 3)


def _unheads(x):
    samples, heads, tokens, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(samples, tokens, heads * size)


def _block(a, p, x, merges):
    cache = {"x": x}
    y, cache["norm1"] = _norm(p, "norm1", x)
    cache["y"] = y
    q, k, v = (_heads(a, part) for part in np.split(_linear(p, "project.", y), 3, axis=-1))
    scale = np.asarray(1 / np.sqrt(q.shape[-1]), x.dtype)
    scores = (q @ k.transpose(0, 1, 3, 2)) * scale
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    mixed = _unheads(shares @ v)
    cache.update(q=q, k=k, v=v, shares=shares, scale=scale, mixed=mixed)
    x = x + _linear(p, "output.", mixed)
    z, cache["norm2"] = _norm(p, "norm2", x)
    hidden = _linear(p, "up.", z)
    cache.update(z=z, hidden=hidden)
    x = x + _linear(p, "down.", np.maximum(hidden, 0))
    if merges:
        samples, tokens, width = x.shape
        pairs = x.reshape(samples, tokens // 2, 2 * width)
        w, cache["merge.norm"] = _norm(p, "merge.norm", pairs)
        cache["w"] = w
        x = _linear(p, "merge.", w)
    return x, cache


def _block_back(a, p, g, cache, d, merges):
    if merges:
        d = _linear_back(p, g, "merge.", cache["w"], d)
        d = _norm_back(p, g, "merge.norm", cache["merge.norm"], d)
        d = d.reshape(d.shape[0], 2 * d.shape[1], d.shape[2] // 2)
    h = _linear_back(p, g, "down.", np.maximum(cache["hidden"], 0), d) * (cache["hidden"] > 0)
    d = d + _norm_back(p, g, "norm2", cache["norm2"], _linear_back(p, g, "up.", cache["z"], h))
    m = _heads(a, _linear_back(p, g, "output.", cache["mixed"], d))
    shares, v = cache["shares"], cache["v"]
    dv = shares.transpose(0, 1, 3, 2) @ m
    ds = m @ v.transpose(0, 1, 3, 2)
    ds = shares * (ds - (ds * shares).sum(-1, keepdims=True)) * cache["scale"]
    dq, dk = ds @ cache["k"], ds.transpose(0, 1, 3, 2) @ cache["q"]
    parts = np.concatenate([_unheads(dq), _unheads(dk), _unheads(dv)], axis=-1)
    return d + _norm_back(p, g, "norm1", cache["norm1"], _linear_back(p, g, "project.", cache["y"], parts))


def forward(a, weights, observations, cut):
    """Runs layers 1 to the cut. `weights` are flat arrays by layer. Returns the activation, one row
    per sample with channels outside and tokens inside, and what the backward pass needs."""
    p = named(a, 1, weights[1])
    groups = [
        observations[:, group.start : group.start + group.length] @ p[f"token{n}.weight"].T + p["bias"][n]
        for n, group in enumerate(a.tokens)
    ]
    x, caches = np.stack(groups, axis=1), [observations]
    for layer in range(2, min(cut, a.blocks + 1) + 1):
        x, cache = _block(a, named(a, layer, weights[layer]), x, layer - 1 in a.merge_after)
        caches.append(cache)
    flat = x.transpose(0, 2, 1).reshape(len(x), -1)
    if cut == a.blocks + 2:
        p = named(a, cut, weights[cut])
        y, norm = _norm(p, "norm", flat)
        caches.append((y, norm))
        flat = _linear(p, "", y)
    return flat, caches


def backward(a, weights, caches, gradient, cut):
    """The gradients of layers 1 to the cut as flat arrays, from the gradient at the cut."""
    gradients = {layer: np.zeros_like(weights[layer]) for layer in range(1, cut + 1)}
    d, samples = gradient, len(gradient)
    if cut == a.blocks + 2:
        y, norm = caches[-1]
        p, g = named(a, cut, weights[cut]), named(a, cut, gradients[cut])
        d = _norm_back(p, g, "norm", norm, _linear_back(p, g, "", y, d))
    last = min(cut, a.blocks + 1)
    d = d.reshape(samples, a.width, n_tokens(a, last)).transpose(0, 2, 1)
    for layer in range(last, 1, -1):
        p, g = named(a, layer, weights[layer]), named(a, layer, gradients[layer])
        d = _block_back(a, p, g, caches[layer - 1], d, layer - 1 in a.merge_after)
    g = named(a, 1, gradients[1])
    for n, group in enumerate(a.tokens):
        g[f"token{n}.weight"][...] = d[:, n].T @ caches[0][:, group.start : group.start + group.length]
    g["bias"][...] = d.sum(0)
    return gradients


def step(optimiser, weights, gradient, state, rate):
    """One step of one layer in place. `optimiser` is ("sgd", momentum) or ("adamw", b1, b2, eps, decay)."""
    if optimiser[0] == "sgd":
        if optimiser[1] == 0:
            weights -= rate * gradient
            return
        state["velocity"] = optimiser[1] * state.get("velocity", np.zeros_like(weights)) + gradient
        weights -= rate * state["velocity"]
        return
    _, beta1, beta2, epsilon, decay = optimiser
    steps = state["steps"] = state.get("steps", 0) + 1
    state["mean"] = beta1 * state.get("mean", np.zeros_like(weights)) + (1 - beta1) * gradient
    state["square"] = beta2 * state.get("square", np.zeros_like(weights)) + (1 - beta2) * gradient**2
    mean, square = state["mean"] / (1 - beta1**steps), state["square"] / (1 - beta2**steps)
    weights *= 1 - rate * decay
    weights -= rate * mean / (np.sqrt(square) + epsilon)
