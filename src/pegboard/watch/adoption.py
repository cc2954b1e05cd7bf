"""Files in which other clients configure MCP servers: entries changed to run behind `pegboard watch`, and back.

Only the text of an entry changes. The original text of each is kept in the state folder, so that it can be restored
exactly, whatever the client changed elsewhere in the file since.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import JsonValue

from pegboard import storage
from pegboard.config.client_files import CLIENTS, client_files, pegboard_words
from pegboard.config.client_formats import BOM, VARIABLE, ClientFormatError
from pegboard.config.display import looks_secret
from pegboard.config.files import shown
from pegboard.config.loopback import is_loopback
from pegboard.config.paths import expanded
from pegboard.config.servers import ends_in_sse, is_server_name, pack_name
from pegboard.data.urls import url_parts
from pegboard.watch.changed_files import AdoptedFile, AdoptionError, ChangedFiles, EntryChange, client_text, read
from pegboard.watch.client_text import URL_KEYS, VARIABLE_KEYS, ClientEntry, ClientText

URL_VARIABLE: Final = "PEGBOARD_WATCH_URL"
HEADER_VARIABLE: Final = "PEGBOARD_WATCH_HEADER_"
"""Variables with the address and the headers of a bridge: unlike arguments, other users can't see them."""
FILLED_HEADER_VARIABLE: Final = "PEGBOARD_WATCH_FILLED_HEADER_"
"""Variables with headers in which `${NAME}` is replaced by an environment variable."""
FROM_ENVIRONMENT: Final = "env"
"""The value of `--url` if the address is in the environment."""

BY_HAND: Final = (
    "If its client keeps its servers in another format, put `pegboard watch --name NAME --` before the command of each."
)
"""What to do with a file that can't be adopted."""

_HTTP: Final = {"", "http", "streamable-http", "streamablehttp", "streamable_http", "remote"}
_SCHEMES: Final = frozenset({"", "http", "https"})
"""Schemes of addresses, of which the empty one may come from a variable such as `${env:URL}`."""
_REMOTE_KEYS: Final = frozenset(
    {"type", "transport", *URL_KEYS, *VARIABLE_KEYS, "headers", "http_headers", "env_http_headers"}
    | {"bearer_token_env_var", "oauth"}
)
"""Keys of a server with an address that its bridge doesn't have, or has with another value."""
_LOGIN_KEYS: Final = ("auth", "authProviderType", "headersHelper", "oauth", "oauth_resource", "scopes")
"""Keys with which a client logs in itself, also if they are an empty object."""
_TOKENS: Final = ("PEGBOARD_SERVE_TOKEN", "${input:pegboard-token}")
"""References to the token of `pegboard serve`, of which the second one is VS Code's."""
_OF_OWN_SERVER: Final = frozenset({"type", "command", "args", "env", "environment", "enabled", "tools"})
"""Keys of an entry of `pegboard serve` that leave its rules and its record as they are."""


