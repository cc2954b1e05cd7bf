"""Credentials written out in a server's variables and headers, moved to secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pegboard import storage
from pegboard.config.display import looks_secret
from pegboard.config.dotenv import parse_dotenv, read_dotenv
from pegboard.config.files import encoded, read_text
from pegboard.config.paths import Paths
from pegboard.config.redaction import AUTHENTICATION, SHORTEST, is_secret_name
from pegboard.config.secrets import Secret, Secrets
from pegboard.config.trust import DOTENV
from pegboard.models import Problem

_FILE: Final = re.compile(r"[~./][^\s]*/|[A-Za-z]:\\|[~.]?/[^\s]*$")
_RANDOM: Final = re.compile(r"(?=\S*[a-z])(?=\S*[A-Z])(?=\S*\d)(?!\S*\.\w{1,6}$)\S{16,}")
"""Text that is rather a generated key that starts with `/` or `./` than the path of a file."""


@dataclass(frozen=True)
class LiteralSecret:
    """A credential that a configuration would contain in plain text."""

    name: str
    """The name of the secret to store it as."""
    value: str = field(repr=False)
    where: str
    """Where it was written, such as `the header Authorization`."""


def without_literals(
    server: str, entry: Mapping[str, object], find: Callable[[str], str | None]
) -> tuple[dict[str, object], tuple[LiteralSecret, ...]]:
    """Replace credentials in a server's variables and headers by references to secrets.

    Args:
        server: Name of the server.
        entry: The keys of the server in the configuration.
        find: Returns the value of a secret, None if it is missing.

    Returns:
        The entry with references, and the secrets to store.
    """
    plain = dict(entry)
    moved: list[LiteralSecret] = []
    names: dict[str, str] = {}

    def reference(name: str, value: str, where: str) -> str:
        free = _free_name(name, server, value, lambda known: names.get(known) or find(known))
        names[free] = value
        moved.append(LiteralSecret(free, value, where))
        return f"${{{free}}}"

    for key, kind in (("env", "variable"), ("headers", "header"), ("oauth", "setting")):
        texts = entry.get(key)
        if not isinstance(texts, Mapping):
            continue
        replaced = dict(texts)
        for name, text in texts.items():
            if not isinstance(text, str) or not _is_credential(name, text, is_header=key == "headers"):
                continue
            scheme = AUTHENTICATION.fullmatch(text)
            assert scheme is not None, "the pattern matches every text"
            wanted = name if key == "env" else _name_for(server, name)
            replaced[name] = (scheme[1] or "") + reference(wanted, scheme[2], f"the {kind} {name}")
        plain[key] = replaced
    return plain, tuple(moved)


def store_secret(secrets: Secrets, paths: Paths, name: str, value: str) -> str | Problem:
    """Store a secret in the keyring, or without one in the `.env` file beside the configuration.

    Returns:
        Where it is stored, or why it isn't.
    """
    known = secrets.find(name)
    if isinstance(known, Secret) and known.reveal() == value:
        return known.place
    problem = secrets.set(name, value)
    if problem is None:
        return "keyring"
    file = paths.config_file.parent / DOTENV
    quoted = "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    try:
        with storage.locked(file):
            text = read_text(file)
            if isinstance(text, Problem):
                return text
            new = text + ("" if not text or text.endswith("\n") else "\n") + f"{name}={quoted}\n"
            data = encoded(new, file)
            if parse_dotenv(file, data.decode("utf-8-sig")).values != {**read_dotenv(file).values, name: value}:
                return Problem(message=f"{name} can't be written to {file}.", fix=problem.fix)
            storage.tighten(file)
            storage.rewrite(file, data)
    except OSError as error:
        return Problem(message=f"{file} can't be written: {error.strerror or error}.")
    return str(file)


def _is_credential(name: str, text: str, *, is_header: bool) -> bool:
    if "${" in text or len(text) < SHORTEST or _is_file(text):
        return False
    return is_secret_name(name) or looks_secret(text) or (is_header and name.lower() == "cookie")


def _is_file(text: str) -> bool:
    if not _FILE.match(text):
        return False
    return not _RANDOM.fullmatch(text) or os.path.exists(os.path.expanduser(text))  # noqa: PTH110, PTH111 - never raise


def _name_for(server: str, name: str) -> str:
    last = "token" if name.lower() == "authorization" else name
    return re.sub(r"[^A-Za-z0-9]+", "_", f"{server}_{last}").strip("_").upper()


def _free_name(name: str, server: str, value: str, find: Callable[[str], str | None]) -> str:
    """Return the wanted name, or another one if a different secret has it."""
    number = 2
    free, other = name, _name_for(server, name)
    while (known := find(free)) is not None and known != value:
        free, other = other, f"{_name_for(server, name)}_{number}"
        number += 1
    return free
