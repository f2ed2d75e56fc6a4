"""Checks the NumPy policy against reference data that the Rust policy is checked against too.

    python reference.py crates/tilp-split/tests/reference/policy_gradients.safetensors
"""

import json
import struct
import sys
from types import SimpleNamespace

import numpy as np

import messages as m
import policy
from terminal import read_safetensors


def architecture(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        about = json.loads(json.loads(file.read(length))["__metadata__"]["architecture"])
    about["tokens"] = [SimpleNamespace(start=start, length=length) for start, length in about["tokens"]]
    return SimpleNamespace(**about)


def largest(found, wanted):
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def main(path):
    a, tensors = architecture(path), read_safetensors(path)
    last = a.blocks + 2
    flat = lambda prefix, layer: np.concatenate(
        [tensors[f"{prefix}layer{layer}.{name}"].ravel() for name, _ in policy.tensors(a, layer)]
    )
    weights = {layer: flat("", layer).astype(np.float32) for layer in range(1, last + 1)}
    observations, targets = tensors["observations"], tensors["targets"]
    outputs, caches = policy.forward(a, weights, observations, last)
    shares = np.array(a.loss_weights, np.float32)
    gradient = 2 * shares * (outputs - targets) / (len(outputs) * shares.sum())
    gradients = policy.backward(a, weights, caches, gradient.astype(np.float32), last)
    errors = {"outputs": largest(outputs, tensors["outputs"])}
    for layer in range(1, last + 1):
        errors[f"gradient of layer {layer}"] = largest(gradients[layer], flat("gradient/", layer))
    for name, error in errors.items():
        print(f"{name}: {error:.2e}")
    # A payload that is packed and read again is off by less than a step of its group.
    rng = np.random.default_rng(0)
    values = rng.normal(size=(7, 130)).astype(np.float32)
    for q in (0.0, 0.5, 0.75, 0.9):
        payload, bits = m.encode_payload(values, q, rng)
        error = np.abs(m.decode_payload(payload, *values.shape) - values).max()
        errors[f"payload in {bits} bits"] = 0.0 if bits == 32 and error == 0 else error / (8.0 / 2**bits) * 1e-5
        print(f"payload in {bits} bits: {error:.2e}")
    worst = max(errors.values())
    assert worst < 2e-5, f"largest error {worst}"


if __name__ == "__main__":
    main(sys.argv[1])
