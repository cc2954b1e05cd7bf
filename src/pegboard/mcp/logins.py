"""Logins to MCP servers: tokens and registrations, in the keyring or in a private file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from pegboard.config.files import read_bytes, write_private
from pegboard.config.loopback import is_loopback
from pegboard.config.vault import Vault
from pegboard.models import Problem

_PREFIX: Final = "mcp-login-"
_SECRET_KEYS: Final = frozenset({"access_token", "refresh_token", "client_secret", "registration_access_token"})
_DAMAGED: Final = "The login is damaged."


def is_private(url: str) -> bool:
    """Return whether nothing sent to a URL can be read on the network: it is encrypted, or leads to this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


class Login(BaseModel):
    """Stored login to one server. The parts from the server are stored as it sent them."""

    model_config = ConfigDict(extra="ignore")

    url: str
    """The server that the tokens are for."""
    tokens: dict[str, JsonValue] | None = Field(default=None, repr=False)
    expires_at: float | None = None
    """When the access token expires, in seconds since 1970."""
    client: dict[str, JsonValue] | None = Field(default=None, repr=False)
    """The registration of this client at the authorization server."""
    authorization_server: dict[str, JsonValue] | None = None
    """Metadata of the authorization server, which refreshing a token needs."""
    protected_resource: dict[str, JsonValue] | None = None
    wanted_scope: str | None = None
    """A scope that a call lacked; the next login asks for it too."""
    redirect_port: int | None = None
    """Port of the redirect address that was registered."""
    is_doubtful: bool = False
    """Whether the authorization server may not know the registration, so that the next login registers again."""

    def secrets(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the value of each secret in it."""
        for part in (self.tokens, self.client):
            for key, value in (part or {}).items():
                if key in _SECRET_KEYS and isinstance(value, str) and value:
                    yield f"{key} of {urlsplit(self.url).hostname}", value


class Logins:
    """All logins, by the URL of the server. Every method blocks, up to 30 seconds for a locked keyring.

    The keyring is used if there is one, otherwise a file that only the user can read.

    Args:
        folder: Folder of the files and of the names in the keyring; it needn't exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._vault = Vault(folder / "keyring")

    def read(self, url: str) -> Login | Problem | None:
        """Return the login to a server; None if there is none, or the problem that makes it unreadable."""
        url = canonical(url)
        key = _key(url)
        # A file is deleted when the keyring has stored a login, so it is newer than what the keyring has.
        text: str | bytes | Problem | None = read_bytes(self._file(key), private=True)
        if text is None and key in self._vault.names():
            text = self._vault.get(key)
        if text is None or isinstance(text, Problem):
            return text
        try:
            login = Login.model_validate_json(text)
        except ValidationError:
            return Problem(message=_DAMAGED, fix="Log in again.")
        return login if login.url == url else None

    def write(self, login: Login) -> Problem | None:
        """Store a login, replacing an earlier one to the same server; return a problem if that fails."""
        login = login.model_copy(update={"url": canonical(login.url)})
        key, text = _key(login.url), login.model_dump_json(exclude_none=True)
        file = self._file(key)
        try:
            if self._vault.set(key, text) is None:
                file.unlink(missing_ok=True)
                return None
            write_private(file, text.encode())
        except OSError as error:
            return Problem(message=f"The login can't be stored: {error.strerror or error}.", file=str(file))
        return None

    def remove(self, url: str) -> bool | Problem:
        """Forget a login; return whether it existed."""
        key = _key(canonical(url))
        removed: bool | Problem = False
        if key in self._vault.names():
            removed = self._vault.remove(key)
        file = self._file(key)
        try:
            existed = file.exists()
            file.unlink(missing_ok=True)
        except OSError as error:
            return Problem(message=f"The login can't be deleted: {error.strerror or error}.", file=str(file))
        return removed or existed

    def lock_file(self, url: str) -> Path:
        """Return the file to lock while the token for a server is refreshed."""
        return self._folder / f"{_key(canonical(url))}.lock"

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"


def canonical(url: str) -> str:
    """Return a server's URL in the form under which its login is stored."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return urlunsplit((parts.scheme.lower(), host, parts.path.rstrip("/"), parts.query, ""))


def _key(url: str) -> str:
    return _PREFIX + hashlib.sha256(url.encode()).hexdigest()[:32]
