"""What to do about a failed call."""

from __future__ import annotations

from pegboard.models import ToolError

_BY_DETAIL = {
    "timeout": "Give the tool more time: @hints(timeout=…) in its pack, or [tools] timeout in the config.",
    "crashed": "Its worker process is gone; the next call gets a fresh one.",
    "out_of_memory": "Ask the tool for less, or raise [tools] memory_limit in the config.",
    "import_failed": "Mend the pack; the traceback shows where it fails.",
    "not_serialisable": "Let the tool return what JSON has: text, numbers, true, false, null, lists and objects.",
    "denied": "The call was not allowed; nothing was run.",
    "dependency_missing": "Install what the message names, then run it again.",
}
_BY_CODE = {
    "tool_not_found": "Look at the spelling of the name, and at the allow list.",
    "invalid_args": "Change the arguments named here, then run it again.",
}


def advice(error: ToolError) -> str:
    """Gives a sentence on what to do about `error`, empty where its message has to do."""
    return _BY_DETAIL.get(error.detail or "") or _BY_CODE.get(error.code, "")
