"""The editor that a script is written in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.widgets.text_area import Edit, EditResult, Location, Selection

from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.lines import Lines
from pegboard.tui.script.bash import GAP, KEYWORDS, NOTHING, SHELL, Open, Scanned, pieces, scan

_INDENT = 2
_OWN = ("script.indent", "script.leave")
"""Commands whose keys a text area would take for text, or that must come in turn with it."""


class ScriptEditor(Lines):
    """Bash with line numbers and colours; commands that are tools stand out, and those that are nothing at all.

    Args:
        text: What it begins with.
    """

    PAGE = "Editor"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "script.indent",
            "tab",
            "indent",
            "Indent",
            "Go to what is to be filled in; else indent by two spaces.",
        ),
        Command("script.leave", "escape", "leave", "Leave", "Go on to what comes next in the place."),
        Command("script.editor", "f4", "editor", "Editor", "Edit the script in $EDITOR.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "script-editor--comment",
        "script-editor--keyword",
        "script-editor--builtin",
        "script-editor--string",
        "script-editor--variable",
        "script-editor--number",
        "script-editor--operator",
        "script-editor--gap",
        "script-editor--tool",
        "script-editor--unknown",
    }
    DEFAULT_CSS = """
    ScriptEditor {
        height: 1fr; max-height: 100%; border: none; padding: 0 0 0 1; scrollbar-size-vertical: 1;
        &:focus, &:ansi, &:ansi:focus { border: none; }
        & .script-editor--comment { color: $text-muted; text-style: italic; }
        & .script-editor--keyword { color: $text-accent; }
        & .script-editor--builtin { color: $text-secondary; }
        & .script-editor--string { color: $text-success; }
        & .script-editor--variable { color: $text-warning; }
        & .script-editor--number { color: $text-warning; }
        & .script-editor--operator { color: $text-muted; }
        & .script-editor--gap { color: $text-warning; text-style: bold italic; }
        & .script-editor--tool { color: $text-primary; text-style: bold; }
        & .script-editor--unknown { color: $text-error; text-style: underline; }
    }
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.set_reactive(Lines.show_line_numbers, True)
        self.set_reactive(Lines.indent_width, _INDENT)
        self.example = ""
        """What `tab` puts into an empty editor."""
        self._tools: frozenset[str] = frozenset()
        self._functions: frozenset[str] = frozenset()
        self._begins: list[Open] = [NOTHING]
        """What is open where a line begins, for as many lines from the first as were asked for."""
        self._inks: dict[str, Style] = {}

    # What is known

    def know(self, tools: frozenset[str]) -> None:
        """Learns the names of the commands that are tools."""
        self._tools = tools
        self.notify_style_update()
        self.refresh()

    def settle(self) -> None:
        """Looks for the functions that the script defines, now that it stands still."""
        functions = frozenset(name for scanned in self.scanned() for name in scanned.functions)
        if functions != self._functions:
            self._functions = functions
            self.notify_style_update()
            self.refresh()

    def scanned(self) -> Iterator[Scanned]:
        """Gives what is in each line."""
        before = NOTHING
        for line in self.text.split("\n"):
            found = scan(line, before)
            before = found.after
            yield found

    def command_here(self) -> str:
        """Gives the name of the tool in the cursor's line that is at the cursor or before it, else the first one."""
        row, column = self.cursor_location
        words = [word for word in scan(self._line(row), self._begin(row)).words if word.text in self._tools]
        return next((word.text for word in reversed(words) if word.start <= column), words[0].text if words else "")

    # Its colours

    def get_line(self, line_index: int) -> Text:
        """Gives a line in its colours."""
        text = super().get_line(line_index)
        if self.is_cut:
            return text
        line, before = self._line(line_index), self._begin(line_index)
        for start, end, kind in pieces(line, before):
            text.stylize(self._ink(kind), start, end)
        for word in scan(line, before).words:
            if word.text in self._tools:
                text.stylize(self._ink("tool"), word.start, word.end)
            elif word.is_command and self._is_unknown(word.text) and (line_index, word.end) != self.cursor_location:
                text.stylize(self._ink("unknown"), word.start, word.end)
        return text

    def _is_unknown(self, word: str) -> bool:
        is_known = word in SHELL or word in KEYWORDS or word in self._functions
        return bool(self._tools) and not is_known and "/" not in word

    def _line(self, index: int) -> str:
        return self.document.get_line(index)

    def _begin(self, index: int) -> Open:
        """Gives what is open where a line begins."""
        while len(self._begins) <= index:
            last = len(self._begins) - 1
            self._begins.append(scan(self._line(last), self._begins[last]).after)
        return self._begins[index]

    def _ink(self, kind: str) -> Style:
        """Gives a component's style without its background, which is that of the line."""
        ink = self._inks.get(kind)
        if ink is None:
            style = self.get_component_rich_style(f"script-editor--{kind}")
            ink = self._inks[kind] = style.without_color + Style(color=style.color)
        return ink

    def notify_style_update(self) -> None:
        """Draws everything anew: the colours may be others."""
        self._inks.clear()
        super().notify_style_update()

    # What changes

    def edit(self, edit: Edit) -> EditResult:
        """Makes an edit; what is open further below has to be found out anew."""
        del self._begins[edit.top[0] + 1 :]
        return super().edit(edit)

    def load_text(self, text: str) -> None:
        """Shows another text; what was typed before can't be brought back."""
        self._begins = [NOTHING]
        super().load_text(text)

    def action_undo(self) -> None:
        """Takes the last edit back."""
        self._begins = [NOTHING]
        super().action_undo()

    def action_redo(self) -> None:
        """Makes the edit again that was taken back."""
        self._begins = [NOTHING]
        super().action_redo()

    def put(self, text: str) -> None:
        """Puts text in the place of what is selected, and goes to what of it is still to be filled in."""
        start, end = sorted(self.selection)
        before, after = self._line(start[0])[: start[1]], self._line(end[0])[end[1] :]
        if before.strip() and not after.strip() and not self._may_call(start):
            text = "\n" + before[: len(before) - len(before.lstrip())] + text
        elif before and not before[-1].isspace() and before[-1] not in "(|&;`":
            text = f" {text}"
        result = self.replace(text, start, end, maintain_selection_offset=False)
        self.history.checkpoint()
        self.move_cursor(result.end_location)
        line = result.end_location[0]
        self._go_to_gap(start if line == start[0] else (line, 0))

    def _may_call(self, place: Location) -> bool:
        """Says whether a command may stand somewhere."""
        line, begin = self._line(place[0])[: place[1]], self._begin(place[0])
        words = scan(f"{line} :", begin).words
        return bool(words) and words[-1].start == len(line) + 1 and words[-1].is_command

    def put_lines(self, text: str) -> None:
        """Puts whole lines below the cursor's line, or above it where the cursor is at its beginning."""
        row, column = self.cursor_location
        line = self._line(row)
        at, text = (
            ((row, len(line)), f"\n{text.removesuffix(chr(10))}") if column and line.strip() else ((row, 0), text)
        )
        result = self.replace(text, at, at, maintain_selection_offset=False)
        self.history.checkpoint()
        self.move_cursor(result.end_location)

    def _go_to_gap(self, start: Location) -> bool:
        """Selects the first gap of a line from a place on, if there is one."""
        found = GAP.search(self._line(start[0]), start[1])
        if found is None:
            return False
        self.selection = Selection((start[0], found.start()), (start[0], found.end()))
        return True

    async def _on_key(self, event: events.Key) -> None:
        """Takes the keys that move and edit in turn with what is typed: bindings come after the letters that follow."""
        own = {key: binding.action for key, binding in self._bindings if not binding.id or binding.id in _OWN}
        wanted = own.get(event.key)
        if wanted is not None:
            if await self.app.run_action(wanted, self):
                event.stop()
                event.prevent_default()
        elif event.key == "enter" and not self.read_only:
            event.stop()
            event.prevent_default()
            self._begin_line()
        else:
            await super()._on_key(event)

    def _begin_line(self) -> None:
        """Begins a line that is indented like the one before."""
        start, end = sorted(self.selection)
        line = self._line(start[0])[: start[1]]
        self._replace_via_keyboard("\n" + line[: len(line) - len(line.lstrip(" \t"))], start, end)

    def action_indent(self) -> None:
        """Goes to the next gap, else indents; into an empty editor, puts the example."""
        if not self.text and self.example:
            self.put(self.example)
            return
        start, end = sorted(self.selection)
        if self._go_to_gap(end):
            return
        if start[0] == end[0]:
            column = self.get_column_width(start[0], start[1])
            self._replace_via_keyboard(" " * (_INDENT - column % _INDENT), start, end)
            return
        for row in range(start[0], end[0] + bool(end[1])):
            if self._line(row):
                self.insert(" " * _INDENT, (row, 0))

    def action_leave(self) -> None:
        """Goes on to what comes next; first gives back the whole screen where it has it."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        else:
            self.screen.focus_next()

    async def action_editor(self) -> None:
        """Edits the script in the user's editor."""
        from pegboard.tui.form.editors import in_editor

        before = self.text
        after = await in_editor(self.app, before, ".sh")
        if after != before:
            self.replace(after, (0, 0), self.document.end, maintain_selection_offset=False)
            self.history.checkpoint()

    def show_example(self, example: str, key: str) -> None:
        """Says what one can write, while nothing is written.

        Args:
            example: A script to begin with.
            key: The key that takes it.
        """
        self.example = example
        how = f"\n{key} takes this example. Every tool is a command here; `help` lists them."
        self.placeholder = Content(example + how)
