"""The line of a server's stderr that says why the server ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_NODE: Final = re.compile(r"Node\.js v\d")
"""Last line of Node.js after an uncaught error, below the error's message, stack and properties."""
_AROUND: Final = re.compile(r"\s|\W*$|node:\S+:\d+$|(file://)?/.*:\d+$")
"""Start of a line of such a report that isn't the message: indented, without words, or the position in the source."""
_NPM: Final = re.compile(r"npm (?:error|ERR!) (?!(?:code|syscall|errno|path) |A complete log )(?P<text>(?:\d+ )?\D.*)")
_PYDANTIC: Final = re.compile(r"[\s|]*For further information visit https://errors\.pydantic\.dev/")
_DOCKER: Final = re.compile(r"Run '.+ --help' for more information|See '.+ --help'\.")


def telling_line(lines: Sequence[str]) -> str:
    """Return the line that says why a server ended: the message of an uncaught error, otherwise the last line.

    Args:
        lines: Last lines of stderr.
    """
    kept = [*lines]
    while len(kept) > 1 and not re.search(r"\w", kept[-1]):  # the bottom line of an exception group
        kept.pop()
    found = ""
    if not kept:
        return found
    last, above = kept[-1], kept[:-1]
    if _NODE.match(last):
        found = next((line for line in reversed(above) if not _AROUND.match(line)), "").removesuffix(" {")
    elif last.startswith("npm "):
        found = next((match["text"] for match in map(_NPM.match, kept) if match), "")
    elif _PYDANTIC.match(last):
        found = ": ".join(line.strip(" |") for line in above[-2:])  # the name of the setting and its problem
    elif _DOCKER.match(last) and above:
        found = above[-1]
    return (found or last).strip().removeprefix("| ")
