"""PPO of Stable-Baselines3: trained on the twin of a run, then a method in a study on the cell."""

import argparse
import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from stable_baselines3 import PPO

import tilp
from tilp.envs import CellEnv
from tilp.envs.agent import PolicyAllocator


class Trained(PolicyAllocator):
    """What the trained network does, without noise."""

    name = "ppo"

    def __init__(self, path: str) -> None:
        self.policy = PPO.load(path, device="cpu")

    def act(self, observation: npt.NDArray[np.float32]) -> Any:
        return self.policy.predict(observation, deterministic=True)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--scenario", default="tiny")
    arguments = parser.parse_args()
    # A run of a simple rule calibrates the twin; episodes start from the middle of it.
    run = tilp.run(arguments.scenario, "random", seed=1000, resume=True)
    middle = len(run.rounds) // 2
    env = CellEnv(twin=tilp.Twin.from_run(run.path, rounds=middle), rounds=middle)
    ppo = PPO("MlpPolicy", env, seed=0, device="cpu", n_steps=500, batch_size=100, gamma=0.9)
    ppo.learn(arguments.steps)
    ppo.save("ppo.zip")
    # A partial gives the class its argument; every run loads the network anew.
    trained = functools.partial(Trained, "ppo.zip")
    study = tilp.compare(arguments.scenario, ["tilp", "deficit", "random", trained], seeds=range(3))
    print(study.table())


if __name__ == "__main__":
    main()
