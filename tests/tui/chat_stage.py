"""Driver for tests of the Chat page, with a real runtime, a pack for tests and a scripted model."""

from __future__ import annotations

import asyncio
import os
import textwrap
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headless import compose_at_end
from models import Said, ScriptedModel
from stage import Stage, open_on
from textual.widgets import Static

from pegboard.models.conversation import Message, ModelMessage, ToolMessage, UserMessage
from pegboard.ports import Model
from pegboard.runtime import Runtime
from pegboard.tui.app import PegboardApp
from pegboard.tui.chat.blocks import Block, NoteBlock, TextBlock, UserBlock
from pegboard.tui.chat.call_block import CallBlock
from pegboard.tui.chat.prompt import AskLine
from pegboard.tui.chat.screen import ChatScreen
from pegboard.tui.chat.transcript import Transcript

if TYPE_CHECKING:
    from textual.pilot import Pilot

PACK = '''
"""Tools for tests."""
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pegboard.sdk import call_tool, hints, log, progress

@hints(read_only=True)
def look(*, where: str = "here", often: int = 1) -> str:
    """Look somewhere."""
    return f"seen {where}"

@hints(destructive=True)
def remove(*, path: str, force: bool = False) -> str:
    """Remove something permanently."""
    return f"removed {path}"

def change(*, path: str, times: int = 1) -> str:
    """Change something."""
    return f"changed {path} {times} times"

@hints(read_only=True)
def both(*, first: str, second: str) -> list:
    """Change two paths concurrently."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda path: call_tool("work.change", path=path), (first, second)))

@hints(read_only=True)
def outer(*, path: str) -> str:
    """Remove something with another tool."""
    return call_tool("work.remove", path=path)

@hints(read_only=True)
def wait(*, gate: str, lines: int = 0) -> str:
    """Wait until a file exists."""
    for number in range(lines):
        log(f"line {number}")
    log("now I wait")
    progress(1, 3, "one of three")
    while not Path(gate).exists():
        time.sleep(0.01)
    return "the gate is open"

@hints(read_only=True)
def fail(*, message: str = "No such thing.") -> str:
    """Fail."""
    raise ValueError(message)

@hints(read_only=True)
def big(*, lines: int = 0, letters: int = 0) -> object:
    """Return much data."""
    return "x" * letters if letters else [f"line {number}" for number in range(lines)]

@hints(read_only=True)
def say(*, text: str) -> str:
    """Return a text, print it and report it as progress."""
    print(text)
    progress(1, 2, text)
    return text
'''

BlockT = TypeVar("BlockT", bound=Block)


