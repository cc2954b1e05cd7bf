"""Answers to what MCP servers ask, on the terminal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.approval import TerminalTurns, ask_line
from pegboard.cli.output import narrate
from pegboard.data.json_text import write
from pegboard.data.urls import url_parts
from pegboard.models.server import Elicitation, ElicitationAnswer, SamplingRequest
from pegboard.results.clean import clean, clean_line

if TYPE_CHECKING:
    from pegboard.forms import Option
    from pegboard.models import JsonObject

DECLINED: Final = ElicitationAnswer(action="decline")
CANCELLED: Final = ElicitationAnswer(action="cancel")


class TerminalQuestions:
    """Answers to what MCP servers ask, on the terminal. A `pegboard.ports.ServerQuestions`.

    Args:
        prepared: Answers to the first questions; the last one answers all that follow.
        can_ask: Whether a person can see a question and answer it. Otherwise other questions are declined.
        turns: The turns of the terminal's questions; None if nothing else asks.
    """

    def __init__(
        self, prepared: Sequence[ElicitationAnswer] = (), *, can_ask: bool, turns: TerminalTurns | None = None
    ) -> None:
        self._prepared = list(prepared)
        self._can_ask = can_ask
        self._turns = turns or TerminalTurns()
        self.was_invalid = False
        """Whether a prepared answer didn't match the question."""

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Show a question, and read the answer."""
        async with self._turns.turn():
            narrate(_shown(elicitation))
            if self._prepared:
                answer = self._prepared[0] if len(self._prepared) == 1 else self._prepared.pop(0)
                if invalid := _why_invalid(elicitation, answer):
                    narrate(clean_line(f"The answer of --elicit is invalid, so the question is cancelled: {invalid}"))
                    self.was_invalid = True
                    return CANCELLED
                narrate(f"Answered by --elicit: {answer.action}.")
                return answer
            if not self._can_ask:
                narrate("Declined, because there is no terminal to ask on. Pass --elicit to answer in advance.")
                return DECLINED
            if elicitation.url is not None:
                return await self._visit(elicitation.url)
            return await self._fill_in(elicitation.json_schema or {})

    async def log_in(self, server: str, url: str) -> bool:
        """Print the address of the login, and open it in the browser."""
        narrate(clean_line(f"Log in to {server} in the browser. If it doesn't open, visit this address:"))
        narrate(clean_line(url))
        await open_browser(url)
        return True

    async def approve_sampling(self, request: SamplingRequest) -> bool:
        """Show a server's prompt in full, and ask whether the model may answer it."""
        async with self._turns.turn():
            lines = [f"The MCP server {clean_line(request.server)} asks the configured model:"]
            if request.system:
                lines.append(f"system: {clean(request.system)}")
            lines += [f"{role}: {clean(text)}" for role, text in request.messages]
            narrate("\n".join(lines))
            if not self._can_ask:
                narrate("Rejected, because there is no terminal to ask on.")
                return False
            return (await ask_line("Send it to the model? [y/N] ")).strip().casefold() in {"y", "yes"}

    async def _visit(self, url: str) -> ElicitationAnswer:
        match (await ask_line("Open this address? [y/N/c] ")).strip().casefold():
            case "y" | "yes":
                await open_browser(url)
                return ElicitationAnswer(action="accept")
            case "c" | "cancel":
                return CANCELLED
        return DECLINED

    async def _fill_in(self, schema: JsonObject) -> ElicitationAnswer:
        match (await ask_line("Answer? [y/N/c] ")).strip().casefold():
            case "y" | "yes":
                pass
            case "c" | "cancel":
                return CANCELLED
            case _:
                return DECLINED
        properties = schema.get("properties")
        choices = _choices(schema)
        pairs: dict[str, list[str]] = {}
        wanted = [*properties] if isinstance(properties, dict) else []
        while True:
            for key in wanted:
                part = properties[key] if isinstance(properties, dict) else {}
                typed = (await ask_line(_label(key, part, schema, choices.get(key, "")))).strip()
                is_list = isinstance(part, dict) and part.get("type") == "array"
                values = [one.strip() for one in typed.split(",")] if is_list else [typed]
                pairs[key] = [f"{key}={value}" for value in values if value]
            content, faults = _content(schema, [pair for found in pairs.values() for pair in found])
            if not faults:
                return ElicitationAnswer(action="accept", content=content)
            for fault in faults:
                narrate(clean_line(f"invalid: {fault}"))
            named = {fault.split(":")[0].split("/")[0] for fault in faults}
            wanted = [key for key in pairs if key in named] or [*pairs]
            if (await ask_line("Correct it? [Y/n] ")).strip().casefold() not in {"", "y", "yes"}:
                return CANCELLED


def _why_invalid(elicitation: Elicitation, answer: ElicitationAnswer) -> str:
    """Return why a prepared answer doesn't match the form of a question; empty if it does."""
    from pegboard.forms import Form

    schema = elicitation.json_schema
    if answer.action != "accept" or schema is None:
        return ""
    properties = schema.get("properties")
    parts = properties if isinstance(properties, dict) else {}
    defaults = {name: part["default"] for name, part in parts.items() if isinstance(part, dict) and "default" in part}
    form = Form(schema)
    form.load({**defaults, **(answer.content or {})})
    return "; ".join(map(str, form.faults()))


async def open_browser(url: str) -> None:
    """Open a web address in the user's browser; print nothing of the browser."""
    import webbrowser

    if url_parts(url).scheme in {"http", "https"}:
        await asyncio.to_thread(webbrowser.open, url)


def _shown(elicitation: Elicitation) -> str:
    tool = f" during {clean_line(elicitation.tool)}" if elicitation.tool else ""
    lines = [f"The MCP server {clean_line(elicitation.server)} asks{tool}:", clean(elicitation.message)]
    if elicitation.url is not None:
        lines.append(f"It wants you to visit {clean_line(elicitation.url)}")
    return "\n".join(lines)


def _label(key: str, part: Any, schema: JsonObject, choices: str) -> str:  # noqa: ANN401 - JSON
    required = schema.get("required")
    notes: list[str] = []
    if isinstance(part, dict):
        notes += [str(part.get("description") or part.get("title") or ""), choices or str(part.get("type", ""))]
        notes += [f"default {json.dumps(part['default'], ensure_ascii=False)}"] if "default" in part else []
    notes += ["required"] if isinstance(required, list) and key in required else []
    return clean_line(f"{key} ({'; '.join(filter(None, notes))}): ")


def _choices(schema: JsonObject) -> dict[str, str]:
    """Return the values of each field that has a choice, with their titles: `s (Small), l (Large)`."""
    from pegboard.forms import ChoiceField, Form, MultiChoiceField

    return {
        field.name: ", ".join(map(_choice, field.options))
        for field in Form(schema).fields
        if isinstance(field, ChoiceField | MultiChoiceField)
    }


def _choice(option: Option) -> str:
    value = option.value if isinstance(option.value, str) else write(option.value)
    return value if option.label == value else f"{value} ({option.label})"


def _content(schema: JsonObject, pairs: list[str]) -> tuple[JsonObject, list[str]]:
    """Return the object that typed values mean, and its errors."""
    from pegboard.forms import Form
    from pegboard.forms.pairs import read_pairs

    found, faults = read_pairs(schema, pairs)
    if faults:
        return {}, [str(fault) for fault in faults]
    form = Form(schema)
    form.load(found)
    return found, [str(fault) for fault in form.faults()]
