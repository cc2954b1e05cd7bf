"""The execution of one script."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final  # Any: a message before validation

from pegboard.data.unicode import encodable
from pegboard.executor.deadline import CallClock, PendingApprovals
from pegboard.models import CallEvent, Finished, Log, Started, ToolCall, ToolResult
from pegboard.scripts.commands import (
    FAILED,
    INCOMPLETE,
    LATE,
    MISUSED,
    NOT_FOUND,
    CallOrigin,
    Printed,
    ScriptCommand,
)
from pegboard.scripts.sandbox import Sandbox, Sandboxes

_SYNTAX: Final = re.compile(r"parse error|syntax error|unsupported syntax")
_RANGE: Final = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?", re.ASCII)
_BRACES: Final = re.compile(r"\{([^{}'\"$]*)\}")
_LONGEST_WORD: Final = 1_000
_MOST_IN_RANGE: Final = 10_000
_MOST_WORDS: Final = 50_000
_NO_MEMORY: Final = re.compile(r"memory allocation|MemoryError")
_OUR_WORDS: Final = (
    (re.compile(r"command count exceeded|session command limit"), "it ran more than {commands:,} commands"),
    (re.compile(r"loop iteration"), "its loops ran more than {iterations:,} iterations"),
    (re.compile(r"function depth"), "its functions were nested more than 16 levels deep"),
    (re.compile(r"nesting|substitution depth|source depth"), "it is nested too deeply"),
    (re.compile(r"variable byte limit"), "its variables exceeded 10 MB"),
    (re.compile(r"intermediate bytes"), "its pipes and substitutions exceeded 32 MB"),
    (
        re.compile(r"aggregate input bytes"),
        "its commands read more than 100 MB; within `while read`, use </dev/null for commands that read no input",
    ),
)
_MOST_SEARCHED: Final = 20_000
"""Characters at the end of stderr in which messages about the sandbox are searched."""
_SANDBOX_WORDS: Final = (
    (re.compile(r"network access not configured"), "scripts have no network; call a tool instead", "web.fetch"),
    (
        re.compile(r"^bash: (?:line \d+: )?[\w+-]+: command not found$", re.MULTILINE),
        "scripts can't run the programs of this machine; run help to list the tools",
        "",
    ),
    (
        re.compile(r"^\w+: (?:line \d+: )?[^:\n]+: No such file or directory$", re.MULTILINE),
        "scripts can't see the files of this machine; read them with a tool",
        "fs.read_file",
    ),
)
"""Message of a command, and what it means for a script, with an example of a tool."""


@dataclass(frozen=True)
class Limits:
    """Limits of one script."""

    seconds: float = 60.0
    """Time, not counting pending approvals of its calls."""
    commands: int = 100_000
    """Commands; at most 100,000, the engine's limit."""
    iterations: int = 100_000
    """Iterations of all loops together."""
    calls: int = 10_000
    """Calls of tools."""
    output: int = 1_000_000
    """Bytes of stdout, and of stderr, that are kept; at most 1,048,576, the engine's limit."""
    memory: int = 512 * 2**20
    """Bytes of data of its process; hardly any script runs with less than 64 MiB."""

    def __post_init__(self) -> None:
        if not (0 < self.commands <= 100_000 and 0 < self.output <= 2**20):
            raise ValueError("The limits are too high: at most 100,000 commands and 1,048,576 bytes of output.")


@dataclass(frozen=True)
class MadeCall:
    """A call that a script made, with its result."""

    call: ToolCall
    result: ToolResult


@dataclass(frozen=True)
class ScriptResult:
    """Result of a script."""

    stdout: str
    stderr: str
    exit_code: int
    """The script's own; 124 after a timeout, 2 for a syntax error or unsupported syntax.

    125 if another limit was hit or output is lost.
    """
    calls: tuple[MadeCall, ...]
    """In the order in which they started."""


