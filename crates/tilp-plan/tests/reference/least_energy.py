"""Least energy for a finishing time, by a general convex solver.

    pip install cvxpy
    python least_energy.py > least_energy.txt

Each instance is one block of lines: a line with the band (Hz), the largest power (W), the finishing
time (s) and the least radio energy (J), then one line per terminal with its noise over gain (W/Hz),
all its bits, the bits that it sends and the time of its computation (s). The inputs are rounded
before they are solved. Given the finishing time t, terminal n needs the rate r = bits / (t - c), so
on a bandwidth b it sends with the power s b (2^(r/b) - 1) for sent / r seconds. b exp(r ln 2 / b) is
an exponential cone. Instances that the solver finds infeasible are left out.
"""

import math
import random

import cvxpy as cp
import numpy as np

INSTANCES = 1000


def rounded(value):
    return float(f"{value:.5g}")


def instance(rng):
    band = rounded(10 ** rng.uniform(6, 8))
    finish = rounded(10 ** rng.uniform(-0.7, 0.7))
    terminals = []
    for _ in range(rng.randint(2, 7)):
        noise = rounded(4e-20 / 10 ** rng.uniform(-13, -9.5))
        up = 10 ** rng.uniform(4.3, 6.3)
        bits = up * rng.uniform(1.2, 3.0)
        computation = finish * rng.uniform(0.02, 0.6)
        terminals.append((noise, rounded(bits), rounded(up), rounded(computation)))
    return band, 0.2, finish, terminals


def least_energy(band, most, finish, terminals):
    noise, bits, sent, computation = (np.array(column) for column in zip(*terminals))
    rate = bits / (finish - computation)
    nats = rate * math.log(2) / band  # bandwidth as a share of the band
    share = cp.Variable(len(terminals), pos=True)
    cone = cp.Variable(len(terminals))
    # In units of the noise on the whole band.
    power = cp.multiply(noise * band, cone - share)
    joules = cp.multiply(sent / rate, power)
    scale = float(np.sum(sent / rate * noise * band))
    problem = cp.Problem(
        cp.Minimize(cp.sum(joules) / scale),
        [cp.constraints.ExpCone(cp.Constant(nats), share, cone), power <= most, cp.sum(share) <= 1],
    )
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    if problem.status not in ("optimal", "optimal_inaccurate"):
        return None
    # The energy of the bandwidths found, with the power that they take.
    found = band * share.value / max(1.0, float(np.sum(share.value)))
    power = noise * found * np.expm1(rate * math.log(2) / found)
    if problem.status != "optimal" or np.any(power > most * (1 + 1e-6)):
        return None
    return float(np.sum(power * sent / rate))


def main():
    rng = random.Random(20)
    print("# band power finish joules, then per terminal: noise_over_gain bits sent_bits computation")
    solved = 0
    while solved < INSTANCES:
        band, most, finish, terminals = instance(rng)
        joules = least_energy(band, most, finish, terminals)
        if joules is None:
            continue
        solved += 1
        print(f"{band:g} {most:g} {finish:g} {joules:.8g}")
        for terminal in terminals:
            print(" " + " ".join(f"{value:.5g}" for value in terminal))


main()
