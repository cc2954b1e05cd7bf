"""Cost of a conversation on the screen: delays of chunks and of keys, CPU, long sessions."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from provider import Answer, FakeProvider, delta

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from pegboard.models.conversation import ModelEvent, Prompt
    from pegboard.runtime import Runtime
    from pegboard.tui.app import PegboardApp
    from pegboard.tui.chat.screen import ChatScreen

Row = tuple[str, float, float, str]
_CHUNKS = 2_000
_RATES = (100, 1_000)
_CHUNKS_AT = {100: 500, 1_000: 4_000}
_KEY_SECONDS = 0.1
_LONGEST_SECONDS = 120.0
_TURNS = 500
_CALLS, _CALL_BYTES = 200, 5_000
_WORDS_A_LINE = 12


def measure() -> list[Row]:
    """Return the figures of a conversation."""
    with tempfile.TemporaryDirectory() as home, _provider() as url:
        for name in ("DATA", "STATE", "CACHE"):
            os.environ[f"PEGBOARD_{name}_DIR"] = f"{home}/{name.lower()}"
        os.environ["PEGBOARD_CONFIG"] = f"{home}/config.toml"
        return [*asyncio.run(_streamed(url)), *asyncio.run(_fed()), *asyncio.run(_long())]


class _Paced:
    """Chunks at a fixed rate, each with the time at which it was sent; both processes read the same clock."""

    def __init__(self, rate: int) -> None:
        self._rate = rate

    def __iter__(self) -> Iterator[dict[str, Any]]:
        begun = time.monotonic()
        for number in range(_CHUNKS_AT[self._rate]):
            if (early := begun + number / self._rate - time.monotonic()) > 0:
                time.sleep(early)
            end = "\n\n" if number % _WORDS_A_LINE == _WORDS_A_LINE - 1 else " "
            yield delta(content=f"{time.monotonic():.6f}{end}")
        yield delta("stop")


@contextmanager
def _provider() -> Iterator[str]:
    server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout
    assert server.stdin
    try:
        yield server.stdout.readline().strip()
    finally:
        server.stdin.close()
        server.wait(30)


async def _streamed(url: str) -> list[Row]:
    from pegboard.runtime import Runtime

    os.environ["PEGBOARD_MODEL__NAME"] = "openai:fake"
    os.environ["PEGBOARD_MODEL__BASE_URL"] = url
    runtime = Runtime.from_environment()
    assert runtime.settings.model.name == "openai:fake"  # settings are read when they are needed first
    del os.environ["PEGBOARD_MODEL__NAME"], os.environ["PEGBOARD_MODEL__BASE_URL"]
    rows: list[Row] = []
    frames = _Frames()
    app = _painting(runtime, frames)
    async with app.run_test(size=(120, 40)) as pilot:
        await _go_to_chat(app, pilot)
        for rate in _RATES:
            delays, keys = await _talk(app, frames, rate)
            comment = f"median {median(delays):.0f}, max {max(delays):.0f}, {len(delays):,} chunks"
            rows.append(
                (f"provider's chunk to its text painted, {rate:,} chunks/s: p95 ms", _p95(delays), 100.0, comment)
            )
            comment = f"median {median(keys):.0f}, max {max(keys):.0f}, {len(keys)} keys"
            rows.append((f"a key meanwhile, painted, {rate:,} chunks/s: p95 ms", _p95(keys), 50.0, comment))
    return rows


def _p95(times: Sequence[float]) -> float:
    return quantiles(times, n=20)[-1]


class _Frames:
    """Time of the last painted frame, and listeners for the next one."""

    painted = 0.0
    hook: Callable[[], object] | None = None


def _painting(runtime: Runtime, frames: _Frames) -> PegboardApp:
    """Return the app; its frames are rendered to bytes as for a terminal."""
    from textual._compositor import CompositorUpdate  # what `App._display` is given

    from pegboard.tui.app import PegboardApp

    class Painting(PegboardApp):
        def _display(self, screen: object, renderable: object) -> None:
            if isinstance(renderable, CompositorUpdate):
                renderable.render_segments(self.console)
                frames.painted = time.monotonic()
                if frames.hook is not None:
                    frames.hook()

    return Painting(runtime)


async def _go_to_chat(app: PegboardApp, pilot: Pilot[None]) -> None:
    from pegboard.tui.tools.screen import ToolsScreen

    while isinstance(app.screen, ToolsScreen) and app.tool_scan.scanning:
        await pilot.pause(0.05)
    await pilot.press("f6")
    await pilot.pause(1.0)


def _runs(screen: ChatScreen) -> bool:
    """Return whether the screen is busy; as a function because mypy narrows the property after the first check."""
    return screen.running


async def _talk(app: PegboardApp, frames: _Frames, rate: int) -> tuple[list[float], list[float]]:
    """Ask once; return the delays of chunks and of keys in milliseconds."""
    from textual.events import Key

    from pegboard.tui.chat.blocks import TextBlock
    from pegboard.tui.chat.prompt import AskLine
    from pegboard.tui.chat.screen import ChatScreen
    from pegboard.tui.chat.transcript import Transcript

    screen = app.screen
    assert isinstance(screen, ChatScreen)
    shown: list[str] = []
    line = screen.query_one(AskLine)
    delays: list[float] = []
    keys: list[float] = []
    typed: list[float] = []
    seen = {"text": 0, "keys": 0}

    def drawn(transcript: Transcript) -> None:
        draw(transcript)
        block = screen.open_session.story.blocks[-1]
        if isinstance(block, TextBlock):
            shown[:] = [block.text]

    def painted() -> None:
        now = time.monotonic()
        text = shown[0] if shown else ""
        end = max(text.rfind(" "), text.rfind("\n")) + 1
        delays.extend((now - float(word)) * 1000 for word in text[seen["text"] : end].split())
        seen["text"] = max(end, seen["text"])
        while typed and len(line.text) > seen["keys"]:
            seen["keys"] += 1
            keys.append((now - typed.pop(0)) * 1000)

    draw = Transcript.draw
    setattr(Transcript, "draw", drawn)  # noqa: B010 - mypy takes no assignment to a method
    frames.hook = painted
    line.post_message(AskLine.Sent(f"rate {rate}"))
    started = time.monotonic()
    while not _runs(screen):  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.01)
    while _runs(screen) and time.monotonic() - started < _LONGEST_SECONDS:
        typed.append(time.monotonic())
        app.post_message(Key("x", "x"))
        await asyncio.sleep(_KEY_SECONDS)
    await asyncio.sleep(0.3)
    frames.hook = None
    setattr(Transcript, "draw", draw)  # noqa: B010 - as above
    line.load_text("")
    return delays, keys


class _Spoken:
    """A model that streams one text in chunks as fast as they are read, or makes calls."""

    name = "spoken"

    def __init__(self, chunks: Sequence[str]) -> None:
        self._chunks = chunks

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Stream the text."""
        from pegboard.models.conversation import ModelMessage, TextDelta, TurnEnded

        del prompt
        for chunk in self._chunks:
            yield TextDelta(text=chunk)
            await asyncio.sleep(0.001)
        yield TurnEnded(message=ModelMessage(text="".join(self._chunks)))


