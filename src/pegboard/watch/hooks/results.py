"""Results of agents' own tools as results of MCP, and whether the tools failed.

Gemini CLI and Copilot CLI report a shell command that failed as a success, and its exit code only in the text for the
model. A command can print the same text, so only what its output can't imitate counts.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypeAlias

from pydantic import JsonValue

from pegboard.models import JsonObject

AgentDialect: TypeAlias = Literal["claude", "codex", "copilot", "gemini", "qwen"]
"""Form of an agent's events and of the answers to them. That of Claude Code is also the form of opencode's plugin."""

_ERROR_TAG: Final = re.compile(r"</?tool_use_error>")
_GEMINI_SHELL: Final = "run_shell_command"
_COPILOT_SHELLS: Final = ("bash", "powershell")
_COPILOT_FAILED: Final = re.compile(r"<shellId: [^\s<>]{1,40} completed with exit code (?!0>)-?\d{1,10}>\Z")
"""Copilot CLI ends the text of every command with a line of its own."""
_CONTEXT: Final = re.compile(r"<untrusted_context>\n(.*)\n</untrusted_context>\Z", re.DOTALL)
_GEMINI_END: Final = re.compile(r"\n((?:Exit Code|Signal): \w{1,10})\nProcess Group PGID: \d{1,10}\Z")
"""Gemini CLI writes this line after the output of a command that failed, and none after that of another."""
_CANCELLED: Final = "Command was cancelled by user before it could "
_NOT_RUN: Final = ("Command was automatically cancelled ", "Command injection detected: ")
"""Texts of Gemini CLI that begin otherwise than the output of a command, which is after `Output: `."""


def result_of(event: dict[str, Any], dialect: AgentDialect, *, is_failure: bool) -> JsonObject:
    """Return the result of a call as one of MCP.

    Args:
        event: The event, in the form of Claude Code or Gemini CLI.
        dialect: Its agent.
        is_failure: Whether it is known that the call failed.
    """
    response = event.get("tool_response")
    error = event.get("error")
    if error is None and dialect == "gemini" and isinstance(response, dict):
        error = response.get("error")
    if error is not None:
        message = error.get("message") if isinstance(error, dict) else error
        return {"content": [{"type": "text", "text": str(message)}], "isError": True}
    is_failure = is_failure or _has_failed(event, dialect)
    failure: JsonObject = {"isError": True} if is_failure else {}
    response = _without_display(response)
    if isinstance(response, dict) and _is_content(response.get("content")):
        return {**response, **failure}
    if _is_content(response):
        return {"content": response, **failure}
    if isinstance(response, str):
        return {"content": [{"type": "text", "text": _ERROR_TAG.sub("", response)}] if response else [], **failure}
    return {"content": []} if response is None else {"content": [], "structuredContent": response, **failure}


def is_cancelled(event: dict[str, Any]) -> bool:
    """Return whether the user of Gemini CLI interrupted a command, which is reported as a success."""
    return event.get("tool_name") == _GEMINI_SHELL and _for_model(event.get("tool_response")).startswith(_CANCELLED)


def _has_failed(event: dict[str, Any], dialect: AgentDialect) -> bool:
    """Return whether a command that is reported as a success has failed."""
    tool, response = event.get("tool_name"), event.get("tool_response")
    if dialect == "copilot":
        return tool in _COPILOT_SHELLS and isinstance(response, str) and bool(_COPILOT_FAILED.search(response))
    if dialect != "gemini" or tool != _GEMINI_SHELL or not isinstance(response, dict):
        return False
    text = _for_model(response)
    if text.startswith(_NOT_RUN):
        return True
    end = _GEMINI_END.search(text)
    last = _last_line(response.get("returnDisplay"))
    # The display has only the output of the command. If its last line is the same, the command may have printed it.
    return end is not None and last is not None and last not in end[0].split("\n")[1:]


def _for_model(response: object) -> str:
    """Return the text for the model in a response of Gemini CLI or Qwen Code; empty if it has another form."""
    text = response.get("llmContent") if isinstance(response, dict) else None
    found = _CONTEXT.match(text) if isinstance(text, str) else None
    return found[1] if found else text if isinstance(text, str) else ""


def _last_line(display: object) -> str | None:
    """Return the last line of what Gemini CLI displays: a text, or the cells of a terminal; None if it is unknown."""
    if isinstance(display, str):
        lines = display.split("\n")
    elif isinstance(display, list) and _is_terminal(display):
        lines = ["".join(str(part.get("text")) for part in line) for line in display]
    else:
        return None
    without_text = "" if len(lines) == 1 else None  # Lines without text may be below a line that is cut off.
    return next((line.strip() for line in reversed(lines) if line.strip()), without_text)


def _is_terminal(display: object) -> bool:
    return isinstance(display, list) and all(
        isinstance(line, list) and all(isinstance(part, dict) for part in line) for line in display
    )


def _without_display(response: JsonValue) -> JsonValue:
    """Return only the text for the model if the rest of a response is the same text as it is displayed."""
    display = response.get("returnDisplay", "") if isinstance(response, dict) else None
    if isinstance(display, str) or _is_terminal(display):
        return _for_model(response) or response
    return response


def _is_content(value: JsonValue) -> bool:
    """Return whether a value is content of MCP: a list of objects with a type."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "type" in one for one in value)
