"""MCP servers of a command: connected before it uses their tools, and their questions answered."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from pegboard.cli.exit_codes import OK, USAGE

if TYPE_CHECKING:
    import ast

    from pegboard.cli.approval import TerminalTurns
    from pegboard.models import Problem, ServerState, ServerStatus, ToolSpec
    from pegboard.models.server_content import PromptInfo
    from pegboard.models.server_message import ServerMessage
    from pegboard.runtime import Runtime

_TIMEOUT_SECONDS = 5.0
"""Seconds after which a message names the servers that are still waited for."""
_STDERR_SECONDS = 0.2
"""Time that stderr may lag behind a response; it comes through another pipe."""
_CALL = re.compile(r"\b(?:call_tool|get_pack)\b")
_CALLERS = frozenset({"call_tool", "get_pack"})

_T = TypeVar("_T")

ElicitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--elicit",
        metavar="JSON",
        help="Answer a question of an MCP server with this object, decline or cancel; can be repeated for further"
        " questions. The last one answers all that follow.",
    ),
]


def connect(runtime: Runtime, given: Sequence[str], names: Collection[str] | None, *, calls: bool = False) -> None:
    """Connect to the servers that a command needs; print why a server of `--mcp` can't be used.

    Args:
        runtime: The runtime, scanned.
        given: Values of `--mcp`.
        names: The tools or packs that the command uses; all servers are needed if None.
        calls: Whether it calls these tools, which may call tools of servers.
    """
    servers = [status.name for status in runtime.servers.all()]
    wanted = servers if names is None else _configured(runtime, names, servers, calls=calls)
    runtime.servers.limit(wanted)
    if not (given or wanted):
        return
    add_given(runtime, given)
    known = runtime.problems()
    _wait(runtime, given, names)
    if not all(status.state.is_usable for status in runtime.servers.all()[len(wanted) :]):
        narrate_new_problems(runtime, known)


def connect_to(runtime: Runtime, given: Sequence[str], name: str | None) -> None:
    """Connect to one server of the configuration, or to all if None, and to those of `--mcp`.

    With `--mcp` and no name, only those of `--mcp` are connected.
    """
    servers = [status.name for status in runtime.servers.all()]
    runtime.servers.limit([name] if name is not None else [] if given else servers)
    add_given(runtime, given)
    if runtime.servers.all():
        _wait(runtime, given)


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


def _wait(runtime: Runtime, given: Sequence[str], names: Collection[str] | None = None) -> None:
    """Wait until each server is connected or has failed; for those of `--mcp` only seconds if others have the tools.

    Args:
        runtime: The runtime.
        given: Values of `--mcp`.
        names: The tools or packs that the command uses; None if it may use all.
    """
    import asyncio

    from pegboard.models import ServerState

    if sys.stderr.isatty():
        from pegboard.cli.output import narrate

        narrate(f"Connecting to {', '.join(_names(runtime, given))} …")

    async def wait() -> None:
        connecting = asyncio.create_task(runtime.servers.connect())
        is_said = False
        while not (await asyncio.wait({connecting}, timeout=_TIMEOUT_SECONDS))[0]:
            await asyncio.to_thread(runtime.tools.scan)
            statuses = runtime.servers.all()
            needed = statuses[: len(statuses) - len(given)]
            is_known = names is not None and all(map(runtime.tools.get, names))
            is_known = is_known and all(status.state is not ServerState.CONNECTING for status in needed)
            if is_known or not is_said:
                _narrate_waiting(runtime, given, is_known=is_known)
                is_said = True
            if is_known:
                connecting.cancel()
                return
        connecting.result()

    asyncio.run(wait())


def _narrate_waiting(runtime: Runtime, given: Sequence[str], *, is_known: bool) -> None:
    """Print which servers haven't answered yet, and whether the command waits for them."""
    from pegboard.cli.output import narrate
    from pegboard.models import ServerState

    names = ", ".join(_names(runtime, given, ServerState.CONNECTING))
    after = f"after {_TIMEOUT_SECONDS:g} s"
    if not names:  # the last one has answered since
        return
    if is_known:
        narrate(f"No answer {after} from {names}. The command continues without its tools.")
    else:
        narrate(f"Still waiting {after} for {names} …")


def _names(runtime: Runtime, given: Sequence[str], state: ServerState | None = None) -> list[str]:
    """Return the names of the servers, or of those in a state; one without a name by its command or address."""
    from pegboard.config.servers import shown_given
    from pegboard.results.clean import clean_line

    statuses = runtime.servers.all()
    texts = [*[""] * (len(statuses) - len(given)), *given]  # those of `--mcp` come last
    return [
        clean_line(status.name or f"the server of --mcp {shown_given(text)}")
        for status, text in zip(statuses, texts, strict=True)
        if state in (None, status.state)
    ]


def close(runtime: Runtime) -> None:
    """End the servers that Pegboard started for a command."""
    if runtime.servers.all():
        import asyncio

        asyncio.run(runtime.servers.close())


