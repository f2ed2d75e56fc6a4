"""Steps a second of the environments, and of mobile-env with as many terminals; cost of a Python method."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import tilp
from tilp.envs import CellEnv, CellVectorEnv


def rate(step: Callable[[], int], seconds: float = 4.0) -> float:
    """Steps a second; ``step`` says how many it did."""
    step()
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        done += step()
    return done / (time.perf_counter() - start)


def single(env: Any) -> Callable[[], int]:
    env.reset(seed=0)
    action = env.action_space.sample()

    def step() -> int:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
        return 1

    return step


def several(env: Any) -> Callable[[], int]:
    env.reset(seed=0)
    actions = env.action_space.sample()

    def step() -> int:
        env.step(actions)
        return int(env.num_envs)

    return step


def environments(n: int, with_cell: bool) -> None:
    values = {"cell.n_terminals": n}
    show = functools.partial(print, f"{n:4} terminals:")
    twin = single(CellEnv("default", set=values, twin=True, rounds=100))
    show(f"twin, one copy: {rate(twin):.0f} steps/s")
    for threads in (1, 2):
        copies = CellVectorEnv(16, "default", set=values, twin=True, rounds=100, threads=threads)
        show(f"twin, 16 copies, {threads} threads: {rate(several(copies)):.0f} steps/s")
    if with_cell:
        cell = {"set": values, "cell_seed": 0}
        show(f"cell, one copy: {rate(single(CellEnv('default', **cell))):.1f} steps/s")
        for threads in (1, 2):
            copies = CellVectorEnv(2, "default", **cell, threads=threads)
            show(f"cell, 2 copies, {threads} threads: {rate(several(copies)):.1f} steps/s")


def mobile_env(n: int) -> None:
    try:
        import mobile_env  # noqa: F401
        from mobile_env.core.base import MComCore
        from mobile_env.core.entities import BaseStation, UserEquipment
        from mobile_env.handlers.central import MComCentralHandler
    except ImportError:
        print("mobile-env is not installed")
        return
    config = MComCore.default_config()
    config.update({"handler": MComCentralHandler, "EP_MAX_TIME": 100})
    station = BaseStation(0, (100.0, 100.0), **config["bs"])
    users = [UserEquipment(one, **config["ue"]) for one in range(n)]
    env: Any = type("One", (MComCore,), {})([station], users, config)
    print(f"{n:4} terminals: mobile-env, one station: {rate(single(env)):.0f} steps/s")


class Even(tilp.Allocator):
    """As cheap as a method can be."""

    stateless = True

    def decide(self, seen: tilp.Observation) -> tilp.Decision:
        limits, n = self.setup.limits, len(seen)
        return tilp.Decision(np.arange(n) < 10, limits.bandwidth_hz / 10, limits.power_w, 2)


def method_cost() -> None:
    """Time of a decision, as runs note it in timing.json."""
    import json

    for name, method in (("Rust, splitfed", "splitfed"), ("Python, even", Even)):
        out = f"cost-{name.split(',')[0]}"
        run = tilp.run("default", method, rounds=60, out=out)  # type: ignore[arg-type]
        timing = json.loads((run.path / "timing.json").read_text())
        print(f"{name}: {timing['plan_ms_mean']:.3f} ms a decision, {timing['plan_ms_p99']:.3f} ms p99")


if __name__ == "__main__":
    print(f"gymnasium {gymnasium.__version__}, tilp {tilp.__version__}")
    for n in (6, 50):
        environments(n, with_cell=n == 6)
        mobile_env(n)
    method_cost()
