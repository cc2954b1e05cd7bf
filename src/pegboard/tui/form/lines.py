"""A box of several lines, which shows as much of a very long text as it can without keeping the keys waiting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.text import Text
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import EditResult, Location

from pegboard.tui.commands import key_in_reach

MOST_IN_PLACE, _LONGEST_LINE = 60_000, 20_000
"""Characters of a text, and of a line of it, that is edited where it stands; wrapping more of them takes too long."""
_TYPED = 100
"""Characters that somebody puts in at once by typing; a text grows by them without being cut all of a sudden."""
_HEAD, _HEAD_LINES = 300, 6
"""Characters and lines shown of a longer one, few enough for the smallest box."""
_EDITORS = ("field.editor", "form.text_editor", "script.editor")
"""The commands that edit a text in the user's editor."""

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in {0x09, 0x0A}} | {0x7F: "␡"}
_PICTURES |= dict.fromkeys([*range(0x80, 0xA0), 0x00AD, 0x061C, 0x180E, 0x200B, *range(0x200E, 0x2010)], "\ufffd")
_PICTURES |= dict.fromkeys(range(0x2028, 0x202F), "\ufffd")
_PICTURES |= dict.fromkeys([*range(0x2060, 0x2070), 0xFEFF, *range(0xD800, 0xE000)], "\ufffd")


def _own_bindings() -> Iterator[BindingType]:
    """Gives the keys of a text area, but for those that go to a place of the app from wherever one is."""
    for binding in TextArea.BINDINGS:
        if not isinstance(binding, Binding) or binding.key not in {"f6", "f7"}:
            yield binding
    yield Binding("alt+a", "select_all", "Select all", show=False)


def pictured(text: str) -> str:
    """Gives text that can be shown, character by character: an editor's cursor counts on the length."""
    return text.translate(_PICTURES)


class Lines(TextArea, inherit_bindings=False):
    """Several lines in the dress of the form.

    `text` is always the whole text. Of a very long one only the beginning is shown, and can't be typed into.

    Args:
        text: What it begins with.
        placeholder: What stands in it while it is empty.
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
            _head(text, "") if self.is_cut else text,
            read_only=self.is_cut,
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=Content(placeholder),
        )

    @property
    def text(self) -> str:
        """The whole text, whether all of it is shown or not."""
        return self.document.text if self._long is None else self._long

    @text.setter
    def text(self, value: str) -> None:
        self.load_text(value)

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning is shown."""
        return self._long is not None

    def load_text(self, text: str) -> None:
        """Shows another text; what was typed before can't be brought back."""
        self._before = None
        self._long = text if _is_long(text) else None
        self.read_only = self.is_cut
        super().load_text(_head(text, key_in_reach(self, _EDITORS)) if self.is_cut else text)

    def replace(
        self, insert: str, start: Location, end: Location, *, maintain_selection_offset: bool = True
    ) -> EditResult:
        """Puts text in the place of what is between two locations, of a text that is cut in the place of all of it."""
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
        """Takes the last edit back; without one, the key is for whoever is around the box."""
        if self._before is not None:
            self.load_text(self._before)
            return
        before = self.document.text
        super().action_undo()
        if self.document.text == before:
            raise SkipAction

    def on_mount(self) -> None:
        """Says which key edits a text that is cut, once that is known."""
        if self._long is not None:
            self.load_text(self._long)

    def render_line(self, y: int) -> Strip:
        """Render a line; one without columns is empty, where Textual fails to wrap the placeholder."""
        return super().render_line(y) if self.content_size.width else Strip.blank(self.size.width)

    def get_line(self, line_index: int) -> Text:
        """Gives a line as it can be shown."""
        return Text(pictured(self.document.get_line(line_index)), end="", no_wrap=True)


def _is_long(text: str) -> bool:
    if len(text) <= _LONGEST_LINE:
        return False
    return len(text) > MOST_IN_PLACE or max(map(len, text.split("\n"))) > _LONGEST_LINE


def _head(text: str, key: str) -> str:
    head = "\n".join(text[:_HEAD].split("\n")[:_HEAD_LINES])
    more = f"… {len(text) - len(head):,} more characters: {f'{key} edits' if key else 'edit'} all of them in $EDITOR"
    return f"{more}\n{head}"
