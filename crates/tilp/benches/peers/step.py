"""The training step of benches/step.rs in PyTorch (eager): same model, same batch, same cut, the same two
optimisers. AdamW is PyTorch's own, fused.

    python step.py

Prints `name = milliseconds` (medians) for one and two threads.
"""

import copy
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

SAMPLES, TERMINALS, TOKENS, FEATURES, WIDTH, HEADS, ACTIONS, CUT, RATE = 64, 50, 12, 5, 32, 4, 4, 3, 0.01


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(TOKENS, FEATURES, WIDTH) * FEATURES**-0.5)
        self.bias = nn.Parameter(torch.zeros(TOKENS, 1, WIDTH))

    def forward(self, x):
        # The groups are equally long here, so one batched product does all tokens.
        tokens = x.view(-1, TOKENS, FEATURES).transpose(0, 1)
        return torch.baddbmm(self.bias, tokens, self.weight).transpose(0, 1)


class Block(nn.Module):
    def __init__(self, merge):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.merge = nn.Sequential(nn.LayerNorm(2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)) if merge else None

    def forward(self, x):
        samples, tokens, _ = x.shape
        parts = self.project(self.norm1(x)).view(samples, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        x = x + self.output(mixed.transpose(1, 2).reshape(samples, tokens, WIDTH))
        x = x + self.down(F.relu(self.up(self.norm2(x))))
        return x if self.merge is None else self.merge(x.reshape(samples, tokens // 2, 2 * WIDTH))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(3 * WIDTH), nn.Linear(3 * WIDTH, ACTIONS)

    def forward(self, x):
        return self.linear(self.norm(x.flatten(1)))


def policy():
    torch.manual_seed(0)
    return nn.Sequential(Embedding(), *(Block(block in (2, 4)) for block in range(1, 7)), Head())


class Descent:
    """Plain gradient descent in one call."""

    def __init__(self, parameters):
        self.parameters = parameters

    def step(self, gradients, share=1.0):
        with torch.no_grad():
            torch._foreach_add_(self.parameters, gradients, alpha=-RATE * share)


class AdamW:
    """PyTorch's AdamW, given its gradients."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.rule = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.01, fused=True)

    def step(self, gradients, share=1.0):
        if share != 1.0:
            torch._foreach_mul_(gradients, share)
        for parameter, gradient in zip(self.parameters, gradients):
            parameter.grad = gradient
        self.rule.step()


def report(name, calls, work):
    for _ in range(calls // 5 + 1):
        work()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    print(f"{name} = {statistics.median(times):.4f}", flush=True)


def act(threads):
    model, x = policy(), torch.rand(SAMPLES, TOKENS * FEATURES)
    with torch.inference_mode():
        report(f"act_{threads}", 300, lambda: model(x))


def step(rule, suffix, threads):
    model = policy()
    parameters = list(model.parameters())
    optimiser = rule(parameters)
    x, y = torch.rand(SAMPLES, TOKENS * FEATURES), torch.rand(SAMPLES, ACTIONS)

    def work():
        loss = F.mse_loss(model(x), y)
        optimiser.step(list(torch.autograd.grad(loss, parameters)))

    report(f"step{suffix}_{threads}", 300, work)


def round_of_terminals(rule, suffix, threads):
    base = policy()
    fronts = [copy.deepcopy(base[:CUT]) for _ in range(TERMINALS)]
    back = base[CUT:]
    front_parameters = [list(front.parameters()) for front in fronts]
    back_parameters = list(back.parameters())
    terminals, server = [rule(parameters) for parameters in front_parameters], rule(back_parameters)
    xs = [torch.rand(SAMPLES, TOKENS * FEATURES) for _ in range(TERMINALS)]
    ys = [torch.rand(SAMPLES, ACTIONS) for _ in range(TERMINALS)]

    def work():
        total = None
        for front, parameters, terminal, x, y in zip(fronts, front_parameters, terminals, xs, ys):
            activation = front(x)
            cut = activation.detach().requires_grad_()
            loss = F.mse_loss(back(cut), y)
            *gradients, flow = torch.autograd.grad(loss, [*back_parameters, cut])
            if total is None:
                total = gradients
            else:
                torch._foreach_add_(total, gradients)
            terminal.step(list(torch.autograd.grad(activation, parameters, flow)))
        server.step(total, 1 / TERMINALS)

    report(f"round_50{suffix}_{threads}", 15, work)


for threads in (1, 2):
    torch.set_num_threads(threads)
    act(threads)
    for rule, suffix in ((Descent, ""), (AdamW, "_adamw")):
        step(rule, suffix, threads)
        round_of_terminals(rule, suffix, threads)
