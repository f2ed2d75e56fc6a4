"""The messages of the split engine that a terminal exchanges, as bytes."""

import struct

import numpy as np

MARK, VERSION = 0x4C54, 2
ACTIVATION, CUT_GRADIENT, LAYER_WEIGHTS, TRAIN, DONE, COLLECT = 1, 2, 3, 4, 5, 6
AGGREGATED, ACKNOWLEDGED, HALF_WEIGHTS, BYTE_WEIGHTS = 9, 10, 11, 12
HEADER = struct.Struct("<HBBHHIQ")
PAYLOAD = struct.Struct("<BBIII")
DENSE, QUANTIZED = 0, 1
GROUP = 64


class Refused(Exception):
    """A message that this terminal cannot use."""


def header(kind, context, first=0):
    round_, terminal, cut = context
    return HEADER.pack(MARK, VERSION, kind, cut, first, terminal, round_)


def read_header(message):
    """Kind, context (round, terminal, cut), first layer, body."""
    if len(message) < HEADER.size:
        raise Refused(f"length = {len(message)}, expected at least {HEADER.size}")
    mark, version, kind, cut, first, terminal, round_ = HEADER.unpack_from(message)
    if (mark, version) != (MARK, VERSION):
        raise Refused(f"mark and version = {(mark, version)}, expected {(MARK, VERSION)}")
    return kind, (round_, terminal, cut), first, message[HEADER.size :]


def read_train(body):
    """q, rate, optimiser, clip, samples, compressor."""
    q, rate, rule = struct.unpack_from("<dfB", body)
    at = 13
    if rule == 0:
        optimiser = ("sgd", struct.unpack_from("<f", body, at)[0])
        at += 4
    else:
        optimiser = ("adamw", *struct.unpack_from("<4d", body, at))
        at += 32
    clip, samples, compressor = struct.unpack_from("<fIB", body, at)
    return q, rate, optimiser, clip, samples, compressor


def done(context, loss, norm, samples):
    return header(DONE, context) + struct.pack("<ddI", loss, norm, samples)


def bits_of(q, count):
    """Bits per value at a compression; None for 32."""
    bits = int(min(max(np.floor((1 - q) * 32 + 1e-6), 1), 32))
    return bits if bits <= 23 and body_bytes(count, bits) < 4 * count else None


def body_bytes(count, bits):
    full, rest = divmod(count, GROUP)
    packed = lambda n: (n * bits + 7) // 8
    return full * (4 + packed(GROUP)) + (4 + packed(rest) if rest else 0)


def _half_up(x):
    """16-bit floats (upper half of an f32) not below x, as f32."""
    cut = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(cut < x, (cut.view(np.uint32) + np.uint32(0x10000)).view(np.float32), cut)


def _half_down(x):
    cut = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(cut > x, (cut.view(np.uint32) + np.uint32(0x10000)).view(np.float32), cut)


def quantize(values, bits, rng):
    """Groups of 64 with offset and step, rounded by chance."""
    values, levels, out = np.ascontiguousarray(values, np.float32).ravel(), (1 << bits) - 1, []
    for start in range(0, len(values), GROUP):
        group = values[start : start + GROUP]
        offset = _half_down(group.min().reshape(1))
        step = _half_up(((group.max() - offset) / np.float32(levels)).astype(np.float32))
        out.append((offset.view(np.uint32) >> 16).astype("<u2").tobytes())
        out.append((step.view(np.uint32) >> 16).astype("<u2").tobytes())
        place = np.clip((group - offset) / step, 0, levels) if step[0] > 0 else np.zeros_like(group)
        below = np.floor(place)
        codes = np.minimum(below + (rng.random(len(group)) < place - below), levels).astype(np.uint32)
        digits = (codes[:, None] >> np.arange(bits, dtype=np.uint32)) & 1
        out.append(np.packbits(digits.astype(np.uint8).ravel(), bitorder="little").tobytes())
    return b"".join(out)


def dequantize(body, count, bits):
    values, at = np.empty(count, np.float32), 0
    for start in range(0, count, GROUP):
        n = min(GROUP, count - start)
        offset, step = (np.frombuffer(body, "<u2", 2, at).astype(np.uint32) << 16).view(np.float32)
        size = (n * bits + 7) // 8
        digits = np.unpackbits(np.frombuffer(body, np.uint8, size, at + 4), bitorder="little")[: n * bits]
        codes = digits.reshape(n, bits).astype(np.uint32) @ (np.uint32(1) << np.arange(bits, dtype=np.uint32))
        values[start : start + n] = offset + codes.astype(np.float32) * step
        at += 4 + size
    return values


def encode_payload(values, q, rng):
    """An activation of shape samples x elements, dense or in fewer bits. Returns payload and bits."""
    samples, elements = values.shape
    bits = bits_of(q, values.size)
    if bits is None:
        return PAYLOAD.pack(DENSE, 32, samples, elements, elements) + values.astype("<f4").tobytes(), 32
    return PAYLOAD.pack(QUANTIZED, bits, samples, elements, elements) + quantize(values, bits, rng), bits


def decode_payload(payload, samples, elements):
    form, bits, n, m, _ = PAYLOAD.unpack_from(payload)
    if (n, m) != (samples, elements):
        raise Refused(f"gradient of {n} x {m}, expected {samples} x {elements}")
    body = payload[PAYLOAD.size :]
    if form == DENSE:
        return np.frombuffer(body, "<f4", n * m).reshape(n, m)
    if form == QUANTIZED:
        return dequantize(body, n * m, bits).reshape(n, m)
    raise Refused(f"form = {form}, expected 0 or 1")


def read_weights(kind, body, sizes):
    """The parameters of neighbouring layers."""
    layers, at = [], 0
    for size in sizes:
        if kind == LAYER_WEIGHTS:
            layers.append(np.frombuffer(body, "<f4", size, at).astype(np.float32))
            at += 4 * size
        elif kind == HALF_WEIGHTS:
            layers.append(np.frombuffer(body, "<f2", size, at).astype(np.float32))
            at += 2 * size
        else:
            layers.append(dequantize(body[at:], size, 8))
            at += body_bytes(size, 8)
    if at != len(body):
        raise Refused(f"layer weights of {len(body)} bytes, expected {at}")
    return layers


def write_weights(context, first, layers, bits, rng):
    kind = {32: LAYER_WEIGHTS, 16: HALF_WEIGHTS, 8: BYTE_WEIGHTS}[bits]
    encode = {
        32: lambda layer: layer.astype("<f4").tobytes(),
        16: lambda layer: layer.astype("<f2").tobytes(),
        8: lambda layer: quantize(layer, 8, rng),
    }[bits]
    return header(kind, context, first) + b"".join(encode(layer) for layer in layers)
