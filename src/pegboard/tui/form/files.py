"""Popup list of files and folders, from which users pick a path."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from pegboard.config.paths import expanded, working_directory
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.popups import Anchor, Popup, label
from pegboard.tui.widgets.pick_list import PickLine, PickList

_MOST_ENTRIES = 20_000
_HERE = "./"


@dataclass(frozen=True)
class ListedFile:
    """File or folder in a folder."""

    name: str
    is_folder: bool

    @property
    def can_be_sent(self) -> bool:
        """Whether its name is valid Unicode; file names may be arbitrary bytes."""
        try:
            self.name.encode()
        except UnicodeEncodeError:
            return False
        return True


@dataclass(frozen=True)
class FolderListing:
    """Content of a folder, folders first."""

    folder: Path
    entries: tuple[ListedFile, ...]
    problem: str
    """Why the listing is incomplete, or an empty string."""


def read_folder(folder: Path) -> FolderListing:
    """List a folder; an error becomes the `problem` of the listing."""
    try:
        with os.scandir(folder) as found:
            some = [ListedFile(entry.name, _is_folder(entry)) for entry in islice(found, _MOST_ENTRIES + 1)]
    except OSError as error:
        return FolderListing(folder, (), f"Can't read this folder: {error.strerror or error}.")
    problem = f"Only the first {_MOST_ENTRIES:,} entries are listed." if len(some) > _MOST_ENTRIES else ""
    some = sorted(some[:_MOST_ENTRIES], key=lambda entry: (not entry.is_folder, entry.name.casefold()))
    return FolderListing(folder, tuple(some), problem)


def starting_point(text: str, folder: Path) -> tuple[Path, str]:
    """Return the folder to list first, and the initial filter.

    Args:
        text: The typed text, possibly the prefix of a path.
        folder: The folder that relative paths start from.
    """
    path = folder / expanded(text)
    if _is_folder(path):
        return path, ""
    if _is_folder(path.parent):
        return path.parent, path.name
    return next((outer for outer in path.parents if _is_folder(outer)), folder), ""


class FilePicker(Popup[str | None]):
    """List of files that closes with a path, or None; the path is relative inside the working directory.

    Args:
        beside: The widget that opened it.
        title: Title of the box.
        text: The text typed in the editor.
        folders_only: Whether to list folders only.
    """

    PAGE = "Files"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("files.into", "right", "into", "Open", "Open the selected folder."),
        Command("files.out", "left,backspace", "out", "Go up", "Open the parent folder."),
        Command(
            "files.hidden",
            "ctrl+t",
            "hidden",
            "Toggle hidden files",
            "Show or hide files whose names start with a dot.",
        ),
        Command("files.close", "escape", "close", "Close", "Close the list and keep the typed text."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, beside: Anchor, title: str, text: str, *, folders_only: bool) -> None:
        super().__init__(
            beside, title, "{pick.choose} chooses · {files.out} up · {files.into} open · {files.hidden} hidden"
        )
        self._text = text
        self._folders_only = folders_only
        self._shows_hidden = False
        self._listing: FolderListing | None = None
        self._entries: list[ListedFile] = []
        self._absolute = Path(text).is_absolute() or text.startswith("~")
        self._base = Path()

    def on_mount(self) -> None:
        """List the folder of the typed path."""
        self.list.empty = "Loading…"
        self._open_first()

    @work(exclusive=True, group="listing")
    async def _open_first(self) -> None:
        self._base = await asyncio.to_thread(working_directory)
        folder, sought = await asyncio.to_thread(starting_point, self._text, self._base)
        self._shows_hidden = sought.startswith(".")
        self._show_listing(await asyncio.to_thread(read_folder, folder), sought=clean_line(sought))

    @work(exclusive=True, group="listing")
    async def _open(self, folder: Path, marked: str = "") -> None:
        """List a folder and select the entry with a name."""
        self._show_listing(await asyncio.to_thread(read_folder, folder), marked=marked)

    def _show_listing(self, found: FolderListing, *, marked: str = "", sought: str = "") -> None:
        self._listing = found
        self._entries = [
            entry
            for entry in found.entries
            if (entry.is_folder or not self._folders_only)
            and (self._shows_hidden or entry.name == marked or not entry.name.startswith("."))
        ]
        self.list.empty = "No matching files."
        lines = [PickLine(f"{_HERE}  {found.problem}".rstrip(), "this folder", pinned=True)]
        lines += [
            PickLine(label(entry.name) + "/" * entry.is_folder, "" if entry.can_be_sent else "name isn't valid Unicode")
            for entry in self._entries
        ]
        names = [entry.name for entry in self._entries]
        position = names.index(marked) + 1 if marked in names else min(1, len(names))
        self.show(lines, position, sought=sought)
        if marked in names:
            self.list.renew(lines, position)

    def place_box(self) -> None:
        """Place the box, and show the folder in its title, shortened at the start."""
        super().place_box()
        if self._listing is not None:
            name, space = (
                clean_line(str(self._listing.folder)),
                max(self.region_beside.width, 36) - len(self._title) - 12,
            )
            title = f"{self._title} · {name if len(name) <= space else '…' + name[-space:]}"
            self.query_one("#box", Vertical).border_title = Content(title)

    def action_into(self) -> None:
        """Open the selected folder."""
        entry = self._marked()
        if self._listing is not None and entry is not None and entry.is_folder:
            self._open(self._listing.folder / entry.name)

    def action_out(self) -> None:
        """Open the parent folder."""
        if self._listing is not None:
            folder = _absolute_path(self._listing.folder)
            self._open(folder.parent, marked=folder.name)

    def action_hidden(self) -> None:
        """Show or hide files whose names start with a dot."""
        entry = self._marked()
        self._shows_hidden = not self._shows_hidden
        if self._listing is not None:
            self._show_listing(self._listing, marked=entry.name if entry is not None else "", sought=self.list.sought)

    @on(PickList.Chosen)
    def _choose(self, event: PickList.Chosen) -> None:
        event.stop()
        if self._listing is None:
            return
        entry = self._marked()
        if entry is None:
            self.dismiss(self._sent_path(self._listing.folder))
        elif entry.is_folder and not self._folders_only:
            self._open(self._listing.folder / entry.name)
        elif entry.can_be_sent:
            self.dismiss(self._sent_path(self._listing.folder / entry.name))
        else:
            self.notify(
                "This file can't be sent because its name isn't valid Unicode. Rename it or choose another.",
                severity="warning",
            )

    def _marked(self) -> ListedFile | None:
        """Return the selected entry, or None for the folder itself."""
        marked = self.list.marked
        return self._entries[marked - 1] if marked else None

    def _sent_path(self, path: Path) -> str:
        """Return the path to send: relative in the working directory unless an absolute path was typed."""
        whole = _absolute_path(path)
        is_inside = whole.is_relative_to(self._base) and not self._absolute
        return str(whole.relative_to(self._base) if is_inside else whole)


def _absolute_path(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.resolve follows links


def _is_folder(path: Path | os.DirEntry[str]) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # no permission, or not a valid path
        return False