class ChatStage(Stage):
    """The Chat page, driven by keys and mouse.

    Args:
        app: The app.
        pilot: Presses the keys.
        runtime: The runtime of the app.
        model: The scripted model.
    """

    def __init__(self, app: PegboardApp, pilot: Pilot[None], runtime: Runtime, model: ScriptedModel) -> None:
        super().__init__(app, pilot)
        self.runtime = runtime
        self.model = model

    @property
    def chat(self) -> ChatScreen:
        """The page, even below a dialog."""
        screen = self.app.get_screen_stack("chat")[0]
        assert isinstance(screen, ChatScreen)
        return screen

    @property
    def talk(self) -> Transcript:
        """The conversation."""
        return self.chat.query_one(Transcript)

    @property
    def line(self) -> AskLine:
        """The prompt."""
        return self.chat.query_one(AskLine)

    @property
    def status(self) -> str:
        """Text of the status line."""
        return str(self.chat.query_one("#status", Static).content)

    @property
    def rows(self) -> list[str]:
        """All rows of the conversation without trailing spaces."""
        return [self.talk.row(number)[0].rstrip() for number in range(self.talk.row_count)]

    def blocks(self, kind: type[BlockT]) -> list[BlockT]:
        """Return the blocks of one class."""
        return [block for block in self.talk._blocks if isinstance(block, kind)]

    @property
    def cards(self) -> list[CallBlock]:
        """Cards of calls."""
        return self.blocks(CallBlock)

    @property
    def answers(self) -> list[str]:
        """Texts of the model."""
        return [block.text.strip() for block in self.blocks(TextBlock)]

    @property
    def notes(self) -> list[str]:
        """Notices of Pegboard."""
        return [block.text for block in self.blocks(NoteBlock)]

    @property
    def users(self) -> list[str]:
        """User messages."""
        return [block.message for block in self.blocks(UserBlock)]

    @property
    def kept(self) -> list[Message]:
        """Stored messages of the session."""
        return [entry.message for entry in self.runtime.sessions.entries(self.chat.session)]

    @property
    def tool_messages(self) -> list[ToolMessage]:
        """Stored results as the model reads them."""
        return [message for message in self.kept if isinstance(message, ToolMessage)]

    async def say(self, text: str) -> None:
        """Put a message into the prompt and send it."""
        self.line.put(text)
        self.line.focus()
        await self.press("enter")

    async def idle(self) -> None:
        """Wait until no ask is running and the screen is drawn."""
        await self.until(lambda: not self.chat.running, "the ask is finished")
        await self.drawn()

    async def ask(self, text: str) -> None:
        """Send a message and wait for the answer."""
        await self.say(text)
        await self.idle()

    async def drawn(self) -> None:
        """Wait until all changes are drawn."""
        await self.until(lambda: self.talk._frame is None, "the next frame is drawn")
        await self.pilot.pause()

    async def asked(self) -> CallBlock:
        """Wait until a call awaits approval and return its card."""
        await self.until(lambda: self.app.requests, "a call awaits approval")
        await self.until(lambda: any(card.state == "asking" for card in self.cards), "its card is shown")
        await self.drawn()
        return next(card for card in self.cards if card.state == "asking")

    async def select(self) -> CallBlock:
        """Wait until a call awaits approval, select its card and return it."""
        await self.asked()
        await self.press("f12")
        await self.until(lambda: self.can_answer, "the selected card can be answered")
        assert self.talk.selected is not None
        return self.talk.selected

    @property
    def can_answer(self) -> bool:
        """Whether a card is selected and was noted as visible."""
        card = self.talk.selected
        return card is not None and card.asks_about in self.talk.guard._seen_at

    async def running_card(self) -> CallBlock:
        """Wait until a call runs and return its card."""
        await self.until(lambda: any(card.state == "running" for card in self.cards), "a call runs")
        return next(card for card in self.cards if card.state == "running")

    def consistent(self) -> None:
        """Assert that every stored call has a stored result."""
        proposed = [call.provider_id for one in self.kept if isinstance(one, ModelMessage) for call in one.calls]
        assert proposed == [message.provider_id for message in self.tool_messages]


def pack(folder: Path, source: str = PACK) -> Path:
    """Write the pack `work` and return its folder."""
    packs = folder / "packs"
    packs.mkdir(exist_ok=True)
    (packs / "work.py").write_text(textwrap.dedent(source), encoding="utf-8")
    return packs


def chat_app(
    folder: Path,
    *turns: Iterable[Said],
    config: str = "",
    sessions: Sequence[tuple[str, Sequence[Message]]] = (),
    allow: str | None = None,
) -> tuple[PegboardApp, Runtime, ScriptedModel]:
    """Return the app, its runtime and the scripted model; see `on_chat`."""
    Path(os.environ["PEGBOARD_CONFIG"]).write_text(config, encoding="utf-8")
    runtime = Runtime.from_environment(packs=[pack(folder)], tool_allow=allow)
    model = ScriptedModel(*turns)

    def scripted(name: str | None = None, base_url: str | None = None, *, send_key: bool = False) -> Model:
        del name, base_url, send_key
        return model

    runtime.models.get = scripted  # type: ignore[method-assign]
    for session, messages in sessions:
        runtime.sessions.start(session)
        for message in messages:
            runtime.sessions.append(session, message)
    open_on("chat", runtime)
    return PegboardApp(runtime), runtime, model


async def entered(stage: ChatStage) -> None:
    """Wait for the Chat page and the tools."""
    await stage.until(lambda: stage.chat.weights and stage.line.has_focus, "the tools are known")
    await stage.pilot.pause()


@asynccontextmanager
async def on_chat(
    folder: Path,
    *turns: Iterable[Said],
    size: tuple[int, int] = (120, 40),
    config: str = "",
    sessions: Sequence[tuple[str, Sequence[Message]]] = (),
) -> AsyncIterator[ChatStage]:
    """Open the Chat page.

    Args:
        folder: Folder for the pack.
        turns: Events of the model's turns.
        size: Size of the terminal.
        config: Text of the configuration file.
        sessions: Stored messages by session ID.
    """
    app, runtime, model = chat_app(folder, *turns, config=config, sessions=sessions)
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = ChatStage(app, pilot, runtime, model)
        await entered(stage)
        yield stage
        compose_at_end(app)


def user(text: str) -> UserMessage:
    """Return a user message."""
    return UserMessage(text=text)


def answer(text: str) -> ModelMessage:
    """Return a message of the model."""
    return ModelMessage(text=text)


async def opened(gate: Path) -> None:
    """Let the tool `wait` finish."""
    await asyncio.to_thread(gate.touch)
