"""The token with which MCP clients reach `pegboard serve --http`."""

from __future__ import annotations

import hmac
import re
import secrets
from pathlib import Path
from typing import Final

from pegboard import storage
from pegboard.errors import PegboardError

VARIABLE: Final = "PEGBOARD_SERVE_TOKEN"
"""Environment variable with a token of the user's own."""
_SHORTEST: Final = 16
_USABLE: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")


class TokenError(PegboardError):
    """The token can't be used; the message says why, and what to do."""


class Token:
    """A bearer token; it is shown only by `text`.

    Args:
        text: The token.
        where: Where it comes from, for people.

    Raises:
        TokenError: It is too short, or has characters that a header can't contain.
    """

    def __init__(self, text: str, where: str) -> None:
        if len(text) < _SHORTEST or not _USABLE.fullmatch(text):
            raise TokenError(
                f"The token in {where} can't be used. A token has at least {_SHORTEST} letters, digits or `._~+/=-`."
            )
        self.text = text
        self.where = where

    def __repr__(self) -> str:
        return f"Token({self.where})"

    def is_in(self, header: bytes) -> bool:
        """Return whether an Authorization header has this token."""
        scheme, _, given = header.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self.text.encode())


def read_token(file: Path) -> Token:
    """Return the token in a file of the user's own.

    Raises:
        TokenError: The file can't be read, other users can read it, or its token can't be used.
    """
    if storage.is_open_to_others(file):
        raise TokenError(f"The token in {file} can't be used because other users can read it. Run: chmod 600 {file}")
    try:
        return Token(file.read_text("utf-8").strip(), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise TokenError(f"The token in {file} can't be read: {getattr(error, 'strerror', None) or error}.") from error


def kept_token(file: Path) -> tuple[Token, bool]:
    """Return the token that Pegboard keeps in a file, and whether it was created just now.

    Raises:
        TokenError: The file can't be read or created.
    """
    if not file.exists():
        try:
            storage.make_folder(file.parent)
            storage.write(file, secrets.token_urlsafe(32).encode(), replace=False)
        except FileExistsError:  # another process was faster
            return read_token(file), False
        except OSError as error:
            raise TokenError(f"A token can't be stored in {file}: {error.strerror}.") from error
        return read_token(file), True
    return read_token(file), False
