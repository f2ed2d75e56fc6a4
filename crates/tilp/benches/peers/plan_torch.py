"""The search of benches/plan.rs in PyTorch: same candidates, same synthetic twin, same refit.

    python plan_torch.py

Prints `name = milliseconds` (medians and least times) for one and two threads. Steps of the horizon are not looped
over: what carries over from step to step is a cumulative sum.
"""

import statistics
import time

import torch

SAMPLES, ELITES, ITERATIONS, STEPS, TERMINALS, DISCOUNT = 200, 25, 5, 16, 50, 0.99
FEATURES, GLOBALS, WIDTH, VALUE_WIDTH = 8, 4, 64, 32
BITS = torch.tensor([4.0, 3.0, 2.0, 1.5, 1.0])
WORK = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5])
GAINS = 2 ** (torch.arange(TERMINALS) * 3.0 / TERMINALS)
WEIGHTS = DISCOUNT ** torch.arange(STEPS)


def layers(*sizes):
    return [(torch.randn(a, b) * a**-0.5, torch.zeros(b)) for a, b in zip(sizes, sizes[1:])]


ACTOR = layers(FEATURES + GLOBALS, WIDTH, WIDTH, 12)
ENCODER = layers(FEATURES, VALUE_WIDTH, VALUE_WIDTH)
READER = layers(VALUE_WIDTH + GLOBALS, VALUE_WIDTH, 1)


def network(x, weights, relu_last=False):
    for index, (weight, bias) in enumerate(weights):
        x = x @ weight + bias
        if relu_last or index + 1 < len(weights):
            x = torch.relu(x)
    return x


def value(stores):
    features = torch.full((stores.shape[0], TERMINALS, FEATURES), 0.3)
    features[..., 0] = stores
    pooled = network(features, ENCODER, True).mean(1)
    return network(torch.cat([pooled, torch.full((stores.shape[0], GLOBALS), 0.1)], 1), READER)[:, 0]


def score(reals, cut, flag, guided):
    b, p, q = reals.unbind(-1)
    shared = (flag * b).sum(-1, keepdim=True) + 1e-6
    share = b / shared + 1e-3
    rate = share * torch.log(1 + p * GAINS / share)
    air = BITS[cut] * (1 - 0.9 * q) / (rate + 1e-3)
    work = WORK[cut]
    delay = (flag * (air + work)).amax(-1)
    energy = (flag * (p * air + work)).sum(-1)
    stores = flag.cumsum(1)
    gain = (flag * (1 - 0.5 * q) / (1 + stores - flag)).sum(-1)
    total = (WEIGHTS * (gain - 0.1 * energy - 0.1 * delay)).sum(-1)
    return total + DISCOUNT**STEPS * value(stores[:, -1]) if guided else total


@torch.no_grad()
def plan(guided):
    shape = (STEPS, TERMINALS)
    mean, deviation = torch.zeros(*shape, 3), torch.ones(*shape, 3)
    category, chance = torch.full((*shape, 5), 0.2), torch.full(shape, 0.5)
    if guided:
        x = torch.cat([torch.full((TERMINALS, FEATURES), 0.3), torch.full((TERMINALS, GLOBALS), 0.1)], 1)
        head = network(x, ACTOR)
        mean = head[:, :3].expand(*shape, 3)
        deviation = torch.exp(-5 + 3.5 * (torch.tanh(head[:, 3:6]) + 1)).expand(*shape, 3)
        category = torch.softmax(head[:, 6:11], -1).expand(*shape, 5)
        chance = torch.sigmoid(head[:, 11]).expand(shape)
    best, best_score = None, -float("inf")
    for _ in range(ITERATIONS):
        z = (mean + deviation * torch.randn(SAMPLES, *shape, 3)).clamp(-4, 4)
        reals = torch.sigmoid(2 * z)
        below = category.cumsum(-1)[..., :-1]
        cut = (torch.rand(SAMPLES, *shape, 1) >= below).sum(-1)
        flag = (torch.rand(SAMPLES, *shape) < chance).float()
        scores = score(reals, cut, flag, guided)
        top = scores.topk(ELITES)
        chosen = top.indices
        if top.values[0] > best_score:
            best_score = top.values[0]
            best = (reals[chosen[0]], cut[chosen[0]], flag[chosen[0]])
        elite = z[chosen]
        mean, deviation = elite.mean(0), elite.std(0, correction=0).clamp(min=1e-3)
        category = torch.nn.functional.one_hot(cut[chosen], 5).float().mean(0)
        chance = flag[chosen].mean(0)
    return best


def report(name, guided, calls=31):
    times = []
    for _ in range(calls + 5):
        start = time.perf_counter()
        plan(guided)
        times.append(1e3 * (time.perf_counter() - start))
    print(f"{name} = {statistics.median(times[5:]):.3f}\n{name}_least = {min(times[5:]):.3f}")


for threads in (1, 2):
    torch.set_num_threads(threads)
    report(f"torch_search_{threads}", False)
    report(f"torch_search_actor_critic_{threads}", True)
