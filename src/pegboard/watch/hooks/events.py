"""Events of agents' hooks as messages of MCP.

Claude Code (https://code.claude.com/docs/en/hooks), Codex (https://developers.openai.com/codex/hooks) and Qwen Code
have the same events; those of Gemini CLI (https://geminicli.com/docs/hooks/reference) and Copilot CLI are others. What
they don't document was found with Claude Code 2.1, Codex 0.171, Gemini CLI 0.61, Qwen Code 0.24 and Copilot CLI 1.0.
opencode has plugins instead; ours, `opencode.js`, writes the events of Claude Code, and was written for opencode 1.18.
All events are untrusted.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from pydantic import JsonValue

from pegboard.config.servers import is_server_name, pack_name
from pegboard.models import JsonObject
from pegboard.watch.hooks.hook import CALLS, OF_QWEN, is_call_of_copilot, is_of_copilot
from pegboard.watch.hooks.results import AgentDialect, is_cancelled, result_of

EventKind: TypeAlias = Literal["call", "result", "rest", "turn end", "session end", "other"]
"""`rest`: the model got this answer to a call, and no other event says it."""

_KINDS: Final[dict[str, EventKind]] = {
    **dict[str, EventKind].fromkeys(CALLS, "call"),
    "PostToolUse": "result",
    "PostToolUseFailure": "result",
    "AfterTool": "result",
    "UserPromptSubmit": "turn end",
    "BeforeAgent": "turn end",
    "Stop": "turn end",
    "SubagentStop": "turn end",
    "Interrupt": "turn end",
    "AfterAgent": "turn end",
    "SessionEnd": "session end",
}
_BATCH: Final = "PostToolBatch"
"""Event with the answers to all calls of a turn of the model, also to those that were rejected or invalid."""
NEXT_PROMPT: Final = "BeforeAgent"
"""Event of Gemini CLI, which leaves the hooks of an interrupted turn running."""
_OF_GEMINI: Final = ("BeforeTool", "AfterTool", NEXT_PROMPT, "AfterAgent")
_MARKS: Final[dict[str, AgentDialect]] = {"turn_id": "codex", OF_QWEN: "qwen"}
"""Keys that only the events of one agent have."""
_REPLACED: Final = re.compile(r"[^A-Za-z0-9_-]")
"""Characters of a server's name that agents replace in the names of its tools."""


