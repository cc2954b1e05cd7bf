"""Snapshots of the dialogs of the Chat page."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import pytest
from stage import TOOLS, GivenRuntime, Stage, as_runtime
from textual.pilot import Pilot
from textual.screen import Screen

from pegboard.ask.providers import LocalServer
from pegboard.ask.providers.endpoint import PROVIDERS
from pegboard.ask.providers.requirements import requirements_of
from pegboard.config import Settings
from pegboard.config.settings import ModelSettings
from pegboard.history import History, Sessions
from pegboard.models.conversation import Message, ModelMessage, ProposedCall, ToolMessage, UserMessage
from pegboard.models.model_requirements import ModelRequirements
from pegboard.results.definition import token_weight
from pegboard.tui.chat.models import ModelList, ModelsScreen
from pegboard.tui.chat.offered_tools import OfferedScreen
from pegboard.tui.chat.sessions import SessionsScreen
from pegboard.tui.dialogs.ask_text import AskText
from pegboard.tui.shell import themes
from pegboard.tui.shell.themed_app import ThemedApp

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pegboard.tui.app import PegboardApp

Compare = Callable[..., bool]
Steps = Callable[[Stage], Awaitable[None]]
Answer = TypeVar("Answer")
SIZES = pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])

LARGEST = ProposedCall(provider_id="1", name="fs_list_dir", arguments='{"path": ".", "recursive": true}')
TALKS: dict[str, tuple[timedelta, str, tuple[Message, ...]]] = {
    "9c1185a5c5e9fc54": (
        timedelta(minutes=7),
        "anthropic:claude-opus-4-5-20251101",
        (
            UserMessage(text="Which files here are larger than a megabyte, and can any of them go?"),
            ModelMessage(text="I look for them.", calls=(LARGEST,)),
            ToolMessage(provider_id="1", name="fs_list_dir", text='["whale.bin 7 MB", "notes.txt 3 kB"]'),
            ModelMessage(text="Only `whale.bin` is: it has **7 MB**.\n\nNothing refers to it, so it can go."),
        ),
    ),
    "1d2f": (timedelta(hours=3), "ollama:qwen3:8b", (UserMessage(text="What does [red]this[/red] mean?"),)),
    "77aa": (timedelta(days=2), "offline", (UserMessage(text="time"), ModelMessage(text="It is noon."))),
    "0003": (timedelta(days=30), "", ()),
}


class WithSessions(GivenRuntime):
    """Runtime with four sessions."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        history = History(self.paths.database, self.paths.results)
        self.sessions = Sessions(history, self.paths.sessions)
        for id_, (_, model, said) in TALKS.items():
            self.sessions.start(id_, model=model)
            for message in said:
                self.sessions.append(id_, message)
        history.close()
        with closing(sqlite3.connect(self.paths.database)) as database, database:
            for id_, (age, *_) in TALKS.items():
                at = datetime.now(UTC) - age
                database.execute("UPDATE sessions SET changed = ? WHERE id = ?", [int(at.timestamp() * 1e6), id_])


@pytest.fixture
def given(tmp_path: Path) -> WithSessions:
    """Five tools and four sessions."""
    return WithSessions(tmp_path)


class Bare(ThemedApp):
    """App with Pegboard's themes and without pages.

    Args:
        runtime: For its paths and settings.
    """

    def __init__(self, runtime: GivenRuntime) -> None:
        super().__init__(
            (themes.shipped(), runtime.paths.themes), runtime.paths.state / "theme", runtime.settings.ui.theme
        )
        self.animation_level = "none"


