"""Text area that stays responsive with very long texts by showing only an excerpt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Final

from rich.text import Text
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Offset
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import Document, DocumentNavigator, EditResult, Location, WrappedDocument

from pegboard.tui.commands import key_in_reach
from pegboard.tui.widgets.control_pictures import with_control_pictures

MOST_IN_PLACE, _LONGEST_LINE = 60_000, 20_000
"""Most characters of a text, and of one of its lines, that is edited in place; wrapping more is too slow."""
_TYPED = 100
"""Most characters of an edit that counts as typing; only larger ones can turn the text into an excerpt."""
_HEAD, _HEAD_LINES = 300, 6
"""Characters and lines of an excerpt, few enough for the smallest box."""
_EDITORS = ("field.editor", "form.text_editor", "script.editor")
"""Commands that open the user's editor."""

SELECT_ALL: Final = Binding("ctrl+a", "select_all", "Select all", show=False)
"""Binding of every text editor."""


def _own_bindings() -> Iterator[BindingType]:
    """Yield the bindings of `TextArea`, except for keys that switch pages."""
    for binding in TextArea.BINDINGS:
        if not isinstance(binding, Binding):
            yield binding
        elif binding.key not in {"f6", "f7"}:
            keys = [key for key in binding.key.split(",") if key != "ctrl+a"]
            yield replace(binding, key=",".join(keys))
    yield SELECT_ALL
    yield Binding("ctrl+j,shift+enter,ctrl+enter,alt+enter", "line_break", "New line", show=False)


class ExactDocument(Document):
    """Document whose text keeps every character.

    Textual's own also splits lines at characters such as U+2028, and joins them again with only one kind of line break.

    Args:
        text: The initial text.
    """

    def __init__(self, text: str) -> None:
        super().__init__("")
        self._lines = text.split("\n")

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        """Replace the text between two locations."""
        top, bottom = sorted((start, end))
        replaced = self.get_text_range(top, bottom)
        before = "".join(self._lines[top[0] : top[0] + 1])[: top[1]]
        after = "".join(self._lines[bottom[0] : bottom[0] + 1])[bottom[1] :]
        lines = f"{before}{text}{after}".split("\n")
        self._lines[top[0] : bottom[0] + 1] = lines
        return EditResult((top[0] + len(lines) - 1, len(lines[-1]) - len(after)), replaced)


class Lines(TextArea, inherit_bindings=False):
    """Text area in the style of the form.

    `text` is always the whole text, and an edit changes nothing else of it. A very long text is shown as a read-only
    excerpt.

    Args:
        text: The initial text.
        placeholder: The text shown while it is empty.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*_own_bindings()]
    DEFAULT_CSS = """
    Lines {
        height: auto;
        min-height: 2;
        max-height: 10;
        border: none;
        border-left: outer $border-blurred;
        padding: 0 1;
        background: $surface;
        &:focus { border: none; border-left: outer $border; background-tint: $foreground 5%; }
        &:ansi { border: none; border-left: outer ansi_default; }
        &:ansi:focus { border: none; border-left: outer ansi_bright_yellow; }
    }
    """

    def __init__(self, text: str, placeholder: str = "") -> None:
        self._long = text if _is_long(text) else None
        self._before: str | None = None
        super().__init__(
            _excerpt(text, "") if self.is_cut else text,
            read_only=self.is_cut,
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=Content(placeholder),
        )

    @property
    def text(self) -> str:
        """The whole text, even if only an excerpt is shown."""
        return self.document.text if self._long is None else self._long

    @text.setter
    def text(self, value: str) -> None:
        self.load_text(value)

    @property
    def is_cut(self) -> bool:
        """Whether only an excerpt is shown."""
        return self._long is not None

    def load_text(self, text: str) -> None:
        """Show another text and clear the undo history."""
        self._before = None
        self._long = text if _is_long(text) else None
        self.read_only = self.is_cut
        super().load_text(_excerpt(text, key_in_reach(self, _EDITORS)) if self.is_cut else text)

    def _set_document(self, text: str, language: str | None) -> None:
        """Show a text in an exact document; a language would need another one."""
        del language
        self.document = ExactDocument(text)
        self.wrapped_document = WrappedDocument(self.document, tab_width=self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._build_highlight_map()
        self.move_cursor((0, 0))
        self._rewrap_and_refresh_virtual_size()

    def replace(
        self, insert: str, start: Location, end: Location, *, maintain_selection_offset: bool = True
    ) -> EditResult:
        """Replace the text between two locations; an excerpt is replaced as a whole."""
        whole = insert
        if not self.is_cut and len(insert) > _TYPED:
            first, last = sorted((start, end))
            whole = self.get_text_range((0, 0), first) + insert + self.get_text_range(last, self.document.end)
        if not self.is_cut and not _is_long(whole):
            return super().replace(insert, start, end, maintain_selection_offset=maintain_selection_offset)
        before = self.text
        self.load_text(whole)
        self._before = before
        return EditResult(self.document.end, before)

    def action_undo(self) -> None:
        """Undo the last edit; without one, leave the key to the parent."""
        if self._before is not None:
            self.load_text(self._before)
            return
        before = self.document.text
        super().action_undo()
        if self.document.text == before:
            raise SkipAction

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor, unless an edit removed its line: Textual moves it after it updates the scroll bars."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset()
        return super().scroll_cursor_visible(center, animate)

    def action_line_break(self) -> None:
        """Insert a line break."""
        if not self.read_only:
            self._replace_via_keyboard("\n", *self.selection)

    def on_mount(self) -> None:
        """Redraw an excerpt, whose first line names a key that is known only now."""
        if self._long is not None:
            self.load_text(self._long)

    def on_resize(self) -> None:
        """Draw the lines again: Textual draws them before it wraps them for the new size."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render a line; without columns, return an empty one, since Textual fails to wrap the placeholder."""
        return super().render_line(y) if self.content_size.width else Strip.blank(self.size.width)

    def get_line(self, line_index: int) -> Text:
        """Return a line with visible control characters."""
        return Text(with_control_pictures(self.document.get_line(line_index)), end="", no_wrap=True)


def _is_long(text: str) -> bool:
    if len(text) <= _LONGEST_LINE:
        return False
    return len(text) > MOST_IN_PLACE or max(map(len, text.split("\n"))) > _LONGEST_LINE


def _excerpt(text: str, key: str) -> str:
    head = "\n".join(text[:_HEAD].split("\n")[:_HEAD_LINES])
    more = f"… {len(text) - len(head):,} more characters: edit in $EDITOR{f' ({key})' if key else ''}"
    return f"{more}\n{head}"
