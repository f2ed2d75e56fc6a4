"""A scene with the queries of a placement: free places and clear ways."""

from pathlib import Path

import numpy as np

import backend
import hall
from settings import InputError

mi, rt = backend.load()

# Room that a terminal keeps around itself.
CLEARANCE_M = 0.5
# Share of the height, over a ground at z = 0, with nothing below.
DOWN_TO_GROUND = 0.9
# Step past a surface before the next one is looked for.
PAST_SURFACE_M = 1e-3
# Objects flatter than this are floors, ceilings and roads, not walls on a map.
FLAT_M = 0.2


class Site:
    """The loaded scene with its base station."""

    def __init__(self, settings):
        self.scene = _load(settings.scene)
        self.scene.frequency = settings.carrier_hz
        self.scene.bandwidth = settings.bandwidth_hz
        antenna = rt.PlanarArray(num_rows=1, num_cols=1, pattern="iso", polarization="V")
        self.scene.tx_array = self.scene.rx_array = antenna
        self.base_m = np.array(settings.base_m, dtype=np.float64)
        self.height_m = settings.height_m
        self.scene.add(rt.Transmitter("base", mi.Point3f(*settings.base_m)))

    def free(self, points):
        """Whether each point [M, 3] lies outside every object, with room around it."""
        # The base stands in the open, so a line from it that meets an odd number of surfaces ends inside a solid.
        # Unlike boxes this holds for any shape, and unlike a look from above also below a roof.
        outside = self._surfaces_between(np.broadcast_to(self.base_m, points.shape), points) % 2 == 0
        return outside & self._has_room(points)

    def clear(self, starts, ends):
        """Whether a terminal can go straight from each start to its end, both [M, 3] and of one height."""
        way = ends - starts
        length = np.linalg.norm(way, axis=1)
        along = way / length[:, None]
        aside = np.column_stack([-along[:, 1], along[:, 0], along[:, 2]]) * CLEARANCE_M
        lanes = [self._first_hit(starts + shift * aside, along, length) for shift in (-1, 0, 1)]
        return np.isinf(lanes).all(axis=0)

    def footprints(self):
        """Boxes x0, y0, x1, y1 of the objects that stand at the terminals' level, [K, 4]."""
        boxes = [scene_object.mi_mesh.bbox() for scene_object in self.scene.objects.values()]
        standing = [box for box in boxes if box.max.z - box.min.z > FLAT_M and box.min.z < self.height_m]
        sides = sorted((box.min.x, box.min.y, box.max.x, box.max.y) for box in standing)
        return np.array(sides, dtype=np.float64).reshape(-1, 4)

    def _has_room(self, points):
        angles = np.arange(8) * np.pi / 4
        around = [(np.cos(angle), np.sin(angle), 0.0, CLEARANCE_M) for angle in angles]
        below = (0.0, 0.0, -1.0, DOWN_TO_GROUND * self.height_m)  # nobody stands on the bonnet of a car
        near = [self._first_hit(points, np.broadcast_to(looks[:3], points.shape), np.full(len(points), looks[3]))
                for looks in (*around, below)]
        return np.isinf(near).all(axis=0)

    def _surfaces_between(self, starts, ends):
        way = ends - starts
        length = np.linalg.norm(way, axis=1)
        along = way / length[:, None]
        gone = np.zeros(len(starts))
        count = np.zeros(len(starts), dtype=int)
        while (gone < length).any():
            hit = self._first_hit(starts + along * gone[:, None], along, np.maximum(length - gone, 0.0))
            count += np.isfinite(hit)
            gone = np.where(np.isfinite(hit), gone + hit + PAST_SURFACE_M, length)
        return count

    def _first_hit(self, origins, directions, reach):
        """Distance to the first surface within reach, infinite where there is none."""
        ray = mi.Ray3f(mi.Point3f(_columns(origins)), mi.Vector3f(_columns(directions)),
                       mi.Float(reach.astype(np.float32)), 0.0, [])
        hit = self.scene.mi_scene.ray_intersect_preliminary(ray, coherent=False, active=True)
        return np.where(hit.is_valid().numpy(), hit.t.numpy(), np.inf)


def _columns(points):
    return [np.ascontiguousarray(points[:, axis], dtype=np.float32) for axis in range(3)]


def _load(name):
    """The hall, a file of the user's or a scene that ships with the tracer; shapes stay apart for the map."""
    if name == "factory":
        return rt.scene.load_scene_from_string(hall.xml(), merge_shapes=False)
    if name.endswith(".xml"):
        return _load_file(Path(name))
    if name not in shipped():
        raise InputError(f"--scene = {name!r}, expected factory, a FILE.xml or one of {', '.join(shipped())}")
    return rt.load_scene(getattr(rt.scene, name), merge_shapes=False)


def _load_file(path):
    if not path.is_file():
        raise InputError(f"--scene = {str(path)!r}, expected a file that exists")
    try:
        return rt.load_scene(str(path), merge_shapes=False)
    except Exception as error:  # the loader raises whatever its parser met
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"--scene = {str(path)!r}, expected a Mitsuba scene: {reason}") from error


def shipped():
    """Names of the scenes that come with the tracer."""
    values = vars(rt.scene)
    return sorted(name for name in values if isinstance(values[name], str) and values[name].endswith(".xml"))