def after(screen: Callable[[], Screen[Answer]], steps: Steps) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Return a function that opens a dialog and takes steps in it."""

    async def run(pilot: Pilot[None]) -> None:
        stage = Stage(cast("PegboardApp", pilot.app), pilot)  # the stage uses only methods of `App`
        await pilot.app.push_screen(screen())
        await steps(stage)

    return run


async def listed(stage: Stage) -> None:
    """Preview the end of the open session."""
    await stage.until_seen("so it can go")


async def searched(stage: Stage) -> None:
    """Search the messages."""
    await stage.type("whale")
    await stage.until_seen("Matches")


async def exporting(stage: Stage) -> None:
    """Choose a format to export."""
    await listed(stage)
    await stage.press("ctrl+s")
    await stage.until_seen("Export as")


@SIZES
@pytest.mark.parametrize("steps", [listed, searched, exporting])
def test_sessions(snap_compare: Compare, given: WithSessions, steps: Steps, size: tuple[int, int]) -> None:
    opened = after(lambda: SessionsScreen(as_runtime(given), "9c1185a5c5e9fc54"), steps)
    assert snap_compare(Bare(given), terminal_size=size, run_before=opened)


class LocalModels:
    """The models facet with two local servers and one key."""

    async def local_servers(self) -> AsyncGenerator[LocalServer]:
        """Yield two servers."""
        yield LocalServer(
            provider="ollama",
            title="Ollama",
            base_url="http://127.0.0.1:11434/v1",
            models=("qwen3:8b", "llama3.3:70b-instruct-q4_K_M", "gemma3:12b"),
        )
        yield LocalServer(provider="lmstudio", title="LM Studio", base_url="http://127.0.0.1:1234/v1", models=())

    def providers(self) -> Sequence[str]:
        """Return the known providers."""
        return tuple(PROVIDERS)

    def requirements(self, name: str, base_url: str | None = None) -> ModelRequirements:
        """Return one key and a missing library."""
        if name == "offline":
            return ModelRequirements(title="Built in")
        its = requirements_of(name, base_url, lambda secret: "environment" if secret == "ANTHROPIC_API_KEY" else None)
        extra = "google" if its.title == "Google" else ""
        return its.model_copy(update={"extra": extra, "install": f"pip install 'pegboard[{extra}]'"})


class WithModels(GivenRuntime):
    """Runtime with two local model servers and one key."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        super().__init__(folder, settings=settings)
        self.models = LocalModels()


async def of_this_machine(stage: Stage) -> None:
    """List all models."""
    await stage.until_seen("LM Studio (0 models)")
    await stage.until(lambda: stage.app.screen.query_one(ModelList).row_count == 13, "all are listed")
    await stage.until_seen("Ollama at")


async def without_key(stage: Stage) -> None:
    """Mark a provider with two missing requirements."""
    await of_this_machine(stage)
    await stage.type("goo")
    await stage.until_seen("GOOGLE_API_KEY is not set")


async def unknown(stage: Stage) -> None:
    """Type the name of an unknown provider."""
    await of_this_machine(stage)
    await stage.type("antropic:xyz")
    await stage.until_seen("Did you mean")


@SIZES
@pytest.mark.parametrize("steps", [of_this_machine, without_key, unknown])
def test_models(snap_compare: Compare, tmp_path: Path, steps: Steps, size: tuple[int, int]) -> None:
    given = WithModels(tmp_path, settings=Settings(model=ModelSettings(name="anthropic:claude-opus-4-5")))
    opened = after(lambda: ModelsScreen(as_runtime(given), "ollama:qwen3:8b"), steps)
    assert snap_compare(Bare(given), terminal_size=size, run_before=opened)


async def some(stage: Stage) -> None:
    """Mark a hidden tool."""
    await stage.press("down", "down", "down")
    await stage.until_seen("Deletes a file")


async def filtered(stage: Stage) -> None:
    """Hide the matching tools."""
    await stage.type("re")
    await stage.press("ctrl+a", "ctrl+a")
    await stage.until_seen("3 of 5 tools")


@SIZES
@pytest.mark.parametrize("steps", [some, filtered])
def test_offered(snap_compare: Compare, tmp_path: Path, steps: Steps, size: tuple[int, int]) -> None:
    weights = {spec.name: token_weight(spec) * 9 for spec in TOOLS}
    opened = after(lambda: OfferedScreen(TOOLS, frozenset({"fs.remove"}), weights), steps)
    assert snap_compare(Bare(GivenRuntime(tmp_path)), terminal_size=size, run_before=opened)


async def text(stage: Stage) -> None:
    """Show a text."""
    await stage.until_seen("Be brief.")


async def leaving(stage: Stage) -> None:
    """Close a changed text."""
    await text(stage)
    await stage.press("x", "escape")
    await stage.until_seen("Discard the changes?")


@SIZES
@pytest.mark.parametrize("steps", [text, leaving])
def test_text(snap_compare: Compare, tmp_path: Path, steps: Steps, size: tuple[int, int]) -> None:
    said = "You know a town's open data.\n\nBe brief. [bold]Name[/bold] what you looked at." + " Again." * 20
    note = "It holds in this session, from the next message on."
    opened = after(lambda: AskText("System prompt", said, note), steps)
    assert snap_compare(Bare(GivenRuntime(tmp_path)), terminal_size=size, run_before=opened)
