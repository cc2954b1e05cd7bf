"""Text editors of one line, and of several, which stay responsive with very long texts by showing the first lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Final, SupportsIndex, overload

from rich.cells import split_graphemes
from rich.text import Text
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Offset
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import Document, DocumentNavigator, Edit, EditResult, Location, WrappedDocument

from pegboard.results.sizes import count
from pegboard.tui.commands import key_in_reach
from pegboard.tui.widgets.control_pictures import with_control_pictures
from pegboard.tui.widgets.text_input import TextInput

MOST_IN_PLACE, _LONGEST_LINE = 60_000, 20_000
"""Most characters of a text, and of one of its lines, that is shown in full; wrapping more is too slow."""
_MOST_IN_ONE_LINE = 10_000
"""Most characters of a text that is edited in one line."""
_TYPED = 1_000
"""Most characters of an edit that is always shown in full."""
_HEAD = 300
"""Most characters that are shown of a longer text, few enough for the smallest box."""
_SHOWN = re.compile(r"(?:[^\n]*\n){1,6}|[^\n]*")
"""Complete lines, or the start of a line."""
_EDITORS = ("field.editor", "form.text_editor", "script.editor", "text.editor")
"""Commands that open the user's editor."""

_LOOK = """
    border: none;
    border-left: outer $border-blurred;
    padding: 0 1;
    background: $surface;
    &:focus { border: none; border-left: outer $border; background-tint: $foreground 5%; }
    &:ansi { border: none; border-left: outer ansi_default; }
    &:ansi:focus { border: none; border-left: outer ansi_bright_yellow; }
"""
"""CSS of all text editors."""

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
    for key, is_end, title in (("home", False, "Start of text"), ("end", True, "End of text")):
        yield Binding(f"ctrl+{key}", f"cursor_document({is_end})", title, show=False)
        yield Binding(f"ctrl+shift+{key}", f"cursor_document({is_end}, True)", f"Select to {title.lower()}", show=False)


class LineInput(TextInput):
    """Text editor of one line, without a frame."""

    DEFAULT_CSS = f"LineInput {{ height: 1; {_LOOK} }}"


