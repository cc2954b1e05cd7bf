"""Approval of calls on a terminal: shown in full on stderr, answered with y, N or e."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import tempfile
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pegboard.cli.output import narrate
from pegboard.errors import FormFaults
from pegboard.models import JsonObject, ToolCall, ToolSpec
from pegboard.models.approval import Approval
from pegboard.results.arguments import arguments_text
from pegboard.results.clean import clean, clean_line
from pegboard.storage import no_temporary_file

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_SOURCES: Final = {"ask": "the model", "script": "a script of the model", "mcp": "an MCP client", "sdk": "another tool"}
_LONGEST_LINE: Final = 1_000_000
_PASTE_SECONDS: Final = 0.05
"""Time in which the other lines of a pasted text arrive."""
_REJECTED: Final = Approval(answer="reject")
_NOT_ANSWERED: Final = Approval(answer="reject", reason="The terminal was closed before an answer.", by_person=False)


def can_ask() -> bool:
    """Return whether a person can see a question and answer it."""
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()


@dataclass(frozen=True)
class MaskedArguments:
    """Arguments of a call as they may be printed, and the secrets in them."""

    shown: JsonObject
    """The arguments without known secrets."""
    full: JsonObject
    """The arguments with all secrets."""

    @classmethod
    def of(cls, runtime: Runtime, args: JsonObject) -> MaskedArguments:
        """Return the arguments of a call; read the disk."""
        return cls(cast("JsonObject", runtime.redacted_args(args)), args)

    def restored(self, edited: JsonObject) -> tuple[JsonObject, str]:
        """Return edited arguments with the secrets that were printed masked, and why they can't be used, if so."""
        from pegboard.data.mask import moved_secret, restored

        args = cast("JsonObject", restored(edited, self.shown, self.full))
        return args, moved_secret(edited, self.shown)

    async def edit(self, args: JsonObject) -> JsonObject | None:
        """Let the user edit arguments as they are shown; return None if they stay unchanged."""
        changed = await edit_arguments(args)
        problem = "" if changed is None else self.restored(changed)[1]
        if problem:
            narrate(f"The arguments are unchanged: {problem}")
            return None
        return changed


class TerminalTurns:
    """Turns of everything that asks on the terminal: an answer must not reach another question than the one above it.

    Output of tools that run meanwhile appears after the answer: it could look like another question.

    Args:
        before: Called before a question is shown, to end an unfinished line.
    """

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self._before = before
        self._one_at_a_time = asyncio.Lock()
        self._held: list[Callable[[], object]] | None = None
        """Output that waits for an answer; None if no question is open."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until no other question is open."""
        async with self._one_at_a_time:
            self._before()
            held = self._held = []
            try:
                yield
            finally:
                self._held = None
                for write in held:
                    write()

    def write(self, write: Callable[[], object]) -> None:
        """Write output: now, or after the answer to an open question."""
        if self._held is None:
            write()
        else:
            self._held.append(write)


class TerminalApprover:
    """Approver on the terminal, for one call after the other. A `pegboard.ports.Approver`.

    Args:
        runtime: Runtime with the secrets that are masked.
        turns: The turns of the terminal's questions.
    """

    def __init__(self, runtime: Runtime, turns: TerminalTurns) -> None:
        self._runtime = runtime
        self._turns = turns

    async def decide(self, spec: ToolSpec, call: ToolCall) -> Approval:
        """Show a call and wait for the answer; any answer but `y` or `e` rejects it. `y` approves no invalid edit."""
        async with self._turns.turn():
            arguments = await asyncio.to_thread(MaskedArguments.of, self._runtime, call.args)
            args, edited, problem = arguments.shown, False, ""
            while True:
                _show(spec, call, args, edited=edited, problem=problem)
                narrate(f"{'' if problem else 'y: run it · '}e: edit the arguments · anything else: reject it")
                try:
                    # With the name, because long arguments can scroll it away and imitate the call of another tool.
                    typed = await ask_line(f"Run {clean_line(spec.name)}? [y/N/e] ")
                except asyncio.CancelledError:
                    narrate("\nRejected.")
                    raise
                match typed.strip().casefold():
                    case "y" | "yes" if problem:
                        pass
                    case "y" | "yes":
                        return Approval(answer="once", args=arguments.restored(args)[0] if edited else None)
                    case "e" | "edit":
                        changed = await arguments.edit(args)
                        if changed is not None:
                            args, edited = changed, True
                            problem = await asyncio.to_thread(self._problem, spec, arguments.restored(changed)[0])
                    case _:
                        if not typed and not _has_terminal():
                            return _NOT_ANSWERED
                        narrate("Rejected.")
                        return _REJECTED

    def _problem(self, spec: ToolSpec, args: JsonObject) -> str:
        """Return why edited arguments are invalid; empty if they are valid."""
        try:
            self._runtime.tools.prepare(spec, args)
        except FormFaults as faults:
            found = clean_line(self._runtime.redacted(str(faults)))  # it quotes values, which may be secrets
            return f"They are invalid: {found}. Edit them again, or reject the call."
        return ""


