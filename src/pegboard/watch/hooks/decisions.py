"""Decisions on calls as the output that each agent expects from its hook."""

from __future__ import annotations

import json
from typing import Final

from pydantic import JsonValue

from pegboard.models import JsonObject
from pegboard.watch.hooks.events import HookEvent
from pegboard.watch.hooks.results import AgentDialect

UNEDITABLE: Final[dict[AgentDialect, str]] = {"qwen": "hooks of Qwen Code can't change arguments"}
"""Why the arguments of agents' calls can't be edited, as clauses."""


def rejection_of(event: HookEvent, reason: str) -> str:
    """Return the output that rejects a call.

    Args:
        event: The call.
        reason: The reason, for the model.
    """
    if event.dialect == "gemini":
        return json.dumps({"decision": "deny", "reason": reason})
    if event.dialect == "copilot":
        return json.dumps({"permissionDecision": "deny", "permissionDecisionReason": reason})
    return _specific(event, permissionDecision="deny", permissionDecisionReason=reason)


def approval_of(event: HookEvent, args: JsonObject | None, note: str) -> str:
    """Return the output for a call that a person approved; empty if the agent accepts none.

    Args:
        event: The call.
        args: The arguments, if the person edited them.
        note: Text for the model about the edit.
    """
    if event.dialect in ("gemini", "qwen"):
        return "" if args is None or args == event.args else _specific(event, tool_input=args)
    if event.dialect == "copilot":
        return json.dumps({"permissionDecision": "allow", **({} if args is None else {"modifiedArgs": args})})
    if event.dialect == "codex" and args is None:
        return ""  # It reports an approval without an edit as a failure of the hook.
    decision: JsonObject = {"permissionDecision": "allow", "permissionDecisionReason": "Approved in Pegboard."}
    if args is not None:
        decision["updatedInput"] = args
    if note:
        decision["additionalContext"] = note
    return _specific(event, **decision)


def edit_problem(event: HookEvent, args: JsonObject) -> str:
    """Return why an agent can't make a call with edited arguments; empty if it can."""
    if event.dialect in UNEDITABLE and args != event.args:
        clause = UNEDITABLE[event.dialect]
        return f"{clause[0].upper()}{clause[1:]}."
    lost = sorted(set(event.args) - set(args)) if event.dialect == "gemini" and isinstance(event.args, dict) else []
    return f"The edit removes {', '.join(lost)}, but hooks of Gemini CLI can only change arguments." if lost else ""


def _specific(event: HookEvent, **fields: JsonValue) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, **fields}})
