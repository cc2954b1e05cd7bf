"""Advice on failed calls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from pegboard.models import ToolError

_FRAME: Final = re.compile(
    r'^(?:  \| )?  File "(?P<file>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$', re.MULTILINE
)
_NEXT_EXCEPTION: Final = re.compile(r"^Traceback |^  \+ Exception Group Traceback ", re.MULTILINE)

_BY_DETAIL = {
    "timeout": "Allow more time: set @hints(timeout=…) in the pack, or timeout in the config: in the entry of an MCP"
    " server, otherwise under [tools].",
    "crashed": "Only this call failed; the next one starts the process or the connection again.",
    "out_of_memory": "Request less data, or raise memory_limit under [tools] in the config.",
    "import_failed": "Fix the pack; the traceback shows the failing line.",
    "not_serialisable": "Return only JSON values from the tool: text, numbers, true, false, null, lists and objects.",
    "denied": "The call was not approved; nothing was run.",
    "dependency_missing": "Install the missing requirement, then run the tool again.",
    "not_connected": "",
}
_BY_CODE = {
    "tool_not_found": "Check the spelling of the name, and the allow list.",
    "invalid_args": "Correct these arguments, then run the tool again.",
}


class SourceLine(NamedTuple):
    """A line of a pack."""

    file: str
    line: int
    function: str


def failing_line(traceback: str | None) -> SourceLine | None:
    """Return the innermost line of the pack in a traceback: the last one in the folder of its first frame.

    Args:
        traceback: Traceback that starts in the pack's file. Of chained exceptions, the last one counts, and of a group
            the line that raised it.
    """
    last = _NEXT_EXCEPTION.split(traceback or "")[-1]
    frames = [SourceLine(found["file"], int(found["line"]), found["function"] or "") for found in _FRAME.finditer(last)]
    own = [frame for frame in frames if Path(frame.file).parent == Path(frames[0].file).parent]
    return own[-1] if own else None


def advice(error: ToolError) -> str:
    """Return a sentence on how to fix `error`, or an empty string if its message is enough."""
    return _BY_DETAIL.get(error.detail or "", _BY_CODE.get(error.code, ""))
