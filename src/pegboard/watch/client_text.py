"""The text of another client's file: where its entries are, and how one is changed without touching the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue

from pegboard.config.client_formats import server_places
from pegboard.config.display import looks_secret, shown_words
from pegboard.config.paths import PATH_VARIABLES
from pegboard.config.redaction import Redactor
from pegboard.data.mask import MASK
from pegboard.data.urls import url_parts

URL_KEYS: Final = ("url", "serverUrl", "httpUrl")
VARIABLE_KEYS: Final = ("env", "environment")
"""Keys with the variables of a server; the second is OpenCode's."""
_HEADER_KEYS: Final = ("headers", "http_headers")


@dataclass(frozen=True)
class ClientEntry:
    """A server in a client's file. All its text is untrusted."""

    place: tuple[str, ...]
    """The keys that lead to it."""
    value: JsonValue
    text: str = ""
    start: int = 0
    """Position of its text in the file."""
    fault: str = ""
    """Why its text can't be changed."""

    @property
    def name(self) -> str:
        """Name of the server in the file."""
        return self.place[-1]

    @property
    def end(self) -> int:
        """Position of the end of its text in the file."""
        return self.start + len(self.text)


class ClientText(ABC):
    """The text of a file in one format.

    Args:
        body: The text, without a byte order mark.
        content: Its value.
    """

    def __init__(self, body: str, content: Any) -> None:  # noqa: ANN401 - the client's own format
        self.body = body
        self.content = content

    def entries(self) -> list[ClientEntry]:
        """Return the entries of all servers."""
        return [entry for place in server_places(self.content) if (entry := self.entry(place)) is not None]

    @abstractmethod
    def entry(self, place: tuple[str, ...]) -> ClientEntry | None:
        """Return the entry at a place; None if it has none."""

    @abstractmethod
    def wrapped(self, entry: ClientEntry, words: Sequence[str], variables: Mapping[str, str]) -> str:
        """Return the text of an entry whose command line begins with more words.

        Args:
            entry: The entry, with a command.
            words: The words before its own command; the first is the program.
            variables: Variables that are added if the entry doesn't set them.
        """

    @abstractmethod
    def replaced(self, entry: ClientEntry, value: Mapping[str, JsonValue]) -> str:
        """Return the text of an entry with another value, in its layout."""

    @abstractmethod
    def says(self, text: str, entry: ClientEntry) -> bool:
        """Return whether a text of an entry has the same value as the entry."""

    @abstractmethod
    def masked(self) -> str:
        """Return the text for display, with secrets masked.

        Masked are, in entries, the values of variables and headers, and secret arguments; everywhere, texts whose name
        or content indicates a secret.
        """


def safe_entry(entry: JsonValue) -> dict[tuple[str, str | int], str]:
    """Return what to show instead of each secret of an entry, by its key and the name or position below it.

    The address has the position -1.
    """
    if not isinstance(entry, dict):
        return {}
    safe: dict[tuple[str, str | int], str] = {}
    for key in (*VARIABLE_KEYS, *_HEADER_KEYS):
        holder = entry.get(key)
        safe.update(
            ((key, name), MASK) for name in (holder if isinstance(holder, dict) else ()) if name not in PATH_VARIABLES
        )
    for key in ("command", "args"):
        listed = entry.get(key)
        words = [str(word) for word in listed] if isinstance(listed, list) else []
        shown = zip(words, shown_words(words, Redactor({})), strict=False)
        safe.update(((key, index), text) for index, (word, text) in enumerate(shown) if word != text)
    for key in URL_KEYS:
        url = entry.get(key)
        if isinstance(url, str):
            parts = url_parts(url)
            if parts.query or "@" in parts.netloc or looks_secret(parts.path):
                safe[key, -1] = f"{parts.scheme}://{parts.hostname}/{MASK}"
    return safe