@dataclass(frozen=True)
class HookEvent:
    """An event of an agent."""

    name: str
    """As the agent calls it."""
    kind: EventKind
    dialect: AgentDialect = "claude"
    part: str = ""
    """The subagent that it is about; empty for the agent itself."""
    server: str = ""
    """The first part of the call's name in rules and records: the agent, or an MCP server."""
    mcp_server: str = ""
    """That MCP server as the agent calls it."""
    id: str = ""
    """Id of the call; a hash of the call itself if it has none from the agent."""
    tool: str = ""
    args: JsonValue = None
    result: JsonObject | None = None
    """The result of the call, as one of MCP."""
    milliseconds: float = 0.0
    """Duration of the call; 0 if it is unknown."""
    is_cancelled: bool = False
    """Whether the user interrupted the call."""

    @property
    def request(self) -> JsonObject:
        """The call as a message of MCP."""
        params: JsonObject = {"name": self.tool, "arguments": self.args}
        return {"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params}

    @property
    def response(self) -> JsonObject:
        """The result as a message of MCP."""
        return {"jsonrpc": "2.0", "id": self.id, "result": self.result}

    def id_with(self, args: JsonValue) -> str:
        """Return the id of this call with other arguments."""
        has_own = self.id == _own_id(self.server, self.tool, self.args)
        return _own_id(self.server, self.tool, args) if has_own else self.id


def events_of(agent: str, event: dict[str, Any]) -> list[HookEvent]:
    """Return the events in what an agent wrote.

    Args:
        agent: Name of the agent in rules and records.
        event: What the agent wrote.
    """
    dialect: AgentDialect = "claude"
    if is_of_copilot(event):
        event, dialect = _from_copilot(event), "copilot"
    name = _text(event, "hook_event_name")
    dialect = "gemini" if name in _OF_GEMINI else dialect
    for key, other in _MARKS.items():
        dialect = other if key in event else dialect
    if name == _BATCH:
        calls = event.get("tool_calls")
        inner = [call for call in (calls if isinstance(calls, list) else ()) if isinstance(call, dict)]
        return [_about_call(agent, name, "rest", dialect, {**event, **call}) for call in inner]
    kind = _KINDS.get(name, "other")
    if kind in ("call", "result"):
        return [_about_call(agent, name, kind, dialect, event)]
    return [HookEvent(name, kind, dialect, _text(event, "agent_id"))]


def _about_call(agent: str, name: str, kind: EventKind, dialect: AgentDialect, event: dict[str, Any]) -> HookEvent:
    mcp_server, tool = _tool(event)
    server = agent if not mcp_server else mcp_server if is_server_name(mcp_server) else pack_name(mcp_server)
    args = event.get("tool_input")
    duration = event.get("duration_ms")
    return HookEvent(
        name,
        kind,
        dialect,
        _text(event, "agent_id"),
        server,
        mcp_server,
        _text(event, "tool_use_id") or _own_id(server, tool, args),
        tool,
        args,
        result_of(event, dialect, is_failure=kind == "rest") if kind in ("result", "rest") else None,
        float(duration) if isinstance(duration, int | float) and 0 < duration < 1e12 else 0.0,
        event.get("is_interrupt") is True or (dialect == "gemini" and is_cancelled(event)),
    )


def _own_id(server: str, tool: str, args: JsonValue) -> str:
    return sha256(json.dumps([server, tool, args], sort_keys=True).encode()).hexdigest()


def _from_copilot(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event of Copilot CLI in the form of Claude Code; what it is follows from its keys."""
    agent = {"agent_id": event.get("agentId")}
    about = {**agent, "tool_name": event.get("toolName"), "tool_input": event.get("toolArgs")}
    result, error = event.get("toolResult"), event.get("error")
    if result is not None:
        found = result if isinstance(result, dict) else {"textResultForLlm": result}
        text = found.get("textResultForLlm")
        failed = {"error": text} if found.get("resultType") not in (None, "success") else {}
        return {"hook_event_name": "PostToolUse", **about, "tool_response": text, **failed}
    if error is not None and "toolName" in event:
        return {"hook_event_name": "PostToolUseFailure", **about, "error": error}
    if is_call_of_copilot(event):
        return {"hook_event_name": "PreToolUse", **about}
    ends = {"stopReason": "Stop", "prompt": "UserPromptSubmit", "reason": "SessionEnd"}
    return {**agent, "hook_event_name": next((name for key, name in ends.items() if key in event), "")}


def _tool(event: dict[str, Any]) -> tuple[str, str]:
    """Return the MCP server and the tool that an event is about; no server for a tool of the agent's own.

    Names are `mcp__SERVER__TOOL`. Claude Code also names the server; Gemini CLI has `mcp_SERVER_TOOL`, and both parts.
    """
    name = _text(event, "tool_name") or "unnamed"
    context, server = event.get("mcp_context"), event.get("mcp_server")
    if isinstance(context, dict) and (of_context := _text(context, "server_name")):
        return of_context, _text(context, "tool_name") or name
    parts = name.split("__", 2)
    if len(parts) != 3 or parts[0] != "mcp" or not parts[1] or not parts[2]:
        return "", name
    of_server = _text(server, "name") if isinstance(server, dict) else ""
    prefix = f"mcp__{name_in_tools(of_server)}__"  # The name of the server may contain `__`, too.
    tool = name.removeprefix(prefix) if name.startswith(prefix) else parts[2]
    return (of_server or parts[1], tool) if tool else ("", name)


def name_in_tools(server: str) -> str:
    """Return the name of an MCP server as it is in the names of its tools."""
    return _REPLACED.sub("_", server)


def _text(event: dict[str, Any], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""
