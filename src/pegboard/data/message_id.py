"""The id of a JSON-RPC message that can't be parsed, so that it can be answered."""

from __future__ import annotations

import json
import re
from typing import Final

LOOKED_AT: Final = 4096
"""Bytes of the start and of the end of a message in which its id is looked for."""

_ID: Final = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\\x00-\x1f]{0,200}")\s*'
_MEMBER: Final = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,200}"\s*'
_AT_START: Final = re.compile(rb"\A\s*\{\s*(?:" + _MEMBER + rb",\s*){0,2}" + _ID + rb"[,}]")
_AT_END: Final = re.compile(rb",\s*" + _ID + rb"(?:,\s*" + _MEMBER + rb"){0,2}\}\s*\Z")
_REQUEST_START: Final = re.compile(rb'\A\s*\{\s*(?:"(?:jsonrpc|id)"\s*:\s*[^,{}\[\]]{0,210},\s*){0,2}"method"\s*:')


def message_id(start: bytes, end: bytes) -> int | str | None:
    """Return the id of a message; None if it is not among the first or the last members.

    Args:
        start: The start of the message, or all of it.
        end: The end of the message, or all of it.
    """
    found = _AT_START.search(start[:LOOKED_AT]) or _AT_END.search(end[-LOOKED_AT:])
    try:
        value: int | str | None = json.loads(found[1]) if found else None
    except ValueError:  # not UTF-8, or a number with leading zeros
        return None
    return value


def request_id(start: bytes, end: bytes) -> int | str | None:
    """Return the id of a request; None for other messages, whose ids the other side chose. Like `message_id`."""
    is_request = b'"method"' in start[:LOOKED_AT] or b'"method"' in end[-LOOKED_AT:]
    return message_id(start, end) if is_request else None


def response_id(start: bytes, end: bytes) -> int | str | None:
    """Return the id of a response; None for other messages, whose ids the other side chose. Like `message_id`."""
    return None if _REQUEST_START.match(start[:LOOKED_AT]) else message_id(start, end)
