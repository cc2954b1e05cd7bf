"""Tools, a model and saved texts that try to control the terminal or the interface."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import JsonValue

from pegboard.history import History
from pegboard.models import Agent, ResultMeta, ToolCall, ToolResult
from pegboard.models.conversation import (
    CallDelta,
    ModelEvent,
    ModelMessage,
    Prompt,
    ProposedCall,
    TextDelta,
    TurnEnded,
    Usage,
)

TEXTS = (
    '[-o FILE] [--name="x]',
    "[@click=app.quit]x[/]",
    "[/]",
    "[bold",
    "[link='https://evil.example/']y[/link]",
    "\x1b]0;evil\x07",
    "\x1b[31mred\x1b[0m",
    "\x1b[?1049l\x1bc",
    "\x9b31m",
    "\x9d0;evil\x9c",
    "safe\u202egnp.exe",
    "zero\u200bwidth\ufeff\u2060",
    "\u2066isolate",
    "half \ud800 pair",
    "\x00\x08\x7f\r over",
)
"""Texts that any untrusted source may contain."""

ALL = " ".join(TEXTS)
"""All texts in one."""

UNSAFE = frozenset(
    chr(point)
    for first, last in (
        (0x00, 0x1F),
        (0x7F, 0x9F),
        (0x200B, 0x200B),
        (0x200E, 0x200F),
        (0x2028, 0x202E),
        (0x2060, 0x206F),
        (0xD800, 0xDFFF),
        (0xFEFF, 0xFEFF),
    )
    for point in range(first, last + 1)
)
"""Characters that must never reach the screen; line breaks are removed by the code that splits lines."""


def unsafe_in(text: str) -> set[str]:
    """Return the characters of a text that a terminal would obey, hide or reverse, without line breaks."""
    return set(text.replace("\n", "")) & UNSAFE


PACK = '''
"""[bold]Evil[/] tools: EVIL"""
import os, sys, time
from typing import Annotated, Literal
from pydantic import Field
from pegboard.sdk import ToolFailed, hints, log, progress, requires_cli

EVIL = EVIL_LITERAL

@hints(read_only=True, timeout=20)
def say(*, text: Annotated[str, Field(title=EVIL, description=EVIL)] = "x") -> str:
    """Prints, logs and returns everything. DOC

    Args:
        text: DOC
    """
    sys.stdout.buffer.write(EVIL.encode("utf-8", "replace") + b"\\xff\\x9b31m\\n")
    sys.stdout.buffer.flush()
    log(EVIL)
    progress(1, 2, EVIL)
    return EVIL + text

@hints(read_only=True)
def choose(*, how: Literal["[/]", "[bold", "\\x1b]0;x\\x07", "\\x9b31m", "a\\u202eb", "z\\u200bw"] = "[/]",
           many: list[Literal["[@click=app.quit]x[/]", "[/]", "\\x1b[31m"]] = [], mapping: dict[str, int] = {}) -> dict:
    """[@click=app.quit]Choose[/] [-o FILE] [--name="x] DOC"""
    return {EVIL: [EVIL, {EVIL: EVIL}], "[/]": how, "many": many, "table": [{"[/]": 1, EVIL: 2}, {"[/]": 3}]}

@hints(read_only=True)
def rows() -> list[dict]:
    """[/]"""
    return [{"[bold": EVIL, "\\x1b[31m": number, "b\\u202e": "[/]"} for number in range(200)]

@hints(read_only=True)
def marked() -> str:
    """Markdown. [/]"""
    return "# [bold\\n\\n" + EVIL + "\\n\\n[link](x:y) `[/]`\\n\\n| [/] | b |\\n|---|---|\\n| [bold | \\x9b31m |\\n"

@hints(read_only=True)
def fail(*, code: str = "[/]") -> str:
    """Fails. [bold"""
    raise ToolFailed(EVIL, code="[/] [@click=app.quit]x[/]")

@hints(read_only=True)
def blow() -> str:
    """Raises. [bold"""
    raise ValueError(EVIL)

@hints(read_only=True)
def crash() -> str:
    """Kills itself. [/]"""
    os.kill(os.getpid(), 9)

@hints(read_only=True, timeout=3)
def hang() -> str:
    """Hangs. [/]"""
    time.sleep(60)
    return ""

@hints(destructive=True)
def destroy(*, path: str, force: bool = False) -> str:
    """Destroys nothing. DOC"""
    return EVIL

@requires_cli("[/]no-such [bold", install="[@click=app.quit]x[/] \\x1b]0;x\\x07")
def lacking(*, nested: dict[str, list[dict[str, int]]]) -> str:
    """Lacks something. DOC"""
    return ""
'''


def write(folder: Path) -> Path:
    """Write packs whose every text is evil, one of them broken, and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    printable = ALL.replace("\x00", "").replace("\ud800", "")
    # a docstring holds anything but what would end it; Python doesn't read a NUL or half of a pair in a source
    doc = "".join(sign if sign.isprintable() and sign not in '\\"' else f"\\u{ord(sign):04x}" for sign in printable)
    source = PACK.replace("EVIL_LITERAL", ascii(ALL)).replace("DOC", doc).replace("tools: EVIL", f"tools: {doc}")
    (folder / "evil.py").write_text(source, encoding="utf-8")
    (folder / "broken[bold].py").write_text("def f(:\n", encoding="utf-8")
    (folder / "bad.py").write_text(f'def no_keywords(a, b="[/] {doc}"):\n    """[/]"""\n', encoding="utf-8")
    return folder


def record(history: History) -> int:
    """Record calls whose tools, arguments, results, errors, sessions and agents are evil; return how many.

    They are of two sessions. A script made some of them, and one is still running.
    """
    started = datetime.now(UTC) - timedelta(minutes=5)
    parent: str | None = None
    for number, text in enumerate((*TEXTS, ALL)):
        call = ToolCall(
            name="script.run" if number == 5 else ("evil.say", "evil.fail", f"pack.{text}")[number % 3],
            args={"commands": text} if number == 5 else {"text": text, text: [text, {text: ALL}]},
            source=("cli", "ask", "script", "serve")[number % 4],
            session=None if number % 3 == 0 else f"{TEXTS[number % 2]} session",
            parent=parent if number in {6, 7} else None,
            agent=Agent(name=text) if number % 4 == 3 else None,
        )
        data: tuple[JsonValue, ...] = (text, {text: text, "all": [ALL]}, [{text: 1}, {text: 2}], f"# {ALL}\n\n{ALL}")
        result = ToolResult(ok=True, data=data[number % 4], meta=ResultMeta(duration_ms=number, worker=text))
        if number % 5 == 4:
            result = ToolResult.failed("execution_error", text, text)
        history.record(call, result, started + timedelta(seconds=number))
        parent = call.id if number == 5 else parent
    history.start(ToolCall(name="evil.hang", args={"text": ALL}, source="cli"), started + timedelta(minutes=1))
    history.flush()
    return len(TEXTS) + 1


class EvilModel:
    """A `pegboard.ports.Model` that streams evil text, in pieces that split sequences, and proposes evil calls.

    Args:
        seed: Equal seeds produce equal responses.
    """

    name = "evil:[/] [bold \x1b]0;x\x07"

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._turn = 0

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Yield a turn of text, and calls in two turns of three."""
        self._turn += 1
        text = "\n".join(self._random.sample(TEXTS, 3))
        for letter in text:
            yield TextDelta(text=letter)
            await asyncio.sleep(0)
        calls = []
        for index in range(self._random.choice((0, 1, 2)) if self._turn % 4 else 0):
            name, arguments = self._random.choice(
                (
                    ("evil.say", {"text": "[/]"}),
                    ("evil.destroy", {"path": "[@click=app.quit]x[/] \x1b]0;x\x07"}),
                    ("evil.fail", {}),
                    ("evil.choose", {"[bold": "[/]"}),
                    ("[/]\x1b[31m", {"x": "\u202e"}),
                )
            )
            written = json.dumps(arguments)
            yield CallDelta(index=index, name=name)
            yield CallDelta(index=index, arguments=written)
            calls.append(ProposedCall(provider_id=f"c{self._turn}_{index}[/]", name=name, arguments=written))
        message = ModelMessage(text=text, calls=tuple(calls))
        yield TurnEnded(message=message, usage=Usage(output_tokens=1), reason="calls" if calls else "stop")
