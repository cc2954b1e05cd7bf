"""The line above a list that shows what is typed into its filter, and how much that finds."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from pegboard.results.clean import clean_line


class FilterLine(Static):
    """What is typed, at the left end; how many lines it lets through, at the right.

    Args:
        hint: What to say while nothing is typed.
    """

    DEFAULT_CSS = """
    FilterLine { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, hint: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._hint = hint
        self._sought, self._count, self._typing = "", "", False

    def on_mount(self) -> None:
        """Says how to filter."""
        self._show()

    def on_resize(self) -> None:
        """Puts the count at the new right end, once the line has its width."""
        self.call_after_refresh(self._show)

    def show(self, sought: str, count: str, *, typing: bool = False) -> None:
        """Shows another filter.

        Args:
            sought: What is typed.
            count: How much that finds: `3 of 12`.
            typing: Whether letters go to the filter though none was typed yet.
        """
        self._sought, self._count, self._typing = sought, count, typing
        self._show()

    def _show(self) -> None:
        if not self._sought and not self._typing:
            self.update(Content.styled(self._hint, "$text-muted"), layout=False)
            return
        count = f" {self._count}" if self._sought.strip() else ""
        room = max(4, self.content_size.width - len(count) - 3)
        shown = clean_line(self._sought)[-room:]
        self.update(
            Content.assemble(
                ("/ ", "$text-primary bold"),
                (shown, "$foreground bold"),
                ("▏", "$text-primary"),
                " " * max(0, room - len(shown)),
                (count, "$text-muted"),
            ),
            layout=False,
        )