def answer_questions(
    context: typer.Context, runtime: Runtime, prepared: Sequence[str] | None, turns: TerminalTurns | None = None
) -> None:
    """Answer what servers ask during a command: as `--elicit` says, else on the terminal, else by declining.

    Exits if a value of `--elicit` can't be used; the command then fails, also if one doesn't match its question.

    Args:
        context: The command's context.
        runtime: The runtime with the servers.
        prepared: The values of `--elicit`.
        turns: The turns of the terminal's questions; None if the command asks nothing itself.
    """
    if not runtime.servers.all():
        return
    import json

    from pegboard.cli.approval import can_ask
    from pegboard.cli.output import narrate
    from pegboard.cli.server_questions import CANCELLED, DECLINED, TerminalQuestions
    from pegboard.models import ElicitationAnswer

    answers: list[ElicitationAnswer] = []
    for text in prepared or ():
        if text in {"decline", "cancel"}:
            answers.append(DECLINED if text == "decline" else CANCELLED)
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
    questions = TerminalQuestions(answers, can_ask=can_ask(), turns=turns)
    runtime.servers.ask_with(questions)

    def fail() -> None:
        # The exception that ends the command, if any: its exit code wins unless it is 0.
        ended = sys.exception()
        if questions.was_invalid and (ended is None or getattr(ended, "exit_code", None) == OK):
            raise typer.Exit(USAGE)

    context.call_on_close(fail)


def status_problem(status: ServerStatus) -> Problem:
    """Return why a server can't be used."""
    from pegboard.models import Problem, ServerState

    name = f"The MCP server {status.name}" if status.name else "The MCP server of --mcp"
    if status.state is ServerState.DISABLED:
        return Problem(
            message=f"{name} is disabled.", fix=f"Remove `enabled = false` from `[mcp.servers.{status.name}]`."
        )
    lack = "needs a login" if status.state is ServerState.NEEDS_LOGIN else "is not connected"
    reason = status.reason or "It did not answer in time."
    return Problem(message=f"{name} {lack}. {reason}", fix=status.fix)


def message_lines(messages: Sequence[ServerMessage]) -> str:
    """Return messages as lines with their time and an arrow for their direction; `!` for stderr."""
    from pegboard.results.clean import clean_line

    signs = ["!" if one.kind == "stderr" else "→" if one.sent else "←" for one in messages]
    times = [f"{one.at.astimezone():%H:%M:%S.%f}"[:-3] for one in messages]
    lines = [f"{at} {sign} {one.text}" for at, sign, one in zip(times, signs, messages, strict=True)]
    return "\n".join(map(clean_line, lines))


def narrate_messages(runtime: Runtime, name: str, spec: ToolSpec | None) -> None:
    """Print the messages to and from the MCP server of a tool to stderr.

    Args:
        runtime: The runtime, connected to the server.
        name: Name of the tool.
        spec: The tool; None if it is unknown, for example because its server can't be used.
    """
    from pegboard.cli.output import narrate
    from pegboard.models.spec import McpHandler

    if spec is not None and not isinstance(spec.handler, McpHandler):
        narrate(f"note: {spec.name} isn't a tool of an MCP server, so no messages are printed.")
        return
    server = name.partition(".")[0] if spec is None else spec.pack
    if sent := runtime.servers.messages(server):
        narrate(message_lines(sent))


def narrate_not_compared(runtime: Runtime, tool: str | None, *, has_servers: bool) -> bool:
    """Print which servers have tools that can't be compared with earlier ones.

    Args:
        runtime: The runtime, connected to the servers if they can be compared.
        tool: The tool or pack to compare; all by default.
        has_servers: Whether the earlier version has tools of servers.

    Returns:
        Whether one of the configuration can't be compared because it can't be used now.
    """
    from pegboard.cli.output import narrate
    from pegboard.models import ServerState
    from pegboard.results.clean import clean_line

    given: list[str] = []
    lost: list[str] = []
    configured: list[str] = []
    for status in runtime.servers.all():
        config = runtime.servers.config(status.name)
        if config is None or not config.saved:
            given.append(status.name or "that of --mcp")
        elif status.state is not ServerState.DISABLED:
            configured.append(status.name)
            lost += [] if status.state.is_usable else [status.name]
    unused = runtime.settings.loaded.unused if tool is None else ()
    keys = [one.key.split(".") for one in unused if one.reason == "untrusted"]
    untrusted = sorted({key[2] for key in keys if key[:2] == ["mcp", "servers"]})
    reasons = {
        "a revision has no schemas of MCP servers": [] if has_servers else [*configured, *given],
        "it can't be used now": lost if has_servers else [],
        "this folder is not trusted": untrusted if has_servers else [],
        "servers of --mcp have no earlier schemas": given if has_servers else [],
    }
    for reason, names in reasons.items():
        if names:
            narrate(clean_line(f"Not compared, because {reason}: {', '.join(names)}."))
    return has_servers and bool(lost or untrusted)


