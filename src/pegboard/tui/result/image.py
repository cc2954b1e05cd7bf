"""View of the images of a result."""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import io
import os
import struct
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Center, Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from pegboard import storage
from pegboard.results.clean import clean_line
from pegboard.results.images import ResultImage
from pegboard.results.stored.client import StoredResultError, picture
from pegboard.tui.commands import Command, bindings, key_of

ImageProtocol = Literal["kitty", "sixel", "blocks"]
"""How the terminal shows images."""

_CELL, _BLOCK = (10, 20), (1, 2)
"""Pixels of a cell, width and height: if the terminal doesn't say, and drawn as half blocks."""
_MOST_CELLS = 250
"""Maximum width and height in cells; the protocol of kitty can't place more."""
_REDRAW_SECONDS = 0.5
"""Interval at which kitty gets something to draw: it shows an image that it has loaded only with the next drawing."""
_SIXEL = ("foot", "mlterm", "contour", "yaft")


class ImageView(Vertical, can_focus=True):
    """One image at a time, drawn by the terminal if it can, otherwise with half blocks.

    Args:
        images: The images; untrusted.
    """

    PAGE = "Image"
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("result.image.next", "right", "turn(1)", "Next image", "Show the next image."),
        Command("result.image.previous", "left", "turn(-1)", "Previous image", "Show the previous image."),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)
    DEFAULT_CSS = """
    ImageView {
        height: 1fr;
        width: 1fr;
        background: $surface;
        padding: 0 1;
        &:focus { background-tint: $foreground 3%; }
        & > .caption { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        & > Center { height: 1fr; }
    }
    """

    class Turned(Message):
        """Another image is shown."""

    def __init__(self, images: Sequence[ResultImage]) -> None:
        super().__init__()
        self._images = images
        self._at = 0
        self._caption = Static("", classes="caption", markup=False)
        self._room = Center()

    @property
    def image(self) -> ResultImage:
        """The image that is shown."""
        return self._images[self._at]

    def compose(self) -> ComposeResult:
        """Yield the line about the image, and its container."""
        yield self._caption
        yield self._room

    def on_mount(self) -> None:
        """Draw the line about the image from time to time, if the terminal needs that."""
        if image_protocol(os.environ) == "kitty":
            self.set_interval(_REDRAW_SECONDS, self._caption.refresh)

    def on_resize(self, event: events.Resize) -> None:
        """Draw the image in its new size."""
        del event
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the commands if there are several images."""
        del action, parameters
        return len(self._images) > 1

    def action_turn(self, step: int) -> None:
        """Show another image, wrapping around at the ends."""
        self._at = (self._at + step) % len(self._images)
        self._draw()
        self.post_message(self.Turned())

    @work(exclusive=True, group="image")
    async def _draw(self) -> None:
        columns, rows = self.size.width - 2, self.size.height - 1
        if columns < 4 or rows < 2:
            return
        image, about = self.image, _about(self.image)
        if len(self._images) > 1:
            about = [f"{self._at + 1} of {len(self._images)}", *about]
        keys = f"{key_of(self.parent.parent, 'result.save')} saves it" if self.parent and self.parent.parent else ""
        self._caption.update(Content(" · ".join([*about, "reading…"])))
        protocol = image_protocol(os.environ)
        cell = _BLOCK if protocol == "blocks" else _cell_size()
        columns, rows = min(columns, _MOST_CELLS), min(rows, _MOST_CELLS)
        try:
            facts, pixels = await picture(image, columns * cell[0], rows * cell[1])
            size = facts["shown_width"], facts["shown_height"]
            made = await asyncio.to_thread(_image_widget, protocol, size, pixels)
        except (StoredResultError, ImportError) as error:
            self._caption.update(Content(" · ".join([*about, keys])))
            await self._room.remove_children()
            await self._room.mount(Static(Content(clean_line(str(error))), markup=False))
            return
        made.styles.width = max(min(-(-size[0] // cell[0]), columns), 1)
        made.styles.height = max(min(-(-size[1] // cell[1]), rows), 1)
        about.append(f"{facts['width']:,} × {facts['height']:,} pixels")
        await self._room.remove_children()
        await self._room.mount(made)
        self._caption.update(Content(" · ".join([*about, keys])))


def _about(image: ResultImage) -> list[str]:
    return [f"image/{image.kind}", *filter(None, (clean_line(image.size),))]


def image_protocol(environ: os._Environ[str] | dict[str, str]) -> ImageProtocol:
    """Return how the terminal shows images, judging by the environment.

    The terminal can't be asked, because the app reads its answers. Multiplexers pass on no images.
    """
    terminal, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if "TMUX" in environ or "STY" in environ or terminal.startswith(("screen", "tmux")):
        return "blocks"
    if "KITTY_WINDOW_ID" in environ or terminal in {"xterm-kitty", "xterm-ghostty"} or program == "ghostty":
        return "kitty"
    if program in {"WezTerm", "iTerm.app"} or "sixel" in terminal or terminal.startswith(_SIXEL):
        return "sixel"
    return "blocks"


def _cell_size() -> tuple[int, int]:
    """Return the size of a cell of the terminal in pixels, as far as the system knows it."""
    with suppress(OSError, AttributeError, ValueError):
        answer = fcntl.ioctl(sys.__stdout__.fileno(), termios.TIOCGWINSZ, b"\0" * 8)  # type: ignore[union-attr] # see suppress
        rows, columns, width, height = struct.unpack("HHHH", answer)
        if rows and columns and width >= columns and height >= rows:
            return width // columns, height // rows
    return _CELL


def _image_widget(protocol: ImageProtocol, size: tuple[int, int], pixels: bytes) -> Widget:
    """Return a widget that draws decoded pixels."""
    _load()
    from PIL import Image
    from textual_image import widget

    kinds: dict[ImageProtocol, type[widget.TGPImage | widget.SixelImage | widget.HalfcellImage]]
    kinds = {"kitty": widget.TGPImage, "sixel": widget.SixelImage, "blocks": widget.HalfcellImage}
    made: Widget = kinds[protocol](Image.frombytes("RGBA", size, pixels))
    return made


def _load() -> None:
    """Import the library without its questions to the terminal, whose answers the app would read as keys."""
    if "textual_image.widget" in sys.modules:
        return
    terminal: Any = sys.__stdout__
    sys.__stdout__ = io.StringIO()  # type: ignore[misc,assignment] # the library asks only a terminal
    try:
        importlib.import_module("textual_image.widget")
    finally:
        sys.__stdout__ = terminal  # type: ignore[misc]
    from textual_image._terminal import CellSize, get_cell_size

    get_cell_size._result = CellSize(*_cell_size())  # type: ignore[attr-defined] # noqa: SLF001 - it would ask otherwise


def save_image(image: ResultImage, file: Path, folder: Path) -> int:
    """Write an image to a new file and return its size in bytes.

    Args:
        image: The image.
        file: The new file.
        folder: Folder of results; no other file is copied, because a result can name any.

    Raises:
        OSError: The file exists or can't be written.
        ValueError: The base64 is invalid, or the image is in a file that no call saved or that can't be read.
    """
    data = image.saved(folder) if image.file else image.decoded()
    if data is None:
        raise ValueError(f"{image.file} is not a file that Pegboard saved, or it can't be read.")
    storage.write(file, data, replace=False)
    return len(data)
