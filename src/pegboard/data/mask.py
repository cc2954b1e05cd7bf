"""Replacements for secrets, and the return of the secrets to values that a person edited."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pegboard.data.json_text import write

if TYPE_CHECKING:
    from pydantic import JsonValue

MASK: Final = "••••••••"
"""Replacement for a secret of the configuration."""
SECRET: Final = "«secret {}»"  # noqa: S105 - not a password
"""Replacement for a secret in calls and records, with `{}` for its name."""
REDACTED: Final = "«redacted»"
"""Replacement for a value that was redacted in retrospect."""
_HIDDEN: Final = re.compile(f"{SECRET.format('[^»]*')}|{REDACTED}")


def masked_secret(value: JsonValue, *, unless_in: JsonValue = None) -> str | None:
    """Return the first replacement for a secret that a value contains, or None.

    Args:
        value: The value.
        unless_in: A value whose own texts of this form are left out.
    """
    own = write(unless_in)
    return next((found for found in _HIDDEN.findall(write(value)) if found not in own), None)


def unrecorded_secret(value: JsonValue) -> str:
    """Return why a recorded value can't be used as it is, as a sentence; empty if it can."""
    masked = masked_secret(value)
    return "" if masked is None else f"{masked} hides a value that is not recorded."


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
    return full if edited == shown else edited


def moved_secret(edited: JsonValue, full: JsonValue) -> str:
    """Return why an edited value can't be used, as a sentence; empty if it can.

    Args:
        edited: The value after `restored`.
        full: The value before editing, with its secrets.
    """
    moved = masked_secret(edited, unless_in=full)
    return "" if moved is None else f"{moved} hides a value that was moved or changed. Put it back, or enter a value."
