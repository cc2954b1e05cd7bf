"""The presets of one tool: argument sets that were given a name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from pegboard.errors import PresetError
from pegboard.forms import Form, TextField
from pegboard.models import JsonObject, Preset, ToolSpec
from pegboard.results.clean import clean, clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.pick_list import PickLine, PickList

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_LONGEST = 20_000
_SUMMARY = 60


class PresetsScreen(Dialog[Preset | None]):
    """Lists the presets of a tool; closes with the one that is to be put into the form.

    Args:
        runtime: Where they are kept.
        spec: The tool.
        form: What can be saved.
    """

    PAGE = "Presets"
    AUTO_FOCUS = "PickList"

    DEFAULT_CSS = """
    PresetsScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 90; max-width: 94%; height: 24; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
            #sought { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
            PickList { height: 1fr; }
            #about { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
            #preview { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
            #preview Static { height: auto; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("presets.save", "ctrl+s", "save", "Save as", "Save what is in the form under a name.", footer=True),
        Command("presets.rename", "f2", "rename", "Rename", "Give the marked preset another name.", footer=True),
        Command("presets.delete", "delete", "delete", "Delete", "Throw the marked preset away.", footer=True),
        Command("presets.close", "escape", "close", "Close", "Go back to the form as it is.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, spec: ToolSpec, form: Form) -> None:
        super().__init__()
        self._runtime = runtime
        self._spec = spec
        self._form = form
        self._presets: tuple[Preset, ...] = ()
        # what is read may come when the screen is being taken down, and nothing can be looked for in it any more
        self._list = PickList()

    def compose(self) -> ComposeResult:
        """The list over what is in the marked preset."""
        with Vertical(id="box") as box:
            box.border_title = Content(f"Presets of {clean_line(self._spec.name)}")
            yield Static(id="sought")
            yield self._list
            yield Static(id="about")
            with VerticalScroll(id="preview", can_focus=False):
                yield Static(id="json")
            yield KeysLine()

    def on_mount(self) -> None:
        """Reads the presets."""
        self._list.empty = "Reading…"
        self._read()

    @work(exclusive=True, group="read")
    async def _read(self, marked: str = "") -> None:
        """Lists the presets that there are now, one of them marked."""
        self._presets = tuple(await asyncio.to_thread(self._runtime.presets.list, self._spec.name))
        names = [preset.name for preset in self._presets]
        lines = [PickLine("+ save what is in the form", pinned=True)]
        lines += [PickLine(clean_line(preset.name), _summary(preset.arguments)) for preset in self._presets]
        self._list.show(lines, names.index(marked) + 1 if marked in names else min(1, len(names)))

    @property
    def _marked(self) -> Preset | None:
        """The marked preset; None where the line that saves is marked."""
        return self._presets[self._list.marked - 1] if self._list.marked else None

    # What the user does

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Closes with the chosen preset; on the line that saves, saves."""
        event.stop()
        if self._marked is None:
            self.action_save()
        else:
            self.dismiss(self._marked)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offers only what can be done to the marked line."""
        return self._marked is not None if action in {"rename", "delete"} else True

    @work(exclusive=True, group="change")
    async def action_save(self) -> None:
        """Saves what is in the form under a name; asks before it takes the place of another."""
        from pegboard.tui.dialogs.ask_name import AskName

        arguments = self._form.draft()
        # ask under which name, then whether the one that has it may go
        asked = AskName("Save what is in the form as", self._list.sought, _warning(self._form))
        name = await self.app.push_screen_wait(asked)
        if name is None:
            return
        taken = next((preset for preset in self._presets if preset.name == name), None)
        if taken is not None and not await self._confirmed("Overwrite", taken):
            return
        if await self._changed(self._runtime.presets.save, self._spec.name, name, arguments):
            self._read(marked=name)

    @work(exclusive=True, group="change")
    async def action_rename(self) -> None:
        """Gives the marked preset another name."""
        from pegboard.tui.dialogs.ask_name import AskName

        preset = self._marked
        if preset is None:
            return
        name = await self.app.push_screen_wait(AskName(f"Rename {clean_line(preset.name)} to", preset.name))
        if name is None or name == preset.name:
            return
        if await self._changed(self._runtime.presets.rename, self._spec.name, preset.name, name):
            self._read(marked=name)

    @work(exclusive=True, group="change")
    async def action_delete(self) -> None:
        """Throws the marked preset away, once that is confirmed."""
        preset = self._marked
        if preset is None or not await self._confirmed("Delete", preset):
            return
        if await self._changed(self._runtime.presets.delete, self._spec.name, preset.name):
            self._read()

    def action_close(self) -> None:
        """Closes without a preset."""
        self.dismiss(None)

    async def _confirmed(self, does: str, preset: Preset) -> bool:
        from pegboard.tui.dialogs.confirm import Confirm

        name = clean_line(preset.name)
        question = f"It has {_summary(preset.arguments)}\n\nThis can't be undone."
        return await self.app.push_screen_wait(Confirm(f"{does} the preset {name}?", question, does)) is True

    async def _changed(self, change: Callable[..., object], *words: object) -> bool:
        """Changes what is kept, beside the loop; says so where that can't be done."""
        try:
            await asyncio.to_thread(change, *words)
        except PresetError as error:
            self.notify(clean_line(str(error)), severity="error", markup=False)
            return False
        return True

    # What is seen

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()
        said = Content.assemble((clean_line(event.query), "$foreground bold"), ("▏", "$text-primary"))
        self.query_one("#sought", Static).update(
            said if event.query else "type to filter, or a name to save under", layout=False
        )

    @on(PickList.Marked)
    def _show_marked(self, event: PickList.Marked) -> None:
        event.stop()
        self.refresh_bindings()
        self._preview(self._marked)

    @work(exclusive=True, group="preview")
    async def _preview(self, preset: Preset | None) -> None:
        """Shows what is in a preset, or in the form."""
        arguments = self._form.draft() if preset is None else preset.arguments
        text, faults = await asyncio.to_thread(_previewed, self._spec, arguments)
        of = "in the form now" if preset is None else clean_line(preset.name)
        trouble = f"  ✗ {count(faults, 'fault')}" if faults else ""
        self.query_one("#about", Static).update(Content.assemble((of, "bold"), (trouble, "$text-warning")))
        self.query_one("#json", Static).update(Content(text))
        self.query_one("#preview", VerticalScroll).scroll_home(animate=False)


def _previewed(spec: ToolSpec, arguments: JsonObject) -> tuple[str, int]:
    """Gives arguments as JSON, secrets masked, and how many faults they have."""
    form = Form(spec.input_schema)
    form.load(arguments)
    text = form.text(masked=True)
    cut = f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters" if len(text) > _LONGEST else text
    return clean(cut), len(form.faults())


def _summary(arguments: JsonObject) -> str:
    """Gives the names of arguments in a line."""
    names = clean_line(", ".join(arguments)) or "no arguments"
    return names if len(names) <= _SUMMARY else f"{names[: _SUMMARY - 1]}…"


def _warning(form: Form) -> str:
    """Says that a secret would be written into a file."""
    holds = any(isinstance(one, TextField) and one.secret and one.text for one in form.walk())
    return "A secret is among the arguments; the file will hold it as it is." if holds else ""
