"""One export from the scene to the arrays, and the file they are kept in."""

import json
import os
import sys
from importlib.metadata import version

import numpy as np

import channel
import paths
import routes
from scenes import Site
from settings import InputError

# Attempts to place terminals without a path again.
MAX_TRIES = 20
# A vehicle that meets a dead spot later than this turns round; one that starts near it is placed again.
ROUNDS_BEFORE_TURN = 10

FORMAT, VERSION = "tilp-channel", 1
UNITS = {
    "gain_db": "[round, terminal] wideband power gain in dB, isotropic antennas, transmit power 1",
    "los": "[round, terminal] 1 where the line of sight is free",
    "position_m": "[round, terminal, xyz] metres",
    "base_m": "[xyz] metres",
    "delay_spread_s": "[round, terminal] root mean square, seconds",
    "doppler_hz": "[round, terminal] largest |Doppler| of a path, hertz",
    "n_paths": "[round, terminal] paths found",
    "walls_m": "[object, x0 y0 x1 y1] footprints of what stands in the scene, metres",
    "meta": "this text: UTF-8 JSON as bytes",
}
PACKAGES = ("sionna-rt", "mitsuba", "drjit", "numpy")


def make(settings):
    """All arrays of the export, by name."""
    site = Site(settings)
    arrays = _reachable_terminals(site, settings)
    arrays["base_m"] = site.base_m
    arrays["walls_m"] = site.footprints()
    arrays = {name: _plain(values) for name, values in arrays.items()}
    arrays["meta"] = np.frombuffer(json.dumps(_meta(settings)).encode(), dtype=np.uint8)
    return arrays


def write(arrays, out):
    """Writes aside, then renames: a stopped export leaves no half file."""
    aside = out.with_name(f".{out.name}.part")
    try:
        with open(aside, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, **dict(sorted(arrays.items())))
        os.replace(aside, out)
    except OSError as error:
        raise InputError(f"--out = {str(out)!r}, expected a file that can be written: {error.strerror}") from error
    finally:
        aside.unlink(missing_ok=True)


def _reachable_terminals(site, settings):
    """Arrays of terminals that all have a path in every round; those that have none are drawn anew."""
    rng = np.random.default_rng(settings.seed)
    kept, missing = None, np.arange(settings.terminals)
    for _ in range(MAX_TRIES):
        fresh = turned_round(_links(site, settings, routes.draw(site, settings, len(missing), rng)))
        kept = _replaced(kept, missing, fresh)
        missing = np.flatnonzero((kept["n_paths"] == 0).any(axis=0))
        if len(missing) == 0:
            return kept
    raise InputError(f"--terminals = {settings.terminals}, expected a path to each: {len(missing)} "
                     f"had none after {MAX_TRIES} draws, try another --area, --base or a larger --depth")


def turned_round(links):
    """Links of vehicles that drive to and fro on the way before their first dead spot."""
    dead = links["n_paths"] == 0
    for terminal in np.flatnonzero(dead.any(axis=0)):
        alive = int(dead[:, terminal].argmax())
        if alive >= ROUNDS_BEFORE_TURN:
            order = to_and_fro(alive, len(dead))
            for values in links.values():
                values[:, terminal] = values[order, terminal]
    return links


def to_and_fro(length, count):
    """Indices 0, 1, .., length - 1, length - 2, .., 0, 1, .. of a way that is driven there and back."""
    phase = np.arange(count) % (2 * (length - 1))
    return np.minimum(phase, 2 * (length - 1) - phase)


def _replaced(kept, missing, fresh):
    if kept is None:
        return fresh
    for name, values in fresh.items():
        kept[name][:, missing] = values
    return kept


def _links(site, settings, drawn):
    """Every array [R, N, ...] of the drawn terminals, one trace after the other."""
    starts = range(0, settings.rounds, settings.rounds_per_trace)
    parts = []
    for start in starts:
        _progress(start, settings.rounds)
        parts.append(_rounds_of_one_trace(site, settings, drawn, start))
    links = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    links["position_m"] = np.array(drawn.position_m)
    return links


def _progress(done, rounds):
    """The progress of a long export."""
    if sys.stderr.isatty():
        print(f"\rtraced {done} of {rounds} rounds", end="\r", file=sys.stderr, flush=True)


def _rounds_of_one_trace(site, settings, drawn, start):
    """The rounds that live on the trace at round `start`: between traces only the Doppler phases turn."""
    count = min(settings.rounds_per_trace, settings.rounds - start)
    traced = paths.trace(site, settings, drawn.position_m[start], drawn.velocity_m_s[start])
    times_s = settings.interval_s * np.arange(count)
    gain = channel.wideband_gain(traced, times_s, settings.carrier_hz, settings.bandwidth_hz, settings.subcarriers)
    held = {
        "los": traced.line_of_sight.any(axis=1).astype(np.uint8),
        "n_paths": traced.found.sum(axis=1).astype(np.int32),
        "delay_spread_s": channel.delay_spread(traced),
        "doppler_hz": channel.largest_doppler(traced),
    }
    rounds = {name: np.repeat(values[None], count, axis=0) for name, values in held.items()}
    return {"gain_db": _decibels(gain), **rounds}


def _decibels(power):
    # A terminal without a path is drawn anew, so its value is never read.
    return 10.0 * np.log10(np.where(power > 0.0, power, 1.0))


def _plain(values):
    """Little-endian and in C order; reals hold single precision, the tracer's own, which packs to half the size."""
    if values.dtype == np.float64:
        values = values.astype(np.float32).astype("<f8")
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))


def _meta(settings):
    """What made the file; no time, no place, so that equal settings give equal bytes."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "scene": settings.scene_name,
        "motion": settings.motion,
        "terminals": settings.terminals,
        "rounds": settings.rounds,
        "interval_s": settings.interval_s,
        "carrier_hz": settings.carrier_hz,
        "bandwidth_hz": settings.bandwidth_hz,
        "subcarriers": settings.subcarriers,
        "seed": settings.seed,
        "depth": settings.depth,
        "rays": settings.rays,
        "speed_m_s": settings.speed_m_s,
        "retrace_every": settings.rounds_per_trace,
        "coherence_s": channel.coherence_time(settings.speed_m_s, settings.carrier_hz),
        "round_correlation": channel.round_correlation(settings.speed_m_s, settings.carrier_hz, settings.interval_s),
        "base": list(settings.base_m),
        "area": list(settings.area_m),
        "height_m": settings.height_m,
        "units": UNITS,
        "software": {package: version(package) for package in PACKAGES},
    }
