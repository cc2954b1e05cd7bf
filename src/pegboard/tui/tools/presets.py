"""Dialog for the presets of a tool."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import App
from textual.binding import BindingType
from textual.content import Content

from pegboard.errors import PresetError
from pegboard.forms import Form, TextField
from pegboard.models import JsonObject, Preset, ToolSpec
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings
from pegboard.tui.widgets.dialog import CHANGED_ELSEWHERE, ListDialog
from pegboard.tui.widgets.pick_list import PickLine, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_LONGEST = 20_000
_SUMMARY = 60


class PresetsScreen(ListDialog[Preset | None]):
    """Presets of a tool. The result is the preset to load into the form, or None.

    Args:
        runtime: Runtime with the presets.
        spec: The tool.
        form: Form whose arguments can be saved.
    """

    PAGE = "Presets"
    FILTER_HINT = "type to filter or enter a new name"

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("presets.save", "ctrl+s", "save", "Save as", "Save the form's arguments under a name.", footer=True),
        Command("presets.rename", "f2", "rename", "Rename", "Rename the selected preset.", footer=True),
        Command("presets.delete", "delete", "delete", "Delete", "Delete the selected preset.", footer=True),
        Command("presets.close", "escape", "close", "Close", "Close without loading a preset.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, spec: ToolSpec, form: Form) -> None:
        super().__init__(f"Presets of {clean_line(spec.name)}")
        self._runtime = runtime
        self._spec = spec
        self._form = form
        self._presets: tuple[Preset, ...] = ()

    def on_mount(self) -> None:
        """Read the presets, again whenever they change."""
        self.list.empty = "Loading…"
        self._read()
        self.follow(self._update)

    @work(exclusive=True, group="read")
    async def _read(self, marked: str = "") -> None:
        """List the current presets and select one."""
        self._presets = await asyncio.to_thread(self._stored)
        names = [preset.name for preset in self._presets]
        self.list.show(self._lines(), names.index(marked) + 1 if marked in names else min(1, len(names)))

    @work(exclusive=True, group="update")
    async def _update(self) -> None:
        """Show what other programs have changed; keep the selected preset."""
        seen = self._presets
        presets = await asyncio.to_thread(self._stored)
        if presets != seen and self._presets is seen:
            at, marked = self.list.marked or 0, self._marked.name if self._marked else ""
            self._presets = presets
            names = [preset.name for preset in presets]
            self.list.renew(self._lines(), names.index(marked) + 1 if marked in names else min(at, len(names)))

    def _stored(self) -> tuple[Preset, ...]:
        return tuple(self._runtime.presets.list(self._spec.name))

    def _lines(self) -> list[PickLine]:
        presets = (PickLine(clean_line(preset.name), _summary(preset.arguments)) for preset in self._presets)
        return [PickLine("+ Save current arguments", pinned=True), *presets]

    @property
    def _marked(self) -> Preset | None:
        """The selected preset; None if the line that saves is selected."""
        return self._presets[self.list.marked - 1] if self.list.marked else None

    # Actions

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Close with the chosen preset, or save on the line that saves."""
        event.stop()
        if self._marked is None:
            self.action_save()
        else:
            self.dismiss(self._marked)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable only the actions that apply to the selected line."""
        return self._marked is not None if action in {"rename", "delete"} else True

    @work(exclusive=True, group="change")
    async def action_save(self) -> None:
        """Save the form's arguments under a name; confirm before replacing a preset."""
        name = await save_preset(self.app, self._runtime, self._spec, self._form, self.list.sought)
        if name is not None:
            self._read(marked=name)

    @work(exclusive=True, group="change")
    async def action_rename(self) -> None:
        """Rename the selected preset."""
        from pegboard.tui.dialogs.ask_name import ask_name, in_thread

        preset = self._marked
        if preset is None:
            return
        rename = in_thread(partial(self._runtime.presets.rename, self._spec.name, preset.name))
        name = await ask_name(self.app, f"Rename {clean_line(preset.name)} to", preset.name, rename)
        if name is not None:
            self._read(marked=name)

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        """Delete the selected preset after confirmation."""
        preset = self._marked
        if preset is None or not await _confirmed(self.app, "Delete", preset):
            return

        def delete() -> None:
            if any(one.name == preset.name and one != preset for one in self._stored()):
                raise PresetError(f"The preset `{preset.name}` was not deleted. {CHANGED_ELSEWHERE}")
            self._runtime.presets.delete(self._spec.name, preset.name)

        try:
            await asyncio.to_thread(delete)
        except PresetError as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
        else:
            self._update()

    # Display

    @on(PickList.Marked)
    def _show_marked(self, event: PickList.Marked) -> None:
        event.stop()
        self.refresh_bindings()
        self._show_arguments(self._marked)

    @work(exclusive=True, group="preview")
    async def _show_arguments(self, preset: Preset | None) -> None:
        """Preview a preset, or the form's arguments."""
        arguments = self._form.draft() if preset is None else preset.arguments
        text, errors = await asyncio.to_thread(_previewed, self._spec, arguments)
        of = "Current arguments" if preset is None else clean_line(preset.name)
        trouble = f"  ✗ {count(errors, 'error')}" if errors else ""
        self.show_preview(Content.assemble((of, "bold"), (trouble, "$text-warning")), Content(text))