def _prose() -> list[str]:
    words = (
        "The",
        "quick",
        "**brown**",
        "fox",
        "jumps",
        "over",
        "the",
        "`lazy`",
        "dog",
        "and",
        "goes",
        "on",
        "to",
        "the",
        "next",
        "line",
        "of",
        "text",
    )
    chunks = [f"{words[number % len(words)]} " for number in range(_CHUNKS)]
    for number in range(59, _CHUNKS, 60):
        chunks[number] = "end.\n\n" if number % 180 else "end.\n\n- one\n- two\n\n"
    return chunks


async def _fed() -> list[Row]:
    """Compare the CPU of a conversation with that of Textual's own Markdown stream for the same pieces."""
    from pegboard.runtime import Runtime

    chunks = _prose()
    runtime = Runtime.from_environment()
    setattr(runtime.models, "get", lambda *_, **__: _Spoken(chunks))  # noqa: B010 - as above
    frames = _Frames()
    app = _painting(runtime, frames)
    async with app.run_test(size=(120, 40)) as pilot:
        await _go_to_chat(app, pilot)
        from pegboard.tui.chat.blocks import TextBlock
        from pegboard.tui.chat.prompt import AskLine
        from pegboard.tui.chat.screen import ChatScreen

        screen = app.screen
        assert isinstance(screen, ChatScreen)
        begun = time.process_time()
        screen.query_one(AskLine).post_message(AskLine.Sent("go"))
        while not _runs(screen):
            await pilot.pause(0.01)
        while _runs(screen):
            await pilot.pause(0.05)
        ours = (time.process_time() - begun) * 1000 * 1000 / _CHUNKS
        block = screen.open_session.story.blocks[-1]
        assert isinstance(block, TextBlock)
        assert block.text.strip() == "".join(chunks).strip()
    theirs = await _bare(chunks) * 1000 * 1000 / _CHUNKS
    comment = f"ours {ours:.0f} ms, a bare Markdown stream {theirs:.0f} ms"
    return [("CPU for 1,000 chunks: ours, session kept / Textual's Markdown alone", ours / theirs, 1.5, comment)]


