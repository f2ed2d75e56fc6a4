"""The ``tilp`` command."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tilp import _tilp


def main() -> int:
    """Execute the arguments of the process and return the exit code."""
    script = Path(sys.executable).with_name("tilp")
    if script.is_file():
        # Commands that start further processes start this one.
        os.environ.setdefault("TILP_PROGRAM", str(script))
    return _tilp.command(["tilp", *sys.argv[1:]])
