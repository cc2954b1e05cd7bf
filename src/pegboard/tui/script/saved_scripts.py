"""Dialog for saved scripts: open, save, rename, delete."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from pegboard.errors import SavedScriptError
from pegboard.models import SavedScript
from pegboard.results.clean import clean_line
from pegboard.results.sizes import age, count
from pegboard.tui.commands import Command, bindings
from pegboard.tui.script.open_script import EditedScript
from pegboard.tui.widgets.dialog import CHANGED_ELSEWHERE, ListDialog
from pegboard.tui.widgets.highlighted import highlighted
from pegboard.tui.widgets.pick_list import PickLine, PickList
from pegboard.until_done import until_done

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

CHANGED_SINCE: Final = "Another program changed the file since you opened it."
_SHOWN: Final = 20_000
"""Characters of a script in the preview."""


class SavedScriptsScreen(ListDialog[str | None]):
    """Dialog that lists saved scripts and returns the name of the one to open.

    Args:
        runtime: Provides the saved scripts.
        script: The open script, which is updated when it is saved, renamed or deleted.
    """

    PAGE = "Saved scripts"
    FILTER_HINT = "type to filter or enter a new name"

    DEFAULT_CSS = """
    SavedScriptsScreen > #box { width: 96; height: 28; }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("saved_scripts.save", "ctrl+s", "save", "Save as", "Save the open script under a name.", True),
        Command("saved_scripts.rename", "f2", "rename", "Rename", "Rename the selected script.", footer=True),
        Command("saved_scripts.delete", "delete", "delete", "Delete", "Delete the selected script.", footer=True),
        Command("saved_scripts.close", "escape", "close", "Close", "Close and return to the editor.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, script: EditedScript) -> None:
        super().__init__("Saved scripts", pick_list=PickList(sign=self._sign))
        self._runtime = runtime
        self._script = script
        self._scripts: tuple[SavedScript, ...] = ()

    def on_mount(self) -> None:
        """Load the scripts, again whenever they change."""
        self.list.empty = "Loading…"
        self._read(self._script.name)
        self.follow(self._update)

    @work(exclusive=True, group="read")
    async def _read(self, marked: str = "") -> None:
        """Reload the scripts and select one."""
        try:
            self._scripts = await asyncio.to_thread(self._runtime.scripts.saved.list)
        except SavedScriptError as error:
            self._show_error(error)
        names = [script.name for script in self._scripts]
        self.list.show(self._lines(), names.index(marked) + 1 if marked in names else min(1, len(names)))

    @work(exclusive=True, group="update")
    async def _update(self) -> None:
        """Show what other programs have changed; keep the selected script."""
        seen = self._scripts
        try:
            scripts = await asyncio.to_thread(self._runtime.scripts.saved.list)
        except SavedScriptError:  # the next action reports it
            return
        if scripts != seen and self._scripts is seen:
            at, marked = self.list.marked or 0, self._marked.name if self._marked else ""
            self._scripts = scripts
            names = [script.name for script in scripts]
            self.list.renew(self._lines(), names.index(marked) + 1 if marked in names else min(at, len(names)))

    def _lines(self) -> list[PickLine]:
        now = datetime.now(UTC)
        scripts = (PickLine(clean_line(script.name), age(now, script.changed)) for script in self._scripts)
        return [PickLine("+ Save the open script", pinned=True), *scripts]

    @property
    def _marked(self) -> SavedScript | None:
        """The selected script; None if the row for saving is selected."""
        return self._scripts[self.list.marked - 1] if self.list.marked else None

    def _sign(self, index: int) -> str:
        if not index:
            return ""
        return "● " if self._scripts[index - 1].name == self._script.name else "  "

    # Actions

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Return the chosen script; on the row for saving, save."""
        event.stop()
        if self._marked is None:
            self.action_save()
        else:
            self.dismiss(self._marked.name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the actions on a script only if one is selected."""
        return self._marked is not None if action in {"rename", "delete"} else True

    @work(exclusive=True, group="change")
    async def action_save(self) -> None:
        """Save the open script under a name; confirm before overwriting another one."""
        name = await save_as(self, self._runtime, self._script, self.list.sought)
        if name:
            self._read(name)

    @work(exclusive=True, group="change")
    async def action_rename(self) -> None:
        """Rename the selected script."""
        from pegboard.tui.dialogs.ask_name import ask_name

        script, saved = self._marked, self._runtime.scripts.saved
        if script is None:
            return

        async def rename(typed: str) -> None:
            await asyncio.to_thread(saved.rename, script.name, typed)
            if self._script.name == script.name:
                self._script.update(saved.name_of(typed), self._script.saved)

        async def use(typed: str) -> bool:
            await until_done(rename(typed))
            return True

        name = await ask_name(self.app, f"Rename {clean_line(script.name)} to", script.name, use)
        if name is not None:
            self._read(saved.name_of(name))

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        """Delete the selected script after confirmation."""
        from pegboard.tui.dialogs.confirm import Confirm

        script = self._marked
        if script is None:
            return
        is_open = script.name == self._script.name
        question = "It stays in the editor as a new script.\n\n" if is_open else ""
        asked = Confirm(f"Delete {clean_line(script.name)}?", f"{question}This can't be undone.", "Delete")
        if not await self.app.push_screen_wait(asked):
            return

        def delete_shown() -> None:
            saved = self._runtime.scripts.saved
            if any(one.name == script.name and one != script for one in saved.list()):
                raise SavedScriptError(f"The script `{script.name}` was not deleted. {CHANGED_ELSEWHERE}")
            saved.delete(script.name)

        async def delete() -> None:
            await asyncio.to_thread(delete_shown)
            if is_open:
                self._script.update("", "")

        try:
            await until_done(delete())
        except SavedScriptError as error:
            self._show_error(error)
            return
        self._update()

    def _show_error(self, error: SavedScriptError) -> None:
        self.notify(clean_line(str(error)), severity="error", markup=False)

    # Display

    @on(PickList.Marked)
    def _show_marked(self, event: PickList.Marked) -> None:
        event.stop()
        self.refresh_bindings()
        self._show(self._marked)

    @work(exclusive=True, group="preview")
    async def _show(self, script: SavedScript | None) -> None:
        """Preview the selected script, or the open one."""
        text, of, trouble = self._script.text, "open script", ""
        if script is not None:
            of = clean_line(script.name)
            try:
                text = await asyncio.to_thread(self._runtime.scripts.saved.read, script.name)
            except SavedScriptError as error:
                text, trouble = "", f"  ✗ {clean_line(str(error))}"
        facts = "" if trouble else f"  {count(len(text.splitlines()), 'line')}"
        about = Content.assemble((of, "bold"), (facts, "$text-muted"), (trouble, "$text-error"))
        self.show_preview(about, highlighted(text, "bash", _SHOWN))


async def save_as(screen: Widget, runtime: Runtime, script: EditedScript, name: str) -> str:
    """Ask for a name and save the script; confirm before overwriting another one.

    Args:
        screen: Screen that opens the dialogs.
        runtime: Provides the saved scripts.
        script: The open script, which is updated.
        name: Initial value of the name.

    Returns:
        The name, or an empty string if the script wasn't saved.
    """
    from pegboard.tui.dialogs.ask_name import ask_name
    from pegboard.tui.dialogs.confirm import Confirm

    saved = runtime.scripts.saved

    async def write(chosen: str, *, replace: bool) -> None:
        await asyncio.to_thread(saved.write, chosen, script.text, replace=replace)
        script.update(chosen, script.text)

    async def save(typed: str) -> bool:
        chosen = saved.name_of(typed)
        is_own = chosen == script.name
        overwrites = await asyncio.to_thread(would_overwrite, runtime, script, chosen)
        if overwrites:
            why = CHANGED_SINCE if is_own else f"A script named {clean_line(chosen)} already exists."
            question = f"{why}\n\nThis can't be undone."
            if not await screen.app.push_screen_wait(Confirm("Overwrite script?", question, "Overwrite")):
                return False
        await until_done(write(chosen, replace=is_own or overwrites))
        return True

    return script.name if await ask_name(screen.app, "Save script as", name, save) is not None else ""


def would_overwrite(runtime: Runtime, script: EditedScript, name: str) -> bool:
    """Return whether saving under a name would replace a text that isn't the opened one; block."""
    saved = runtime.scripts.saved
    if name != script.name:
        return name in {one.name for one in saved.list()}
    try:
        return saved.read(name) != script.saved
    except SavedScriptError:  # no file that could be overwritten
        return False
