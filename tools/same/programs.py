"""Builds the two programs and runs them."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Unusable(Exception):
    """The input does not allow a comparison (exit code 2)."""


class Failed(Exception):
    """A build or a run ended with an error (exit code 1)."""


def full_commit(name):
    """The full hash of a commit of this repository."""
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode != 0:
        raise Unusable(f"COMMIT = {name}, expected a commit of this repository")
    return found.stdout.strip()


def existing(option, path):
    """The absolute path of a program that the user names."""
    path = Path(path).resolve()
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise Unusable(f"{option} = {path}, expected an executable file")
    return path


def build_commit(commit, folder):
    """Builds a commit in a git worktree below `folder`."""
    source = folder / "source"
    if not (source / "Cargo.toml").is_file():
        # --force: a worktree that was deleted by hand is still registered.
        command = ["git", "worktree", "add", "--force", "--detach", "--quiet", source, commit]
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            raise Failed(f"git worktree of {commit} at {source}")
    return build(source, folder / "target")


def build_present():
    """Builds the present tree."""
    return build(ROOT, Path(os.environ.get("CARGO_TARGET_DIR", "target")))


def build(source, target):
    """Builds the program of `source` in release mode; a relative `target` is below `source`."""
    target = source / target
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    command = ["cargo", "build", "--release", "--quiet", "--package", "tilp-cli"]
    if subprocess.run(command, cwd=source, env=environment).returncode != 0:
        raise Failed(f"cargo build in {source}")
    return target / "release" / "tilp"


def run(program, case, folder, cache, confirm=lambda run: None):
    """Runs one case. `folder` appears only when the run is complete and `confirm` did not refuse it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=folder.parent))
    try:
        done = subprocess.run(
            [program, "run", *case.arguments(), "--out", scratch / "run", "--quiet"],
            # A cache that both programs read would hide a change of the demonstrations.
            env={**os.environ, "TILP_CACHE": str(cache)},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Failed(f"{program} ended with exit code {done.returncode}: {reason}")
        confirm(scratch / "run")
        # Another process may have kept the same run in the meantime; runs are reproducible.
        if not folder.exists():
            (scratch / "run").rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
