"""Events of agents' hooks as messages of MCP, and decisions as the output that each agent expects.

Most agents have the events of Claude Code (https://code.claude.com/docs/en/hooks). Gemini CLI has others
(https://geminicli.com/docs/hooks/reference). All events are untrusted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pydantic import JsonValue

from pegboard.config.servers import is_server_name, pack_name
from pegboard.models import JsonObject

EventKind: TypeAlias = Literal["call", "result", "turn end", "session end", "other"]

_KINDS: Final[dict[str, EventKind]] = {
    "PreToolUse": "call",
    "BeforeTool": "call",
    "PostToolUse": "result",
    "PostToolUseFailure": "result",
    "AfterTool": "result",
    "UserPromptSubmit": "turn end",
    "BeforeAgent": "turn end",
    "Stop": "turn end",
    "SubagentStop": "turn end",
    "AfterAgent": "turn end",
    "SessionEnd": "session end",
}
_GEMINI: Final = "BeforeTool"


@dataclass(frozen=True)
class HookEvent:
    """An event of an agent."""

    name: str
    """As the agent calls it."""
    kind: EventKind
    part: str = ""
    """The subagent that it is about; empty for the agent itself."""
    server: str = ""
    """The first part of the call's name in rules and records: the agent, or an MCP server."""
    mcp_server: str = ""
    """That MCP server as the agent calls it."""
    message: JsonObject | None = None
    """The call, or its result, as a message of MCP."""
    request: JsonObject | None = None
    """For a result, the call, as far as the event contains it."""
    milliseconds: float = 0.0
    """For a result, the duration of the call; 0 if it is unknown."""

    @property
    def line(self) -> bytes:
        """The message as a line."""
        return json.dumps(self.message).encode("utf-8", "backslashreplace")


def event_of(agent: str, event: dict[str, Any]) -> HookEvent:
    """Return an event.

    Args:
        agent: Name of the agent in rules and records.
        event: What the agent wrote.
    """
    name = str(event.get("hook_event_name") or "")
    kind, part = _KINDS.get(name, "other"), _text(event, "agent_id")
    if kind not in ("call", "result"):
        return HookEvent(name, kind, part)
    mcp_server, tool = _tool(_text(event, "tool_name") or "unnamed")
    server = agent if not mcp_server else mcp_server if is_server_name(mcp_server) else pack_name(mcp_server)
    args = event.get("tool_input")
    id_ = _text(event, "tool_use_id") or json.dumps([server, tool, args], sort_keys=True)
    request: JsonObject = {
        "jsonrpc": "2.0",
        "id": id_,
        "method": "tools/call",
        "params": {"name": tool, "arguments": args},
    }
    if kind == "call":
        return HookEvent(name, kind, part, server, mcp_server, request)
    duration = event.get("duration_ms")
    milliseconds = float(duration) if isinstance(duration, int | float) and 0 < duration < 1e12 else 0.0
    result: JsonObject = {"jsonrpc": "2.0", "id": id_, "result": _result(event)}
    return HookEvent(name, kind, part, server, mcp_server, result, request, milliseconds)


def output_of(event: HookEvent, decision: Literal["pass", "approve", "reject"], *, reason: str = "",
              args: JsonObject | None = None, note: str = "") -> str:  # fmt: skip
    """Return the output for a decision on a call; empty if the agent itself decides.

    Args:
        event: The call.
        decision: What Pegboard decided. The agent doesn't ask for an approved call again.
        reason: Why it is rejected, for the model.
        args: The edited arguments.
        note: Text for the model about the edit.
    """
    if decision == "pass":
        return ""
    if event.name == _GEMINI:
        answer: JsonObject = {"decision": "deny", "reason": reason} if decision == "reject" else {"decision": "allow"}
        if args is not None:
            answer["hookSpecificOutput"] = {"hookEventName": event.name, "tool_input": args}
        return json.dumps(answer)
    specific: JsonObject = {
        "hookEventName": event.name,
        "permissionDecision": "deny" if decision == "reject" else "allow",
        "permissionDecisionReason": reason if decision == "reject" else "Approved in Pegboard.",
    }
    if args is not None:
        specific["updatedInput"] = args
    if note:
        specific["additionalContext"] = note
    return json.dumps({"hookSpecificOutput": specific})


def _tool(name: str) -> tuple[str, str]:
    """Return the MCP server and the tool in a tool's name; no server for a tool of the agent's own."""
    parts = name.split("__", 2)
    return (parts[1], parts[2]) if len(parts) == 3 and parts[0] == "mcp" and parts[1] and parts[2] else ("", name)


def _result(event: dict[str, Any]) -> JsonObject:
    """Return the result of a call as one of MCP."""
    response = event.get("tool_response")
    error = event.get("error")
    if error is None and isinstance(response, dict):
        error = response.get("error") if event.get("hook_event_name") == "AfterTool" else None
    if error:
        message = error.get("message") if isinstance(error, dict) else error
        return {"content": [{"type": "text", "text": str(message)}], "isError": True}
    if isinstance(response, dict) and _is_content(response.get("content")):
        return response
    if _is_content(response):
        return {"content": response}
    if isinstance(response, str) or response is None:
        return {"content": [{"type": "text", "text": response}] if response else []}
    return {"content": [], "structuredContent": response}


def _is_content(value: JsonValue) -> bool:
    """Return whether a value is content of MCP: a list of objects with a type."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "type" in one for one in value)


def _text(event: dict[str, Any], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""
