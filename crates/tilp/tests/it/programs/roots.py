"""The rule of outside.rs in Python: terminals in turn, shares of the band by square roots."""

import json
import math
import sys

counts = []


def decide(limits, seen):
    terminals = seen["terminals"]
    counts.extend([0] * (len(terminals) - len(counts)))
    order = sorted(range(len(terminals)), key=lambda n: (counts[n], n))[:3]
    weights = {n: 1.0 / math.sqrt(terminals[n]["gain"] * terminals[n]["fading_power"]) for n in order}
    total = 0.0
    for n in order:
        total += weights[n]
    cuts = limits["cuts"]
    decision = [{"scheduled": False, "cut": cuts[0]} for _ in terminals]
    for n in order:
        decision[n] = {
            "scheduled": True,
            "bandwidth_hz": limits["bandwidth_hz"] * (weights[n] / total),
            "power_w": limits["power_w"] * (0.5 + 0.5 / (1.0 + counts[n])),
            "cut": cuts[seen["round"] % len(cuts)],
            "compression": limits["compression"] * (n + 1.0) / 6.0,
        }
    return decision


for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "setup":
        limits = message["limits"]
        reply = {"type": "method", "version": 1, "name": "roots", "state": "given"}
    elif message["type"] == "restore":
        counts = message["state"]
        reply = {"type": "restored"}
    elif message["type"] == "observe":
        reply = {"type": "decision", "terminals": decide(limits, message["observation"])}
    elif message["type"] == "outcome":
        for n, one in enumerate(message["outcome"]["terminals"]):
            counts[n] += one["took_part"]
        reply = {"type": "learned", "state": counts}
    else:
        break
    print(json.dumps(reply), flush=True)
