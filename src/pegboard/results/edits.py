"""The text about an edit for the author of the call."""

from __future__ import annotations

from typing import Final

from pegboard.data.json_text import write
from pegboard.models import JsonObject
from pegboard.results.sizes import count

EDIT_NOTE: Final = "The user edited the arguments."
"""Start of the text."""
LONGEST_EDIT: Final = 4_000
"""Characters of edited arguments that the author of a call reads; clients may drop a result that is too long."""


def edit_note(args: JsonObject) -> str:
    """Return the text that the author of a call reads if the user edited its arguments.

    Args:
        args: The arguments that the call ran with, without secrets.
    """
    text = write(args)
    left = len(text) - LONGEST_EDIT
    if left > 0:
        text = f"{text[:LONGEST_EDIT]}… ({count(left, 'more character')})"
    return f"{EDIT_NOTE} The call ran with {text}."
