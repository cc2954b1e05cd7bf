"""Servers in the user's configuration file: added and removed by text, so that the rest stays as the user wrote it.

tomlkit is not used: it attaches the comments above a table to the table before it, so removing a server would remove
the comments of the next section. Each edit is verified before it is written.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, TypeAlias

from pegboard import storage
from pegboard.config.files import encoded, read_text
from pegboard.config.lines import LINE
from pegboard.data.toml import TomlError, parse_toml
from pegboard.errors import ConfigError
from pegboard.models import Problem

Entry: TypeAlias = Mapping[str, object]
"""The keys of one server: texts, numbers, true or false, lists of texts, and tables of texts."""

_HEADER: Final = re.compile(r"\s*\[[^\[].*\]\s*(#.*)?", re.DOTALL)
_HEADER_OF_LIST: Final = re.compile(r"\s*\[\[.*\]\]\s*(#.*)?", re.DOTALL)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


class ServerFile:
    """The servers in a configuration file.

    Args:
        file: Its path; it needn't exist.
    """

    def __init__(self, file: Path) -> None:
        # Servers can also be added to the missing target of a symbolic link, such as one into a folder of dotfiles.
        self._file = Path(os.path.realpath(file))

    def names(self) -> frozenset[str]:
        """Return the names of the servers in the file.

        Raises:
            ConfigError: The file can't be read.
        """
        return frozenset(_servers(self._parsed(self._read())))

    def add(self, entries: Mapping[str, Entry]) -> None:
        """Add servers at the end of the file.

        Raises:
            ConfigError: One exists, or the file can't be read or written.
        """
        with self._locked():
            text = self._read()
            table = self._parsed(text)
            if taken := sorted(_servers(table).keys() & entries.keys()):
                raise taken_name(taken[0], self._file)
            line_break = "\r\n" if "\r\n" in text else "\n"
            blocks = [line_break.join(_lines(name, entry)) + line_break for name, entry in entries.items()]
            before = text if not text or text.endswith("\n") else text + line_break
            self._write(line_break.join(filter(None, (before, *blocks))), _with(table, entries))

    def remove(self, name: str) -> None:
        """Remove a server.

        Raises:
            ConfigError: It doesn't exist, or the file can't be read or written.
        """
        with self._locked():
            text = self._read()
            table = self._parsed(text)
            if name not in _servers(table):
                raise ConfigError(f"{self._file} has no server {name}. `pegboard mcp list` shows where each one is.")
            kept = "".join(_kept(text, ("mcp", "servers", name)))
            if not text.endswith(kept[-200:]):  # It was the last table, and the blank line above it is left.
                kept = kept.rstrip("\r\n") + ("\r\n" if "\r\n" in text else "\n")
            self._write(kept.lstrip("\r\n"), _without(table, name))

    def _read(self) -> str:
        text = read_text(self._file)
        if isinstance(text, Problem):
            raise ConfigError(f"{self._file} can't be edited. {text.message}")
        return text

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            return parse_toml(text)
        except TomlError as error:
            raise ConfigError(f"{self._file} can't be edited because it is not valid TOML: {error}.") from error

    def _write(self, text: str, wanted: Mapping[str, Any]) -> None:
        """Write the file if its new text has the wanted meaning."""
        try:
            is_right = _pruned(parse_toml(text)) == _pruned(wanted)
        except TomlError:
            is_right = False
        if not is_right:
            raise ConfigError(
                f"{self._file} was not changed because its servers aren't tables of their own, `[mcp.servers.NAME]`."
                " Edit the file in your editor."
            )
        storage.rewrite(self._file, encoded(text, self._file))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with storage.locked(self._file):
                yield
        except OSError as error:
            raise ConfigError(f"{self._file} can't be written: {error.strerror or error}.") from error


def taken_name(name: str, file: Path) -> ConfigError:
    """Return the error that a server exists."""
    return ConfigError(
        f"The server {name} was not added because it exists in {file}. Choose another name, or first run"
        f" `pegboard mcp remove {name}`."
    )


def _lines(name: str, entry: Entry) -> Iterator[str]:
    yield f"[mcp.servers.{_key(name)}]"
    for key, value in entry.items():
        yield f"{_key(key)} = {_value(value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: object) -> str:
    match value:
        case Mapping():
            return f"{{ {', '.join(f'{_key(key)} = {_value(item)}' for key, item in value.items())} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            # JSON's texts, numbers and booleans are also TOML's, except for one control character.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _kept(text: str, path: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines outside a table and its inner tables; comments above the next table belong to that table."""
    waiting: list[str] = []
    inside = False
    for line in LINE.findall(text):
        if _HEADER.fullmatch(line) or _HEADER_OF_LIST.fullmatch(line):
            was_inside, inside = inside, _path(line)[: len(path)] == path
            if was_inside and not inside:
                yield from waiting
            waiting = []
        if not inside:
            yield line
        elif not line.strip():
            waiting = []
        elif line.lstrip().startswith("#"):
            waiting.append(line)
        else:
            waiting = []
    if inside:
        yield from waiting


def _path(header: str) -> tuple[str, ...]:
    """Return the keys of a header; empty if the line only looks like one, as within a list of lists."""
    try:
        table: Any = parse_toml(header)
    except TomlError:
        return ()
    path: list[str] = []
    while isinstance(table, dict) and table:
        key, table = next(iter(table.items()))
        path.append(key)
    return tuple(path)


def _servers(table: Mapping[str, Any]) -> dict[str, Any]:
    mcp = table.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, dict) else None
    return servers if isinstance(servers, dict) else {}


def _with(table: dict[str, Any], entries: Mapping[str, Entry]) -> dict[str, Any]:
    wanted = deepcopy(table)
    mcp = wanted.setdefault("mcp", {})
    servers = mcp.setdefault("servers", {}) if isinstance(mcp, dict) else {}
    if isinstance(servers, dict):
        servers.update({name: _plain(entry) for name, entry in entries.items()})
    return wanted


def _without(table: dict[str, Any], name: str) -> dict[str, Any]:
    wanted = deepcopy(table)
    del _servers(wanted)[name]
    return wanted


def _plain(value: object) -> Any:  # noqa: ANN401 - TOML
    match value:
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [*value]
        case _:
            return value


def _pruned(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without an empty `[mcp.servers]`, which removing the last server may leave or remove."""
    pruned = {**table, "mcp": {**mcp} if isinstance(mcp := table.get("mcp", {}), dict) else mcp}
    if isinstance(pruned["mcp"], dict) and pruned["mcp"].get("servers") == {}:
        del pruned["mcp"]["servers"]
    if pruned["mcp"] == {}:
        del pruned["mcp"]
    return pruned
