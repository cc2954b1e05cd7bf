"""Tools as commands of a script: their names, their help and their calls."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from itertools import count
from typing import Final, NamedTuple, Protocol, TypeAlias

from pydantic import JsonValue

from pegboard.data.pointer import pointer
from pegboard.data.unicode import encodable
from pegboard.errors import FormFaults
from pegboard.forms.flags import (
    arguments_from_words,
    as_flag,
    asks_for_help,
    is_command,
    plain_name,
    reads_arguments,
    stdin_argument,
    unknown_flags,
)
from pegboard.models import (
    CallEvent,
    CallSource,
    Finished,
    JsonObject,
    Started,
    ToolCall,
    ToolError,
    ToolResult,
    ToolSpec,
)
from pegboard.ports import Calls
from pegboard.results.export import whole
from pegboard.schema.arguments import prepare
from pegboard.scripts.usage import help_text, usage

FAILED: Final = 1
MISUSED: Final = 2
LATE: Final = 124
INCOMPLETE: Final = 125
REFUSED: Final = 126
NOT_FOUND: Final = 127

TOOL_SECONDS: Final = 8.0
"""Default timeout of a `CallableTool`."""


class CallableTool(Protocol):
    """An object that a script may call as a command."""

    @property
    def name(self) -> str:
        """The command's name."""
        ...

    @property
    def description(self) -> str:
        """Description; its first line is the summary in lists of commands."""
        ...

    def call(self, args: list[str], stdin: str | None) -> str:
        """Run the tool in a thread of its own and return its stdout.

        Args:
            args: The words after the command's name.
            stdin: Input from a pipe or a file; None without one.

        Raises:
            Exception: It failed; the message goes to stderr, and the command's exit code is 1.
        """
        ...


class Printed(NamedTuple):
    """Output of a command, and its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


class CallOrigin(NamedTuple):
    """Caller of a script's calls."""

    parent: str
    """Id of the script's own call."""
    source: CallSource = "script"
    session: str | None = None
    unattended: bool = False
    turn: str | None = None


OnEvent: TypeAlias = Callable[[CallEvent, str], None]
"""Callback for events; it also receives the id of the script's call in which the event happened."""


class ScriptCommand(Protocol):
    """A command of a script."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names, its own name first."""
        ...

    @property
    def summary(self) -> str:
        """Description in one line."""
        ...

    @property
    def usage(self) -> str:
        """Command with its arguments, in one line."""
        ...

    def help(self) -> str:
        """Return the full help text."""
        ...

    def arguments(self, words: Sequence[str], stdin: str | None) -> JsonObject:
        """Return the arguments for a command line.

        Raises:
            FormFaults: They are invalid.
        """
        ...

    def mistakes(self, words: Sequence[str | None]) -> tuple[str, ...]:
        """Return the errors in a command line before it runs; None is a word that is not known yet."""
        ...

    async def run(self, words: Sequence[str], stdin: str | None, origin: CallOrigin, on_event: OnEvent) -> Printed:
        """Run the tool and report its events; its errors are printed, not raised."""
        ...


