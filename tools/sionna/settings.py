"""What one export is asked to do, checked before anything heavy is loaded."""

import math
from dataclasses import dataclass
from pathlib import Path

MOTIONS = ("static", "doppler", "moving")

# Candidates one call of the solver may hold: about 0.8 GB. More terminals are traced in several calls.
MAX_CANDIDATES = 4_000_000


class InputError(Exception):
    """Input that cannot be used, reported in one line: field, value, expectation."""


@dataclass(frozen=True)
class Preset:
    """Where the base station and the terminals stand in a scene we know."""

    base_m: tuple
    area_m: tuple
    height_m: float


PRESETS = {
    # On the west wall, so that the racks at the other end throw shadows.
    "factory": Preset((-29.0, 0.0, 6.5), (-29.0, -14.0, 29.0, 14.0), 1.0),
    "simple_street_canyon": Preset((0.0, 0.0, 10.0), (-90.0, -55.0, 90.0, 55.0), 1.5),
    "simple_street_canyon_with_cars": Preset((0.0, 0.0, 10.0), (-90.0, -55.0, 90.0, 55.0), 1.5),
    "munich": Preset((8.5, 21.0, 27.0), (-150.0, -150.0, 150.0, 150.0), 1.5),
    "etoile": Preset((0.0, 0.0, 55.0), (-200.0, -200.0, 200.0, 200.0), 1.5),
}


@dataclass(frozen=True)
class Settings:
    """One export; lengths in metres, times in seconds, frequencies in hertz."""

    scene: str
    terminals: int
    rounds: int
    interval_s: float
    seed: int
    carrier_hz: float
    bandwidth_hz: float
    subcarriers: int
    motion: str
    speed_m_s: float
    retrace_every: int
    depth: int
    rays: int
    base_m: tuple
    area_m: tuple
    height_m: float
    out: Path

    @property
    def rounds_per_trace(self):
        """Rounds that share one trace of the scene."""
        return self.retrace_every if self.motion == "moving" else self.rounds

    @property
    def scene_name(self):
        """The scene without the folder it lies in: records carry no paths."""
        return Path(self.scene).name


def from_arguments(args):
    """Checked settings, gaps filled from the scene's preset."""
    preset = PRESETS.get(args.scene)
    settings = Settings(
        scene=args.scene,
        terminals=args.terminals,
        rounds=args.rounds,
        interval_s=args.interval_s,
        seed=args.seed,
        carrier_hz=args.carrier_hz,
        bandwidth_hz=args.bandwidth_hz,
        subcarriers=args.subcarriers,
        motion=args.motion,
        speed_m_s=0.0 if args.motion == "static" else args.speed_m_s,
        retrace_every=args.retrace_every,
        depth=args.depth,
        rays=args.rays,
        base_m=_given_or_preset("--base", args.base, preset and preset.base_m, args.scene),
        area_m=_given_or_preset("--area", args.area, preset and preset.area_m, args.scene),
        height_m=_given_or_preset("--height", args.height, preset and preset.height_m, args.scene),
        out=Path(args.out),
    )
    _check(settings)
    return settings


def _given_or_preset(field, given, preset, scene):
    if given is not None:
        return given
    if preset is None:
        raise InputError(f"{field} missing, expected a value: scene {scene!r} has no preset")
    return preset


def _check(settings):
    for field, least in (("terminals", 1), ("rounds", 1), ("subcarriers", 1), ("rays", 1),
                         ("retrace_every", 1), ("depth", 0), ("seed", 0)):
        value = getattr(settings, field)
        if value < least:
            raise InputError(f"{_flag(field)} = {value}, expected an integer of at least {least}")
    for field in ("interval_s", "carrier_hz", "bandwidth_hz", "height_m"):
        _positive(_flag(field), getattr(settings, field))
    if settings.motion != "static":
        _positive("--speed-m-s", settings.speed_m_s, f" with --motion {settings.motion}")
    if settings.bandwidth_hz >= 2 * settings.carrier_hz:
        raise InputError(f"--bandwidth-hz = {settings.bandwidth_hz:g}, expected less than twice the carrier")
    if settings.rays * settings.depth >= MAX_CANDIDATES:
        raise InputError(f"--rays x --depth = {settings.rays * settings.depth}, expected less than {MAX_CANDIDATES}")
    _check_area(settings.area_m)
    _check_out(settings.out)


def _flag(field):
    return "--height" if field == "height_m" else "--" + field.replace("_", "-")


def _positive(flag, value, when=""):
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{flag} = {value:g}, expected a finite number above 0{when}")


def _check_area(area_m):
    x0, y0, x1, y1 = area_m
    if not (x0 < x1 and y0 < y1):
        raise InputError(f"--area = {x0:g},{y0:g},{x1:g},{y1:g}, expected X0 < X1 and Y0 < Y1")


def _check_out(out):
    if out.suffix != ".npz":
        raise InputError(f"--out = {str(out)!r}, expected a name that ends in .npz")
    if not out.parent.is_dir():
        raise InputError(f"--out = {str(out)!r}, expected a folder that exists")
    if out.is_dir():
        raise InputError(f"--out = {str(out)!r}, expected a file, found a folder")
