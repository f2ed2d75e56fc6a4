"""Values of a scenario as the command line writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tilp._tilp import InputError


def overrides(values: Mapping[str, Any] | None, rounds: int | None) -> list[str]:
    """``key=value`` for every value, as ``--set`` takes it."""
    texts = [f"{key}={_toml(key, value)}" for key, value in (values or {}).items()]
    return texts if rounds is None else [*texts, f"rounds={int(rounds)}"]


def _toml(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Mapping):
        inner = (f"{name} = {_toml(f'{key}.{name}', one)}" for name, one in value.items())
        return "{ " + ", ".join(inner) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(key, one) for one in value) + "]"
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (int, float)):
        return repr(value)
    raise InputError(
        f"set[{key!r}] is of type {type(value).__name__}, expected a number, text, flag, list or dict"
    )
