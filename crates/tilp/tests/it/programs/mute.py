"""Declares nothing about its state."""

import json
import sys

for line in sys.stdin:
    if json.loads(line)["type"] == "setup":
        print(json.dumps({"type": "method", "version": 1, "name": "mute"}), flush=True)
