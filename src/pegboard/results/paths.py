"""Places in a JSON value, and their names."""

from __future__ import annotations

import json
import re
from typing import TypeAlias

Step: TypeAlias = str | int
"""A key of an object or an index of a list."""
Path: TypeAlias = tuple[Step, ...]
"""The steps from the root of a value to a place in it."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def jq_path(path: Path) -> str:
    """Gives a path as `jq` takes it: `.results[3].title`, `."a key"`, `.` for the root."""
    if not path:
        return "."
    named = "".join(_step(step) for step in path)
    return named if named.startswith(".") else "." + named


def _step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN_KEY.fullmatch(step):
        return f".{step}"
    return f".{json.dumps(step, ensure_ascii=False)}"
