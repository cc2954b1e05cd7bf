"""The settings for display: each value with its origin, secrets masked."""

from __future__ import annotations

import datetime as dt
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import JsonValue

from pegboard.config.files import shown
from pegboard.config.redaction import Redactor, credentials, is_secret_name
from pegboard.data.mask import MASK
from pegboard.models.model import DataModel

if TYPE_CHECKING:
    from pegboard.config.settings import Settings

_VARIABLE: Final = re.compile(r"(?:[A-Za-z]+ )?\$\{[A-Za-z_]\w*\}")
_FLAG: Final = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"((?:--?[A-Za-z][\w-]*=)?([A-Za-z_][\w.-]*)(?:=|: ?))(.+)", re.DOTALL)
"""Variable or header in a command line: `NAME=value`, `--env=NAME=value`, `Name: value`."""
_WORD: Final = r"[\w.~+/=-]"
_GIVEAWAY: Final = re.compile(
    rf"""(?P<before>
        ://[^\s/@:]*:(?=[^\s/@]+@)
      | [?&;](?=(?i:[\w.-]*?(?:auth|key|pass|pwd|secret|sig|token)))[\w.-]++=
      | \b(?i:basic|bearer|token)[ ](?={_WORD}{{8}})
      | (?=\b(?:sk|pk|rk|gh[opsur]|github_pat|glpat|xox[a-z]|hf|AKIA|AIza|eyJ)[\w-]{{12}})
      | (?=-----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY)
    )
    (?:(?<=:)[^\s/@]+|(?=-----).*|(?:{_WORD}|%)+)""",
    re.VERBOSE | re.DOTALL,
)
"""Text that looks like a secret: a password in a URL, a parameter of one, a header, tokens of large services."""


class ShownSetting(DataModel):
    """One value of the settings."""

    key: str
    """Dotted, such as `tools.timeout`."""
    value: JsonValue
    """The value; a mask replaces secrets and possible secrets."""
    origin: str
    """`FILE:LINE`, the name of an environment variable, or `default`."""
    masked: bool
    """Whether something was masked."""
    status: Literal["used", "trusted", "untrusted", "unknown", "ignored", "withheld"] = "used"
    """*trusted*: set by the trusted `pegboard.toml` of the working directory; the last four: not used."""


def shown_settings(settings: Settings, redactor: Redactor) -> Iterator[ShownSetting]:
    """Yield every value for display, then the values that have no effect.

    Masked are: in the config of packs and servers, values whose key names a secret, and all headers and variables of
    servers; everywhere, known secrets and text that looks like one.

    Args:
        settings: The settings.
        redactor: The known secrets.
    """
    for path, value in settings.leaves():
        key = ".".join(path)
        status: Literal["trusted", "used"] = "trusted" if settings.is_from_folder(key) else "used"
        yield _shown_value(path, value, settings.origin(key), status, redactor)
    for unused in settings.loaded.unused:
        yield _shown_value(tuple(unused.key.split(".")), unused.value, str(unused.origin), unused.reason, redactor)


def _shown_value(
    path: tuple[str, ...],
    value: object,
    origin: str,
    status: Literal["used", "trusted", "untrusted", "unknown", "ignored", "withheld"],
    redactor: Redactor,
) -> ShownSetting:
    plain = _plain(value)
    # The value of an unknown key may be a secret.
    is_secret = _is_for_secrets(path) or status == "unknown"
    safe = _masked(plain) if is_secret else _without_secrets(plain, redactor)
    key = redactor.text(".".join(path))
    return ShownSetting(key=key, value=safe, origin=origin, masked=safe != plain, status=status)


def may_be_secret(path: Sequence[str], value: object) -> bool:
    """Return whether a value of the settings may be or contain a secret.

    Args:
        path: Its keys.
        value: The value.
    """
    shown_ = _shown_value(tuple(path), value, "", "used", Redactor({}))
    return shown_.masked or any(credentials(text) for text in _texts(_plain(value)))


def credentials_in(settings: Settings) -> dict[str, str]:
    """Return the settings that contain a URL with a password or a token: dotted key → its texts, one a line."""
    found = {
        ".".join(path): [text for text in _texts(_plain(value)) if credentials(text)]
        for path, value in settings.leaves()
    }
    return {key: "\n".join(texts) for key, texts in found.items() if texts}


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            for item in value.values():
                yield from _texts(item)


def _is_for_secrets(path: tuple[str, ...]) -> bool:
    match path:
        case ("packs", _, "secrets"):  # the names that the pack may read
            return False
        case ("packs", _, *keys):
            return any(map(is_secret_name, keys))
        case ("mcp", "servers", _, "env" | "headers", _) | ("mcp", "servers", _, "oauth", "client_secret"):
            return True
    return False


def _plain(value: object) -> JsonValue:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case Path():
            return shown(value)
        case dt.date() | dt.time():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)
        case str() | int() | float() | None:
            return value
        case _:
            return str(value)


def _masked(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return {key: _masked(item) for key, item in value.items()}
        case list():
            return [_masked(item) for item in value]
        case str():
            return value if not value or _VARIABLE.fullmatch(value) else MASK
        case bool() | None:
            return value
    return MASK


def _without_secrets(value: JsonValue, redactor: Redactor) -> JsonValue:
    match value:
        case dict():
            return {
                redactor.text(key): _masked(item) if is_secret_name(key) else _without_secrets(item, redactor)
                for key, item in value.items()
            }
        case list():
            return [
                _masked(item) if _follows_secret_flag(before) else _argument(item, redactor)
                for before, item in zip([None, *value], value, strict=False)
            ]
        case str():
            flag = _FLAG.fullmatch(value)
            if flag and flag[2] and is_secret_name(flag[1]):
                return value[: flag.start(2)] + MASK
            return _GIVEAWAY.sub(rf"\g<before>{MASK}", redactor.text(value))
    return redactor.value(value)


def _argument(item: JsonValue, redactor: Redactor) -> JsonValue:
    """Return an item of a list, which may be a command line, without secrets."""
    safe = _without_secrets(item, redactor)
    found = _ASSIGNMENT.fullmatch(item) if isinstance(item, str) and safe == item else None
    return f"{found[1]}{_masked(found[3])}" if found and is_secret_name(found[2]) else safe


def looks_secret(text: str) -> bool:
    """Return whether a text looks like a secret by itself: a token of a large service, a password in a URL."""
    return _GIVEAWAY.search(text) is not None


def has_secret_argument(words: Sequence[str]) -> bool:
    """Return whether a command line seems to contain a secret."""
    return shown_words(words, Redactor({})) != [*words]


def shown_target(command: str | None, args: Sequence[str], url: str | None, redactor: Redactor) -> str:
    """Return the command line or the URL of a server, secrets masked; empty if it has neither."""
    if command is None:
        return "" if url is None else shown_words([url], redactor)[0]
    return shlex.join(shown_words([command, *args], redactor))


def shown_words(words: Sequence[str], redactor: Redactor) -> list[str]:
    """Return a command line for display, secrets masked."""
    shown_ = _without_secrets([*words], redactor)
    return [str(word) for word in shown_] if isinstance(shown_, list) else []


def _follows_secret_flag(before: JsonValue) -> bool:
    """Return whether the preceding item of a command line is a flag whose value is a secret."""
    flag = _FLAG.fullmatch(before) if isinstance(before, str) else None
    return flag is not None and flag[2] is None and is_secret_name(flag[1])
