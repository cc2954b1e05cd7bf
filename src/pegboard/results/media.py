"""Files of images and other binary content in the results of one call.

It imports only fast modules, because a worker loads it when a result contains an image.
"""

from __future__ import annotations

import base64
import binascii
import os
import re

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any  # JSON, before it is read

_SUFFIXES = {
    "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/wav": ".wav", "audio/webm": ".webm", "audio/x-wav": ".wav",
    "application/pdf": ".pdf", "image/bmp": ".bmp", "image/gif": ".gif", "image/jpeg": ".jpg", "image/jpg": ".jpg",
    "image/png": ".png", "image/svg+xml": ".svg", "image/webp": ".webp", "text/plain": ".txt", "text/html": ".html",
}  # fmt: skip
_KIND_OF_IMAGE = re.compile(r"image/[\w.+-]+")
_IMAGE = re.compile(rb'"(?:mimeType|mime_type|media_type)":"image/')
_MOST = 1_000
"""Files of one call, whose result may be untrusted."""
_KINDS = ("mimeType", "mime_type", "media_type")
_CONTENTS = ("data", "blob")


class MediaFiles:
    """Files of one call, which are numbered. The history deletes them when the call is no longer recorded.

    Args:
        folder: Folder of results; it is created when the first file is written.
        stem: Beginning of the files' names, from the id of the call.
    """

    def __init__(self, folder: str | os.PathLike[str], stem: str) -> None:
        self._folder = os.fspath(folder)
        self._stem = stem
        self._files = 0

    def save(self, encoded: str, kind: str) -> dict[str, Any]:
        """Save binary content; return its `size` and `file`, or the `problem`.

        Args:
            encoded: The content as base64.
            kind: Its media type.
        """
        try:
            raw = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return {"problem": "invalid base64"}
        return self.write(raw, _SUFFIXES.get(kind.lower(), ".bin"))

    def write(self, raw: bytes, suffix: str) -> dict[str, Any]:
        """Write a file; return its `size` and `file`, or the `problem`."""
        from pegboard import storage
        from pegboard.results.sizes import size

        if self._files == _MOST:
            return {"problem": f"not saved, because the call has {_MOST:,} files already"}
        self._files += 1
        file = f"{self._folder}{os.sep}{self._stem}-{self._files}{suffix}"
        try:
            storage.make_folder(self._folder)
            storage.write(file, raw, durable=False)
        except OSError as error:
            return {"problem": f"could not be saved: {error.strerror}"}
        return {"size": size(len(raw)), "file": file}


def media_line(kind: str, saved: Mapping[str, Any]) -> str:
    """Return the line that a result shows for content that was saved: `image/png, 12 kB: /…/ab12-1.png`.

    Args:
        kind: The media type.
        saved: What `MediaFiles.save` returned.
    """
    return f"{kind}, {saved['size']}: {saved['file']}" if "file" in saved else f"{kind}: {saved['problem']}"


def may_have_images(data: bytes) -> bool:
    """Return whether a result may contain images as base64, from its compact JSON; much faster than parsing it."""
    return (b'"data":"' in data or b'"blob":"' in data) and _IMAGE.search(data) is not None


def with_saved_images(value: object, files: MediaFiles) -> object:
    """Save the images of base64 in a JSON value, which is changed in place; return the value with their lines.

    The line replaces an object that is only an image, as in MCP (`type`, `mimeType` and `data`), and the base64 of any
    other object. Invalid base64 stays, and so does an image that can't be saved, or is one of too many.

    Args:
        value: The value.
        files: The files of the call.
    """
    if isinstance(value, list):
        value[:] = [with_saved_images(item, files) for item in value]
        return value
    if not isinstance(value, dict):
        return value
    kind = next((value[key] for key in _KINDS if value.get(key)), None)
    content = next((key for key in _CONTENTS if value.get(key)), "")
    encoded = value.get(content)
    if isinstance(kind, str) and _KIND_OF_IMAGE.fullmatch(kind) and isinstance(encoded, str):
        saved = files.save("".join(encoded.split()), kind)
        if "file" not in saved:
            return value
        line = media_line(kind, saved)
        if value.get("type") == "image" and not any(value[key] for key in value.keys() - {"type", *_KINDS, content}):
            return line
        value[content] = line
        return value
    for key, item in value.items():
        value[key] = with_saved_images(item, files)
    return value
