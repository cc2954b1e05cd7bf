"""Bash editor of the Script page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets.text_area import Edit, EditResult, Location, Selection

from pegboard.results.clean import without_halves
from pegboard.tui.commands import Command, bindings, bindings_of
from pegboard.tui.form.lines import Lines
from pegboard.tui.script.bash import KEYWORDS, NOTHING, PLACEHOLDER, SHELL, Scanned, ShellState, pieces, scan
from pegboard.tui.script.completion_popup import CompletionPopup

_INDENT = 2
_OWN = ("script.indent", "script.leave")
"""Commands whose keys a text area would insert as text, or that must keep the order of typing."""


class ScriptEditor(Lines):
    """Editor with line numbers and syntax highlighting, which also marks tools and unknown commands."""

    PAGE = "Editor"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "script.indent",
            "tab",
            "indent",
            "Indent",
            "Select the next placeholder, or indent by two spaces.",
        ),
        Command("script.leave", "escape", "leave", "Leave", "Make the next tab focus the next pane."),
        Command(
            "script.complete",
            "ctrl+f",
            "complete",
            "Complete",
            "List what can follow: commands, flags, values and paths.",
            footer=True,
            meaning="Pick",
            words="completion suggest",
        ),
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
        "script-editor--placeholder",
        "script-editor--tool",
        "script-editor--unknown",
        "script-editor--finding",
    }
    DEFAULT_CSS = """
    ScriptEditor {
        height: 1fr; max-height: 100%; border: none; padding: 0 0 0 1; scrollbar-size-vertical: 1;
        &:focus, &:ansi, &:ansi:focus { border: none; }
        & .script-editor--comment { color: $text-muted; text-style: italic; }
        & .text-area--gutter { color: $text-muted; }
        & .script-editor--keyword { color: $text-accent; }
        & .script-editor--builtin { color: $text-secondary; }
        & .script-editor--string { color: $text-success; }
        & .script-editor--variable { color: $text-warning; }
        & .script-editor--number { color: $text-warning; }
        & .script-editor--operator { color: $text-muted; }
        & .script-editor--placeholder { color: $text-warning; text-style: bold italic; }
        & .script-editor--tool { color: $text-primary; text-style: bold; }
        & .script-editor--unknown { color: $text-error; text-style: underline; }
        & .script-editor--finding { color: $text-error; text-style: underline bold; }
    }
    """

    class Typed(Message):
        """The user typed a character, or asked for completions."""

        def __init__(self, *, is_request: bool) -> None:
            super().__init__()
            self.is_request = is_request

    def __init__(self) -> None:
        super().__init__("")
        self.popup = CompletionPopup()
        """The list of completions; the page mounts it."""
        self._marks: dict[int, list[tuple[int, int]]] = {}
        """Columns of findings by line, from 0."""
        self.set_reactive(Lines.show_line_numbers, True)
        self.set_reactive(Lines.indent_width, _INDENT)
        self.example = ""
        """Script that `tab` inserts into an empty editor."""
        self._tools: frozenset[str] = frozenset()
        self._functions: frozenset[str] = frozenset()
        self._states: list[ShellState] = [NOTHING]
        """Scanner states at the starts of lines, as far as they were computed."""
        self._text_styles: dict[str, Style] = {}
        self._leaves_on_tab = False
        """Whether `tab` focuses the next pane instead of indenting."""

    # Text; lone surrogates can neither be run nor saved

    def replace(
        self, insert: str, start: Location, end: Location, *, maintain_selection_offset: bool = True
    ) -> EditResult:
        """Replace the text between two locations."""
        insert = without_halves(insert)
        return super().replace(insert, start, end, maintain_selection_offset=maintain_selection_offset)

    # Analysis

    def set_tools(self, tools: frozenset[str]) -> None:
        """Set the names of commands that are tools."""
        self._tools = tools
        self.notify_style_update()
        self.refresh()

    @property
    def functions(self) -> frozenset[str]:
        """Names of the functions that the script defines."""
        return self._functions

    def update_functions(self) -> None:
        """Update the functions defined in the script."""
        functions = frozenset(name for scanned in self.scanned() for name in scanned.functions)
        if functions != self._functions:
            self._functions = functions
            self.notify_style_update()
            self.refresh()

    def scanned(self) -> Iterator[Scanned]:
        """Yield the scanned lines."""
        before = NOTHING
        for line in self.text.split("\n"):
            found = scan(line, before)
            before = found.after
            yield found

    def command_here(self) -> str:
        """Return the tool at or before the cursor in its line, else the first one, or an empty string."""
        row, column = self.cursor_location
        words = [word for word in scan(self._line(row), self._state_at(row)).words if word.text in self._tools]
        return next((word.text for word in reversed(words) if word.start <= column), words[0].text if words else "")

    # Highlighting

    def get_line(self, line_index: int) -> Text:
        """Return a highlighted line."""
        text = super().get_line(line_index)
        if self.is_cut:
            return text
        line, before = self._line(line_index), self._state_at(line_index)
        for start, end, kind in pieces(line, before):
            text.stylize(self._style_of(kind), start, end)
        for word in scan(line, before).words:
            if word.text in self._tools:
                text.stylize(self._style_of("tool"), word.start, word.end)
            elif word.is_command and self._is_unknown(word.text) and (line_index, word.end) != self.cursor_location:
                text.stylize(self._style_of("unknown"), word.start, word.end)
        for start, end in self._marks.get(line_index, ()):
            text.stylize(self._style_of("finding"), start, min(end, len(line)))
        return text

    def _is_unknown(self, word: str) -> bool:
        is_known = word in SHELL or word in KEYWORDS or word in self._functions
        return bool(self._tools) and not is_known and "/" not in word

    def _line(self, index: int) -> str:
        return self.document.get_line(index)

    def _state_at(self, index: int) -> ShellState:
        """Return the scanner state at the start of a line."""
        while len(self._states) <= index:
            last = len(self._states) - 1
            self._states.append(scan(self._line(last), self._states[last]).after)
        return self._states[index]

    def _style_of(self, kind: str) -> Style:
        """Return a component's style without its background."""
        style = self._text_styles.get(kind)
        if style is None:
            full = self.get_component_rich_style(f"script-editor--{kind}")
            style = self._text_styles[kind] = full.without_color + Style(color=full.color)
        return style

    def notify_style_update(self) -> None:
        """Discard cached styles: the colors may have changed."""
        self._text_styles.clear()
        super().notify_style_update()

    def mark_findings(self, marks: Iterable[tuple[int, int, int]]) -> None:
        """Underline findings.

        Args:
            marks: Line from 0, first column and the column after the last of each.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        for line, start, end in marks:
            found.setdefault(line, []).append((start, end))
        if found != self._marks:
            self._marks = found
            self.notify_style_update()
            self.refresh()

    # Completion

    def action_complete(self) -> None:
        """Ask the page for completions."""
        self.post_message(self.Typed(is_request=True))

    def before_cursor(self) -> tuple[str, ShellState]:
        """Return the line up to the cursor or the selection, and the scanner state at its start."""
        row, column = min(self.selection)
        return self._line(row)[:column], self._state_at(row)

    def accept_completion(self) -> None:
        """Replace the word at the cursor and the selected text, such as a placeholder, by the selected suggestion."""
        completion, suggestion = self.popup.completion, self.popup.marked
        self.popup.close()
        (row, column), end = sorted(self.selection)
        if completion is None or suggestion is None or not self._line(row)[:column].endswith(completion.word):
            return
        text = suggestion.text
        if text.endswith(" ") and self._line(end[0])[end[1] : end[1] + 1] == " ":
            text = text[:-1]
        self.history.checkpoint()
        result = self.replace(text, (row, completion.start), end, maintain_selection_offset=False)
        self.move_cursor(result.end_location)
        self.post_message(self.Typed(is_request=False))

    def _use_popup(self, event: events.Key) -> bool:
        """Let the open list of completions handle a key; return whether it did."""
        popup = self.popup
        if popup.completion is None:
            return False
        match event.key:
            case "tab":
                self.accept_completion()
            case "enter" if popup.is_moved:
                self.accept_completion()
            case "down" | "up":
                popup.move(1 if event.key == "down" else -1)
            case "escape":
                popup.close()
            case _:
                popup.close()
                return False
        event.stop()
        event.prevent_default()
        return True

    def on_blur(self) -> None:
        """Close the list of completions."""
        self.popup.close()
        self._leaves_on_tab = False

    def on_mouse_down(self) -> None:
        """Close the list of completions."""
        self.popup.close()

    # Edits

    def edit(self, edit: Edit) -> EditResult:
        """Apply an edit and discard the states below it."""
        del self._states[edit.top[0] + 1 :]
        self._leaves_on_tab = False
        return super().edit(edit)

    def load_text(self, text: str) -> None:
        """Replace the text and clear the undo history."""
        self._states = [NOTHING]
        super().load_text(without_halves(text))

    def action_undo(self) -> None:
        """Undo the last edit."""
        self._states = [NOTHING]
        super().action_undo()

    def action_redo(self) -> None:
        """Redo the last undone edit."""
        self._states = [NOTHING]
        super().action_redo()

    def put(self, text: str) -> None:
        """Replace the selection with a call and select its first placeholder."""
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
        self._select_placeholder(start if line == start[0] else (line, 0))

    def _may_call(self, location: Location) -> bool:
        """Return whether a command is expected at a location."""
        line, state = self._line(location[0])[: location[1]], self._state_at(location[0])
        words = scan(f"{line} :", state).words
        return bool(words) and words[-1].start == len(line) + 1 and words[-1].is_command

    def put_lines(self, text: str) -> None:
        """Insert lines below the cursor's line, or above it if the cursor is at its start."""
        row, column = self.cursor_location
        line = self._line(row)
        at, text = (
            ((row, len(line)), f"\n{text.removesuffix(chr(10))}") if column and line.strip() else ((row, 0), text)
        )
        result = self.replace(text, at, at, maintain_selection_offset=False)
        self.history.checkpoint()
        self.move_cursor(result.end_location)

    def _select_placeholder(self, start: Location) -> bool:
        """Select the first placeholder of a line after a location; return False without one."""
        found = PLACEHOLDER.search(self._line(start[0]), start[1])
        if found is None:
            return False
        self.selection = Selection((start[0], found.start()), (start[0], found.end()))
        return True

    async def _on_key(self, event: events.Key) -> None:
        """Handle moving and editing keys in the order of typing, which bindings would not keep."""
        if self._use_popup(event):
            return
        if event.is_printable or event.key == "backspace":
            self.post_message(self.Typed(is_request=False))
        own = {key: binding.action for key, binding in bindings_of(self) if not binding.id or binding.id in _OWN}
        wanted = own.get(event.key)
        self._leaves_on_tab = self._leaves_on_tab and wanted == "indent"
        if wanted is not None:
            if await self.app.run_action(wanted, self):
                event.stop()
                event.prevent_default()
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self.action_line_break()
        else:
            await super()._on_key(event)

    def action_line_break(self) -> None:
        """Insert a line break and keep the indentation."""
        start, end = sorted(self.selection)
        line = self._line(start[0])[: start[1]]
        self._replace_via_keyboard("\n" + line[: len(line) - len(line.lstrip(" \t"))], start, end)

    def action_indent(self) -> None:
        """Select the next placeholder, or indent; insert the example into an empty editor.

        After the key that leaves the editor, focus the next pane.
        """
        if self._leaves_on_tab:
            self._leaves_on_tab = False
            self.screen.focus_next()
            return
        if not self.text and self.example:
            self.put(self.example)
            return
        start, end = sorted(self.selection)
        if self._select_placeholder(end):
            return
        if start[0] == end[0]:
            column = self.get_column_width(start[0], start[1])
            self._replace_via_keyboard(" " * (_INDENT - column % _INDENT), start, end)
            return
        for row in range(start[0], end[0] + bool(end[1])):
            if self._line(row):
                self.insert(" " * _INDENT, (row, 0))

    def action_leave(self) -> None:
        """Let the next `tab` focus the next pane; a maximized editor is restored instead."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        else:
            self._leaves_on_tab = True

    async def action_editor(self) -> None:
        """Edit the script in the external editor."""
        from pegboard.tui.form.editors import in_editor

        before = self.text
        after = await in_editor(self.app, before, ".sh")
        after = after.replace("\r\n", "\n").replace("\r", "\n")  # bash takes a CR as a part of a word
        if after != before:
            self.replace(after, (0, 0), self.document.end, maintain_selection_offset=False)
            self.history.checkpoint()

    def show_example(self, example: str, key: str) -> None:
        """Show an example as placeholder.

        Args:
            example: The example script.
            key: Key that inserts it.
        """
        self.example = example
        how = f"\nPress {key} to insert this example. Every tool is a command; `help` lists them."
        self.placeholder = Content(example + how)
