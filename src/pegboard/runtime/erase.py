"""Redaction in retrospect: a value disappears from everything that Pegboard has stored."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pegboard import storage
from pegboard.config import Redactor
from pegboard.config.redaction import SHORTEST
from pegboard.config.trust import CHECKS, TrustFile
from pegboard.data.mask import REDACTED
from pegboard.data.toml import TomlError, parse_toml
from pegboard.errors import ShortValueError
from pegboard.models.erasure import RedactionReport

if TYPE_CHECKING:
    from pegboard.config import Paths
    from pegboard.history.erase import Replacement
    from pegboard.runtime.parts import Parts

_CHUNK: Final = 4_000_000
_APPENDED: Final = {".log", ".jsonl", ".journal"}
"""Suffixes of files to which other processes append; a journal also has the sizes of results."""
_TOKEN: Final = re.compile(rb'"(?:\\.|[^"\\])*"|[^\s"\[\]{},:]+')
"""A text, a number or another word in lines of JSON."""
_LARGEST_TEXT: Final = 256_000_000
"""Bytes of a file beyond which the value is overwritten in place instead of replaced."""


def redact(parts: Parts, value: str) -> RedactionReport:
    """Replace a value in the history, result files, sessions, presets, scripts, own checks, drafts, logs and caches.

    Block until that is done.

    Args:
        parts: The parts of the runtime.
        value: The value; it is also found escaped, quoted for URLs, and in base64.

    Raises:
        ShortValueError: The value is too short.
        StoreError: The history can't be read or written.
    """
    from pegboard.history.erase import Replacement, erase

    value = value.strip("\r\n")
    redactor = Redactor({"redacted": value}, REDACTED)
    if not redactor.forms:
        raise ShortValueError(
            f"Nothing was redacted: the value has fewer than {SHORTEST} characters, which would match unrelated text."
        )
    replacement = Replacement(redactor.forms, redactor.text, redactor.value)
    # Files first: a result that another process writes meanwhile belongs to a call that the database is searched for.
    changed, remaining = _files(parts, replacement)
    rows, problems = erase(parts.history, replacement)
    if parts.is_built("gateway"):
        parts.gateway.forget_results()
    return RedactionReport(
        calls=rows["calls"],
        messages=rows["messages"] + rows["sessions"] + rows["turns"],
        files=tuple(changed),
        remaining=(*problems, *remaining),
    )


def _files(parts: Parts, replacement: Replacement) -> tuple[list[str], list[str]]:
    paths = parts.paths
    changed: list[str] = []
    remaining: list[str] = []
    forms = [form.encode("utf-8", "surrogateescape") for form in replacement.forms]
    longest = max(map(len, forms))
    pattern = re.compile(b"|".join(re.escape(form) for form in forms))
    own = {paths.database.name + suffix for suffix in ("", "-wal", "-shm", ".lock")}
    folders = (paths.state, paths.presets, paths.scripts, paths.checks, paths.cache)
    for file in chain.from_iterable(_below(folder, remaining) for folder in folders):
        if file.parent == paths.state and file.name in own:
            continue
        try:
            if not _contains(file, pattern, longest):
                continue
            if file.parent == paths.state and file.name.startswith(f"{paths.database.name}."):
                remaining.append(f"{file} was set aside and still contains the value. Delete it.")
            elif _clean(file, replacement, pattern, is_cache=file.is_relative_to(paths.cache)):
                changed.append(str(file))
                if file.parent == paths.state and _is_open(file):
                    text = "is the unsent text of an open app, which may store the value again. Remove it there, then"
                    remaining.append(f"{file} {text} redact again.")
        except FileNotFoundError:  # deleted meanwhile
            continue
        except OSError as error:
            remaining.append(f"{file} could not be redacted: {error.strerror or error}.")
    others = [(file, "configuration") for file in (paths.config_file, paths.approvals)]
    for file, kind in chain(others, ((file, "the checks of a folder") for file in _checks_of_folders(paths))):
        try:
            if _contains(file, pattern, longest):
                remaining.append(f"{file} contains the value. Pegboard doesn't change {kind}; edit it.")
        except OSError:
            continue
    return changed, remaining


def _checks_of_folders(paths: Paths) -> Iterator[Path]:
    """Yield the files of checks in the working directory and in the folders that the user trusts."""
    trusted = TrustFile(paths.trust).read()
    folders = {Path(os.path.realpath(one)) for one in ("", *(trusted if isinstance(trusted, Mapping) else ()))}
    for folder in sorted(folders):
        if os.path.realpath(folder / CHECKS) != os.path.realpath(paths.checks):  # `resolve` raises if links form a loop
            yield from _below(folder / CHECKS, [])


def _below(folder: Path, unread: list[str]) -> Iterator[Path]:
    """Yield the files below a folder, and add a sentence to `unread` for each folder that can't be searched."""

    def add(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            unread.append(f"{error.filename} could not be searched: {error.strerror or error}.")

    for here, _, names in os.walk(folder, onerror=add):
        try:
            for name in names:
                file = Path(here, name)
                if file.is_file() and not file.is_symlink():
                    yield file
        except OSError as error:  # the folder can be listed but not entered
            add(error)


def _is_open(file: Path) -> bool:
    """Return whether a running process holds the lock of a draft, which it also has in memory."""
    try:
        lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _contains(file: Path, pattern: re.Pattern[bytes], longest: int) -> bool:
    with file.open("rb") as content:
        end = b""
        while chunk := content.read(_CHUNK):
            if pattern.search(end + chunk):
                return True
            end = chunk[-longest:]
    return False


def _clean(file: Path, replacement: Replacement, pattern: re.Pattern[bytes], *, is_cache: bool) -> bool:
    """Remove the value from a file, or delete a file of a cache; return False if only a longer number contains it."""
    if is_cache:
        file.unlink()
        return True
    if file.suffix == ".jsonl":
        return _overwrite_lines(file, pattern, replacement)
    if file.suffix in _APPENDED or file.stat().st_size > _LARGEST_TEXT:
        return _overwrite(file, pattern)
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError:
        return _overwrite(file, pattern)
    kept = _text_of(file, text, replacement)
    if kept == text:
        return False
    storage.write(file, kept.encode("utf-8", "replace"), mode=file.stat().st_mode & 0o777)
    return True


def _text_of(file: Path, text: str, replacement: Replacement) -> str:
    if file.suffix == ".json":
        try:
            value = json.loads(text)
            redacted = replacement.value(value)
            return text if redacted is value else json.dumps(redacted, ensure_ascii=False, separators=(",", ":"))
        except (ValueError, RecursionError):
            return replacement.text(text)
    kept = replacement.text(text)
    if file.suffix == ".toml":
        try:
            parse_toml(kept)
        except TomlError:  # the value was a number or a bare key
            return re.sub(rf'(?<!["\'\w]){re.escape(REDACTED)}(?!["\'\w])', f'"{REDACTED}"', kept)
    return kept


def _overwrite_lines(file: Path, pattern: re.Pattern[bytes], replacement: Replacement) -> bool:
    """Overwrite the value in lines of JSON, which remain JSON; return False if only longer numbers contain it."""
    is_changed = False
    with file.open("r+b") as content:
        start = 0
        for line in iter(content.readline, b""):
            kept = line
            if not line.endswith(b"\n"):  # it was being written
                kept = pattern.sub(_asterisks, line)
            elif pattern.search(line):
                kept = _TOKEN.sub(lambda token: _masked(token[0], pattern, replacement), line)
            if kept != line:
                is_changed = True
                content.seek(start)
                content.write(kept)
            start += len(line)
            content.seek(start)
    return is_changed


def _masked(token: bytes, pattern: re.Pattern[bytes], replacement: Replacement) -> bytes:
    """Return a part of a line with asterisks of the same length for the value; a number becomes a text."""
    try:
        value = json.loads(token)
        if replacement.value(value) == value:
            return token
    except ValueError:  # it is not JSON
        pass
    if token.startswith(b'"'):
        return pattern.sub(_asterisks, token)
    return b'"' + b"*" * (len(token) - 2) + b'"'


def _asterisks(match: re.Match[bytes]) -> bytes:
    return b"*" * len(match[0])


def _overwrite(file: Path, pattern: re.Pattern[bytes]) -> bool:
    """Overwrite the value with asterisks in place."""
    with file.open("r+b") as content:
        data = content.read()
        for match in pattern.finditer(data):
            content.seek(match.start())
            content.write(b"*" * (match.end() - match.start()))
    return True