async def _bare(chunks: Sequence[str]) -> float:
    from textual._compositor import CompositorUpdate  # what `App._display` is given
    from textual.app import App, ComposeResult
    from textual.containers import VerticalScroll
    from textual.widgets import Markdown

    class Bare(App[None]):
        def compose(self) -> ComposeResult:
            with VerticalScroll():
                yield Markdown()

        def _display(self, screen: object, renderable: object) -> None:
            if isinstance(renderable, CompositorUpdate):
                renderable.render_segments(self.console)

    app = Bare()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(0.5)
        app.query_one(VerticalScroll).anchor()
        begun = time.process_time()
        stream = Markdown.get_stream(app.query_one(Markdown))
        for chunk in chunks:
            await stream.write(chunk)
            await asyncio.sleep(0.001)
        await stream.stop()
        return time.process_time() - begun


async def _long() -> list[Row]:
    """Open a session of many turns, and one of many calls and a megabyte; then press keys in it."""
    from textual.events import Key

    from pegboard.runtime import Runtime
    from pegboard.tui.chat.screen import ChatScreen

    runtime = Runtime.from_environment()
    await asyncio.to_thread(_write_sessions, runtime)
    frames = _Frames()
    app = _painting(runtime, frames)
    rows: list[Row] = []
    async with app.run_test(size=(120, 40)) as pilot:
        await _go_to_chat(app, pilot)
        screen = app.screen
        assert isinstance(screen, ChatScreen)
        for session, title in (("turns", f"{_TURNS} turns"), ("calls", f"{_CALLS} calls and 1 MB")):
            begun = time.monotonic()
            screen.open_session.open(session, limit=10_000)
            while screen.session != session or not frames.painted > begun:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.002)
            await asyncio.sleep(0.1)
            rows.append((f"open a session of {title}, all of it: ms", (frames.painted - begun) * 1000, 2_000.0, ""))
            screen._transcript.focus()
            await asyncio.sleep(0.5)
            times = []
            for key in ["up"] * 20 + ["pageup"] * 10 + ["space"] * 4 + ["z", "z", "home", "end"]:
                pressed = time.monotonic()
                app.post_message(Key(key, None if len(key) > 1 else key))
                while frames.painted < pressed and time.monotonic() - pressed < 2.0:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.001)
                times.append((frames.painted - pressed) * 1000)
                await asyncio.sleep(0.05)
            comment = f"median {median(times):.0f}, max {max(times):.0f}"
            rows.append((f"a key in a session of {title}, painted: p95 ms", _p95(times), 50.0, comment))
    return rows


def _write_sessions(runtime: Runtime) -> None:
    from pegboard.models.conversation import ModelMessage, ProposedCall, ToolMessage, UserMessage

    sessions = runtime.sessions
    sessions.start("turns")
    prose = "".join(_prose()[:120])
    for number in range(_TURNS):
        sessions.append("turns", UserMessage(text=f"Question {number}"))
        sessions.append("turns", ModelMessage(text=prose))
    sessions.start("calls")
    sessions.append("calls", UserMessage(text="Do it"))
    for number in range(_CALLS):
        call = ProposedCall(provider_id=f"p{number}", name="fs_list_dir", arguments='{"path": "src"}')
        sessions.append("calls", ModelMessage(text=prose * (_CALL_BYTES // len(prose)), calls=(call,)))
        sessions.append("calls", ToolMessage(provider_id=f"p{number}", name="fs_list_dir", text="x\n" * 500))


def _serve() -> None:
    """Serve until stdin ends, once at each rate."""
    with FakeProvider(*(Answer(_Paced(rate)) for rate in _RATES)).running() as fake:
        print(fake.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _serve()
