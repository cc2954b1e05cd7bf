"""Replacements for secrets, and the return of the secrets to values that a person edited."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pegboard.data.json_text import write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

MASK: Final = "••••••••"
"""Replacement for a secret of the configuration."""
SECRET: Final = "«secret {}»"  # noqa: S105 - not a password
"""Replacement for a secret in calls and records, with `{}` for its name."""
REDACTED: Final = "«redacted»"
"""Replacement for a value that was redacted in retrospect."""
_HIDDEN: Final = re.compile(f"{SECRET.format('[^»]*')}|{REDACTED}")


def masked_secret(value: JsonValue) -> str | None:
    """Return the first replacement for a secret that a value contains, or None."""
    found = _HIDDEN.search(write(value))
    return None if found is None else found[0]


def unrecorded_secret(value: JsonValue) -> str:
    """Return why a recorded value can't be used as it is, as a sentence; empty if it can."""
    masked = masked_secret(value)
    return "" if masked is None else f"{masked} hides a value that is not recorded."


def redacted_steps(value: JsonValue) -> Iterator[tuple[str | int, ...]]:
    """Yield the keys and indexes that lead to each text, and to each key, from which a value was redacted."""
    # Not by recursion: values may be nested deeper than Python's stack.
    waiting: list[tuple[tuple[str | int, ...], JsonValue]] = [((), value)]
    while waiting:
        steps, here = waiting.pop()
        match here:
            case str() if REDACTED in here:
                yield steps
            case dict():
                yield from ((*steps, key) for key in here if REDACTED in key)
                waiting += [((*steps, key), item) for key, item in reversed(here.items())]
            case list():
                waiting += [((*steps, index), item) for index, item in reversed([*enumerate(here)])]


def restored(edited: JsonValue, shown: JsonValue, full: JsonValue) -> JsonValue:
    """Return an edited value with the secrets that its editor saw masked and left unchanged.

    Args:
        edited: The value after editing.
        shown: The value before editing, without secrets.
        full: The same value with its secrets; the same object as `shown` if it contains none.
    """
    if shown is full:
        return edited
    if isinstance(edited, dict) and isinstance(shown, dict) and isinstance(full, dict):
        both: dict[str, JsonValue] = {
            key: restored(value, shown[key], full[key]) if key in shown and key in full else value
            for key, value in edited.items()
        }
        return both
    if isinstance(edited, list) and isinstance(shown, list) and isinstance(full, list) and len(edited) == len(full):
        return [restored(*values) for values in zip(edited, shown, full, strict=True)]
    return full if isinstance(edited, str) and edited == shown else edited


def moved_secret(edited: JsonValue, shown: JsonValue) -> str:
    """Return why an edited value can't be used, as a sentence; empty if it can.

    Args:
        edited: The value after editing.
        shown: The value before editing, without secrets.
    """
    moved = _moved(edited, shown)
    return "" if moved is None else f"{moved} hides a value that was moved or changed. Put it back, or enter a value."


def _moved(edited: JsonValue, shown: JsonValue) -> str | None:
    """Return the first replacement for a secret that is elsewhere than before; None if there is none."""
    if edited == shown:
        return None
    if isinstance(edited, dict) and isinstance(shown, dict):
        found = (
            _moved(value, shown[key]) if key in shown else masked_secret({key: value}) for key, value in edited.items()
        )
    elif isinstance(edited, list) and isinstance(shown, list) and len(edited) == len(shown):
        found = (_moved(*values) for values in zip(edited, shown, strict=True))
    else:
        return masked_secret(edited)
    return next((moved for moved in found if moved is not None), None)