class Execution:
    """One run of a script, created inside a running event loop.

    Args:
        commands: The commands of tools, by name.
        overview: Output of `help`.
        env: The script's environment variables.
        limits: Limits of the script.
        origin: Caller of its calls.
        on_event: Callback for its output and the events of its calls.
        keeps_calls: Whether the result contains the calls with their results.
    """

    def __init__(
        self,
        commands: Mapping[str, ScriptCommand],
        overview: str,
        *,
        env: Mapping[str, str],
        limits: Limits,
        origin: CallOrigin,
        on_event: Callable[[CallEvent], None],
        keeps_calls: bool,
    ) -> None:
        self._commands = commands
        self._overview = overview
        self._env = dict(env)
        self._limits = limits
        self._origin = origin
        self._on_event = on_event
        self._keeps_calls = keeps_calls
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[Mapping[str, Any]] = self._loop.create_future()
        self._printed: dict[str, list[str]] = {"out": [], "err": []}
        self._calls: dict[str, tuple[ToolCall, ToolResult | None]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._made = 0
        self._unanswered = PendingApprovals()
        self._clock: CallClock | None = None
        self._sandbox: Sandbox | None = None

    async def run(self, script: str, sandboxes: Sandboxes) -> ScriptResult:
        """Run a script; cancelling this ends the script and its calls.

        Args:
            script: The script.
            sandboxes: The pool of processes.

        Raises:
            OSError: No process can be started.
        """
        taking = asyncio.ensure_future(asyncio.to_thread(sandboxes.take))
        try:
            self._sandbox = await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(lambda taken: _return_unused(taken, sandboxes, self._loop))
            raise
        is_clean = False
        try:
            self._clock = CallClock(self._limits.seconds, self._late)
            self._sandbox.run(
                {
                    "run": script,
                    "names": ["help", *self._commands],
                    "env": self._env,
                    "commands": self._limits.commands,
                    "iterations": self._limits.iterations,
                    "output": self._limits.output,
                },
                self,
            )
            end = await self._end
            is_clean = "broke" not in end
        finally:
            if self._clock is not None:
                self._clock.pause()
            self._sandbox.leave()
            await self._settle(sandboxes, is_clean=is_clean)
        return self._result(script, end)

    def heard(self, message: Mapping[str, Any]) -> None:
        """Handle a message of the process."""
        if "call" in message:
            number = message["call"]
            answering = self._answer(number, message["name"], message["argv"], message["stdin"])
            task = self._tasks[number] = self._loop.create_task(answering)
            task.add_done_callback(lambda _: self._tasks.pop(number, None))
        elif "drop" in message:
            if (dropped := self._tasks.get(message["drop"])) is not None:
                dropped.cancel()
        elif "stop" in message:
            self._finish({"end": INCOMPLETE, "broke": message["stop"]})
        elif "end" in message:
            self._finish(message)
        else:
            for stream, text in message.items():
                self._print(stream, text)

    def broke(self, last_words: str, code: int | None) -> None:
        """Handle an unexpected end of the process."""
        if code == -signal.SIGSEGV:  # its stack overflowed
            reason = "it is nested too deeply"
        elif not last_words or _NO_MEMORY.search(last_words):
            reason = f"its process needed more than {self._limits.memory / 2**20:,.0f} MiB of memory, or was killed"
        else:
            reason = f"its process ended: {last_words.splitlines()[-1]}"
        self._finish({"end": INCOMPLETE, "broke": reason})

    def _late(self) -> None:
        self._finish({"end": LATE, "broke": f"it took longer than {self._limits.seconds:g} s"})

    def _finish(self, end: Mapping[str, Any]) -> None:
        if not self._end.done():
            self._end.set_result(end)

    def _print(self, stream: str, text: str) -> None:
        self._printed[stream].append(text)
        self._notify(Log(call_id=self._origin.parent, stream="stdout" if stream == "out" else "stderr", text=text))

    def _notify(self, event: CallEvent) -> None:
        """Report an event; an exception of the callback ends the script and is raised by `run`."""
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - `run` raises it
            if not self._end.done():
                self._end.set_exception(error)

    async def _answer(self, number: int, name: str, words: Sequence[str], stdin: str | None) -> None:
        assert self._sandbox is not None, "it asked"
        printed = Printed(err=f"{name}: it broke\n", code=FAILED)
        try:
            printed = await self._printed_by(name, words, stdin)
        finally:
            out, err = encodable(printed.out), encodable(printed.err)
            self._sandbox.send({"reply": number, "out": out, "err": err, "code": printed.code})

    async def _printed_by(self, name: str, words: Sequence[str], stdin: str | None) -> Printed:
        if name == "help":
            return self._help(words)
        self._made += 1
        if self._made > self._limits.calls:
            return Printed(err=f"{name}: a script makes at most {self._limits.calls:,} calls\n", code=FAILED)
        return await self._commands[name].run(words, stdin, self._origin, self._record)

    def _help(self, words: Sequence[str]) -> Printed:
        if not words:
            return Printed(self._overview)
        command = self._commands.get(words[0])
        if command is None:
            return Printed(err=f"help: unknown tool {words[0]}; run help to list the tools\n", code=NOT_FOUND)
        return Printed(command.help())

    def _record(self, event: CallEvent, within: str) -> None:
        match event:
            case Started(call=call) if self._keeps_calls and call.parent == self._origin.parent:
                self._calls[call.id] = (call, None)
            case Finished(call=call, result=result) if self._keeps_calls and call.parent == self._origin.parent:
                self._calls[call.id] = (call, result)
            case _:
                pass
        assert self._clock is not None, "it runs"
        self._unanswered.update(event, within)
        if self._unanswered:
            self._clock.pause()
        elif not self._end.done():
            self._clock.resume()
        self._notify(event)

    async def _settle(self, sandboxes: Sandboxes, *, is_clean: bool) -> None:
        """End calls that still run, and the process unless its script ended by itself."""
        assert self._sandbox is not None, "the script has started"
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        leave = sandboxes.give_back if is_clean and not tasks else Sandbox.end
        ended = self._loop.run_in_executor(None, leave, self._sandbox)
        await asyncio.shield(asyncio.gather(ended, *tasks, return_exceptions=True))

    def _result(self, script: str, end: Mapping[str, Any]) -> ScriptResult:
        code: int = end["end"]
        if (error := end.get("error")) is not None:
            code = MISUSED if _SYNTAX.search(error) else INCOMPLETE
        missing = [*self._missing(end), *_brace_notes(script)]
        if missing and code not in (LATE, MISUSED):
            code = INCOMPLETE
        for note in [*missing, *self._reasons(end), *self._sandbox_notes(code)]:
            said = self._printed["err"]
            newline = "" if not said or said[-1].endswith("\n") else "\n"
            self._print("err", f"{newline}pegboard: {note}\n")
        made = (MadeCall(call, result) for call, result in self._calls.values() if result is not None)
        return ScriptResult("".join(self._printed["out"]), "".join(self._printed["err"]), code, tuple(made))

    def _missing(self, end: Mapping[str, Any]) -> Iterator[str]:
        """Yield descriptions of output that is missing, so that the result is wrong."""
        for stream in end.get("cut", ()):
            name = "stdout" if stream == "out" else "stderr"
            yield f"the result is incomplete: {name} was truncated after {self._limits.output:,} bytes"
        for reason in end.get("short", ()):
            yield f"the result is incomplete: {reason}"

    def _reasons(self, end: Mapping[str, Any]) -> Iterator[str]:
        """Yield why the script ended early."""
        if (broke := end.get("broke")) is not None:
            yield f"the script was stopped: {broke}"
        elif (error := end.get("error")) is not None:
            reason = next((words for pattern, words in _OUR_WORDS if pattern.search(error)), "")
            if _SYNTAX.search(error) and not reason:
                yield error
            else:
                yield f"the script was stopped: {reason.format(**vars(self._limits)) or error}"

    def _sandbox_notes(self, code: int) -> Iterator[str]:
        """Yield what messages of commands mean that expected the programs, files or network of this machine."""
        if code == 0:
            return
        said = "".join(self._printed["err"])[-_MOST_SEARCHED:]
        for pattern, words, tool in _SANDBOX_WORDS:
            if pattern.search(said):
                yield f"{words}, such as {tool}" if tool in self._commands else words


def _brace_notes(script: str) -> Iterator[str]:
    """Yield notes on brace expansions that the engine doesn't perform and doesn't report."""
    for word in script.split():
        if len(word) > _LONGEST_WORD or "{" not in word:
            continue
        words = 1
        for inner in _BRACES.findall(word):
            size = _range_size(inner) or inner.count(",") + 1
            if size > _MOST_IN_RANGE:
                yield (
                    f"the result is incomplete: {{{inner}}} is not expanded because a range has at most"
                    f" {_MOST_IN_RANGE:,} items; use seq"
                )
                return
            words *= size
        if words > _MOST_WORDS:
            yield f"the result is incomplete: brace expansion produces at most {_MOST_WORDS:,} words"
            return


def _range_size(inner: str) -> int | None:
    """Return how many words a range such as `1..9` produces; None if it isn't a range."""
    bounds = _RANGE.fullmatch(inner)
    if bounds is None:
        return None
    first, last = (int(bound) if bound.lstrip("-").isdigit() else ord(bound) for bound in (bounds[1], bounds[2]))
    return abs(last - first) // max(abs(int(bounds[3] or 1)), 1) + 1


def _return_unused(taking: asyncio.Future[Sandbox], sandboxes: Sandboxes, loop: asyncio.AbstractEventLoop) -> None:
    """Return a process to the pool if the script that it was taken for has been cancelled."""
    with suppress(OSError):
        loop.run_in_executor(None, sandboxes.give_back, taking.result())
