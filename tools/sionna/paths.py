"""Propagation paths from the base to terminals, freed of the solver's known faults."""

from dataclasses import dataclass, fields

import numpy as np

from scenes import mi, rt
from settings import MAX_CANDIDATES

# The solver calls a ray through a metal block a path too; 200 dB down it carries nothing.
WEAKEST_POWER = 1e-20


@dataclass(frozen=True)
class Paths:
    """Paths of N terminals, arrays [N, P]; entries that are not `found` are zero."""

    found: np.ndarray
    line_of_sight: np.ndarray
    amplitude: np.ndarray
    delay_s: np.ndarray
    doppler_hz: np.ndarray


def trace(site, settings, position_m, velocity_m_s):
    """Paths of terminals at [N, 3] positions with [N, 3] velocities."""
    size = batch_size(settings.rays, settings.depth)
    starts = range(0, len(position_m), size)
    parts = [tidy(solve(site, settings, position_m[i:i + size], velocity_m_s[i:i + size])) for i in starts]
    return _stack(parts)


def batch_size(rays, depth):
    """Terminals that one call may serve so that its buffer can never overflow."""
    return max(1, MAX_CANDIDATES // candidates(rays, depth, 1))


def candidates(rays, depth, terminals):
    """The most candidates a call can find: the line of sight, and every ray at every bounce."""
    return terminals * (1 + rays * depth)


def tidy(raw):
    """Paths that count, in one order."""
    return in_order(without_weak(one_line_of_sight(raw)))


def solve(site, settings, position_m, velocity_m_s):
    """What the solver says, as it says it."""
    _place_receivers(site.scene, position_m, velocity_m_s)
    solved = rt.PathSolver(deterministic=True)(
        site.scene,
        max_depth=settings.depth,
        samples_per_src=settings.rays,
        # A smaller buffer drops paths without a word.
        max_num_paths_per_src=candidates(settings.rays, settings.depth, len(position_m)),
        # Without refraction half of a street gets no path.
        refraction=True,
    )
    found = solved.valid.numpy()[:, 0, :]
    bounces = solved.interactions.numpy()[:, :, 0, :]
    real, imaginary = (part.numpy()[:, 0, 0, 0, :].astype(np.float64) for part in solved.a)
    return _masked(Paths(
        found=found,
        line_of_sight=(bounces == 0).all(axis=0),
        amplitude=real + 1j * imaginary,
        delay_s=solved.tau.numpy()[:, 0, :].astype(np.float64),
        doppler_hz=solved.doppler.numpy()[:, 0, :].astype(np.float64),
    ), found)


def one_line_of_sight(paths):
    """A link has one line of sight: copies that the solver gives to its first receiver go."""
    copies = paths.line_of_sight & (np.cumsum(paths.line_of_sight, axis=1) > 1)
    return _masked(paths, ~copies)


def without_weak(paths):
    """Paths that carry power."""
    return _masked(paths, np.abs(paths.amplitude) ** 2 > WEAKEST_POWER)


def in_order(paths):
    """Sorted by delay: the solver's order changes from run to run, and with it the last digit of every sum."""
    keys = (paths.doppler_hz, paths.amplitude.imag, paths.amplitude.real, paths.delay_s, ~paths.found)
    order = np.lexsort(keys, axis=1)[:, :int(paths.found.sum(axis=1).max(initial=0))]
    return _each(paths, lambda values: np.take_along_axis(values, order, axis=1))


def _place_receivers(scene, position_m, velocity_m_s):
    for name in list(scene.receivers):
        scene.remove(name)
    for index, (place, velocity) in enumerate(zip(position_m, velocity_m_s)):
        scene.add(rt.Receiver(f"terminal_{index}", mi.Point3f(_data(place)), velocity=mi.Vector3f(_data(velocity))))


def _data(vector):
    """A vector as data: plain numbers would be compiled into the kernels, which every place then needs anew."""
    return vector.astype(np.float32)[:, None]


def _masked(paths, keep):
    keep = keep & paths.found
    return _each(paths, lambda values: np.where(keep, values, np.zeros((), values.dtype)))


def _stack(parts):
    width = max(part.found.shape[1] for part in parts)
    wide = [_each(part, lambda values: np.pad(values, ((0, 0), (0, width - values.shape[1])))) for part in parts]
    return Paths(*(np.concatenate([getattr(part, field.name) for part in wide]) for field in fields(Paths)))


def _each(paths, change):
    return Paths(*(change(getattr(paths, field.name)) for field in fields(Paths)))
