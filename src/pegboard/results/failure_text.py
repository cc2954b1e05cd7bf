"""A failure as the model reads it: one line before the data, if there are any."""

from __future__ import annotations

import re
from typing import Final, get_args

from pegboard.models import ToolError
from pegboard.models.result import ErrorCode

_FAILURE: Final = re.compile(r"The call failed: (?P<code>\w+)(?: \((?P<detail>[^()\s]{1,200})\))?\. ")


def failure_text(error: ToolError) -> str:
    """Return an error as the model reads it."""
    return f"The call failed: {error.code}{f' ({error.detail})' if error.detail else ''}. {error.message}"


def failure_in(text: str) -> ToolError | None:
    """Return the error that a text for the model starts with, or None; the rest of the text is its message."""
    found = _FAILURE.match(text)
    if found is None or found["code"] not in get_args(ErrorCode):
        return None
    return ToolError.model_validate({**found.groupdict(), "message": text[found.end() :]})
