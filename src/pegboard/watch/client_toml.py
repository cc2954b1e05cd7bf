"""The text of a client's file in TOML: the configuration of Codex."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Final, cast

import tomlkit
from pydantic import JsonValue
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from pegboard.config.client_formats import server_places, value_at
from pegboard.config.display import looks_secret
from pegboard.config.redaction import is_secret_name
from pegboard.data.mask import MASK
from pegboard.data.toml import TomlError, parse_toml
from pegboard.watch.client_text import ClientEntry, ClientText, safe_entry

_HEADER: Final = re.compile(
    r"""[ \t]*\[{1,2}(?:[\w. \t-]|"(?:[^"\\\r\n]|\\.)*"|'[^'\r\n]*')+\]{1,2}[ \t]*(#.*)?\r?\n?"""
)
_EMPTY: Final = re.compile(r"[ \t]*(#.*)?\r?\n?")
_VARIABLE_NAMES: Final = frozenset({"bearer_token_env_var", "env_http_headers", "env_vars"})
"""Keys with names of environment variables, which may be shown."""
_LIST: Final = "mcp_servers"


class TomlText(ClientText):
    """TOML, in which each server has a table `[mcp_servers.NAME]`."""

    def entry(self, place: tuple[str, ...]) -> ClientEntry | None:
        """Return the entry at a place; None if it has none."""
        value = cast("JsonValue", value_at(self.content, place))
        if value is None or len(place) != 2 or place[0] != _LIST:
            return None
        start, end = self._region(place[1])
        text = self.body[start:end]
        rest = _content(self.body[:start] + self.body[end:])
        if _content(text) != {_LIST: {place[1]: value}} or rest != _without(self.content, place[1]):
            return ClientEntry(place, value, fault=f"it has no table [{_LIST}.{place[1]}] of its own in one piece")
        return ClientEntry(place, value, text, start)

    def wrapped(self, entry: ClientEntry, words: Sequence[str], variables: Mapping[str, str]) -> str:
        """Return the text of an entry whose command line begins with more words; the rest stays as it is written."""
        document, table = _table(entry)
        before = [*words[1:], str(table["command"])]
        table["command"] = words[0]
        args = table.get("args", [])
        if "\n" in getattr(args, "as_string", str)():
            for word in reversed(before):
                args.insert(0, word)
        else:
            table["args"] = [*before, *args]
        env = table.get("env", {})
        added = {name: value for name, value in variables.items() if name not in env}
        if isinstance(env, Table):
            env.update(added)
        elif added:
            table["env"] = _inline({**env, **added})
        return tomlkit.dumps(document)

    def replaced(self, entry: ClientEntry, value: Mapping[str, JsonValue]) -> str:
        """Return the text of an entry with another value, in its layout."""
        document, table = _table(entry)
        for key in [key for key in table if key not in value]:
            table.pop(key)
        for key, item in value.items():
            if table.get(key) != item:
                table[key] = _inline(item)
        return tomlkit.dumps(document)

    def says(self, text: str, entry: ClientEntry) -> bool:
        """Return whether a text of an entry has the same value as the entry."""
        return _content(text) == {_LIST: {entry.name: entry.value}}

    def masked(self) -> str:
        """Return the text for display, with secrets masked."""
        try:
            document = tomlkit.parse(self.body)
        except (TOMLKitError, ValueError, RecursionError):
            return MASK
        entries = {place[1] for place in server_places(self.content) if place[0] == _LIST}
        for name in entries:
            entry = document[_LIST][name]
            for (key, step), text in safe_entry(self.content[_LIST][name]).items():
                if step == -1:
                    entry[key] = text
                else:
                    entry[key][step] = text
        _mask(document, entries, is_named=False, depth=0)
        return tomlkit.dumps(document)

    def _region(self, name: str) -> tuple[int, int]:
        """Return start and end of the tables of a server, without empty lines and comments behind them."""
        spelled = "|".join(re.escape(text) for text in (name, f'"{name}"', f"'{name}'"))
        own = re.compile(rf"[ \t]*\[[ \t]*{_LIST}[ \t]*\.[ \t]*(?:{spelled})[ \t]*[.\]]")
        at, start, end = 0, -1, -1
        for line in self.body.splitlines(keepends=True):
            if own.match(line) and start < 0:
                start = at
            elif start >= 0 and _HEADER.fullmatch(line) and not own.match(line):
                break
            at += len(line)
            if start >= 0 and not _EMPTY.fullmatch(line):
                end = at
        return (start, end) if start >= 0 else (0, 0)


def _content(text: str) -> dict[str, Any] | None:
    try:
        return parse_toml(text)
    except TomlError:
        return None


def _without(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the content of a file without a server."""
    others = {key: value for key, value in content[_LIST].items() if key != name}
    rest = {key: value for key, value in content.items() if key != _LIST}
    return {**rest, _LIST: others} if others else rest


def _table(entry: ClientEntry) -> tuple[tomlkit.TOMLDocument, Any]:
    """Return the text of an entry as a document, and its table there."""
    document = tomlkit.parse(entry.text)
    return document, document[_LIST][entry.name]


def _inline(value: JsonValue) -> object:
    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    table.update(value)
    return table


def _mask(holder: Any, servers: set[str], *, is_named: bool, depth: int) -> None:  # noqa: ANN401 - tables and arrays
    """Mask each text in a table or an array that looks like a secret, or whose name speaks of one."""
    items = list(holder.items()) if isinstance(holder, MutableMapping) else list(enumerate(holder))
    for key, value in items:
        if key in _VARIABLE_NAMES:
            continue
        is_server = depth == 1 and key in servers  # A server may have any name.
        named = not is_server and (is_named or (isinstance(key, str) and is_secret_name(key)))
        if isinstance(value, str):
            if named or looks_secret(value):
                holder[key] = MASK
        elif isinstance(value, (MutableMapping, MutableSequence)):
            _mask(value, servers, is_named=named, depth=depth + 1)
