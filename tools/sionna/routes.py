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
        drawn = [_drive(site, settings, place, rng) for place in start]
        return Routes(*(np.stack(parts, axis=1) for parts in zip(*drawn)))
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
    """One terminal from way-point to way-point at constant speed: position and velocity at every round."""
    goal = settings.speed_m_s * settings.interval_s * (settings.rounds - 1)
    points, travelled = [start], [0.0]
    # One leg even for a single round: a terminal that moves has a direction.
    while len(points) < 2 or travelled[-1] < goal:
        points.append(_next_waypoint(site, settings, points[-1], rng))
        travelled.append(travelled[-1] + np.linalg.norm(points[-1] - points[-2]))
    return _sample(np.array(points), np.array(travelled), settings)


def _next_waypoint(site, settings, here, rng):
    for _ in range(MAX_DRAWS):
        there = _points(settings, CANDIDATES, rng)
        open_way = site.clear(np.broadcast_to(here, there.shape), there) & site.free(there)
        if open_way.any():
            return there[np.argmax(open_way)]
    raise InputError(f"--area = {_listed(settings.area_m)}, expected a clear way from every free place, "
                     f"found none at {_listed(here)}")


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
