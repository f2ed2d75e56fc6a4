"""The real LeRobot on what `tilp export lerobot` wrote, and TiLP on what LeRobot wrote."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from lerobot.configs import PreTrainedConfig
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.policies.factory import get_policy_class, make_pre_post_processors
from lerobot.utils.import_utils import register_third_party_plugins
from policy_actions import actions

TILP = os.environ["TILP"]


def tilp(*arguments: str) -> str:
    return subprocess.run([TILP, *arguments], check=True, capture_output=True, text=True).stdout


def frames(dataset: LeRobotDataset) -> tuple[np.ndarray, np.ndarray]:
    """States and actions of all frames, in order."""
    rows = [dataset[n] for n in range(len(dataset))]
    states = np.stack([row["observation.state"].numpy() for row in rows])
    return states, np.stack([row["action"].numpy() for row in rows])


def check_dataset(path: Path) -> LeRobotDataset:
    dataset = LeRobotDataset("tilp/tiny", root=path)
    assert dataset.meta.fps == 20 and dataset.num_episodes > 10
    states, done = frames(dataset)
    statistics = dataset.meta.stats
    assert np.allclose(statistics["observation.state"]["mean"], states.mean(axis=0), atol=1e-5)
    assert np.allclose(statistics["action"]["std"], done.std(axis=0), atol=1e-5)
    assert np.allclose(statistics["action"]["q90"], np.quantile(done, 0.9, axis=0), atol=1e-5)
    first, second = dataset[0], dataset[1]
    assert first["task"] in list(dataset.meta.tasks.index) and int(first["frame_index"]) == 0
    assert abs(float(second["timestamp"]) - 0.05) < 1e-6
    ends = [dataset.meta.episodes[n]["dataset_to_index"] for n in range(dataset.num_episodes)]
    assert ends[-1] == len(dataset) == dataset.num_frames
    later = LeRobotDataset("tilp/tiny", root=path, delta_timestamps={"action": [0.0, 0.05]})
    assert torch.equal(later[3]["action"][1], dataset[4]["action"])
    loader = torch.utils.data.DataLoader(dataset, batch_size=32)
    batch = next(iter(loader))
    assert batch["observation.state"].shape == (32, 43) and batch["action"].shape == (32, 4)
    print(f"dataset: {dataset.num_episodes} episodes, {len(dataset)} frames, tasks {list(dataset.meta.tasks.index)}")
    return dataset


def check_policy(path: Path, run: Path, dataset: LeRobotDataset) -> torch.nn.Module:
    register_third_party_plugins()
    config = PreTrainedConfig.from_pretrained(path)
    policy = get_policy_class(config.type).from_pretrained(path, strict=True)
    before, after = make_pre_post_processors(config, pretrained_path=str(path))
    states, _ = frames(dataset)
    policy.reset()
    own = []
    for n in range(0, len(states), 7):
        given = before({"observation.state": torch.from_numpy(states[n])})
        own.append(after(policy.select_action(given)).squeeze(0).numpy())
    theirs = actions(str(run / "model.safetensors"), states[::7])
    difference = np.abs(np.stack(own) - theirs).max()
    assert difference < 2e-5, difference
    loss, _ = policy.forward(next(iter(torch.utils.data.DataLoader(dataset, batch_size=64))))
    assert torch.isfinite(loss)
    policy.save_pretrained("again")
    again = get_policy_class(config.type).from_pretrained("again", strict=True)
    chosen = {"observation.state": torch.from_numpy(states[:5])}
    assert torch.equal(again.select_action(chosen), policy.select_action(chosen))
    print(f"policy: {len(own)} actions, largest difference to the program {difference:.1e}")
    return policy


def check_profile(policy: torch.nn.Module, run: Path) -> None:
    """The same costs of the policy's cuts from PyTorch and from the program's own ONNX file."""
    path = Path(__file__).parents[2] / "bindings/python/py_src/tilp/_profile.py"
    spec = importlib.util.spec_from_file_location("profile_of_the_package", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.policy = policy

        def forward(self, state: torch.Tensor) -> torch.Tensor:
            return self.policy.act(state)

    cuts = {"layer2": "layer2.sum", "layer3": "layer3.merged", "layer5": "layer5.merged", "layer7": "layer7.sum"}
    text = module.profile_torch(Network(), torch.zeros(1, 43), [f"policy.{name}" for name in cuts])
    own = {row["name"]: row for row in csv.DictReader(text.splitlines()[1:])}
    tilp("export", "onnx", str(run), "--out", "policy.onnx")
    table = tilp("profile", "policy.onnx").splitlines()[1:]
    theirs = {row["name"]: row for row in csv.DictReader(table)}
    for name, value in cuts.items():
        for column in ("activation_elements", "operations", "trained_parameters"):
            assert own[f"policy.{name}"][column] == theirs[value][column], (name, column)
        ratio = int(own[f"policy.{name}"]["memory_bytes"]) / int(theirs[value]["memory_bytes"])
        # PyTorch keeps less: not every value is needed for its gradients.
        assert 0.2 < ratio <= 1.0, (name, ratio)
    print(f"profile: PyTorch and ONNX agree on {len(cuts)} cuts")


def write_dataset(path: Path, source: LeRobotDataset) -> int:
    """A dataset that LeRobot writes: the frames of the first terminal, with another name of the task."""
    features = {
        "observation.state": {"dtype": "float32", "shape": (43,), "names": None},
        "action": {"dtype": "float32", "shape": (4,), "names": None},
    }
    dataset = LeRobotDataset.create("own/arm", fps=20, features=features, root=path, use_videos=False)
    episode, n_frames = None, 0
    for n in range(len(source)):
        row = source[n]
        if int(row["terminal"]) != 0:
            break
        if episode is not None and episode != int(row["episode_index"]):
            dataset.save_episode()
        episode = int(row["episode_index"])
        frame = {name: row[name].numpy() for name in features}
        dataset.add_frame({**frame, "task": "move the thing"})
        n_frames += 1
    dataset.save_episode()
    dataset.finalize()
    return n_frames


def check_import(source: LeRobotDataset, run: Path) -> None:
    """The first terminal gets its own demonstrations back by way of LeRobot: nothing may change."""
    n_frames = write_dataset(Path("written"), source)
    task = source[0]["task"]
    Path("own.toml").write_text(
        f'extends = "tiny"\nname = "tiny"\n[[terminals]]\ntask = "{task}"\ndata = "written"\n'
    )
    tilp("scenario", "check", "own.toml")
    tilp("run", "own.toml", "--rounds", "60", "--quiet", "--out", "imported")
    for name in ("rounds.csv", "model.safetensors"):
        assert (Path("imported") / name).read_bytes() == (run / name).read_bytes(), name
    resolved = (Path("imported") / "scenario.toml").read_text()
    assert "data_sha256" in resolved
    table = json.loads(tilp("run", "own.toml", "--rounds", "5", "--quiet", "--format", "json", "--out", "short",
                            "--set", "terminals=[{task='" + task + "', data='written', data_episodes=[0, 2]}]"))
    assert table is not None
    print(f"import: {n_frames} frames that LeRobot wrote; a run on them has the bytes of the run on the originals")


def main() -> None:
    export, run = Path(sys.argv[1]), Path(sys.argv[2])
    print(f"lerobot {version('lerobot')}, torch {torch.__version__}")
    dataset = check_dataset(export / "dataset")
    check_profile(check_policy(export / "policy", run, dataset), run)
    check_import(dataset, run)


if __name__ == "__main__":
    main()