class _ShownLines(list[str]):
    """Lines whose control characters are replaced by visible ones when they are read.

    Textual iterates over all of them, or, after an edit, over a slice.
    """

    def __iter__(self) -> Iterator[str]:
        return map(with_control_pictures, super().__iter__())

    @overload
    def __getitem__(self, index: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> str | list[str]:
        if isinstance(index, slice):
            return _ShownLines(super().__getitem__(index))
        return with_control_pictures(super().__getitem__(index))


class ExactDocument(Document):
    """Document whose text keeps every character.

    Textual's own also splits lines at characters such as U+2028, and joins them again with only one kind of line break.

    Args:
        text: The initial text.
    """

    def __init__(self, text: str) -> None:
        super().__init__("")
        self._lines = text.split("\n")

    @property
    def lines(self) -> list[str]:
        """The lines as they are shown; Textual uses them only to wrap them."""
        return _ShownLines(self._lines)

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        """Replace the text between two locations."""
        top, bottom = sorted((start, end))
        replaced = self.get_text_range(top, bottom)
        before = "".join(self._lines[top[0] : top[0] + 1])[: top[1]]
        after = "".join(self._lines[bottom[0] : bottom[0] + 1])[bottom[1] :]
        lines = f"{before}{text}{after}".split("\n")
        self._lines[top[0] : bottom[0] + 1] = lines
        return EditResult((top[0] + len(lines) - 1, len(lines[-1]) - len(after)), replaced)


class ClickableDocument(WrappedDocument):
    """Wrapped document that finds the character at a cell also after an emoji of several characters.

    Textual adds the widths of single characters, also of those that are shown as others.
    """

    def get_sections(self, line_index: int) -> list[str]:
        """Return the wrapped lines of a line as they are shown; Textual omits some control characters."""
        line = with_control_pictures(self.document.get_line(line_index))
        return [line[start:end] for start, end in pairwise([0, *self.get_offsets(line_index), len(line)])]

    def get_target_document_column(self, line_index: int, x_offset: int, y_offset: int) -> int:
        """Return the index in a line of the character at a cell of one of its wrapped lines."""
        sections = self.get_sections(line_index)
        section = sections[y_offset]
        above = "".join(sections[:y_offset])
        tabs = iter(self.get_tab_widths(line_index)[above.count("\t") :])
        start = end = 0
        for start, _, width in split_graphemes(section.replace("\t", " "))[0]:
            end += next(tabs) if section[start] == "\t" else width
            if x_offset < end:
                return len(above) + start
        is_last = y_offset in {-1, len(sections) - 1}
        return len(above) + (len(section) if is_last else start)


class Lines(TextArea, inherit_bindings=False):
    """Text area in the style of the form.

    `text` is always the whole text, and an edit changes nothing else of it. Of a very long text, the rest after the
    first lines is hidden: the document has a notice in its place, which can only be deleted as a whole.

    Args:
        text: The initial text.
        placeholder: The text shown while it is empty.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*_own_bindings()]
    DEFAULT_CSS = f"""
    Lines {{
        height: auto; min-height: 2; max-height: 10; {_LOOK}
        &:light .text-area--placeholder {{ color: $text-disabled; }}
        &:light .text-area--cursor {{ color: $input-cursor-foreground; background: $input-cursor-background; }}
        &:ansi .text-area--placeholder {{ color: ansi_default; text-style: dim; }}
        &:ansi .text-area--cursor {{ color: ansi_default; background: ansi_default; text-style: reverse; }}
    }}
    """

    def __init__(self, text: str, placeholder: str = "") -> None:
        self._hidden: dict[str, str] = {}
        """Hidden texts by their notices in the document, also those that can be restored by undo."""
        self._has_warned = False
        super().__init__(
            self._cut(text, "") if _is_long(text) else text,
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=Content(placeholder),
        )

    @property
    def text(self) -> str:
        """The whole text, even if a part is hidden."""
        return self._whole(self.document.text)

    @text.setter
    def text(self, value: str) -> None:
        self.load_text(value)

    @property
    def is_cut(self) -> bool:
        """Whether a part of the text is hidden."""
        return any(notice in self.document.text for notice in self._hidden)

    @property
    def wrap_width(self) -> int:
        """The width of wrapped lines, from the last layout: Textual knows no width while it arranges the widgets."""
        beside = self.styles.gutter.width + self.scrollbar_gutter.width + self.gutter_width + 1  # 1 for the cursor
        return max(0, self.outer_size.width - beside) if self.soft_wrap else 0

    def get_text_range(self, start: Location, end: Location) -> str:
        """Return the text between two locations, with its hidden parts."""
        return self._whole(super().get_text_range(start, end))

    def load_text(self, text: str) -> None:
        """Show another text and clear the undo history."""
        self._hidden.clear()
        super().load_text(self._cut(text, key_in_reach(self, _EDITORS)) if _is_long(text) else text)

    def _set_document(self, text: str, language: str | None) -> None:
        """Show a text in an exact document; a language would need another one."""
        del language
        self.document = ExactDocument(text)
        self.wrapped_document = ClickableDocument(self.document, tab_width=self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._build_highlight_map()
        self.move_cursor((0, 0))
        self._rewrap_and_refresh_virtual_size()

    def edit(self, edit: Edit) -> EditResult:
        """Apply an edit, and hide most of a very long inserted text.

        An edit of a part of a notice is refused with a message; text that is typed into a notice follows it.
        """
        # Textual deletes the last line with a line break that it doesn't have
        start, end, text = edit.top, min(edit.bottom, self.document.end), edit.text
        first, last = self._notice_around(start), self._notice_around(end)
        if last is not None and start == end:
            start = end = (end[0], last.end())
        elif first is not None or last is not None:
            self._warn()
            return EditResult(end, "")
        if len(text) > _TYPED:
            before = self.document.get_text_range((0, 0), start)
            if _is_long(before + text + self.document.get_text_range(end, self.document.end)):
                text = self._cut(text, key_in_reach(self, _EDITORS))
        result = super().edit(Edit(text, start, end, edit.maintain_selection_offset))
        return EditResult(result.end_location, self._whole(result.replaced_text))

    def action_undo(self) -> None:
        """Undo the last edit; without one, leave the key to the parent."""
        before = self.document.text
        super().action_undo()
        if self.document.text == before:
            raise SkipAction

    def action_cursor_document(self, is_end: bool, select: bool = False) -> None:
        """Move the cursor to the start or the end of the text; leave the key to the parent if it already was."""
        target = self.document.end if is_end else (0, 0)
        if self.cursor_location == target and not select:
            raise SkipAction
        self.move_cursor(target, select=select)

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Scroll to the cursor, unless an edit removed its line: Textual moves it after it updates the scroll bars."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset()
        return super().scroll_cursor_visible(center, animate)

    def action_line_break(self) -> None:
        """Insert a line break."""
        self._replace_via_keyboard("\n", *self.selection)

    def on_mount(self) -> None:
        """Show a very long text again: its notice names a key that is known only now."""
        if self.is_cut:
            self.load_text(self.text)

    def on_blur(self) -> None:
        """Repeat the warning when the user returns."""
        self._has_warned = False

    def on_resize(self) -> None:
        """Draw the lines again: Textual draws them before it wraps them for the new size."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render a line; without columns, return an empty one, since Textual fails to wrap the placeholder."""
        return super().render_line(y) if self.content_size.width else Strip.blank(self.size.width)

    def get_line(self, line_index: int) -> Text:
        """Return a line with visible control characters."""
        line = self.document.get_line(line_index)
        text = Text(with_control_pictures(line), end="", no_wrap=True)
        for notice in self._notices(line):
            text.stylize("italic", *notice.span())
        return text

    def _cut(self, text: str, key: str) -> str:
        """Return the first lines of a text and a notice, and keep the rest.

        Args:
            text: A long text.
            key: Key that opens it in the user's editor, or an empty string.
        """
        shown = _SHOWN.match(text, 0, _HEAD)
        head = shown[0] if shown is not None else ""
        hidden = text[len(head) :].removesuffix("\n")
        more = count(len(hidden), "more character")
        how, number = f": edit in $EDITOR ({key})" if key else "", 1
        while (notice := f"[… {more}{how}{f' #{number}' if number > 1 else ''}]") in text or (notice in self._hidden):
            number += 1
        self._hidden[notice] = hidden
        return head + notice + text[len(head) + len(hidden) :]

    def _notices(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the notices in a text of the document."""
        return re.finditer("|".join(map(re.escape, self._hidden)), text) if self._hidden else iter(())

    def _notice_around(self, location: Location) -> re.Match[str] | None:
        """Return the notice that has characters before and after a location, or None."""
        row, column = location
        found = self._notices(self.document.get_line(row))
        return next((notice for notice in found if notice.start() < column < notice.end()), None)

    def _whole(self, text: str) -> str:
        """Return a text of the document with the hidden texts in place of their notices."""
        pieces, at = [], 0
        for notice in self._notices(text):
            pieces += [text[at : notice.start()], self._hidden[notice[0]]]
            at = notice.end()
        return "".join([*pieces, text[at:]])

    def _warn(self) -> None:
        """Say once per focus how to change a hidden text."""
        if not self._has_warned:
            self._has_warned = True
            key = key_in_reach(self, _EDITORS)
            how = f", or press {key} to edit it in $EDITOR" if key else ""
            self.notify(f"The hidden text was not changed. Select all of it to delete it{how}.", markup=False)


def needs_box(text: str) -> bool:
    """Return whether a text doesn't fit into an editor of one line."""
    return "\n" in text or "\r" in text or len(text) > _MOST_IN_ONE_LINE


def _is_long(text: str) -> bool:
    if len(text) <= _LONGEST_LINE:
        return False
    return len(text) > MOST_IN_PLACE or max(map(len, text.split("\n"))) > _LONGEST_LINE
