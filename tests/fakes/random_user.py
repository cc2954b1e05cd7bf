"""A user who presses random keys and clicks anywhere, at every size, with evil tools whose files change."""

from __future__ import annotations

import asyncio
import os
import random
import string
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import evil
from textual import events
from textual.binding import Binding
from textual.keys import _character_to_key
from textual.worker import WorkerFailed

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from pegboard.tui.app import PegboardApp

PAGES = {"tools": "f5", "chat": "f6", "script": "f7", "health": "f8", "activity": "f9"}
"""Each page and its key."""
_QUIT = {"quit", "app.quit"}
_OFTEN = ("up", "down", "left", "right", "tab", "shift+tab", "enter", "space", "escape", "backspace", "ctrl+r")
_LETTERS = string.ascii_letters + string.digits + "[]{}()<>\"'`\\/=;,.:!?-_*#@$%&|~^ é€😀"
_SAID = (
    "evil.say",
    "fs.list_dir path=.",
    "evil.destroy --path '[/]'",
    "use evil.rows",
    "for i in 1 2; do evil.say; done",
)
_PARAMETERS = (
    "body: str",
    "b: str = ''",
    "c: int = 0",
    "d: list[str] = []",
    "e: bool = False",
    "f: dict[str, int] = {}",
)
"""Parameters of the tool whose file changes."""
_SIZES = ((40, 10), (200, 60))
_ACT_SECONDS = 120.0
"""Time that one action may take before the app counts as hanging."""


@dataclass(frozen=True)
class Crash:
    """The error that ended the app, and how to reproduce it."""

    page: str
    seed: int
    step: int
    size: tuple[int, int]
    did: tuple[str, ...]
    """The last actions."""
    why: str

    def __str__(self) -> str:
        columns, rows = self.size
        return f"{self.page} seed={self.seed} step={self.step} size={columns}×{rows}\n{self.did}\n{self.why}"


async def play(page: str, seed: int, steps: int) -> Crash | None:
    """Perform random actions on a page until one of them crashes the app or shows an unsafe character.

    Args:
        page: One of `PAGES`.
        seed: Equal seeds produce equal actions, but not equal timing.
        steps: Number of actions.
    """
    from pegboard.runtime import Runtime
    from pegboard.runtime.models import Models
    from pegboard.tui.app import PegboardApp

    class _Lasting(PegboardApp):
        ended_by = ""

        def exit(self, *arguments: Any, **options: Any) -> None:
            self.ended_by = self.ended_by or "".join(traceback.format_stack())
            super().exit(*arguments, **options)

        async def action_quit(self) -> None:
            """Stay, because the palette has this command too."""

    dice = random.Random(f"{page} {seed}")
    size = (dice.randint(40, 200), dice.randint(10, 60))
    with _home() as packs, patch.object(Models, "get", lambda *_, **__: evil.EvilModel(seed)):
        runtime = Runtime.from_environment(packs=[packs])
        if page == "activity":
            evil.record(runtime.history)
        app = _Lasting(runtime)
        user = _User(app, page, dice, size, packs / "changing.py")
        step, ending = 0, ""
        try:
            async with app.run_test(size=size, notifications=True) as pilot:
                await user.begin(pilot)
                for step in range(steps):  # noqa: B007 - reported after a failure
                    async with asyncio.timeout(_ACT_SECONDS):
                        await user.act()
                    if app._exception is not None or app._exit or not app._running:
                        ending = _ending(app, app.ended_by)
                        break
                else:
                    await pilot.pause()  # Textual handles input while it removes the screens, but only in tests.
        except Exception:  # noqa: BLE001 - every exception is a crash
            ending = ending or _ending(app, app.ended_by) + traceback.format_exc()
    return Crash(page, seed, step, user.size, tuple(user.did), ending) if ending else None


def _ending(app: PegboardApp, ended_by: str) -> str:
    """Describe why an app ended."""
    screens = [type(screen).__name__ for screen in app.screen_stack] if app._running else []
    focused = app.focused if app._running else None
    error: BaseException | None = app.crash
    if isinstance(error, WorkerFailed):
        error = error.error
    return (
        f"The app ended: return code {app.return_code}, restart {app.wants_reload}, screens {screens}, "
        f"focus {focused!r}\n{ended_by}{''.join(traceback.format_exception(error)) if error else ''}"
    )


