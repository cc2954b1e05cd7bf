"""MCP servers of a command: connected before it uses their tools, and their questions answered."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.cli.root import TOOL_FAILED, USAGE
from pegboard.models.server import Elicitation, ElicitationAnswer, SamplingRequest, ServerState

if TYPE_CHECKING:
    from pegboard.models import JsonObject, Problem, ServerStatus
    from pegboard.runtime import Runtime

_DECLINED: Final = ElicitationAnswer(action="decline")
_CANCELLED: Final = ElicitationAnswer(action="cancel")
USABLE: Final = frozenset({ServerState.READY, ServerState.DEGRADED})
"""States of servers whose tools can be called."""

ElicitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--elicit",
        metavar="JSON",
        help="Answer a question of an MCP server with this object, decline or cancel; may be repeated for further"
        " questions. The last one answers all that follow.",
    ),
]


def connect(runtime: Runtime, given: Sequence[str], name: str | None = None) -> None:
    """Connect to the servers that a command needs; exit if a server of `--mcp` can't be used.

    Args:
        runtime: The runtime, scanned.
        given: Values of `--mcp`.
        name: The tool or the pack that the command uses; all servers are needed if None.
    """
    wanted = _configured(runtime, name)
    runtime.servers.limit(wanted)
    if not (given or wanted):
        return
    add_given(runtime, given)
    _wait(runtime)
    failed = [status for status in runtime.servers.all()[len(wanted) :] if status.state not in USABLE]
    if failed:
        from pegboard.cli.output import narrate_problems

        narrate_problems(map(status_problem, failed))
        close(runtime)
        raise typer.Exit(TOOL_FAILED)


def connect_to(runtime: Runtime, given: Sequence[str], name: str | None) -> None:
    """Connect to one server of the configuration, or to all if None, and to those of `--mcp`.

    With `--mcp` and no name, only those of `--mcp` are connected.
    """
    servers = [status.name for status in runtime.servers.all()]
    runtime.servers.limit([name] if name is not None else [] if given else servers)
    add_given(runtime, given)
    if runtime.servers.all():
        _wait(runtime)


def add_given(runtime: Runtime, given: Sequence[str]) -> None:
    """Add the servers of `--mcp`; exit if one can't be parsed."""
    from pegboard.cli.output import narrate
    from pegboard.config import given_server
    from pegboard.errors import ConfigError

    try:
        configs = [given_server(text) for text in given]
    except ConfigError as error:
        narrate(str(error))
        raise typer.Exit(USAGE) from None
    for config in configs:
        runtime.servers.add(config)


def _wait(runtime: Runtime) -> None:
    """Wait until each server is connected or has failed."""
    if sys.stderr.isatty():
        from pegboard.cli.output import narrate
        from pegboard.results.clean import clean_line

        names = ", ".join(status.name or "the server of --mcp" for status in runtime.servers.all())
        narrate(clean_line(f"Connecting to {names} …"))
    asyncio.run(runtime.servers.connect())


def close(runtime: Runtime) -> None:
    """End the servers that Pegboard started for a command."""
    if runtime.servers.all():
        asyncio.run(runtime.servers.close())


def answer_questions(runtime: Runtime, prepared: Sequence[str] | None) -> None:
    """Answer what servers ask during a command: as `--elicit` says, else on the terminal, else by declining.

    Exits if a value of `--elicit` can't be used.
    """
    from pegboard.cli.approval import can_ask
    from pegboard.cli.output import narrate

    if not runtime.servers.all():
        return
    answers: list[ElicitationAnswer] = []
    for text in prepared or ():
        if text in {"decline", "cancel"}:
            answers.append(_DECLINED if text == "decline" else _CANCELLED)
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            narrate(f"--elicit is neither JSON nor decline or cancel: {error}.")
            raise typer.Exit(USAGE) from None
        if not isinstance(value, dict):
            narrate('--elicit needs a JSON object such as {"name": "Ada"}.')
            raise typer.Exit(USAGE)
        answers.append(ElicitationAnswer(action="accept", content=value))
    runtime.servers.ask_with(TerminalQuestions(answers, can_ask=can_ask()))