def _show(spec: ToolSpec, call: ToolCall, args: JsonObject, *, edited: bool, problem: str) -> None:
    manner = "may delete or overwrite data" if spec.hints.destructive else "may change data"
    manner = "read-only" if spec.hints.read_only else manner
    source = _SOURCES.get(call.source, call.source)
    lines = [f"Approval required: {clean_line(spec.name)} ({manner}), called by {source}"]
    if call.from_text:
        lines.append("The model wrote this call into its text, where it may only quote it.")
    lines.append("Edited arguments:" if edited else "Arguments:")
    narrate("\n".join([*lines, clean(arguments_text(args)), *filter(None, [problem])]))


async def ask_line(question: str) -> str:
    """Ask for a line and return it, empty at the end of input. Discard input typed before the question was shown.

    Text counts only with the line break after it: ctrl+d after a `y` doesn't approve. Several lines that arrive
    together, such as a pasted text, don't count; the question is asked again. So it is after ctrl+z and `fg`.
    """
    descriptor = sys.stdin.fileno()
    while True:
        typed = await _answer(descriptor, question)
        if not typed.endswith(b"\n"):
            narrate("")
            return typed.decode("utf-8", "replace")
        await asyncio.sleep(_PASTE_SECONDS)
        if not _has_more(descriptor):
            return typed.decode("utf-8", "replace")
        narrate("Several lines don't count as an answer. Type one line.")


def _has_more(descriptor: int) -> bool:
    """Return whether more input has arrived; a terminal holds back a line without its end."""
    with suppress(termios.error):
        before = termios.tcgetattr(descriptor)
        local, characters = 3, 6
        raw = [*before]
        raw[local] &= ~termios.ICANON
        raw[characters] = [*before[characters]]
        raw[characters][termios.VMIN], raw[characters][termios.VTIME] = 1, 0
        termios.tcsetattr(descriptor, termios.TCSANOW, raw)
        try:
            return bool(select.select([descriptor], [], [], 0)[0])
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
    return bool(select.select([descriptor], [], [], 0)[0])


async def _answer(descriptor: int, question: str) -> bytes:
    """Show a question and read until the line break of a line; return nothing at the end of input."""
    line: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    begun = bytearray()

    def ask() -> None:
        with suppress(termios.error):
            termios.tcflush(descriptor, termios.TCIFLUSH)
        narrate(question, end="")

    def ask_again() -> None:
        begun.clear()
        with suppress(OSError):
            if os.tcgetpgrp(descriptor) == os.getpgrp():  # Flushing from the background would stop the process.
                ask()

    def read() -> None:
        try:
            piece = os.read(descriptor, _LONGEST_LINE)
        except OSError:  # The terminal was closed.
            piece = b""
        begun.extend(piece)
        if not line.done() and (not piece or piece.endswith(b"\n")):
            line.set_result(bytes(begun) if piece else b"")

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCONT, ask_again)
    try:
        ask()
        loop.add_reader(descriptor, read)
        return await line
    finally:
        loop.remove_reader(descriptor)
        loop.remove_signal_handler(signal.SIGCONT)


def _has_terminal() -> bool:
    """Return whether the terminal of stdin is open; reading it ends also after ctrl+d."""
    try:
        termios.tcgetattr(sys.stdin.fileno())
    except termios.error:
        return False
    return True


async def edit_arguments(args: JsonObject) -> JsonObject | None:
    """Let the user edit arguments in the configured editor, or as one line; return None if they stay unchanged."""
    from pegboard.data.json_text import JsonTextError, parse, write

    has_editor = bool(os.environ.get("VISUAL") or os.environ.get("EDITOR"))
    if not has_editor:
        narrate(f"In one line, to copy: {clean_line(write(args))}")
    text = await _edit_in_editor(args) if has_editor else await ask_line("Arguments as JSON, in one line: ")
    if text is None or not text.strip():
        narrate("The arguments are unchanged.")
        return None
    try:
        value = parse(text)
    except JsonTextError as error:
        narrate(f"The arguments are unchanged because the text {error}.")
        return None
    if not isinstance(value, dict):
        narrate('The arguments are unchanged because they must be a JSON object such as {"path": "."}.')
        return None
    return value


async def _edit_in_editor(args: JsonObject) -> str | None:
    from pegboard.config.editor import editor_command
    from pegboard.data.json_text import write

    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pegboard-"))
            file = Path(folder) / "arguments.json"
            await asyncio.to_thread(file.write_text, write(args, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            narrate(no_temporary_file("The editor was not opened", error))
            return None
        command = editor_command(str(file), None, os.environ)
        try:
            process = await asyncio.create_subprocess_exec(*command)
        except OSError as error:
            narrate(f"Can't start {command[0]}: {error.strerror}. Set $VISUAL or $EDITOR to your editor.")
            return None
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        if code:
            narrate(f"{command[0]} exited with code {code}.")
            return None
        try:
            return await asyncio.to_thread(file.read_text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            narrate(f"The edited arguments can't be read: {error}.")
            return None
