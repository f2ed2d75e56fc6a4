"""The imagined rounds of `twin/futures` and the decoder of `allocate/tilp/decode.rs` once more, for
arrays of PyTorch or JAX: `xp` is `torch` or `jax.numpy`.

Everything that does not depend on what a candidate did before is computed for all steps at once;
only layers held and owed, losses and doubt go from step to step.
"""

import json
import math
from types import SimpleNamespace

LEVELS = 128
REACH = 4 / math.log(2)
# Deduction from a return for a step without training.
REJECTED = -1e6


def problem(path, array, integers):
    """The numbers of a problem; `array` makes an array of numbers, `integers` one of integers."""
    with open(path) as file:
        found = json.load(file)
    n = {name: array(values) for name, values in found["numbers"].items()}
    terminals, steps = len(found["numbers"]["safe_snr"]), len(found["numbers"]["aggregates"])
    p = SimpleNamespace(**n)
    p.terminals, p.steps, p.discount = terminals, steps, found["discount"]
    p.groups = int(max(found["numbers"]["group"])) + 1
    p.snr = n["snr"].reshape(steps, terminals)
    p.line = n["line"].reshape(terminals, 2)
    p.n_cuts = len(found["numbers"]["layers"])
    for name in ("seconds", "safe_seconds", "joules", "depth", "excess"):
        setattr(p, name, n[name].reshape(terminals * p.n_cuts))
    scalars = ("deadline", "most", "weights", "tempo", "rates", "doubt", "reward", "scale")
    for name in scalars:
        setattr(p, name, found["numbers"][name])
    p.caution, p.drops, p.success, p.header = (
        found["numbers"][k][0] for k in ("caution", "drops_late", "success", "header")
    )
    p.aggregates = [one > 0.5 for one in found["numbers"]["aggregates"]]
    excess = found["numbers"]["excess"]
    fitting = [[c for c in range(p.n_cuts) if excess[t * p.n_cuts + c] <= 0] or [0] for t in range(terminals)]
    p.deepest = integers([row[-1] for row in fitting])
    p.first_cut = integers([t * p.n_cuts for t in range(terminals)])
    groups = found["numbers"]["group"]
    p.member = array([[float(g == k) for k in range(p.groups)] for g in groups])
    candidates = array(found["candidates"]).reshape(-1, steps, terminals, 5)
    return p, candidates, array(found["returns"])


def inverse_speed(xp, bandwidth, signal):
    """Seconds a bit takes."""
    bandwidth = xp.clip(bandwidth, 1e-3, None)
    rate = bandwidth * xp.log1p(signal / bandwidth) * (1 / math.log(2))
    return 1 / xp.clip(rate, 1e-6, None)


def message(xp, p, layers):
    """Bits of a message with so many bits of layers."""
    return xp.where(layers > 0, layers + p.header, 0 * layers)


def decoded(xp, p, reals, category, flag, integer):
    """The part of a candidate's actions that does not depend on earlier steps."""
    d = SimpleNamespace(flag=flag)
    cut = xp.minimum(category, p.deepest)
    level = integer(reals[..., 2] * (LEVELS - 1) + 0.5)
    d.power = p.most[1] * reals[..., 1]
    size, own = cut * LEVELS + level, p.first_cut + cut
    d.layer = integer(p.layers[cut])
    d.up, d.down = p.up[size], p.down[size]
    d.seconds, d.safe, d.joules = p.seconds[own], p.safe_seconds[own], p.joules[own]
    d.excess, d.depth, d.noise = p.excess[own], p.depth[own], p.noise[level]
    d.signal = d.power * p.snr
    d.tenth = inverse_speed(xp, d.signal * 0 + 0.1 * p.most[0], d.signal)
    d.weight = flag * xp.exp2(REACH * (reals[..., 0] - 0.5))
    return d