class TerminalQuestions:
    """Answers to what MCP servers ask, on the terminal. A `pegboard.ports.ServerQuestions`.

    Args:
        prepared: Answers to the first questions; the last one answers all that follow.
        can_ask: Whether a person can see a question and answer it. Otherwise other questions are declined.
    """

    def __init__(self, prepared: Sequence[ElicitationAnswer] = (), *, can_ask: bool) -> None:
        self._prepared = list(prepared)
        self._can_ask = can_ask
        self._one_at_a_time = asyncio.Lock()

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        """Show a question, and read the answer."""
        from pegboard.cli.output import narrate

        async with self._one_at_a_time:
            narrate(_shown(elicitation))
            if self._prepared:
                answer = self._prepared[0] if len(self._prepared) == 1 else self._prepared.pop(0)
                narrate(f"Answered by --elicit: {answer.action}.")
                return answer
            if not self._can_ask:
                narrate("Declined, because there is no terminal to ask on. Pass --elicit to answer in advance.")
                return _DECLINED
            if elicitation.url is not None:
                return await self._visit(elicitation.url)
            return await self._fill_in(elicitation.json_schema or {})

    async def log_in(self, server: str, url: str) -> bool:
        """Print the address of the login, and open it in the browser."""
        from pegboard.cli.output import narrate
        from pegboard.results.clean import clean_line

        narrate(clean_line(f"Log in to {server} in the browser. If it doesn't open, visit this address:"))
        narrate(clean_line(url))
        await open_browser(url)
        return True

    async def approve_sampling(self, request: SamplingRequest) -> bool:
        """Show a server's prompt in full, and ask whether the model may answer it."""
        from pegboard.cli.approval import ask_line
        from pegboard.cli.output import narrate
        from pegboard.results.clean import clean, clean_line

        async with self._one_at_a_time:
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
        from pegboard.cli.approval import ask_line

        match (await ask_line("Open this address? [y/N/c] ")).strip().casefold():
            case "y" | "yes":
                await open_browser(url)
                return ElicitationAnswer(action="accept")
            case "c" | "cancel":
                return _CANCELLED
        return _DECLINED

    async def _fill_in(self, schema: JsonObject) -> ElicitationAnswer:
        from pegboard.cli.approval import ask_line

        match (await ask_line("Answer? [y/N/c] ")).strip().casefold():
            case "y" | "yes":
                pass
            case "c" | "cancel":
                return _CANCELLED
            case _:
                return _DECLINED
        properties = schema.get("properties")
        pairs: dict[str, list[str]] = {}
        wanted = [*properties] if isinstance(properties, dict) else []
        while True:
            for key in wanted:
                part = properties[key] if isinstance(properties, dict) else {}
                typed = (await ask_line(_label(key, part, schema))).strip()
                is_list = isinstance(part, dict) and part.get("type") == "array"
                values = [one.strip() for one in typed.split(",")] if is_list else [typed]
                pairs[key] = [f"{key}={value}" for value in values if value]
            content, faults = _content(schema, [pair for found in pairs.values() for pair in found])
            if not faults:
                return ElicitationAnswer(action="accept", content=content)
            from pegboard.cli.output import narrate
            from pegboard.results.clean import clean_line

            for fault in faults:
                narrate(clean_line(f"invalid: {fault}"))
            named = {fault.split(":")[0].split("/")[0] for fault in faults}
            wanted = [key for key in pairs if key in named] or [*pairs]
            if (await ask_line("Correct it? [Y/n] ")).strip().casefold() not in {"", "y", "yes"}:
                return _CANCELLED


async def open_browser(url: str) -> None:
    """Open a web address in the user's browser; print nothing of the browser."""
    import webbrowser
    from urllib.parse import urlsplit

    if urlsplit(url).scheme in {"http", "https"}:
        await asyncio.to_thread(webbrowser.open, url)


def status_problem(status: ServerStatus) -> Problem:
    """Return why a server can't be used."""
    from pegboard.models import Problem

    name = f"The MCP server {status.name}" if status.name else "The MCP server of --mcp"
    if status.state is ServerState.DISABLED:
        return Problem(
            message=f"{name} is disabled.", fix=f"Remove `enabled = false` from `[mcp.servers.{status.name}]`."
        )
    lack = "needs a login" if status.state is ServerState.NEEDS_LOGIN else "is not connected"
    reason = status.reason or "It did not answer in time."
    return Problem(message=f"{name} {lack}. {reason}", fix=status.fix)


def _shown(elicitation: Elicitation) -> str:
    from pegboard.results.clean import clean, clean_line

    tool = f" during {clean_line(elicitation.tool)}" if elicitation.tool else ""
    lines = [f"The MCP server {clean_line(elicitation.server)} asks{tool}:", clean(elicitation.message)]
    if elicitation.url is not None:
        lines.append(f"It wants you to visit {clean_line(elicitation.url)}")
    return "\n".join(lines)


def _label(key: str, part: Any, schema: JsonObject) -> str:  # noqa: ANN401 - JSON
    from pegboard.results.clean import clean_line

    required = schema.get("required")
    notes: list[str] = []
    if isinstance(part, dict):
        items = part.get("items")
        holder = items if isinstance(items, dict) else part
        titled = holder.get("oneOf") or holder.get("anyOf") or []
        choices = holder.get("enum") or [one.get("const") for one in titled if isinstance(one, dict)]
        notes += [str(part.get("description") or part.get("title") or "")]
        notes += [", ".join(map(str, choices))] if choices else [str(part.get("type", ""))]
        notes += [f"default {json.dumps(part['default'], ensure_ascii=False)}"] if "default" in part else []
    notes += ["required"] if isinstance(required, list) and key in required else []
    return clean_line(f"{key} ({'; '.join(filter(None, notes))}): ")


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


def _configured(runtime: Runtime, name: str | None) -> list[str]:
    """Return the configured servers that may have a tool or a pack."""
    servers = [status.name for status in runtime.servers.all()]
    if name is None:
        return servers
    pack = name.partition(".")[0]
    if pack in servers:
        return [pack]
    # The pack of a server whose name is taken has a suffix.
    return [] if runtime.tools.get(name) else [server for server in servers if pack.startswith(server)]