class ToolCommand:
    """A tool of the registry as a command.

    Args:
        spec: The tool.
        calls: The call pipeline.
        names: Names of the command.
    """

    def __init__(self, spec: ToolSpec, calls: Calls, names: tuple[str, ...]) -> None:
        self.spec = spec
        self.names = names
        self.summary = spec.summary
        self._calls = calls

    @property
    def usage(self) -> str:
        """Command with its arguments, in one line."""
        return usage(self.spec, self.names[0])

    def help(self) -> str:
        """Return its usage, description and arguments."""
        return help_text(self.spec, self.names)

    def arguments(self, words: Sequence[str], stdin: str | None) -> JsonObject:
        """Parse a command line by the tool's schema."""
        return arguments_from_words(self.spec, words, stdin)

    def mistakes(self, words: Sequence[str | None]) -> tuple[str, ...]:
        """Return unknown flags, missing arguments and invalid values, as far as the words are known."""
        known = [word for word in words if word is not None]
        if asks_for_help(self.spec, known):
            return ()
        if len(known) < len(words) or reads_arguments(self.spec, known):
            return tuple(unknown_flags(self.spec, known))
        try:
            prepare(self.spec, self.arguments(known, None))
        except FormFaults as faults:
            # input from a pipe is not known before it runs
            piped = stdin_argument(self.spec)
            return tuple(as_flag(fault) for fault in faults.faults if piped is None or fault.path != pointer(piped))
        return ()

    async def run(self, words: Sequence[str], stdin: str | None, origin: CallOrigin, on_event: OnEvent) -> Printed:
        """Run the call through the pipeline; invalid words are reported without a call."""
        if asks_for_help(self.spec, words):
            return Printed(self.help())
        try:
            args = self.arguments(words, stdin)
        except FormFaults as faults:
            return self._refusal(map(as_flag, faults.faults))
        call = ToolCall(
            name=self.spec.name,
            args=args,
            source=origin.source,
            session=origin.session,
            parent=origin.parent,
            turn=origin.turn,
            unattended=origin.unattended,
        )
        result: ToolResult | None = None
        try:
            async with aclosing(self._calls.call(call)) as events:
                async for event in events:
                    on_event(event, call.id)
                    if isinstance(event, Started) and event.call.id == call.id:
                        call = event.call
                    if isinstance(event, Finished) and event.call.id == call.id:
                        result = event.result
        except asyncio.CancelledError:
            on_event(_cancelled(call), call.id)
            raise
        assert result is not None, "a call always ends with a result"
        if result.error is not None:
            return self._failure(result.error)
        try:
            data = result.data if result.meta.truncated is None else await asyncio.to_thread(whole, result)
            return Printed(_text(data))
        except (OSError, RecursionError, ValueError) as error:
            return Printed(err=f"{self.names[0]}: the complete result can't be printed: {error}\n", code=FAILED)

    def _failure(self, error: ToolError) -> Printed:
        if error.code == "invalid_args" and error.faults:
            return self._refusal(map(as_flag, error.faults))
        code = FAILED
        if error.code == "tool_not_found":
            code = REFUSED if error.detail == "not_allowed" else NOT_FOUND
        elif error.code == "invalid_args":
            code = MISUSED
        elif error.detail in ("timeout", "denied"):
            code = LATE if error.detail == "timeout" else REFUSED
        return Printed(err=f"{self.names[0]}: {encodable(error.message)}\n", code=code)

    def _refusal(self, faults: Iterable[str]) -> Printed:
        lines = [*(f"{self.names[0]}: {fault}" for fault in faults), f"usage: {self.usage}"]
        return Printed(err=encodable("\n".join(lines)) + "\n", code=MISUSED)


class CallableCommand:
    """A `CallableTool` as a command: it receives its words unchanged, without a schema or `--help`.

    Args:
        tool: The tool.
        names: Names of the command.
        seconds: Timeout of a call.
    """

    def __init__(self, tool: CallableTool, names: tuple[str, ...], seconds: float = TOOL_SECONDS) -> None:
        self.names = names
        self.summary = tool.description.strip().partition("\n")[0]
        self.description = tool.description.strip()
        self.usage = f"{names[0]} [WORD]..."
        self._tool = tool
        self._seconds = seconds

    def help(self) -> str:
        """Return its usage and description."""
        return f"usage: {self.usage}\n\n{self.description}\n"

    def arguments(self, words: Sequence[str], stdin: str | None) -> JsonObject:
        """Return the words unchanged."""
        given: list[JsonValue] = [*words]
        return {"args": given} if stdin is None else {"args": given, "stdin": stdin}

    def mistakes(self, words: Sequence[str | None]) -> tuple[str, ...]:
        """Return nothing: only the tool knows which words it accepts."""
        del words
        return ()

    async def run(self, words: Sequence[str], stdin: str | None, origin: CallOrigin, on_event: OnEvent) -> Printed:
        """Call the tool in a thread, which continues in the background after a cancellation or timeout."""
        args = self.arguments(words, stdin)
        call = ToolCall(
            name=self._tool.name, args=args, source=origin.source, session=origin.session, parent=origin.parent
        )
        on_event(Started(call=call), call.id)
        clock = asyncio.timeout(self._seconds)
        try:
            async with clock:
                printed = Printed(encodable(await _in_thread(lambda: self._tool.call([*words], stdin))))
            result = ToolResult(ok=True, data=printed.out)
        except asyncio.CancelledError:
            on_event(_cancelled(call), call.id)
            raise
        except Exception as error:  # noqa: BLE001 - an exception of a tool fails only its call
            is_late = clock.expired()
            message = f"It took longer than {self._seconds:g} s." if is_late else str(error) or type(error).__name__
            printed = Printed(err=encodable(f"{self.names[0]}: {message}\n"), code=LATE if is_late else FAILED)
            result = ToolResult.failed("execution_error", message, "timeout" if is_late else None)
        on_event(Finished(call=call, result=result), call.id)
        return printed


