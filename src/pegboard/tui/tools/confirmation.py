"""The question before a blocked or destructive tool runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from textual.app import App

from pegboard.data.json_text import JsonTextError, parse
from pegboard.models import HealthRow, JsonObject, Problem, ScriptHandler, ToolSpec
from pegboard.results.arguments import arguments_text
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_ARGUMENT_LINES: Final = 8
"""Maximum number of lines of arguments in the confirmation of a destructive tool."""


async def may_run(
    app: App[object], runtime: Runtime, spec: ToolSpec, arguments: JsonObject, shown: str, rows: Sequence[HealthRow]
) -> bool:
    """Ask for all confirmations in one dialog; return whether the tool may run.

    Args:
        app: App that shows the dialog.
        runtime: Provides the tool in the present version of its file.
        spec: The tool as it is shown.
        arguments: The arguments with which it runs.
        shown: The same as JSON, without secrets. The form may have others by now.
        rows: Its requirements.
    """
    spec = await asyncio.to_thread(runtime.tools.current, spec)
    missing = [row.problem for row in rows if row.blocks and row.problem]
    reasons = [_why_blocked(spec, missing)] if missing else []
    if spec.hints.destructive:
        reasons.append(_describe_effect(spec, shown))
    if isinstance(spec.handler, ScriptHandler):
        tools = await asyncio.to_thread(runtime.scripts.destructive_tools, [arguments])
        if tools:
            names = clean_line(", ".join(tools))
            reasons.append(f"{clean_line(spec.name)} calls tools that may delete or overwrite data: {names}.")
    if not reasons:
        return True
    from pegboard.tui.dialogs.confirm import Confirm

    title = f"Run {clean_line(spec.name)}{' anyway' if missing else ''}?"
    agreed: bool | None = await app.push_screen_wait(Confirm(title, "\n\n".join(reasons), "Run"))
    return agreed is True


def _describe_effect(spec: ToolSpec, text: str) -> str:
    question = f"{clean_line(spec.name)} may delete or overwrite data.\n\n{clean(spec.summary)}"
    with suppress(JsonTextError):
        text = arguments_text(parse(text))
    lines = clean(text).splitlines()
    more = [f"… {count(len(lines) - _ARGUMENT_LINES, 'more line')}"] if len(lines) > _ARGUMENT_LINES else []
    return question + "\n\n" + "\n".join([*lines[:_ARGUMENT_LINES], *more])


def _why_blocked(spec: ToolSpec, missing: Sequence[Problem]) -> str:
    lines = "\n".join(clean_line(str(problem)) for problem in missing)
    name = clean_line(spec.name)
    return f"{name} is blocked by missing requirements:\n{lines}\n\nThey are checked again before the call."