class Adoption:
    """Changes of other clients' files.

    Args:
        state: The state folder.
        variables: Environment variables of `pegboard watch`, for clients that don't pass on their own environment.
    """

    def __init__(self, state: Path, variables: Mapping[str, str] | None = None) -> None:
        self._folder = state / "adopted"
        self._files = ChangedFiles(self._folder)
        self._variables = dict(variables or {})
        self._program = [*pegboard_command()]

    def files(self, client: str) -> list[Path]:
        """Return the files of a client, or the one at a path.

        Raises:
            AdoptionError: There is none.
        """
        if client not in CLIENTS:
            file = expanded(client)
            if not file.is_file():
                names = ", ".join(CLIENTS)
                raise AdoptionError(f"{client} is neither a file nor one of {names}. Pass a file or one of these.")
            return [file.absolute()]
        found = [file for file in client_files(client) if file.is_file()]
        if not found:
            places = " and ".join(map(shown, client_files(client)))
            raise AdoptionError(f"{client} has no configuration: {places} is missing. Pass its file instead.")
        return found

    def plan(self, file: Path, servers: Collection[str] = (), *, undo: bool = False) -> AdoptedFile:
        """Return the change of a file; nothing is written.

        Args:
            file: The file.
            servers: Names of the entries; all if empty.
            undo: Whether to restore adopted entries.

        Raises:
            AdoptionError: The file can't be read.
        """
        text = read(file)
        body = text.removeprefix(BOM)
        try:
            content = client_text(file.name, body)
        except ClientFormatError as error:
            raise AdoptionError(f"{shown(file)} was not changed because it {error}. {BY_HAND}") from None
        if undo:
            changes = [one for one in self._restored(file, content) if not servers or one.server in servers]
        else:
            found = [*content.entries()]
            names = self._names(file, found)
            changes = [
                self._adopted(content, one, names.get(one.place, ""))
                for one in found
                if not servers or one.name in servers
            ]
        entries = {one.path: content.entry(one.path) for one in changes if one.action != "skipped"}
        changed = body
        for change in sorted(changes, key=lambda one: _start(entries.get(one.path)), reverse=True):
            entry = entries.get(change.path)
            if entry is not None:
                changed = changed[: entry.start] + change.after + changed[entry.end :]
        bom = text[: len(text) - len(body)]
        return AdoptedFile(file, text, bom + changed, tuple(changes))

    def apply(self, file: Path, servers: Collection[str] = (), *, undo: bool = False) -> AdoptedFile:
        """Change a file: read it again, and replace it atomically. A backup and the originals are written first.

        Raises:
            AdoptionError: The file can't be changed.
        """
        on_write, on_written = (None, self._forget) if undo else (self._remember, None)
        return self._files.apply(lambda: self.plan(file, servers, undo=undo), on_write, on_written)

    def adopted(self, file: Path) -> frozenset[tuple[str, ...]]:
        """Return the places of the entries of a file that are as they were adopted; none if it can't be read."""
        try:
            changes = self.plan(file, undo=True).entries
        except AdoptionError:
            return frozenset()
        return frozenset(change.path for change in changes if change.action == "restored")

    # Entries

    def _names(self, file: Path, entries: Sequence[ClientEntry]) -> dict[tuple[str, ...], str]:
        """Return the name of each entry for rules and records; other servers of the file never have the same.

        Two entries with the same name, such as of two projects, share it if they are equal.
        """
        originals = self._originals(file)
        names: dict[tuple[str, ...], str] = {}
        servers: dict[str, str] = {}
        """Name → the text of its entry."""
        for one in entries:
            words = _words(one.value)
            if is_watched(one.value) and words[-1] != "--name" and "--name" in words:
                servers[words[words.index("--name") + 1]] = originals.get(one.place, ("", ""))[0]
        for one in sorted(entries, key=lambda one: not is_server_name(one.name)):
            if is_watched(one.value):
                continue
            name = one.name if is_server_name(one.name) else pack_name(one.name)
            same = next((known for known, text in servers.items() if text == one.text and _is_like(known, name)), "")
            names[one.place] = name = same or (pack_name(name, servers) if name in servers else name)
            servers[name] = one.text
        return names

    def _adopted(self, content: ClientText, found: ClientEntry, name: str) -> EntryChange:
        entry = found.value

        def skipped(reason: str) -> EntryChange:
            return EntryChange(found.name, found.place, "skipped", reason, found.text, found.text)

        if not isinstance(entry, dict):
            return skipped("its entry is not an object")
        if found.fault:
            return skipped(found.fault)
        command, args = entry.get("command"), entry.get("args") or []
        if isinstance(command, list):
            command, args = (command[0], command[1:]) if command else (None, [])
        url, note = next((entry[key] for key in URL_KEYS if entry.get(key) is not None), None), ""
        if is_served(entry):
            return skipped("it is Pegboard itself, which records its calls")
        if command is None and url is not None:
            try:
                after = content.replaced(found, self._bridge(name, found.place, entry, url))
            except _SkippedError as error:
                return skipped(str(error))
            note = _sse_note(entry, url)
        elif not isinstance(command, str) or not command or not isinstance(args, list):
            return skipped("it has no command that is text")
        elif is_watched(entry):
            return skipped("it already runs behind `pegboard watch`")
        else:
            after = content.wrapped(found, [*self._program, "watch", "--name", name, "--"], self._variables)
        return EntryChange(found.name, found.place, "adopted", "", found.text, after, note)

    def _bridge(
        self, name: str, place: Sequence[str], entry: dict[str, JsonValue], url: JsonValue
    ) -> dict[str, JsonValue]:
        """Return the entry that bridges to an address.

        Raises:
            _SkippedError: It can't be bridged.
        """
        transport = _transport(entry)
        if transport not in _HTTP:
            raise _SkippedError(f"its transport {transport!r} is not streamable HTTP")
        headers = entry.get("headers") or entry.get("http_headers") or {}
        is_opencode = transport == "remote" and place[0] == "mcp"
        env_key = "environment" if is_opencode else "env"
        env, filled = entry.get(env_key) or {}, _filled_headers(entry)
        if not isinstance(url, str) or not isinstance(headers, dict) or not isinstance(env, dict):
            raise _SkippedError("its URL or its headers are not text")
        if any(entry.get(key) or entry.get(key) == {} for key in _LOGIN_KEYS):
            raise _SkippedError(
                "it logs in with its client; add it with `pegboard mcp add` and log in with `pegboard mcp login`"
            )
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise _SkippedError("its URL is invalid") from error
        if parts.scheme not in _SCHEMES:
            raise _SkippedError(f"its URL has the scheme {parts.scheme}, which `pegboard watch` doesn't support")
        variables: dict[str, JsonValue] = {**self._variables, **env}
        address = url
        if "@" in parts.netloc or parts.query or looks_secret(parts.path):
            variables[URL_VARIABLE], address = url, FROM_ENVIRONMENT
        for number, (header, value) in enumerate(headers.items()):
            variables[f"{HEADER_VARIABLE}{number}"] = f"{header}: {value}"
        for number, (header, value) in enumerate(filled.items()):
            variables[f"{FILLED_HEADER_VARIABLE}{number}"] = f"{header}: {value}"
        words: list[JsonValue] = [*self._program, "watch", "--name", name, "--url", address]
        new: dict[str, JsonValue] = {"type": "local" if is_opencode else "stdio"} if "type" in entry else {}
        new |= {"command": words} if is_opencode else {"command": words[0], "args": words[1:]}
        if variables:
            new[env_key] = variables
        if filled:  # Codex passes on only the variables that are named.
            new["env_vars"] = [*dict.fromkeys(name for value in filled.values() for name in VARIABLE.findall(value))]
        return {**new, **{key: value for key, value in entry.items() if key not in _REMOTE_KEYS}}

    def _restored(self, file: Path, content: ClientText) -> Iterator[EntryChange]:
        for path, (before, after) in self._originals(file).items():
            entry = content.entry(path)
            server = path[-1]
            if entry is None:
                yield EntryChange(server, path, "skipped", "it was removed since")
            elif not entry.fault and (entry.text == after or content.says(after, entry)):
                yield EntryChange(server, path, "restored", "", entry.text, before)
            else:
                yield EntryChange(server, path, "skipped", "it was changed since", entry.text, entry.text)

    # Originals and backups

    def _record(self, file: Path) -> Path:
        name = hashlib.sha256(str(file.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self._folder / f"{name}.json"

    def _originals(self, file: Path) -> dict[tuple[str, ...], tuple[str, str]]:
        """Return the original and the adopted text of each adopted entry.

        Raises:
            AdoptionError: They can't be read.
        """
        try:
            content = json.loads(self._record(file).read_bytes())
            return {tuple(one["path"]): (str(one["before"]), str(one["after"])) for one in content["entries"]}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise AdoptionError(f"The record of adopted entries can't be read: {error}.") from error

    def _remember(self, change: AdoptedFile) -> None:
        originals = self._originals(change.file)
        for entry in change.entries:
            if entry.action == "adopted":
                originals[entry.path] = (entry.before, entry.after)
        self._write_originals(change.file, originals)

    def _forget(self, change: AdoptedFile) -> None:
        originals = self._originals(change.file)
        for entry in change.entries:
            if entry.action == "restored":
                originals.pop(entry.path, None)
        self._write_originals(change.file, originals)

    def _write_originals(self, file: Path, originals: dict[tuple[str, ...], tuple[str, str]]) -> None:
        entries = [{"path": path, "before": before, "after": after} for path, (before, after) in originals.items()]
        storage.make_folder(self._folder)
        storage.tighten(self._folder)
        if entries:
            storage.write(self._record(file), json.dumps({"file": str(file), "entries": entries}).encode())
        else:
            self._record(file).unlink(missing_ok=True)


class _SkippedError(Exception):
    """An entry can't be adopted; the message says why."""


def pegboard_command() -> list[str]:
    """Return the command that runs this Pegboard, and nothing of the folder in which it is started."""
    program = Path(sys.executable).with_name("pegboard")
    return [str(program)] if program.is_file() else [sys.executable, "-Pm", "pegboard"]


def is_watched(entry: object) -> bool:
    """Return whether an entry of a client's file runs its server behind `pegboard watch`."""
    return (pegboard_words(_words(entry)) or [])[:1] == ["watch"]


def is_served(entry: object) -> bool:
    """Return whether an entry of a client's file runs `pegboard serve`, or connects to it; it records its calls itself.

    Entries with an address name the variable of its token: see `pegboard.serve.entries`.
    """
    words = _words(entry)
    if isinstance(entry, dict) and words == [""]:
        url = next((entry[key] for key in URL_KEYS if isinstance(entry.get(key), str)), "")
        return is_loopback(url_parts(url).hostname or "") and any(token in json.dumps(entry) for token in _TOKENS)
    return "serve" in (pegboard_words(words) or []) and not is_watched(entry)


def is_own_server(entry: object, variables: Mapping[str, str]) -> bool:
    """Return whether an entry runs this Pegboard's `pegboard serve` with no options and only these variables."""
    if not isinstance(entry, dict) or entry.keys() - _OF_OWN_SERVER:
        return False
    given = entry.get("env", entry.get("environment", {}))
    return _words(entry) == [*pegboard_command(), "serve"] and given == variables


def _words(entry: object) -> list[str]:
    """Return the command line of an entry; one empty word if it has none."""
    command, args = (entry.get("command"), entry.get("args")) if isinstance(entry, dict) else (None, None)
    words = command if isinstance(command, list) else [command, *(args if isinstance(args, list) else ())]
    return [word if isinstance(word, str) else "" for word in words] or [""]


def _is_like(name: str, base: str) -> bool:
    """Return whether a name is another one, with or without a number."""
    front, underscore, number = name.rpartition("_")
    return name == base or (front == base and underscore == "_" and number.isdecimal())


def _transport(entry: Mapping[str, JsonValue]) -> str:
    return str(entry.get("type") or entry.get("transport") or "").lower()


def _sse_note(entry: Mapping[str, JsonValue], url: JsonValue) -> str:
    """Return a remark if a client would find out by itself that an address has the old transport; otherwise nothing."""
    if _transport(entry) or not isinstance(url, str) or not ends_in_sse(url):
        return ""
    return "its URL seems to be of the old HTTP+SSE transport, which `pegboard watch` doesn't support"


def _filled_headers(entry: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the headers of an entry of Codex that contain environment variables, as `${NAME}`."""
    named = entry.get("env_http_headers")
    headers = {header: f"${{{name}}}" for header, name in (named if isinstance(named, dict) else {}).items()}
    if token := entry.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    return headers


def _start(entry: ClientEntry | None) -> int:
    return entry.start if entry is not None else -1
