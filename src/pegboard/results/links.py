"""Files and resources that a result of an MCP server refers to."""

from __future__ import annotations

import re
from typing import NamedTuple

from pydantic import JsonValue

from pegboard.results.paths import JsonPath, values_along

_FILE = re.compile(r"[\w.+-]+/[\w.+-]+, [\d.,]+ \w+: (/.+)")
"""The line for an image or audio: its type, its size and its file."""


class ResultLink(NamedTuple):
    """A saved file, or a resource of the server."""

    file: str | None = None
    uri: str | None = None


def link_at(data: JsonValue, path: JsonPath) -> ResultLink | None:
    """Return the link at a path in a result, or around it; None if there is none."""
    found = None
    for value in values_along(data, path):
        found = link_of(value) or found
    return found


def link_of(value: object) -> ResultLink | None:
    """Return the link that a value is, or None."""
    if isinstance(value, str):
        match = _FILE.fullmatch(value)
        return ResultLink(file=match[1]) if match else None
    if not isinstance(value, dict):
        return None
    resource = value.get("resource")
    inner = resource if isinstance(resource, dict) else value
    if inner.get("type") == "resource_link" and isinstance(inner.get("uri"), str):
        return ResultLink(uri=str(inner["uri"]))
    file = inner.get("file")
    if isinstance(inner.get("uri"), str) and isinstance(file, str):
        return ResultLink(file=file)
    return None