@contextmanager
def _home() -> Iterator[Path]:
    """Yield a folder of evil packs, and redirect the app's folders while the block runs."""
    import tempfile

    before = Path.cwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a thread may still write there
        root = Path(folder)
        work = root / "work"
        work.mkdir()
        environ = {f"PEGBOARD_{name}_DIR": str(root / name.lower()) for name in ("DATA", "STATE", "CACHE")}
        environ |= {
            "PEGBOARD_CONFIG": str(root / "config.toml"),
            "HOME": folder,
            "VISUAL": "true",
            "PAGER": "true",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "TEXTUAL_ANIMATIONS": "none",
        }
        (root / "data" / "themes").mkdir(parents=True)
        (root / "data" / "themes" / "[bold.toml").write_text('name = "[bold"\nprimary = "#ff0000"\n')
        (root / "data" / "scripts").mkdir(parents=True)
        (root / "data" / "scripts" / "[-o FILE] [bold.sh").write_text("evil.say --text '[/]'\n")
        with patch.dict(os.environ, environ):
            os.chdir(work)
            try:
                yield evil.write(root / "packs")
            finally:
                os.chdir(before)


class _User:
    """The random user.

    Args:
        app: The app.
        page: The page to stay on.
        dice: The source of randomness.
        size: Size of the terminal.
        file: The pack that changes.
    """

    def __init__(self, app: PegboardApp, page: str, dice: random.Random, size: tuple[int, int], file: Path) -> None:
        self.size = size
        self._file = file
        self.did: deque[str] = deque(maxlen=25)
        self._app = app
        self._page = page
        self._dice = dice
        self._pilot: Pilot[None] | None = None
        self._keys = _keys()

    async def begin(self, pilot: Pilot[None]) -> None:
        """Open the page."""
        self._pilot = pilot
        await pilot.press(PAGES[self._page])

    async def act(self) -> None:
        """Perform one action, and check the screen now and then."""
        acts = (self._press, self._type, self._click, self._drag, self._scroll, self._say, self._paste, self._resize)
        others = (self._go_back, self._click_toast, self._edit)
        [act] = self._dice.choices((*acts, *others), (40, 12, 22, 4, 6, 2, 2, 3, 3, 2, 3))
        await act()
        if self._dice.random() < 0.3:
            await self._settle()

    async def _settle(self) -> None:
        assert self._pilot is not None
        await self._pilot.pause()
        self._look()

    def _look(self) -> None:
        """Fail if a text on the screen could control the terminal."""
        app = self._app
        if app._exception is not None or not app._running:
            return
        for strip in app.screen._compositor.render_strips(app.size):
            for segment in strip:
                found = evil.unsafe_in(segment.text) if segment.control is None else None
                assert not found, f"{found!r} is on the screen: {segment.text!r}"
                meta = segment.style.meta if segment.style is not None else {}
                assert "app.quit" not in str(meta.get("@click", "")), f"a link of a tool's: {segment.text!r} {meta}"

    async def _keyed(self, *keys: str) -> None:
        """Press keys as a fast user does: most of the time without waiting for the app."""
        self.did.append(" ".join(keys))
        if self._dice.random() < 0.2:
            await self._app._press_keys(keys)
            return
        for name in keys:
            key = _character_to_key(name) if len(name) == 1 and not name.isalnum() else name
            self._send(events.Key(key, name if len(name) == 1 else {"space": " "}.get(name)))
            await asyncio.sleep(0)

    async def _press(self) -> None:
        pool = _OFTEN if self._dice.random() < 0.5 else self._keys
        await self._keyed(*self._dice.choices(pool, k=self._dice.choice((1, 1, 1, 2, 4))))

    async def _type(self) -> None:
        letters = self._dice.choices(_LETTERS, k=self._dice.choice((1, 2, 5)))
        await self._keyed(*("space" if letter == " " else letter for letter in letters))

    async def _say(self) -> None:
        said = self._dice.choice(_SAID)
        await self._keyed(*("space" if letter == " " else letter for letter in said), "enter")

    async def _paste(self) -> None:
        text = self._dice.choice((*evil.TEXTS, '{"text": "[/]"}', "[1, 2", "x" * 5000, "evil.say(text='[/]')"))
        self.did.append(f"paste {text[:40]!r}")
        self._send(events.Paste(text))

    async def _resize(self) -> None:
        (least_columns, least_rows), (columns, rows) = _SIZES
        self.size = (self._dice.randint(least_columns, columns), self._dice.randint(least_rows, rows))
        if self._dice.random() < 0.2:
            self.size = self._dice.choice((*_SIZES, (48, 12), (60, 16), (80, 24)))
        self.did.append(f"resize {self.size}")
        assert self._pilot is not None
        await self._pilot.resize_terminal(*self.size)

    async def _go_back(self) -> None:
        if self._dice.random() < 0.5:
            await self._keyed("escape", "escape", PAGES[self._page])
        else:
            self.did.append(f"mode {self._page}")
            if not self._app.screen.is_modal:
                self._app.action_mode(self._page)

    async def _edit(self) -> None:
        """Change a tool's file, sometimes while its form is open, and move the mouse over everything for a moment."""
        parameters = self._dice.sample(_PARAMETERS, self._dice.randint(0, len(_PARAMETERS)))
        name = self._dice.choice(("change", "change", "change", "changed", "class"))
        self.did.append(f"edit {name} {parameters}")
        if self._dice.random() < 0.3:
            await self._keyed("escape", "escape", "f5", *"change", "enter", "a")
        star = "*, " if parameters else ""
        head = f"def {name}({star}{', '.join(sorted(parameters))}) -> int:"
        self._file.write_text(f'"""Changes."""\n\n{head}\n    "Change."\n    return 1\n')
        for _ in range(self._dice.choice((10, 100, 500))):
            visible = list(self._app.screen._compositor.visible_widgets.values())
            if visible:
                region, clip = self._dice.choice(visible)
                self._mouse(events.MouseMove, region.intersection(clip).offset, 0)
            await asyncio.sleep(0)

    # The mouse

    def _send(self, event: events.Event) -> None:
        assert self._app._driver is not None
        self._app._driver.process_message(event)

    def _mouse(self, kind: type[events.MouseEvent], at: tuple[int, int], button: int = 1) -> None:
        x, y = at
        modifier = self._dice.random() < 0.05
        self._send(kind(None, x, y, 0, 0, button, modifier, False, False, screen_x=x, screen_y=y))

    def _anywhere(self) -> tuple[int, int]:
        return self._dice.randrange(self.size[0]), self._dice.randrange(self.size[1])

    async def _click(self, at: tuple[int, int] | None = None) -> None:
        at = at or self._anywhere()
        times = self._dice.choice((1, 1, 1, 2, 3))
        self.did.append(f"click {at} ×{times}")
        self._mouse(events.MouseMove, at, 0)
        for _ in range(times):
            self._mouse(events.MouseDown, at)
            if self._dice.random() < 0.5:
                await asyncio.sleep(0)
            self._mouse(events.MouseUp, at)
        await asyncio.sleep(0)

    async def _click_toast(self) -> None:
        """Click, more than once, in the corner where toasts appear."""
        from textual.widgets._toast import Toast

        toasts = [toast.region for toast in self._app.screen.query(Toast) if toast.region.area]
        if not toasts:
            self._app.notify("[/] [bold", markup=False, timeout=self._dice.choice((0.01, 0.1, 5)))
            await asyncio.sleep(0)
            return
        region = self._dice.choice(toasts)
        for _ in range(3):
            await self._click((min(region.x + 2, self.size[0] - 1), min(region.y + 1, self.size[1] - 1)))

    async def _drag(self) -> None:
        start, end = self._anywhere(), self._anywhere()
        self.did.append(f"drag {start} {end}")
        self._mouse(events.MouseDown, start)
        for _ in range(2):
            self._mouse(events.MouseMove, self._anywhere())
            await asyncio.sleep(0)
        self._mouse(events.MouseMove, end)
        self._mouse(events.MouseUp, end)

    async def _scroll(self) -> None:
        at = self._anywhere()
        kind = self._dice.choice((events.MouseScrollDown, events.MouseScrollUp))
        self.did.append(f"{kind.__name__} {at}")
        for _ in range(self._dice.choice((1, 3, 8))):
            self._mouse(kind, at, 0)
        await asyncio.sleep(0)


def _keys() -> list[str]:
    """Return every key of every command, except those that end the app, and the keys of text editors."""
    from pegboard.tui.app import PegboardApp
    from pegboard.tui.form.lines import LineInput, Lines
    from pegboard.tui.shell.keymap import command_groups
    from pegboard.tui.tools.screen import ToolsScreen

    found = {
        key.strip()
        for _, commands in command_groups(PegboardApp, ToolsScreen)
        for command in commands
        if command.action not in _QUIT
        for key in command.keys.split(",")
        if key.strip()
    }
    bindings = (*Lines.BINDINGS, *LineInput.BINDINGS)
    found |= {key for one in bindings if isinstance(one, Binding) for key in one.key.split(",")}
    return sorted(found | {f"f{number}" for number in range(1, 13)} | {"home", "end", "pageup", "pagedown", "delete"})