def network(xp, p, d, k, held, owed, integer):
    """One round on the air: reward without the task term, number of samples, and the terminals that trained."""
    band, power = p.most
    deadline, closes, give_up = p.deadline
    flag, layer = d.flag[:, k], d.layer[:, k]
    sending, free = d.up[:, k], band
    if p.aggregates[k]:
        sending = sending + message(xp, p, p.model_bits[xp.maximum(layer, owed)])
        free = band * (1 - ((owed > 0) * (1 - flag)).sum(-1, keepdims=True) / p.terminals)
    receiving = d.down[:, k] + message(xp, p, p.model_bits[layer] - p.model_bits[held])
    need = (sending + receiving) * d.tenth[:, k] * d.weight[:, k]
    bandwidth = need * (free / (need.sum(-1, keepdims=True) + 1e-12))
    asked = (flag * bandwidth).sum(-1, keepdims=True)
    bandwidth = bandwidth * xp.clip(free / xp.clip(asked, 1e-12, None), None, 1.0)
    over = asked[:, 0] / band - 1
    violation = xp.where(over > 1e-5, over, 0 * over)
    per_bit = inverse_speed(xp, bandwidth, d.signal[:, k])
    seconds, excess = d.seconds[:, k], d.excess[:, k]
    sending_s = sending * per_bit
    on_air = sending_s + receiving * per_bit
    delay = sure = seconds + on_air
    if k == 0:
        sure = d.safe[:, 0] + (sending + receiving) * inverse_speed(xp, bandwidth, d.power[:, 0] * p.safe_snr)
    fits = (excess <= 0) * 1.0
    scheduled = flag * (1 - p.drops * (1 - fits * (sure <= deadline)))
    trained = scheduled * fits * (delay <= closes)
    part = xp.clip(xp.clip(closes - seconds, 0.0, None) / on_air, None, 1.0)
    spent = d.joules[:, k] + d.power[:, k] * sending_s * part * p.radio_factor
    energy = (scheduled * spent).sum(-1)
    if p.aggregates[k]:
        late = message(xp, p, p.model_bits[owed]) * inverse_speed(xp, p.snr[k] * 0 + band / p.terminals, power * p.snr[k])
        energy = energy + ((1 - flag) * power * xp.clip(late, None, closes) * p.radio_factor).sum(-1)
    latency = xp.clip(xp.amax(scheduled * delay, -1), None, give_up)
    latency = xp.maximum(latency, p.scale[0] * (trained.sum(-1) == 0))
    late = xp.clip(xp.clip(sure, None, give_up) / deadline - 1, 0.0, None)
    violation = violation + (scheduled * (late + excess)).sum(-1)
    reward = p.reward[1] * (1 - latency / p.scale[0]) + p.reward[2] * (1 - energy / p.scale[1]) - p.reward[3] * violation
    return reward, trained


def learning(xp, p, d, k, trained, log_loss, variance, advantage):
    """Losses and doubt after the round, and the success they promise."""
    _, kin, any_, push, scatter, noise, depth = p.weights[:7]
    own = trained * p.samples
    samples, count = own.sum(-1, keepdims=True), trained.sum(-1, keepdims=True)
    some = (samples > 0) * 1.0
    each, count = some / xp.clip(samples, 1e-9, None), xp.clip(count, 1.0, None)
    mean = lambda of: (own * of[:, k]).sum(-1, keepdims=True) * each
    common = some * (any_ - scatter / count) - noise * mean(d.noise) + depth * mean(d.depth)
    kins = (own @ p.member) @ p.member.T
    rate = common + each * ((p.own_weight + push * p.push - kin) * own + kin * kins)
    pace, forgetting = p.tempo
    lost = some * forgetting * advantage
    advantage = advantage + pace * each * own - lost
    log_loss = log_loss - xp.clip(rate - p.raw_own_weight * lost, p.rates[0], p.rates[1])
    minibatch, drift = p.doubt
    variance = xp.where(trained > 0.5, variance * minibatch / (variance + minibatch), variance) + drift
    cautious = log_loss + p.caution * xp.sqrt(variance)
    success = (1 / (1 + xp.exp2(p.line[:, 1] * cautious - p.line[:, 0]))).mean(-1)
    return log_loss, variance, advantage, success


def returns(xp, p, reals, category, flag, integer):
    """Predicted returns without a value at the end, and the states at the end."""
    d = decoded(xp, p, reals, category, flag, integer)
    zero = 0 * flag[:, 0]
    log_loss, variance, advantage = zero + p.log_loss, zero + p.variance, zero + p.advantage
    held, owed = integer(zero + p.held), integer(zero + p.owed)
    before, total = p.success, 0.0
    for k in range(p.steps):
        reward, trained = network(xp, p, d, k, held, owed, integer)
        log_loss, variance, advantage, success = learning(xp, p, d, k, trained, log_loss, variance, advantage)
        total = total + p.discount**k * (reward + p.reward[0] * (success - before))
        total = total + REJECTED * (trained.sum(-1) == 0)
        before = success
        if p.aggregates[k]:
            held = owed = 0 * held
        else:
            new = integer(trained) * d.layer[:, k]
            held, owed = xp.maximum(held, new), xp.maximum(owed, new)
    return total, (log_loss, held, owed, success)


def features(xp, p, state):
    """What the value head sees: terminals and globals."""
    log_loss, held, owed, success = state
    mean = log_loss.mean(-1, keepdims=True)
    decibel = lambda ratio: 10 * xp.log10(1e-6 * ratio)
    signal, zero = decibel(p.snr[-1]), 0 * log_loss
    usual = xp.clip((signal - decibel(p.usual)) / 10, -3.0, 3.0)
    layers = len(p.model_bits) - 1
    failure = 1 / (1 + xp.exp2(p.line[:, 0] - p.line[:, 1] * log_loss))
    loss = xp.clip(log_loss - mean, -2.0, 2.0)
    terminals = [zero + (signal - 20) / 20, zero + usual, held / layers, owed / layers, zero + 1, loss, failure]
    globals_ = [zero[:, 0] + 0.5, success, mean[:, 0] / 3, zero[:, 0]]
    return xp.stack(terminals, -1), xp.stack(globals_, -1)