def problems_of(runtime: Runtime, status: ServerStatus) -> Iterator[Problem]:
    """Yield what the author of a connected server can improve: stray output, problems of its lists, invalid schemas."""
    from pegboard.models import Problem, ServerState

    if status.state is ServerState.READY and status.reason:
        yield Problem(message=status.reason, fix=status.fix, severity="warning")
    elif status.stray_output:
        yield Problem(message=status.stray_output, fix="Configure the server to log to stderr.", severity="warning")
    yield from (problem for problem in runtime.problems() if problem.pack == status.name)
    for spec in runtime.tools.named(status.name):
        yield from runtime.tools.schema_problems(spec)


def _configured(runtime: Runtime, names: Collection[str], servers: Sequence[str], *, calls: bool) -> list[str]:
    """Return the configured servers that may have one of the tools or packs, or whose tools these may call."""
    found: set[str] = set()
    for name in names:
        pack = name.partition(".")[0]
        specs = [spec] if (spec := runtime.tools.get(name)) else runtime.tools.named(name)
        if pack in servers:
            found.add(pack)
        elif not specs:
            # The pack of a server whose name is taken has a suffix.
            found |= {server for server in servers if pack.startswith(server)}
        found |= _called(specs, servers) if calls else set()
    return [server for server in servers if server in found]


def _called(specs: Sequence[ToolSpec], servers: Sequence[str]) -> set[str]:
    """Return the servers whose tools may be called: by a script any, by a pack those that a literal names.

    A pack that computes a name, itself or in a helper beside it, may call any.
    """
    from pegboard.models import ScriptHandler

    if any(isinstance(spec.handler, ScriptHandler) for spec in specs):
        return set(servers)
    files = {Path(file) for spec in specs for file in spec.files}
    helpers = {helper for folder in {file.parent for file in files} for helper in folder.glob("_*.py")}
    code = ""
    for file in files | helpers:
        with suppress(OSError):
            text = file.read_text("utf-8", "replace")
            if _CALL.search(text):
                if _computes_name(text):
                    return set(servers)
                code += text
    return {server for server in servers if re.search(rf"[\"']{re.escape(server)}[.\"']", code)}


def _computes_name(code: str) -> bool:
    """Return whether code may call a tool whose name isn't a literal: it uses `call_tool` other than with a literal."""
    import ast

    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    literal: set[ast.expr] = set()
    for node in nodes:
        match node:
            case ast.Call(func=function, args=[ast.Constant(value=str()), *_]):
                literal.add(function)
    return any(node not in literal and _is_caller(node) for node in nodes)


def _is_caller(node: ast.AST) -> bool:
    """Return whether a node names `call_tool` or `get_pack`, or renames it."""
    import ast

    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
            return name in _CALLERS
        case ast.alias(name=name, asname=str()):
            return name in _CALLERS
        case _:
            return False


def requested(runtime: Runtime, name: str, request: Awaitable[_T | Problem]) -> _T | Problem:
    """Return the answer to a request to a server; if it fails, print what the server wrote to stderr meanwhile."""
    import asyncio

    from pegboard.cli.output import narrate
    from pegboard.models import Problem
    from pegboard.results.clean import clean_line

    async def run() -> _T | Problem:
        answer = await request
        if isinstance(answer, Problem):
            await asyncio.sleep(_STDERR_SECONDS)
        return answer

    before = runtime.servers.stderr(name)
    answer = asyncio.run(run())
    if isinstance(answer, Problem):
        now = runtime.servers.stderr(name)
        for line in now[len(before) :] if now[: len(before)] == before else now:
            narrate(clean_line(line))
    return answer


def narrate_new_problems(runtime: Runtime, known: Collection[Problem]) -> None:
    """Print the problems that lists of a server have revealed.

    Args:
        runtime: The runtime.
        known: The problems before.
    """
    from pegboard.cli.output import narrate_problems

    runtime.tools.scan()
    narrate_problems(problem for problem in runtime.problems() if problem not in known)


def check_prompt(prompts: Sequence[PromptInfo], name: str, arguments: Mapping[str, str]) -> None:
    """Exit if a server has no prompt of this name, or the prompt can't be filled in with these arguments."""
    from pegboard.cli.output import narrate
    from pegboard.results.clean import clean_line

    prompt = next((one for one in prompts if one.name == name), None)
    if prompt is None:
        known = ", ".join(one.name for one in prompts) or "none"
        narrate(clean_line(f"The server has no prompt {name}. Known prompts: {known}."))
        raise typer.Exit(USAGE)
    names = [argument.name for argument in prompt.arguments]
    missing = [argument.name for argument in prompt.arguments if argument.required and argument.name not in arguments]
    unknown = [argument for argument in arguments if argument not in names]
    if missing:
        narrate(clean_line(f"The prompt requires {' '.join(f'--arg {one}=VALUE' for one in missing)}."))
    if unknown:
        known = ", ".join(names) or "none"
        narrate(clean_line(f"The prompt has no argument {', '.join(unknown)}. Known arguments: {known}."))
    if missing or unknown:
        raise typer.Exit(USAGE)
