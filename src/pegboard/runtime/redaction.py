"""The known secrets, removed from everything that leaves the gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from threading import Lock

from pydantic import JsonValue

from pegboard.config import Redactor, Secrets, Settings, credentials_in

_FRESH_SECONDS = 5.0
"""Seconds until an edit of a `.env` file is noticed, unless a pack is granted its secrets earlier."""


class SecretRedaction:
    """Redaction of secrets in texts and values: those of the environment, of `.env` files, and those granted to packs.

    A `pegboard.ports.Redaction`.

    Args:
        secrets: The user's secrets.
        settings: The configuration, whose URLs may contain passwords.
    """

    def __init__(self, secrets: Secrets, settings: Settings) -> None:
        self._secrets = secrets
        self._values: dict[tuple[str, str], None] = {}
        """Names and values; a name may have several, such as those of two `.env` files, or earlier ones."""
        self._redactor = Redactor({})
        self._adding = Lock()
        self._fresh_until = 0.0
        self.add(credentials_in(settings))

    @property
    def has_any(self) -> bool:
        """Whether any secret is known."""
        return bool(self._values)

    async def renew(self) -> None:
        """Look for secrets that were added, unless the last look was a moment ago."""
        if time.monotonic() >= self._fresh_until:
            await asyncio.to_thread(self._look)

    def renew_now(self) -> None:
        """Look for secrets that were added, unless the last look was a moment ago; read the disk."""
        if time.monotonic() >= self._fresh_until:
            self._look()

    def add(self, values: Mapping[str, str]) -> None:
        """Add secrets, by name, before a pack receives them."""
        self._add(values.items())

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self._redactor.text(text) if self._values else text

    def text_now(self, text: str) -> str:
        """Return a text without secrets, including those added since the last look; read the disk."""
        self._look()
        return self.text(text)

    def value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value without secrets; the same object if it contains none."""
        return self._redactor.value(value) if self._values else value

    def value_now(self, value: JsonValue) -> JsonValue:
        """Return a JSON value like `value`, after a look for secrets unless one was a moment ago; read the disk."""
        self.renew_now()
        return self.value(value)

    def unfinished(self, text: str) -> int:
        """Return the length of the suffix that could be the start of a secret."""
        return self._redactor.unfinished(text) if self._values else 0

    def _add(self, pairs: Iterable[tuple[str, str]]) -> None:
        with self._adding:
            added = dict.fromkeys(pairs)
            if added.keys() <= self._values.keys():
                return
            self._values |= added
            self._redactor = Redactor(self._values.keys())

    def _look(self) -> None:
        self._add(self._secrets.known())
        self._fresh_until = time.monotonic() + _FRESH_SECONDS
