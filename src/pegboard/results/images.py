"""Images in a result: saved files, and images as base64."""

from __future__ import annotations

import base64
import binascii
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from pegboard.results.links import link_of
from pegboard.results.sizes import size

_SUFFIXES = {"png": ".png", "jpeg": ".jpg", "jpg": ".jpg", "gif": ".gif", "webp": ".webp", "bmp": ".bmp"}
_LINE = re.compile(r"image/(?P<kind>[\w.+-]+), (?P<size>[\d.,]+ \w+): /.+")
_DATA_URL = re.compile(r"data:image/(?P<kind>[\w.+-]+);base64,(?P<data>[A-Za-z0-9+/=\s]+)")
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
