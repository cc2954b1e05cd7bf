"""The open script: its name, its draft, and saving it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.screen import Screen

from pegboard.errors import SavedScriptError
from pegboard.results.clean import clean_line
from pegboard.tui.commands import key_of
from pegboard.tui.script.editor import ScriptEditor
from pegboard.tui.script.open_script import EditedScript
from pegboard.tui.state.draft import Draft, DraftFile
from pegboard.tui.state.kept_draft import KeptDraft
from pegboard.until_done import until_done

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

EXAMPLE: Final = """\
fs.list_dir | jq -r '.[] | "\\(.size // 0) \\(.name)"' | sort -rn | head -3
time.now & text.count --text 'one two' & wait
fs.read_file nothing.txt || echo "File not found."
"""
"""Script that is offered while the editor is empty."""


class ScriptDocument:
    """The script in the editor, the saved script it belongs to, and its draft file.

    Args:
        page: Screen that runs the workers and shows dialogs and notifications.
        runtime: Provides the saved scripts.
        editor: Editor with the text.
        changed: Callback for a change of the name or of the saved text.
    """

    def __init__(
        self, page: Screen[None], runtime: Runtime, editor: ScriptEditor, changed: Callable[[], object]
    ) -> None:
        self.name = ""
        """Name of the saved script; empty for a new one."""
        self._saved = ""
        self._opened = 0
        """Number of scripts that were opened."""
        self._saving = asyncio.Lock()
        self._page = page
        self._runtime = runtime
        self._editor = editor
        self._changed = changed
        self._kept = KeptDraft(page, DraftFile(runtime.paths.state, "script-draft"), self._draft)

    @property
    def is_changed(self) -> bool:
        """Whether the text differs from the saved script."""
        return self._editor.text != self._saved

    @property
    def title(self) -> Content:
        """Name of the script, marked if it has unsaved changes."""
        name = clean_line(self.name) if self.name else "Script"
        changed = [("  ● changed", "$text-warning")] if self.name and self.is_changed else []
        return Content.assemble(name, *changed)

    @property
    def is_restored(self) -> bool:
        """Whether the draft was loaded, and may be overwritten."""
        return self._kept.restored.is_set()

    # Draft

    def restore(self) -> None:
        """Load the draft of the last run, before text that was typed meanwhile."""
        self._kept.restore(self._show)

    def _show(self, draft: Draft) -> None:
        typed = self._editor.text
        self.name, self._saved = draft.name, draft.saved
        if not typed:
            self._editor.load_text(draft.text)
        elif draft.text:
            self._editor.insert(f"{draft.text.rstrip(chr(10))}\n", (0, 0))
        self._changed()

    def schedule_draft(self) -> None:
        """Write the draft soon."""
        self._kept.schedule()

    async def close(self) -> None:
        """Write and unlock the draft."""
        await self._kept.close()

    def _draft(self) -> Draft:
        return Draft(self._editor.text, self.name, self._saved)

    # Saving

    @property
    def state(self) -> EditedScript:
        """Text, name and saved text, for dialogs that change them."""
        return EditedScript(self._editor.text, self.name, self._saved)

    def follow(self, state: EditedScript) -> None:
        """Apply the name and the saved text of a state, now and whenever they change."""
        state.changed = partial(self._apply, self._opened)
        state.changed(state)

    def _apply(self, opened: int, state: EditedScript) -> None:
        if opened != self._opened:  # another script is in the editor by now
            return
        self.name, self._saved = state.name, state.saved
        self._changed()
        self.schedule_draft()

    async def save(self) -> None:
        """Save the script under its name; ask for a name if it is new."""
        async with self._saving:  # the state of the disk is known only after the previous save
            if self.name:
                await self._save()
            else:
                await self.save_as()

    async def _save(self) -> None:
        from pegboard.tui.script.saved_scripts import CHANGED_SINCE, would_overwrite

        state = self.state
        self.follow(state)

        async def write() -> None:
            await asyncio.to_thread(self._runtime.scripts.saved.write, state.name, state.text)
            state.update(state.name, state.text)
            self._page.notify(f"Saved as {clean_line(state.name)}.", markup=False)

        try:
            if await asyncio.to_thread(would_overwrite, self._runtime, state, state.name) and not await self.confirm(
                f"Overwrite {clean_line(state.name)}?", CHANGED_SINCE, "Overwrite"
            ):
                return
            await until_done(write())
        except SavedScriptError as error:
            self._show_error(error)

    async def save_as(self) -> None:
        """Ask for a name and save the script."""
        from pegboard.tui.script.saved_scripts import save_as

        state = self.state
        self.follow(state)
        await save_as(self._page, self._runtime, state, state.name)

    # Opening

    async def open(self, name: str) -> None:
        """Open a saved script, after confirmation if changes would be lost."""
        try:
            text = await asyncio.to_thread(self._runtime.scripts.saved.read, name)
        except SavedScriptError as error:
            self._show_error(error)
            return
        if await self._may_discard():  # also text that was typed while it was read
            self._load(text, name)

    async def new(self) -> None:
        """Start a new script, after confirmation if changes would be lost."""
        if await self._may_discard():
            self._load("", "")

    async def open_text(self, text: str) -> bool:
        """Open a text as a new script that is not saved, after confirmation if changes would be lost.

        Args:
            text: The script.

        Returns:
            Whether the editor has the text.
        """
        await self._kept.restored.wait()
        if self._editor.text == text:
            return True
        if not await self._may_discard():
            return False
        self._load("", "")
        self._editor.load_text(text)
        return True

    def _load(self, text: str, name: str) -> None:
        self._opened += 1
        self._editor.load_text(text)
        # Compare with the editor's text, which has no lone surrogates.
        self.name, self._saved = name, self._editor.text
        self._changed()
        self.schedule_draft()
        self._editor.focus()

    async def _may_discard(self) -> bool:
        if not self.is_changed or not self._editor.text.strip():
            return True
        what = f"Your changes to {clean_line(self.name)} are" if self.name else "This script is"
        key = key_of(self._page, "script.save")
        return await self.confirm(
            "Discard changes?", f"{what} not saved. Press {key} in the editor to save.", "Discard"
        )

    async def confirm(self, title: str, question: str, yes: str) -> bool:
        """Ask for a confirmation."""
        from pegboard.tui.dialogs.confirm import Confirm

        return await self._page.app.push_screen_wait(Confirm(title, question, yes)) is True

    def _show_error(self, error: SavedScriptError) -> None:
        self._page.notify(clean_line(str(error)), severity="error", markup=False)
