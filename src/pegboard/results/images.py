"""Images in a result: saved files, and images as base64."""

from __future__ import annotations

import base64
import binascii
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import JsonValue

from pegboard.models.call import FILE_STEM
from pegboard.results.links import link_of
from pegboard.results.sizes import size

_SUFFIXES = {"png": ".png", "jpeg": ".jpg", "jpg": ".jpg", "gif": ".gif", "webp": ".webp", "bmp": ".bmp"}
_LINE = re.compile(r"image/(?P<kind>[\w.+-]+), (?P<size>[\d.,]+ \w+): /.+")
_DATA_URL = re.compile(r"data:image/(?P<kind>[\w.+-]+);base64,(?P<data>[A-Za-z0-9+/=\s]+)")
_SAVED = re.compile(rf"{FILE_STEM}-[0-9]{{1,6}}\.[a-z0-9]{{1,5}}")
_LOOKED_AT = 2_000
_MOST = 50
_BIGGEST = 50_000_000


@dataclass(frozen=True, slots=True)
class ResultImage:
    """Image in a result. Its bytes are untrusted.

    Attributes:
        kind: Type, such as `png`.
        size: Size of the image without its encoding, for display.
        file: Absolute path of its file; empty for base64.
        encoded: Its data as base64; empty for a file.
    """

    kind: str
    size: str = ""
    file: str = ""
    encoded: str = ""

    @property
    def suffix(self) -> str:
        """Suffix for a file with the image."""
        return _SUFFIXES[self.kind]

    def decoded(self) -> bytes:
        """Return the encoded image of base64.

        Raises:
            ValueError: The base64 is invalid.
        """
        try:
            return base64.b64decode(self.encoded, validate=False)
        except binascii.Error as error:
            raise ValueError(f"The image is not valid base64: {error}") from None

    def saved(self, folder: Path) -> bytes | None:
        """Return the content of a file that a call saved; None for any other file, or if it can't be read.

        Text that a tool read elsewhere may look like the line of an image, with the path of a private file.

        Args:
            folder: Folder of results.
        """
        file = Path(self.file)
        if not self.file or file.parent != folder or not _SAVED.fullmatch(file.name):
            return None
        try:
            return file.read_bytes() if file.stat().st_size <= _BIGGEST else None
        except OSError:
            return None


def images(value: object) -> list[ResultImage]:
    """Return the images near the root of a result or of its metadata, in reading order, at most 50."""
    waiting: deque[object] = deque([value])
    found: list[ResultImage] = []
    for _ in range(_LOOKED_AT):
        if not waiting or len(found) == _MOST:
            break
        part = waiting.popleft()
        image = _image(part)
        if image is not None:
            found.append(image)
        elif isinstance(part, Mapping):
            waiting.extend(islice(part.values(), _LOOKED_AT))
        elif isinstance(part, list):
            waiting.extend(part[:_LOOKED_AT])
    return found


def as_objects(value: JsonValue) -> JsonValue:
    """Return a result with MCP's object for an image in place of each line of a saved one, as schemas describe it.

    Its `data` is the line. A result without such lines is returned itself.
    """
    if isinstance(value, str):
        image = _image_of_text(value)
        saved: JsonValue = {"type": "image", "mimeType": f"image/{image.kind}", "data": value} if image else value
        return saved if image is not None and image.file else value
    if isinstance(value, list):
        items = [as_objects(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        fields = {key: as_objects(item) for key, item in value.items()}
        return fields if any(fields[key] is not value[key] for key in value) else value
    return value


def are_alike(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are lines of saved images with equal type and size; each call has its own file."""
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    lines = _LINE.fullmatch(one), _LINE.fullmatch(other)
    return lines[0] is not None and lines[1] is not None and lines[0].groups() == lines[1].groups()


class SavedImages:
    """Compares the content of saved images, at most 50 pairs of them.

    Args:
        folder: Folder of results.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left = _MOST

    def are_equal(self, one: str, other: str) -> bool:
        """Return whether two texts are lines of saved images with equal content; False if a file can't be read."""
        if not are_alike(one, other):
            return False
        first, second = _image_of_text(one), _image_of_text(other)
        if first is None or second is None or not self._left:
            return False
        self._left -= 1
        content = first.saved(self._folder)
        return content is not None and content == second.saved(self._folder)


def _image(value: object) -> ResultImage | None:
    if isinstance(value, str):
        return _image_of_text(value)
    if not isinstance(value, dict):
        return None
    kind = value.get("mimeType") or value.get("mime_type") or value.get("media_type")
    if not isinstance(kind, str) or not kind.startswith("image/") or kind[6:] not in _SUFFIXES:
        return None
    data = value.get("data") or value.get("blob")
    if isinstance(data, str) and (saved := _image_of_text(data)) is not None:
        return saved
    if isinstance(data, str) and len(data) <= _BIGGEST:
        return ResultImage(kind[6:], _size_of(data), encoded=data)
    link = link_of(value)
    if link is not None and link.file:
        shown = value.get("size")
        return ResultImage(kind[6:], str(shown)[:20] if shown else "", file=link.file)
    return None


def _image_of_text(text: str) -> ResultImage | None:
    if text.startswith("data:image/") and len(text) <= _BIGGEST:
        found = _DATA_URL.fullmatch(text)
        if found and found["kind"] in _SUFFIXES:
            return ResultImage(found["kind"], _size_of(found["data"]), encoded=found["data"])
        return None
    if not text.startswith("image/") or len(text) > 5_000:
        return None
    line, link = _LINE.fullmatch(text), link_of(text)
    if line is None or link is None or not link.file or line["kind"] not in _SUFFIXES:
        return None
    return ResultImage(line["kind"], line["size"], file=link.file)


def _size_of(encoded: str) -> str:
    """Return the size of data from its base64."""
    return size(len(encoded) * 3 // 4 - encoded[-2:].count("="))