async def save_preset(
    app: App[object], runtime: Runtime, spec: ToolSpec, form: Form, suggested: str = ""
) -> str | None:
    """Save the arguments of a form under a name that the user types; confirm before replacing a preset.

    Args:
        app: The running app.
        runtime: Runtime with the presets.
        spec: The tool.
        form: Its form.
        suggested: Name to start with.

    Returns:
        The name, or None if nothing was saved.
    """
    from pegboard.tui.dialogs.ask_name import ask_name

    arguments = form.draft()

    def stored(name: str) -> Preset | None:
        return next((preset for preset in runtime.presets.list(spec.name) if preset.name == name), None)

    def write(name: str, seen: Preset | None) -> None:
        if stored(name) not in (None, seen):
            raise PresetError(f"The preset `{name}` was not saved. {CHANGED_ELSEWHERE}")
        runtime.presets.save(spec.name, name, arguments)

    async def save(name: str) -> bool:
        taken = await asyncio.to_thread(stored, name)
        if taken is not None and not await _confirmed(app, "Overwrite", taken):
            return False
        await asyncio.to_thread(write, name, taken)
        return True

    name = await ask_name(app, "Save current arguments as", suggested, save, _warning(form))
    if name is not None:
        app.notify(f"Saved the preset {clean_line(name)}.", markup=False)
    return name


async def _confirmed(app: App[object], verb: str, preset: Preset) -> bool:
    from pegboard.tui.dialogs.confirm import Confirm

    name = clean_line(preset.name)
    question = f"Arguments: {_summary(preset.arguments)}\n\nThis can't be undone."
    return await app.push_screen_wait(Confirm(f"{verb} the preset {name}?", question, verb)) is True


def _previewed(spec: ToolSpec, arguments: JsonObject) -> tuple[str, int]:
    """Return arguments as JSON with masked secrets, and the number of validation errors."""
    form = Form(spec.input_schema, spec.parameter_aliases)
    form.load(arguments)
    text = form.text(masked=True)
    cut = f"{text[:_LONGEST]}\n… {count(len(text) - _LONGEST, 'more character')}" if len(text) > _LONGEST else text
    return clean(cut), len(form.faults())


def _summary(arguments: JsonObject) -> str:
    """Return the names of the arguments in one line."""
    names = clean_line(", ".join(arguments)) or "no arguments"
    return names if len(names) <= _SUMMARY else f"{names[: _SUMMARY - 1]}…"


def _warning(form: Form) -> str:
    """Return a warning if a secret would be saved."""
    holds = any(isinstance(one, TextField) and one.secret and one.text for one in form.walk())
    return "The arguments contain a secret, which will be saved as plain text." if holds else ""
