"""``python -m tilp`` is the ``tilp`` command."""

import sys

from tilp._command import main

if __name__ == "__main__":
    sys.exit(main())
