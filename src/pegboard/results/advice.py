"""Advice on failed calls."""

from __future__ import annotations

from pegboard.models import ToolError

_BY_DETAIL = {
    "timeout": "Allow more time: set @hints(timeout=…) in the pack, or timeout under [tools] in the config.",
    "crashed": "The worker process ended; the next call starts a new one.",
    "out_of_memory": "Request less data, or raise memory_limit under [tools] in the config.",
    "import_failed": "Fix the pack; the traceback shows the failing line.",
    "not_serialisable": "Return only JSON values from the tool: text, numbers, true, false, null, lists and objects.",
    "denied": "The call was not approved; nothing was run.",
    "dependency_missing": "Install the missing requirement, then run the tool again.",
}
_BY_CODE = {
    "tool_not_found": "Check the spelling of the name, and the allow list.",
    "invalid_args": "Correct these arguments, then run the tool again.",
}


def advice(error: ToolError) -> str:
    """Return a sentence on how to fix `error`, or an empty string if its message is enough."""
    return _BY_DETAIL.get(error.detail or "") or _BY_CODE.get(error.code, "")
