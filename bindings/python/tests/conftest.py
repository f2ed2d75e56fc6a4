"""Every test runs in an empty folder of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Demonstrations are made once for all tests.
    cache = os.environ.get("TILP_CACHE") or str(tmp_path.parent / "cache")
    monkeypatch.setenv("TILP_CACHE", cache)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
