"""Reference log-probabilities, entropies and gradients of the mixed policy from PyTorch, in double
precision.

    python mixed_policy.py mixed_policy.json

Needs torch. The policy is written here once more with `torch.distributions`:
three numbers that are tanh of a Gaussian, a category (Gumbel-softmax) and a flag (relaxed
Bernoulli). Rows are those of `rl/policy.rs`, a column for each terminal. Forward, category and flag
are hard; backward they take the gradient of their relaxation.
"""

import json
import sys

import torch
from torch.distributions import Bernoulli, Categorical, Normal, TanhTransform, TransformedDistribution

REALS, CATEGORIES, COLUMNS = 3, 5, 11
TEMPERATURE, BY_LOG = 0.7, (0.3, -0.8)


def laws(head):
    """Laws of the numbers, the category and the flag from the rows of the actor."""
    mean, raw, logits, flag = head.split([REALS, REALS, CATEGORIES, 1])
    deviation = torch.exp(-5 + 3.5 * (torch.tanh(raw) + 1))
    numbers = TransformedDistribution(Normal(mean, deviation), TanhTransform(cache_size=1))
    return (mean, deviation), numbers, Categorical(logits=logits.T), Bernoulli(logits=flag[0])


def draw(head, noise):
    """Actions, the log-probability of the numbers, the negative entropy of category and flag."""
    (mean, deviation), numbers, category, flag = laws(head)
    normal, gumbel, logistic = noise.split([REALS, CATEGORIES, 1])
    (tanh,) = numbers.transforms
    reals = tanh(mean + deviation * normal)
    noisy = category.logits.T + gumbel
    soft_category = torch.softmax(noisy / TEMPERATURE, 0)
    hard_category = torch.nn.functional.one_hot(noisy.argmax(0), CATEGORIES).T
    noisy = flag.logits + logistic
    soft_flag = torch.sigmoid(noisy / TEMPERATURE)
    hard_flag = (noisy > 0).double()
    soft = torch.cat([soft_category, soft_flag])
    hard = torch.cat([hard_category, hard_flag]) + soft - soft.detach()
    log_reals = numbers.log_prob(reals).sum(0)
    log_mixed = -category.entropy() - flag.entropy()
    return torch.cat([reals, soft]), torch.cat([reals, hard]), log_reals, log_mixed


def log_probability(head, actions):
    """The log-probability of hard actions, summed over all columns."""
    _, numbers, category, flag = laws(head)
    reals, one_hot, is_set = actions.detach().split([REALS, CATEGORIES, 1])
    log = numbers.log_prob(reals).sum(0) + category.log_prob(one_hot.argmax(0)) + flag.log_prob(is_set[0].round())
    return log.sum()


def main(path):
    generator = torch.Generator().manual_seed(30)
    normal = lambda rows: torch.randn(rows, COLUMNS, generator=generator, dtype=torch.float32)
    uniform = lambda rows: torch.rand(rows, COLUMNS, generator=generator, dtype=torch.float32).clamp(1e-4, 1 - 1e-4)
    head, u = normal(2 * REALS + CATEGORIES + 1), uniform(1)
    noise = torch.cat([normal(REALS), -torch.log(-torch.log(uniform(CATEGORIES))), torch.log(u) - torch.log(1 - u)])
    by_action = normal(REALS + CATEGORIES + 1)
    leaf = head.double().requires_grad_()
    soft, hard, log_reals, log_mixed = draw(leaf, noise.double())
    common = BY_LOG[0] * log_reals.sum() + BY_LOG[1] * log_mixed.sum()
    # Straight-through: hard actions take the gradient of the soft ones.
    (gradient,) = torch.autograd.grad((by_action * hard).sum() + common, leaf)
    tensors = {
        "head": head,
        "noise": noise,
        "by_action": by_action,
        "soft": soft,
        "hard": hard,
        "log_reals": log_reals,
        "log_mixed": log_mixed,
        "log_probability": log_probability(leaf, hard).reshape(1),
        "gradient": gradient,
    }
    # Row by row; nine digits name a single-precision number.
    rows = {name: [float(f"{x:.9g}") for x in value.detach().float().flatten().tolist()] for name, value in tensors.items()}
    with open(path, "w") as file:
        json.dump(rows, file, indent=0)
        file.write("\n")
    print(f"torch {torch.__version__}: log-probability {tensors['log_probability'].item():.9f}")


if __name__ == "__main__":
    main(sys.argv[1])
