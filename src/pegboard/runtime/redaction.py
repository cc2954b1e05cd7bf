"""The secrets that are known while Pegboard runs, taken out of everything that leaves the gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from threading import Lock

from pydantic import JsonValue

from pegboard.config import Redactor, Secrets, Settings, credentials_in

_FRESH_SECONDS = 5.0
"""How long a `.env` file that was edited may go unnoticed, where no pack is given what is in it."""


class Redaction:
    """Takes secrets out of texts and values: those of the environment, `.env` files, and all that packs were given.

    A `pegboard.ports.Redaction`.

    Args:
        secrets: The user's secrets.
        settings: Their URLs may have passwords, too.
    """

    def __init__(self, secrets: Secrets, settings: Settings) -> None:
        self._secrets = secrets
        self._values: dict[str, str] = {}
        self._redactor = Redactor({})
        self._adding = Lock()
        self._fresh_until = 0.0
        self.add(credentials_in(settings))

    @property
    def has_any(self) -> bool:
        """Whether there is any secret to take out."""
        return bool(self._values)

    async def renew(self) -> None:
        """Looks for secrets that were added since, unless that was done a moment ago."""
        if time.monotonic() >= self._fresh_until:
            await asyncio.to_thread(self._look)

    def add(self, values: Mapping[str, str]) -> None:
        """Learns of secrets, by name, before anybody else is told them."""
        with self._adding:
            if values.items() <= self._values.items():
                return
            self._values |= values
            self._redactor = Redactor(self._values)

    def text(self, text: str) -> str:
        """Gives a text without secrets."""
        return self._redactor.text(text) if self._values else text

    def text_now(self, text: str) -> str:
        """Return a text without secrets, those included that were added since the last look; read the disk."""
        self._look()
        return self.text(text)

    def value(self, value: JsonValue) -> JsonValue:
        """Gives a JSON value without secrets: itself where there are none."""
        return self._redactor.value(value) if self._values else value

    def unfinished(self, text: str) -> int:
        """Gives how many characters at the end of a text may be the beginning of a secret."""
        return self._redactor.unfinished(text) if self._values else 0

    def _look(self) -> None:
        self.add(self._secrets.known())
        self._fresh_until = time.monotonic() + _FRESH_SECONDS
