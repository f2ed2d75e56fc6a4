"""The search of benches/plan.rs in JAX: one compiled function for the whole plan.

    python plan_jax.py

Prints `name = milliseconds` (medians and least times) after compilation; threads as XLA chooses.
"""

import statistics
import time
from functools import partial

import jax
import jax.numpy as jnp

SAMPLES, ELITES, ITERATIONS, STEPS, TERMINALS, DISCOUNT = 200, 25, 5, 16, 50, 0.99
FEATURES, GLOBALS, WIDTH, VALUE_WIDTH = 8, 4, 64, 32
BITS = jnp.array([4.0, 3.0, 2.0, 1.5, 1.0])
WORK = jnp.array([0.1, 0.2, 0.3, 0.4, 0.5])
GAINS = 2 ** (jnp.arange(TERMINALS) * 3.0 / TERMINALS)
WEIGHTS = DISCOUNT ** jnp.arange(STEPS)


def layers(key, *sizes):
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, (a, b)) * a**-0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]


ACTOR = layers(jax.random.key(1), FEATURES + GLOBALS, WIDTH, WIDTH, 12)
ENCODER = layers(jax.random.key(2), FEATURES, VALUE_WIDTH, VALUE_WIDTH)
READER = layers(jax.random.key(3), VALUE_WIDTH + GLOBALS, VALUE_WIDTH, 1)


def network(x, weights, relu_last=False):
    for index, (weight, bias) in enumerate(weights):
        x = x @ weight + bias
        if relu_last or index + 1 < len(weights):
            x = jax.nn.relu(x)
    return x


def value(stores):
    rest = jnp.full((SAMPLES, TERMINALS, FEATURES - 1), 0.3)
    pooled = network(jnp.concatenate([stores[..., None], rest], -1), ENCODER, True).mean(1)
    return network(jnp.concatenate([pooled, jnp.full((SAMPLES, GLOBALS), 0.1)], 1), READER)[:, 0]


def score(reals, cut, flag, guided):
    b, p, q = reals[..., 0], reals[..., 1], reals[..., 2]
    shared = (flag * b).sum(-1, keepdims=True) + 1e-6
    share = b / shared + 1e-3
    rate = share * jnp.log(1 + p * GAINS / share)
    air = BITS[cut] * (1 - 0.9 * q) / (rate + 1e-3)
    work = WORK[cut]
    delay = (flag * (air + work)).max(-1)
    energy = (flag * (p * air + work)).sum(-1)
    stores = jnp.cumsum(flag, 1)
    gain = (flag * (1 - 0.5 * q) / (1 + stores - flag)).sum(-1)
    total = (WEIGHTS * (gain - 0.1 * energy - 0.1 * delay)).sum(-1)
    return total + DISCOUNT**STEPS * value(stores[:, -1]) if guided else total


@partial(jax.jit, static_argnums=1)
def plan(key, guided):
    shape = (STEPS, TERMINALS)
    mean, deviation = jnp.zeros((*shape, 3)), jnp.ones((*shape, 3))
    category, chance = jnp.full((*shape, 5), 0.2), jnp.full(shape, 0.5)
    if guided:
        head = network(jnp.concatenate([jnp.full((TERMINALS, FEATURES), 0.3), jnp.full((TERMINALS, GLOBALS), 0.1)], 1), ACTOR)
        mean = jnp.broadcast_to(head[:, :3], (*shape, 3))
        deviation = jnp.broadcast_to(jnp.exp(-5 + 3.5 * (jnp.tanh(head[:, 3:6]) + 1)), (*shape, 3))
        category = jnp.broadcast_to(jax.nn.softmax(head[:, 6:11]), (*shape, 5))
        chance = jnp.broadcast_to(jax.nn.sigmoid(head[:, 11]), shape)

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
    start = (mean, deviation, category, chance, nothing, -jnp.inf)
    return jax.lax.scan(iteration, start, jax.random.split(key, ITERATIONS))[0][4]


def report(name, guided, calls=31):
    times = []
    for call in range(calls + 5):
        key = jax.random.key(call, impl="rbg")
        start = time.perf_counter()
        jax.block_until_ready(plan(key, guided))
        times.append(1e3 * (time.perf_counter() - start))
    print(f"{name} = {statistics.median(times[5:]):.3f}\n{name}_least = {min(times[5:]):.3f}")


report("jax_search", False)
report("jax_search_actor_critic", True)
