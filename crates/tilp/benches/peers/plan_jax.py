"""One plan of benches/plan.rs in JAX: the paper's sampler on the twin's rollouts, the whole plan one
compiled function.

    python plan_jax.py PROBLEM.json

Checks its returns against those in the problem, then prints `name = milliseconds` (medians and least
times) after compilation, for both of JAX's random generators; threads as XLA chooses.
"""

import statistics
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp

import rollout

SAMPLES, ELITES, ITERATIONS = 200, 25, 5
WIDTH, VALUE_WIDTH = 64, 32
PROBLEM, CANDIDATES, RETURNS = rollout.problem(sys.argv[1], partial(jnp.array, dtype=jnp.float32), jnp.array)


def integer(x):
    return x.astype(jnp.int32)


def layers(key, *sizes):
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, (a, b)) * a**-0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]


ACTOR = layers(jax.random.key(1), 11, WIDTH, WIDTH, 12)
ENCODER = layers(jax.random.key(2), 7, VALUE_WIDTH, VALUE_WIDTH)
READER = layers(jax.random.key(3), VALUE_WIDTH + 4, VALUE_WIDTH, 1)


def net(x, weights, relu_last=False):
    for index, (weight, bias) in enumerate(weights):
        x = x @ weight + bias
        if relu_last or index + 1 < len(weights):
            x = jax.nn.relu(x)
    return x


def score(reals, cut, flag, guided):
    total, state = rollout.returns(jnp, PROBLEM, reals, cut, flag, integer)
    if not guided:
        return total
    terminals, globals_ = rollout.features(jnp, PROBLEM, state)
    pooled = net(terminals, ENCODER, True).mean(1)
    value = net(jnp.concatenate([pooled, globals_], 1), READER)[:, 0]
    return total + PROBLEM.discount**PROBLEM.steps * value


def start(guided):
    shape = (PROBLEM.steps, PROBLEM.terminals)
    if not guided:
        mean = jnp.broadcast_to(jnp.array([0.0, 1.1, 1.3]), (*shape, 3))
        deviation = jnp.broadcast_to(jnp.array([0.5, 0.7, 0.5]), (*shape, 3))
        return mean, deviation, jnp.full((*shape, 5), 0.2), jnp.full(shape, 0.2)
    head = net(jnp.full((PROBLEM.terminals, 11), 0.3), ACTOR)
    deviation = jnp.exp(-5 + 3.5 * (jnp.tanh(head[:, 3:6]) + 1))
    laws = (head[:, :3], deviation, jax.nn.softmax(head[:, 6:11]), jax.nn.sigmoid(head[:, 11]))
    return tuple(jnp.broadcast_to(law, (PROBLEM.steps, *law.shape)) for law in laws)


@partial(jax.jit, static_argnums=1)
def plan(key, guided):
    shape = (PROBLEM.steps, PROBLEM.terminals)

    def iteration(carry, key):
        mean, deviation, category, chance, best, best_score = carry
        for_z, for_cut, for_flag = jax.random.split(key, 3)
        z = jnp.clip(mean + deviation * jax.random.normal(for_z, (SAMPLES, *shape, 3)), -4, 4)
        reals = jax.nn.sigmoid(2 * z)
        below = jnp.cumsum(category, -1)[..., :-1]
        cut = (jax.random.uniform(for_cut, (SAMPLES, *shape, 1)) >= below).sum(-1)
        flag = (jax.random.uniform(for_flag, (SAMPLES, *shape)) < chance).astype(jnp.float32)
        values, chosen = jax.lax.top_k(score(reals, cut, flag, guided), ELITES)
        found = (reals[chosen[0]], cut[chosen[0]], flag[chosen[0]])
        best = jax.tree.map(lambda new, old: jnp.where(values[0] > best_score, new, old), found, best)
        elite = z[chosen]
        fitted = (elite.mean(0), jnp.maximum(elite.std(0), 1e-3), jax.nn.one_hot(cut[chosen], 5).mean(0), flag[chosen].mean(0))
        return (*fitted, best, jnp.maximum(best_score, values[0])), None

    nothing = (jnp.zeros((*shape, 3)), jnp.zeros(shape, jnp.int32), jnp.zeros(shape))
    carry = (*start(guided), nothing, -jnp.inf)
    return jax.lax.scan(iteration, carry, jax.random.split(key, ITERATIONS))[0][4]


def check():
    c = CANDIDATES
    found, _ = rollout.returns(jnp, PROBLEM, c[..., :3], integer(c[..., 3]), c[..., 4], integer)
    error = float((jnp.abs(found - RETURNS) / jnp.maximum(jnp.abs(RETURNS), 1)).max())
    print(f"jax_error = {error:.2e}")
    assert error < 1e-3, (found, RETURNS)


def report(name, guided, generator, calls=31):
    times = []
    for call in range(calls + 5):
        key = jax.random.key(call, impl=generator)
        clock = time.perf_counter()
        jax.block_until_ready(plan(key, guided))
        times.append(1e3 * (time.perf_counter() - clock))
    print(f"{name} = {statistics.median(times[5:]):.3f}\n{name}_least = {min(times[5:]):.3f}")


check()
for generator in ("threefry2x32", "rbg") if "--check" not in sys.argv else ():
    report(f"jax_plain_{generator}", False, generator)
    report(f"jax_plain_guided_{generator}", True, generator)
