"""One script while it runs."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final  # Any: a message, before it is read

from pegboard.executor.deadline import CallClock, PendingApprovals
from pegboard.models import CallEvent, Finished, Log, Started, ToolCall, ToolResult
from pegboard.scripts.commands import FAILED, INCOMPLETE, LATE, MISUSED, NOT_FOUND, Command, Origin, Printed, encodable
from pegboard.scripts.sandbox import Sandbox, Sandboxes

_SYNTAX: Final = re.compile(r"parse error|syntax error")
_RANGE: Final = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?", re.ASCII)
_BRACES: Final = re.compile(r"\{([^{}'\"$]*)\}")
_LONGEST_WORD: Final = 1_000
_MOST_IN_RANGE: Final = 10_000
_MOST_WORDS: Final = 50_000
_NO_MEMORY: Final = re.compile(r"memory allocation|MemoryError")
_OUR_WORDS: Final = (
    (re.compile(r"command count exceeded|session command limit"), "it ran more than {commands:,} commands"),
    (re.compile(r"loop iteration"), "its loops went round more than {iterations:,} times"),
    (re.compile(r"function depth"), "its functions called each other more than 16 deep"),
    (re.compile(r"nesting|substitution depth|source depth"), "it is nested too deeply"),
    (re.compile(r"variable byte limit"), "its variables took more than 10 MB"),
    (re.compile(r"intermediate bytes"), "more than 32 MB were in its pipes and substitutions at a time"),
    (
        re.compile(r"aggregate input bytes"),
        "its commands were given more than 100 MB to read; within `while read`, give those that need none </dev/null",
    ),
)


@dataclass(frozen=True)
class Limits:
    """How far a script may go."""

    seconds: float = 60.0
    """Those in which the user is asked about one of its calls don't count."""
    commands: int = 100_000
    """At most 100,000, as its engine has it."""
    iterations: int = 100_000
    """Of its loops, together."""
    calls: int = 10_000
    """Of tools."""
    output: int = 1_000_000
    """Bytes of stdout, and of stderr, that are kept; at most 1,048,576, as its engine has it."""
    memory: int = 512 * 2**20
    """Bytes of data that its process may have; with less than 64 MiB hardly anything runs."""

    def __post_init__(self) -> None:
        if not (0 < self.commands <= 100_000 and 0 < self.output <= 2**20):
            raise ValueError("A script has at most 100,000 commands and 1,048,576 bytes of output.")


@dataclass(frozen=True)
class MadeCall:
    """A call that a script made, with its result."""

    call: ToolCall
    result: ToolResult


@dataclass(frozen=True)
class ScriptResult:
    """What came of a script."""

    stdout: str
    stderr: str
    exit_code: int
    """Its own; 124 after a timeout, 2 for a syntax error, 125 if another limit stopped it or something is missing."""
    calls: tuple[MadeCall, ...]
    """In the order in which they began."""


class Execution:
    """Runs one script; made inside a running event loop.

    Args:
        commands: What may be called, by name.
        overview: What `help` says.
        env: The script's environment variables.
        limits: How far it may go.
        origin: Whose its calls are.
        tell: Learns what is printed, and what happens to the calls.
        keeps_calls: Whether the result has the calls, with all that came of them.
    """

    def __init__(
        self,
        commands: Mapping[str, Command],
        overview: str,
        *,
        env: Mapping[str, str],
        limits: Limits,
        origin: Origin,
        tell: Callable[[CallEvent], None],
        keeps_calls: bool,
    ) -> None:
        self._commands = commands
        self._overview = overview
        self._env = dict(env)
        self._limits = limits
        self._origin = origin
        self._tell = tell
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
        """Runs a script to its end; whoever cancels this ends it and its calls.

        Args:
            script: The script.
            sandboxes: Where a process for it comes from.

        Raises:
            OSError: No process can be started.
        """
        taking = asyncio.ensure_future(asyncio.to_thread(sandboxes.take))
        try:
            self._sandbox = await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(lambda taken: _let_go(taken, sandboxes, self._loop))
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
        """Takes a message of the process."""
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
        """Learns that the process has ended by itself."""
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
        """Report an event; a callback that raises ends the script with its error."""
        try:
            self._tell(event)
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
        return await self._commands[name].run(words, stdin, self._origin, self._happened)

    def _help(self, words: Sequence[str]) -> Printed:
        if not words:
            return Printed(self._overview)
        command = self._commands.get(words[0])
        if command is None:
            return Printed(err=f"help: there is no tool {words[0]}; help alone lists them\n", code=NOT_FOUND)
        return Printed(command.help())

    def _happened(self, event: CallEvent, within: str) -> None:
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
        """Ends the calls that still run, and the process where its script didn't end by itself."""
        assert self._sandbox is not None, "it was taken"
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
        for note in [*missing, *self._reasons(end)]:
            said = self._printed["err"]
            newline = "" if not said or said[-1].endswith("\n") else "\n"
            self._print("err", f"{newline}pegboard: {note}\n")
        made = (MadeCall(call, result) for call, result in self._calls.values() if result is not None)
        return ScriptResult("".join(self._printed["out"]), "".join(self._printed["err"]), code, tuple(made))

    def _missing(self, end: Mapping[str, Any]) -> Iterator[str]:
        """Return what the script's result lacks: without it, the result is wrong."""
        for stream in end.get("cut", ()):
            name = "stdout" if stream == "out" else "stderr"
            yield f"the result is incomplete: {name} was cut after {self._limits.output:,} bytes"
        for reason in end.get("short", ()):
            yield f"the result is incomplete: {reason}"

    def _reasons(self, end: Mapping[str, Any]) -> Iterator[str]:
        """Return why the script ended before its end."""
        if (broke := end.get("broke")) is not None:
            yield f"the script was stopped: {broke}"
        elif (error := end.get("error")) is not None:
            reason = next((words for pattern, words in _OUR_WORDS if pattern.search(error)), "")
            if _SYNTAX.search(error) and not reason:
                yield error
            else:
                yield f"the script was stopped: {reason.format(**vars(self._limits)) or error}"


def _brace_notes(script: str) -> Iterator[str]:
    """Says what the engine doesn't make of braces, and doesn't say itself."""
    for word in script.split():
        if len(word) > _LONGEST_WORD or "{" not in word:
            continue
        words = 1
        for inner in _BRACES.findall(word):
            size = _range_size(inner) or inner.count(",") + 1
            if size > _MOST_IN_RANGE:
                yield (
                    f"the result is incomplete: {{{inner}}} stays as it is, as a range has at most"
                    f" {_MOST_IN_RANGE:,} items here; use seq"
                )
                return
            words *= size
        if words > _MOST_WORDS:
            yield f"the result is incomplete: braces make at most {_MOST_WORDS:,} words here, the rest is missing"
            return


def _range_size(inner: str) -> int | None:
    """Gives how many words a range such as `1..9` is; None if it is no range."""
    bounds = _RANGE.fullmatch(inner)
    if bounds is None:
        return None
    first, last = (int(bound) if bound.lstrip("-").isdigit() else ord(bound) for bound in (bounds[1], bounds[2]))
    return abs(last - first) // max(abs(int(bounds[3] or 1)), 1) + 1


def _let_go(taking: asyncio.Future[Sandbox], sandboxes: Sandboxes, loop: asyncio.AbstractEventLoop) -> None:
    """Gives a process back that was taken for a script which nobody waits for any more."""
    with suppress(OSError):
        loop.run_in_executor(None, sandboxes.give_back, taking.result())
