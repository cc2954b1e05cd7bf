"""Names of tools that every provider of models accepts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import count
from typing import Final

LONGEST: Final = 64
"""Length of a name that every provider accepts."""

_DIGITS: Final = 6
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_-]")


def portable_names(names: Sequence[str], taken: Iterable[str] = (), longest: int = LONGEST) -> list[str]:
    """Return the portable name of each tool.

    Characters that providers don't accept become `_`: `fs.read_file` is `fs_read_file`. Names that collide or are too
    long end in digits that depend only on the tool's own name, so that they stay the same, unless another tool has that
    very name. All names are distinct.

    Args:
        names: The tools' own names.
        taken: Names that no tool may get.
        longest: Length of the longest allowed name.
    """
    plain = [_plain(name) for name in names]
    common = Counter([*plain, *taken])
    kept = {short for short in plain if common[short] == 1 and len(short) <= longest}
    used = {*kept, *taken}
    found: list[str] = []
    for short, name in zip(plain, names, strict=True):
        attempts = (_marked(short, name, longest, attempt) for attempt in count())
        found.append(short if short in kept else next(one for one in attempts if one not in used))
        used.add(found[-1])
    return found


def earlier_names(aliases: Iterable[str], longest: int = LONGEST) -> list[str]:
    """Return the portable names that a tool may have had under other names, which callers may still use.

    Args:
        aliases: The other names of the tool.
        longest: Length of the longest allowed name.
    """
    return [short for name in aliases for short in (_plain(name), _marked(_plain(name), name, longest))]


def _plain(name: str) -> str:
    plain = _FORBIDDEN.sub("_", name)
    return plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"


def _marked(plain: str, name: str, longest: int, attempt: int = 0) -> str:
    salted = name + "\0" * attempt
    digits = sha256(salted.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return f"{plain[: longest - _DIGITS - 1]}_{digits}"
