"""The guide: pages of Markdown, for the command line, the app and the repository's web page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["ORDER", "GuidePage", "pages"]

ORDER: Final = (
    "tools",
    "results",
    "models",
    "scripts",
    "checks",
    "batch",
    "activity",
    "health",
    "packs",
    "mcp",
    "serve",
    "watch",
    "configuration",
    "commands",
    "agent",
    "architecture",
)
"""Names of the pages in reading order; pages that it doesn't name come last."""


@dataclass(frozen=True, slots=True)
class GuidePage:
    """One page of the guide.

    Attributes:
        name: File name without its ending.
        text: The text as Markdown.
    """

    name: str
    text: str

    @property
    def title(self) -> str:
        """The first heading."""
        return self.text.partition("\n")[0].removeprefix("# ").strip()

    @property
    def summary(self) -> str:
        """The first sentence after the title."""
        paragraph = " ".join(self.text.split("\n\n")[1].split())
        return f"{paragraph.partition('. ')[0].removesuffix('.').removesuffix(':')}."

    def lines_with(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the number and the text of every line that contains a text, in any case."""
        wanted = text.casefold()
        for number, line in enumerate(self.text.splitlines(), 1):
            if wanted in line.casefold():
                yield number, line.strip()


@cache
def pages() -> tuple[GuidePage, ...]:
    """Return all pages in reading order."""
    found = {file.stem: file for file in sorted(Path(__file__).parent.glob("*.md"))}
    names = [*(name for name in ORDER if name in found), *(name for name in found if name not in ORDER)]
    return tuple(GuidePage(name, found[name].read_text(encoding="utf-8")) for name in names)
