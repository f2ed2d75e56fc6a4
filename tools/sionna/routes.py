"""Where terminals stand and drive: drawn from the seed, inside free space."""

from dataclasses import dataclass

import numpy as np

from settings import InputError

# Draws before we say that the area has no room.
MAX_DRAWS = 200
# Candidates for the next way-point that are tried at once.
CANDIDATES = 32


@dataclass(frozen=True)
class Routes:
    """Position [R, N, 3] and velocity [R, N, 3] of N terminals in R rounds."""

    position_m: np.ndarray
    velocity_m_s: np.ndarray


def draw(site, settings, count, rng):
    """Routes of `count` terminals over all rounds."""
    start = _places(site, settings, count, rng)
    if settings.motion == "moving":
        return _drive(site, settings, start, rng)
    angle = rng.uniform(0.0, 2.0 * np.pi, count)
    velocity = settings.speed_m_s * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(count)])
    return Routes(*(np.broadcast_to(once, (settings.rounds, count, 3)) for once in (start, velocity)))


def _places(site, settings, count, rng):
    """Free points, uniform over the area."""
    found = np.zeros((0, 3))
    for _ in range(MAX_DRAWS):
        points = _points(settings, count, rng)
        found = np.vstack([found, points[site.free(points)]])
        if len(found) >= count:
            return found[:count]
    raise InputError(f"--area = {_listed(settings.area_m)}, expected room for {count} terminals: "
                     f"{len(found)} free places in {MAX_DRAWS * count} draws")


def _drive(site, settings, start, rng):
    """Terminals from way-point to way-point at constant speed: position and velocity at every round."""
    goal = settings.speed_m_s * settings.interval_s * (settings.rounds - 1)
    points = [[place] for place in start]
    travelled = [[0.0] for _ in start]
    # One leg even for a single round: a terminal that moves has a direction.
    while short := [n for n, way in enumerate(travelled) if len(way) < 2 or way[-1] < goal]:
        here = np.array([points[n][-1] for n in short])
        for n, there in zip(short, _next_waypoints(site, settings, here, rng)):
            travelled[n].append(travelled[n][-1] + np.linalg.norm(there - points[n][-1]))
            points[n].append(there)
    driven = [_sample(np.array(way), np.array(length), settings) for way, length in zip(points, travelled)]
    return Routes(*(np.stack(parts, axis=1) for parts in zip(*driven)))


def _next_waypoints(site, settings, here, rng):
    """For each terminal a free point that it sees: all are asked at once, the tracer likes long arrays."""
    there = np.full(here.shape, np.nan)
    for _ in range(MAX_DRAWS):
        stuck = np.flatnonzero(np.isnan(there[:, 0]))
        if len(stuck) == 0:
            return there
        tried = _points(settings, len(stuck) * CANDIDATES, rng)
        way_open = site.clear(np.repeat(here[stuck], CANDIDATES, axis=0), tried) & site.free(tried)
        way_open = way_open.reshape(len(stuck), CANDIDATES)
        first = tried.reshape(len(stuck), CANDIDATES, 3)[np.arange(len(stuck)), way_open.argmax(axis=1)]
        there[stuck] = np.where(way_open.any(axis=1)[:, None], first, np.nan)
    raise InputError(f"--area = {_listed(settings.area_m)}, expected a clear way from every free place, "
                     f"found none at {_listed(here[stuck[0]])}")


def _sample(points, travelled, settings):
    """Positions and velocities at the start of every round."""
    way = settings.speed_m_s * settings.interval_s * np.arange(settings.rounds)
    leg = np.clip(np.searchsorted(travelled, way, side="right") - 1, 0, len(points) - 2)
    length = (travelled[leg + 1] - travelled[leg])[:, None]
    along = (points[leg + 1] - points[leg]) / length
    return points[leg] + along * (way - travelled[leg])[:, None], settings.speed_m_s * along


def _points(settings, count, rng):
    x0, y0, x1, y1 = settings.area_m
    return np.column_stack([rng.uniform(x0, x1, count), rng.uniform(y0, y1, count),
                            np.full(count, settings.height_m)])


def _listed(numbers):
    return ",".join(f"{number:g}" for number in numbers)
