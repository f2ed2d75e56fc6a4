"""Medians and least times of the lines `name = milliseconds` of several runs, and the ratios.

    python ratio.py TIMES
"""

import statistics
import sys
from collections import defaultdict

found = defaultdict(list)
for line in open(sys.argv[1]):
    name, value = line.split(" = ")
    found[name].append(float(value))

print(f"{'':32}{'median':>10}{'least':>10}   median of each run")
for name, values in found.items():
    if name.endswith("_least"):
        continue
    least = min(found.get(name + "_least", values))
    runs = " ".join(f"{value:.4g}" for value in values)
    print(f"{name:32}{statistics.median(values):10.4g}{least:10.4g}   {runs}")

print("\nratio of the faster peer to ours: of medians, of least times, run by run")
for name in ("plain", "plain_guided"):
    ends = ("torch_{}_1", "torch_{}_2", "jax_{}_threefry2x32", "jax_{}_rbg")
    peers = [end.format(name) for end in ends]
    middle = min(statistics.median(found[peer]) for peer in peers) / statistics.median(found[name])
    least = min(min(found[peer + "_least"]) for peer in peers) / min(found[name + "_least"])
    runs = [min(found[peer][run] for peer in peers) / ours for run, ours in enumerate(found[name])]
    print(f"{name:16}{middle:8.1f}{least:8.1f}   " + " ".join(f"{one:.1f}" for one in runs))