def _cancelled(call: ToolCall) -> Finished:
    """Return the end of a call that the end of its script cancels."""
    return Finished(call=call, result=ToolResult.failed("execution_error", "It was cancelled.", "cancelled"))


def commands_of(
    specs: Iterable[ToolSpec], calls: Calls | None, tools: Iterable[tuple[CallableTool, float]]
) -> dict[str, ScriptCommand]:
    """Return the commands by all their names.

    A tool `fs.list_dir` is also called `fs_list_dir`, unless that is ambiguous. A tool whose name isn't valid for a
    command, such as `1st.list_dir`, is only called `_1st_list_dir`. Its qualified aliases are names, too; an alias
    without a dot isn't, because it could hide a command of bash.

    Args:
        specs: Tools of the registry.
        calls: The call pipeline.
        tools: Other tools, each with its timeout in seconds.

    Raises:
        ValueError: Two tools have one name, or the name of a `CallableTool` isn't valid for a command.
    """
    wanted: list[tuple[str, Callable[[tuple[str, ...]], ScriptCommand]]] = []
    aliases: dict[str, list[str]] = {}
    for spec in specs:
        if calls is None:
            raise ValueError(f"{spec.name} can't be a command without a call pipeline.")
        wanted.append((spec.name, _tool_command(spec, calls)))
        qualified = [alias for alias in spec.aliases if "." in alias]
        aliases[spec.name] = [name for alias in qualified for name in (alias, plain_name(alias)) if is_command(name)]
    for tool, seconds in tools:
        if not is_command(tool.name):
            raise ValueError(f"The tool {tool.name!r} can't be a command because its name isn't valid for one.")
        wanted.append((tool.name, _callable_command(tool, seconds)))
    plain = [plain_name(name) for name, _ in wanted]
    taken, times = {name for name, _ in wanted}, Counter(plain)
    if len(taken) < len(wanted):
        twice = next(name for name in taken if sum(name == other for other, _ in wanted) > 1)
        raise ValueError(f"Two tools have the name {twice}.")
    found: dict[str, ScriptCommand] = {}
    for (name, command), other in zip(wanted, plain, strict=True):
        names = [name] if is_command(name) else []
        if times[other] == 1 and other not in taken:
            names.append(other)
        if not names:
            numbered = (f"{other}_{number}" for number in count(2))
            names.append(next(one for one in numbered if one not in taken | times.keys() | found.keys()))
        names += [one for one in aliases.get(name, ()) if one not in taken | times.keys() | found.keys()]
        made = command(tuple(dict.fromkeys(names)))
        found.update(dict.fromkeys(names, made))
    return found


def _tool_command(spec: ToolSpec, calls: Calls) -> Callable[[tuple[str, ...]], ScriptCommand]:
    return lambda names: ToolCommand(spec, calls, names)


def _callable_command(tool: CallableTool, seconds: float) -> Callable[[tuple[str, ...]], ScriptCommand]:
    return lambda names: CallableCommand(tool, names, seconds)


def _in_thread(work: Callable[[], object]) -> Awaitable[str]:
    """Call a tool in a thread that the program doesn't wait for when it exits."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[str] = loop.create_future()

    def settle(result: object, error: BaseException | None) -> None:
        if waiting.done():
            return
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            waiting.set_exception(error)
        elif error is not None:  # `SystemExit`, say, would end the program here; a future accepts no `StopIteration`
            said = f": {error}" if str(error) else ""
            waiting.set_exception(RuntimeError(f"The tool raised {type(error).__name__}{said}."))
        elif isinstance(result, str):
            waiting.set_result(result)
        else:
            kind = type(result).__name__
            waiting.set_exception(TypeError(f"The tool returned {kind} instead of str. Return the text to print."))

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - the awaiting task raises it
            failure = error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True, name="pegboard-script-tool").start()
    return waiting


def _text(data: JsonValue) -> str:
    """Return a result as its command prints it: with a final newline, unless it is the empty text."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return encodable(text if not text or text.endswith("\n") else f"{text}\n")
