#!/usr/bin/env python3
"""Ray-traces one base station and N terminals, and writes their channel as one .npz that TiLP reads."""

import argparse
import math
import sys

from settings import MOTIONS, PRESETS, InputError, from_arguments

EPILOG = """\
motions:
  static   terminals stand still: every round is equal
  doppler  terminals stand still, the phases of their paths turn as if they moved at --speed-m-s
           in a direction of their own: gains fade from round to round
  moving   terminals drive from way-point to way-point and the scene is traced anew

exit codes: 0 written, 2 bad input (one line on stderr)
"""


class OneLineParser(argparse.ArgumentParser):
    """argparse whose errors are one line."""

    def error(self, message):
        raise InputError(message)


def parser():
    """The command line."""
    line = OneLineParser(prog="export.py", description=__doc__, epilog=EPILOG,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    known = ", ".join(PRESETS)
    add = line.add_argument
    add("--scene", default="factory", metavar="NAME|FILE.xml",
        help=f"a Mitsuba XML file, or a name; these need no --base, --area, --height: {known} (default factory)")
    add("--terminals", type=integer, default=50, metavar="N", help="terminals (default 50)")
    add("--rounds", type=integer, default=200, metavar="T", help="rounds (default 200)")
    add("--interval-s", type=number, default=5.0, metavar="S", help="seconds between rounds (default 5)")
    add("--motion", choices=MOTIONS, default="static", help="what changes from round to round (default static)")
    add("--speed-m-s", type=number, default=0.5, metavar="V", help="speed for doppler and moving (default 0.5)")
    add("--retrace-every", type=integer, default=1, metavar="K",
        help="moving: trace every K rounds, between traces only Doppler phases turn (default 1)")
    add("--seed", type=integer, default=0, metavar="S", help="draws places, directions and routes (default 0)")
    add("--carrier-hz", type=number, default=3.5e9, metavar="F", help="carrier (default 3.5e9)")
    add("--bandwidth-hz", type=number, default=1e8, metavar="B", help="band around the carrier (default 1e8)")
    add("--subcarriers", type=integer, default=32, metavar="K", help="tones the gain is averaged over (default 32)")
    add("--depth", type=integer, default=3, metavar="D", help="most bounces of a path, 0 for line of sight (default 3)")
    add("--rays", type=integer, default=20_000, metavar="R", help="rays shot from the base (default 20000)")
    add("--base", type=numbers(3), metavar="X,Y,Z", help="base station, in the open, metres; write --base=-1,2,3")
    add("--area", type=numbers(4), metavar="X0,Y0,X1,Y1", help="rectangle for terminals, metres; write --area=-9,...")
    add("--height", type=number, metavar="Z", help="terminals' height over the ground, which is at z = 0, metres")
    add("--out", required=True, metavar="FILE.npz", help="file to write")
    return line


def integer(text):
    """An integer."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}, expected an integer") from None


def number(text):
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r}, expected a finite number")
    return value


def numbers(count):
    """A parser for `count` numbers with commas between them."""
    def parse(text):
        values = tuple(number(part) for part in text.split(","))
        if len(values) != count:
            raise argparse.ArgumentTypeError(f"{text!r}, expected {count} numbers with commas between them")
        return values
    return parse


def summary(settings, arrays):
    """What was written, in two lines."""
    gain = arrays["gain_db"]
    low, middle, high = (f"{value:.1f}" for value in (gain.min(), sorted(gain.ravel())[gain.size // 2], gain.max()))
    sight = 100 * arrays["los"].mean()
    return (f"{settings.out}: {settings.scene_name}, {settings.motion}, {gain.shape[0]} rounds, "
            f"{gain.shape[1]} terminals\n"
            f"gain {low} / {middle} / {high} dB (least, median, most), line of sight {sight:.0f} % of the time")


def main(arguments=None):
    """Exit code of the command line."""
    try:
        settings = from_arguments(parser().parse_args(arguments))
        # Heavy, so only for input that passed; the tracer first, since it can tell what is missing.
        import backend
        backend.load()
        import record
        arrays = record.make(settings)
        record.write(arrays, settings.out)
    except InputError as error:
        print(f"export.py: {error}", file=sys.stderr)
        return 2
    print(summary(settings, arrays))
    return 0


if __name__ == "__main__":
    sys.exit(main())
