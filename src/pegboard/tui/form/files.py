"""A list of files and folders to pick a path from."""

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
from textual.geometry import Region

from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.popups import Popup, label
from pegboard.tui.widgets.pick_list import PickLine, PickList

_MOST_ENTRIES = 20_000
_HERE = "./"


@dataclass(frozen=True)
class Entry:
    """Something in a folder."""

    name: str
    is_folder: bool

    @property
    def can_be_sent(self) -> bool:
        """Whether its name is text; the name of a file may be any bytes."""
        try:
            self.name.encode()
        except UnicodeEncodeError:
            return False
        return True


@dataclass(frozen=True)
class Listing:
    """What is in a folder, folders first."""

    folder: Path
    entries: tuple[Entry, ...]
    trouble: str
    """Why not all of it is there; empty if all is."""


def listing(folder: Path) -> Listing:
    """Reads a folder; what can't be read is told, not raised."""
    try:
        with os.scandir(folder) as found:
            some = [Entry(entry.name, _is_folder(entry)) for entry in islice(found, _MOST_ENTRIES + 1)]
    except OSError as error:
        return Listing(folder, (), f"It can't be read: {error.strerror or error}.")
    trouble = f"Only {_MOST_ENTRIES:,} of its entries are listed." if len(some) > _MOST_ENTRIES else ""
    some = sorted(some[:_MOST_ENTRIES], key=lambda entry: (not entry.is_folder, entry.name.casefold()))
    return Listing(folder, tuple(some), trouble)


def beginning(text: str, folder: Path) -> tuple[Path, str]:
    """Gives the folder to begin in, and what to look for there.

    Args:
        text: What is typed, which may be the beginning of a path.
        folder: What a relative path begins at.
    """
    path = folder / os.path.expanduser(text)  # noqa: PTH111 - Path's raises where there is no such user
    if _is_folder(path):
        return path, ""
    if _is_folder(path.parent):
        return path.parent, path.name
    return next((outer for outer in path.parents if _is_folder(outer)), folder), ""


class FilePicker(Popup[str | None]):
    """Closes with a path, or None; relative where that is how one got there.

    Args:
        beside: Where on the screen what asked for it stands.
        title: What the path is for.
        text: What is typed so far.
        folders_only: Whether a folder is asked for.
    """

    PAGE = "Files"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("files.into", "right", "into", "Open", "Go into the marked folder."),
        Command("files.out", "left,backspace", "out", "Up", "Go to the folder around this one."),
        Command("files.hidden", "ctrl+t", "hidden", "Hidden files", "Show or hide what begins with a dot."),
        Command("files.close", "escape", "close", "Close", "Close the list and keep what was typed."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, beside: Region, title: str, text: str, *, folders_only: bool) -> None:
        super().__init__(beside, title, "enter takes · ← out · → in · ctrl+t hidden")
        self._text = text
        self._folders_only = folders_only
        self._shows_hidden = False
        self._listing: Listing | None = None
        self._entries: list[Entry] = []
        self._absolute = Path(text).is_absolute() or text.startswith("~")
        self._base = Path()

    def on_mount(self) -> None:
        """Lists the folder of what is typed."""
        self.list.empty = "Reading…"
        self._begin()

    @work(exclusive=True, group="listing")
    async def _begin(self) -> None:
        self._base = await asyncio.to_thread(_working_folder)
        folder, sought = await asyncio.to_thread(beginning, self._text, self._base)
        self._shows_hidden = sought.startswith(".")
        self._take(await asyncio.to_thread(listing, folder), sought=clean_line(sought))

    @work(exclusive=True, group="listing")
    async def _open(self, folder: Path, marked: str = "") -> None:
        """Lists another folder, the entry of that name marked."""
        self._take(await asyncio.to_thread(listing, folder), marked=marked)

    def _take(self, found: Listing, *, marked: str = "", sought: str = "") -> None:
        self._listing = found
        self._entries = [
            entry
            for entry in found.entries
            if (entry.is_folder or not self._folders_only)
            and (self._shows_hidden or entry.name == marked or not entry.name.startswith("."))
        ]
        self.list.empty = "There is nothing here."
        lines = [PickLine(f"{_HERE}  {found.trouble}".rstrip(), "this folder", pinned=True)]
        lines += [
            PickLine(label(entry.name) + "/" * entry.is_folder, "" if entry.can_be_sent else "its name is no text")
            for entry in self._entries
        ]
        names = [entry.name for entry in self._entries]
        place = names.index(marked) + 1 if marked in names else min(1, len(names))
        self._show_folder(found.folder)
        self.show(lines, place, sought=sought)

    def _show_folder(self, folder: Path) -> None:
        """Names the folder in the title, its end where there is no room for all of it."""
        box = self.query_one("#box", Vertical)
        name, room = clean_line(str(folder)), max(self._beside.width, 36) - len(self._title) - 12
        box.border_title = Content(f"{self._title} · {name if len(name) <= room else '…' + name[-room:]}")

    def action_into(self) -> None:
        """Goes into the marked folder."""
        entry = self._marked()
        if self._listing is not None and entry is not None and entry.is_folder:
            self._open(self._listing.folder / entry.name)

    def action_out(self) -> None:
        """Goes to the folder around this one."""
        if self._listing is not None:
            folder = _whole(self._listing.folder)
            self._open(folder.parent, marked=folder.name)

    def action_hidden(self) -> None:
        """Shows or hides what begins with a dot."""
        entry = self._marked()
        self._shows_hidden = not self._shows_hidden
        if self._listing is not None:
            self._take(self._listing, marked=entry.name if entry is not None else "", sought=self.list.sought)

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        event.stop()
        if self._listing is None:
            return
        entry = self._marked()
        if entry is None:
            self.dismiss(self._said(self._listing.folder))
        elif entry.is_folder and not self._folders_only:
            self._open(self._listing.folder / entry.name)
        elif entry.can_be_sent:
            self.dismiss(self._said(self._listing.folder / entry.name))
        else:
            self.notify("The name of this file is no text, so no argument can hold it.", severity="warning")

    def _marked(self) -> Entry | None:
        """Gives the marked entry; None for the folder itself."""
        marked = self.list.marked
        return self._entries[marked - 1] if marked else None

    def _said(self, path: Path) -> str:
        """Gives the path as it is sent: relative to the working folder where it is in it, unless it began otherwise."""
        whole = _whole(path)
        is_inside = whole.is_relative_to(self._base) and not self._absolute
        return str(whole.relative_to(self._base) if is_inside else whole)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was removed under our feet
        return Path("/")


def _whole(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - a link is sent as it is called, not as what it leads to


def _is_folder(place: Path | os.DirEntry[str]) -> bool:
    try:
        return place.is_dir()
    except (OSError, ValueError):  # it can't be looked at, or no path is like that
        return False
