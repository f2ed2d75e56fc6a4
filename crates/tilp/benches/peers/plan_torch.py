"""One plan of benches/plan.rs in PyTorch: the paper's sampler on the twin's rollouts.

    python plan_torch.py PROBLEM.json

Checks its returns against those in the problem, then prints `name = milliseconds` (medians and least
times) for one and two threads.
"""

import statistics
import sys
import time

import torch

import rollout

SAMPLES, ELITES, ITERATIONS = 200, 25, 5
WIDTH, VALUE_WIDTH = 64, 32
PROBLEM, CANDIDATES, RETURNS = rollout.problem(sys.argv[1], torch.tensor, torch.tensor)


def integer(x):
    return x.to(torch.int64)


def layers(*sizes):
    return [(torch.randn(a, b) * a**-0.5, torch.zeros(b)) for a, b in zip(sizes, sizes[1:])]


ACTOR = layers(11, WIDTH, WIDTH, 12)
ENCODER = layers(7, VALUE_WIDTH, VALUE_WIDTH)
READER = layers(VALUE_WIDTH + 4, VALUE_WIDTH, 1)


def net(x, weights, relu_last=False):
    for index, (weight, bias) in enumerate(weights):
        x = x @ weight + bias
        if relu_last or index + 1 < len(weights):
            x = torch.relu(x)
    return x


def score(reals, cut, flag, guided):
    total, state = rollout.returns(torch, PROBLEM, reals, cut, flag, integer)
    if not guided:
        return total
    terminals, globals_ = rollout.features(torch, PROBLEM, state)
    pooled = net(terminals, ENCODER, True).mean(1)
    value = net(torch.cat([pooled, globals_], 1), READER)[:, 0]
    return total + PROBLEM.discount**PROBLEM.steps * value


def start(guided):
    shape = (PROBLEM.steps, PROBLEM.terminals)
    if not guided:
        mean = torch.tensor([0.0, 1.1, 1.3]).expand(*shape, 3)
        deviation = torch.tensor([0.5, 0.7, 0.5]).expand(*shape, 3)
        return mean, deviation, torch.full((*shape, 5), 0.2), torch.full(shape, 0.2)
    head = net(torch.full((PROBLEM.terminals, 11), 0.3), ACTOR)
    deviation = torch.exp(-5 + 3.5 * (torch.tanh(head[:, 3:6]) + 1))
    category, chance = torch.softmax(head[:, 6:11], -1), torch.sigmoid(head[:, 11])
    return head[:, :3].expand(*shape, 3), deviation.expand(*shape, 3), category.expand(*shape, 5), chance.expand(shape)


@torch.inference_mode()
def plan(guided):
    mean, deviation, category, chance = start(guided)
    shape, best, best_score = chance.shape, None, -float("inf")
    for _ in range(ITERATIONS):
        z = (mean + deviation * torch.randn(SAMPLES, *shape, 3)).clamp(-4, 4)
        reals = torch.sigmoid(2 * z)
        below = category.cumsum(-1)[..., :-1]
        cut = (torch.rand(SAMPLES, *shape, 1) >= below).sum(-1)
        flag = (torch.rand(SAMPLES, *shape) < chance).float()
        top = score(reals, cut, flag, guided).topk(ELITES)
        chosen = top.indices
        if top.values[0] > best_score:
            best_score, first = top.values[0], chosen[0]
            best = (reals[first], cut[first], flag[first])
        elite = z[chosen]
        mean, deviation = elite.mean(0), elite.std(0, correction=0).clamp(min=1e-3)
        category = torch.nn.functional.one_hot(cut[chosen], 5).float().mean(0)
        chance = flag[chosen].mean(0)
    return best


@torch.inference_mode()
def check():
    c = CANDIDATES
    found, _ = rollout.returns(torch, PROBLEM, c[..., :3], integer(c[..., 3]), c[..., 4], integer)
    error = ((found - RETURNS).abs() / RETURNS.abs().clamp(min=1)).max().item()
    print(f"torch_error = {error:.2e}")
    assert error < 1e-3, (found, RETURNS)


def report(name, guided, calls=31):
    times = []
    for _ in range(calls + 5):
        clock = time.perf_counter()
        plan(guided)
        times.append(1e3 * (time.perf_counter() - clock))
    print(f"{name} = {statistics.median(times[5:]):.3f}\n{name}_least = {min(times[5:]):.3f}")


check()
for threads in (1, 2) if "--check" not in sys.argv else ():
    torch.set_num_threads(threads)
    report(f"torch_plain_{threads}", False)
    report(f"torch_plain_guided_{threads}", True)
