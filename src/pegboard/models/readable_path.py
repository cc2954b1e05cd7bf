"""Paths into JSON values as users read them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

_PLAIN = re.compile(r"(?!\d+$)[\w:@-]+")
"""Keys that need no quotes in a path."""


def readable(path: str, keys: Collection[int] = ()) -> str:
    """Return a JSON Pointer as users read it: `steps #2.title`. Rows count from 1, as in forms.

    Args:
        path: The pointer.
        keys: Positions of steps that are keys although they look like indexes.
    """
    shown = ""
    for at, step in enumerate(path.split("/")[1:]):
        name = step.replace("~1", "/").replace("~0", "~")
        if step.isdecimal() and at not in keys:
            shown += f" #{int(step) + 1}"
        else:
            shown += f".{name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)}"
    return shown.strip(" .")
