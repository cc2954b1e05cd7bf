"""Files in which other clients configure MCP servers: entries changed to run behind `pegboard watch`, and back.

Only the text of an entry changes. The original text of each is kept in the state folder, so that it can be restored
exactly, whatever the client changed elsewhere in the file since.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import JsonValue

from pegboard import storage
from pegboard.config.client_files import CLIENTS, client_files
from pegboard.config.display import looks_secret, shown_words
from pegboard.config.files import shown
from pegboard.config.paths import expanded
from pegboard.config.redaction import Redactor, speaks_of_secret
from pegboard.config.servers import is_server_name, pack_name
from pegboard.data.json_spans import JsonSpan, spans
from pegboard.data.json_text import JsonTextError
from pegboard.data.mask import MASK
from pegboard.errors import PegboardError

URL_VARIABLE: Final = "PEGBOARD_WATCH_URL"
HEADER_VARIABLE: Final = "PEGBOARD_WATCH_HEADER_"
"""Variables with the address and the headers of a bridge: unlike arguments, other users can't see them."""
FROM_ENVIRONMENT: Final = "env"
"""The value of `--url` if the address is in the environment."""

BY_HAND: Final = (
    "If its client keeps its servers in another format, put `pegboard watch --name NAME --` before the command of each."
)
"""What to do with a file that can't be adopted."""

_BOM: Final = "\ufeff"
_HTTP: Final = {"", "http", "streamable-http", "streamablehttp", "streamable_http", "remote"}
_ATTEMPTS: Final = 5


class AdoptionError(PegboardError):
    """A file can't be changed; the message says why."""


@dataclass(frozen=True)
class EntryChange:
    """Change of one entry."""

    server: str
    """Its name in the file."""
    path: tuple[str, ...]
    """The names that lead to it."""
    action: Literal["adopted", "restored", "skipped"]
    reason: str = ""
    """Why it is skipped."""
    before: str = ""
    """The text of the entry."""
    after: str = ""


@dataclass(frozen=True)
class AdoptedFile:
    """The change of one file."""

    file: Path
    before: str
    after: str
    entries: tuple[EntryChange, ...]
    backup: Path | None = None
    """Copy of the file as it was; None if it wasn't written."""

    def diff(self) -> str:
        """Return the change as a unified diff, with secrets masked."""
        from difflib import unified_diff

        before, after = masked(self.before).splitlines(), masked(self.after).splitlines()
        return "\n".join(unified_diff(before, after, str(self.file), str(self.file), lineterm="", n=1))


class Adoption:
    """Changes of other clients' files.

    Args:
        state: The state folder.
        variables: Environment variables of `pegboard watch`, for clients that don't pass on their own environment.
    """

    def __init__(self, state: Path, variables: Mapping[str, str] | None = None) -> None:
        self._folder = state / "adopted"
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
        text = _read(file)
        try:
            root = spans(text.removeprefix(_BOM), comments=True)
        except JsonTextError as error:
            raise AdoptionError(f"{shown(file)} was not changed because it {error}. {BY_HAND}") from None
        body = text.removeprefix(_BOM)
        if undo:
            entries = [one for one in self._restored(file, body, root) if not servers or one.server in servers]
        else:
            entries = [
                self._adopted(path, body, span) for path, span in _entries(root) if not servers or path[-1] in servers
            ]
        changed = body
        for entry in sorted(entries, key=lambda one: _start(root, one.path), reverse=True):
            span = root.at(*entry.path)
            if entry.action != "skipped" and span is not None:
                changed = changed[: span.start] + entry.after + changed[span.end :]
        bom = text[: len(text) - len(body)]
        return AdoptedFile(file, text, bom + changed, tuple(entries))

    def apply(self, file: Path, servers: Collection[str] = (), *, undo: bool = False) -> AdoptedFile:
        """Change a file: read it again, and replace it atomically. A backup and the originals are written first.

        Raises:
            AdoptionError: The file can't be changed.
        """
        for _ in range(_ATTEMPTS):
            change = self.plan(file, servers, undo=undo)
            if change.after == change.before:
                return change
            try:
                backup = self._back_up(change)
                if not undo:
                    self._remember(change)
                target = file.resolve()
                mode = target.stat().st_mode & 0o777
                with storage.replacing(target, mode=mode) as out:
                    out.write(change.after.encode("utf-8", "surrogateescape"))
                    out.flush()
                    if _read(file) != change.before:  # The client wrote it meanwhile: begin again with its version.
                        raise _ChangedError  # noqa: TRY301 - it removes the draft
                target.chmod(mode)
            except _ChangedError:
                continue
            except OSError as error:
                raise AdoptionError(f"{shown(file)} was not changed: {error.strerror or error}.") from error
            if undo:
                self._forget(change)
            return AdoptedFile(change.file, change.before, change.after, change.entries, backup)
        raise AdoptionError(f"{shown(file)} was not changed because another program keeps writing it. Close it first.")

    # Entries

    def _adopted(self, path: tuple[str, ...], text: str, span: JsonSpan) -> EntryChange:
        server = path[-1]
        before = text[span.start : span.end]
        entry = span.json()

        def skipped(reason: str) -> EntryChange:
            return EntryChange(server, path, "skipped", reason, before, before)

        if not isinstance(entry, dict):
            return skipped("its entry is not an object")
        name = server if is_server_name(server) else pack_name(server)
        command, args = entry.get("command"), entry.get("args", [])
        url = next((entry[key] for key in ("url", "serverUrl", "httpUrl") if entry.get(key) is not None), None)
        if command is None and url is not None:
            after = self._bridge(name, entry, url, before)
            return EntryChange(server, path, "adopted", "", before, after[0]) if after[0] else skipped(after[1])
        if not isinstance(command, str) or not command or not isinstance(args, list):
            return skipped("it has no command that is text")
        if self._is_ours(command, args):
            return skipped("it already runs behind `pegboard watch`")
        words = [*self._program[1:], "watch", "--name", name, "--", command]
        return EntryChange(server, path, "adopted", "", before, self._wrapped(text, span, words))

    def _is_ours(self, command: str, args: Sequence[JsonValue]) -> bool:
        return (Path(command).name == "pegboard" and [*args[:1]] == ["watch"]) or (
            args[:1] in (["-m"], ["-Pm"]) and [*args[1:3]] == ["pegboard", "watch"]
        )

    def _wrapped(self, text: str, span: JsonSpan, words: Sequence[str]) -> str:
        """Return the text of an entry with another command and more arguments; the rest stays as it is written."""
        command, args = span.at("command"), span.at("args")
        assert command is not None, "it has a command"
        program = json.dumps(self._program[0], ensure_ascii=False)
        written = [json.dumps(word, ensure_ascii=False) for word in words]
        env = span.at("env")
        new_env = self._new_env() if env is None else ""
        edits = [(command.start, command.end, program)]
        if args is None:
            edits.append((command.end, command.end, f', "args": [{", ".join(written)}]{new_env}'))
        else:
            edits += [_prepended(text, args, written), (args.end, args.end, new_env)]
        if env is not None and env.members is not None:
            edits.append(_prepended(text, env, self._members({member.name for member in env.members})))
        changed = text
        for start, end, new in sorted(edits, reverse=True):
            changed = changed[:start] + new + changed[end:]
        return changed[span.start : span.end + len(changed) - len(text)]

    def _members(self, present: Collection[str] = ()) -> list[str]:
        """Return the variables that an entry doesn't set, as members of a JSON object."""
        return [
            f"{json.dumps(key)}: {json.dumps(value)}" for key, value in self._variables.items() if key not in present
        ]

    def _new_env(self) -> str:
        members = self._members()
        return f', "env": {{{", ".join(members)}}}' if members else ""

    def _bridge(self, name: str, entry: dict[str, JsonValue], url: JsonValue, before: str) -> tuple[str, str]:
        """Return the text of an entry that bridges to an address, or an empty text and why it is skipped."""
        transport = str(entry.get("type") or entry.get("transport") or "").lower()
        headers, env = entry.get("headers") or {}, entry.get("env") or {}
        if transport not in _HTTP:
            return "", f"its transport {transport!r} is not streamable HTTP"
        if not isinstance(url, str) or not isinstance(headers, dict) or not isinstance(env, dict):
            return "", "its URL or its headers are not text"
        if "headersHelper" in entry or "oauth" in entry:
            return "", "it logs in with its client; add it with `pegboard mcp add` and log in with `pegboard mcp login`"
        parts = urlsplit(url)
        variables: dict[str, JsonValue] = {**self._variables, **env}
        address = url
        if "@" in parts.netloc or parts.query or looks_secret(parts.path):
            variables[URL_VARIABLE], address = url, FROM_ENVIRONMENT
        for number, (header, value) in enumerate(headers.items()):
            variables[f"{HEADER_VARIABLE}{number}"] = f"{header}: {value}"
        gone = {"type", "transport", "url", "serverUrl", "httpUrl", "headers", "env"}
        new: dict[str, JsonValue] = {"type": "stdio"} if "type" in entry else {}
        new["command"] = self._program[0]
        new["args"] = [*self._program[1:], "watch", "--name", name, "--url", address]
        if variables:
            new["env"] = variables
        new.update({key: value for key, value in entry.items() if key not in gone})
        found = re.search(r"\{[ \t]*\r?\n([ \t]*)", before)
        if found is None:
            return json.dumps(new, ensure_ascii=False), ""
        end = re.search(r"([ \t]*)\}$", before)
        outer = end[1] if end is not None else ""
        step = found[1].removeprefix(outer) or "  "
        return json.dumps(new, ensure_ascii=False, indent=step).replace("\n", f"\n{outer}"), ""

    def _restored(self, file: Path, text: str, root: JsonSpan) -> Iterator[EntryChange]:
        for path, (before, after) in self._originals(file).items():
            span = root.at(*path)
            server = path[-1]
            if span is None:
                yield EntryChange(server, path, "skipped", "it was removed since")
                continue
            now = text[span.start : span.end]
            is_same = now == after
            if not is_same:
                try:
                    is_same = spans(after, comments=True).json() == span.json()
                except JsonTextError:
                    is_same = False
            if is_same:
                yield EntryChange(server, path, "restored", "", now, before)
            else:
                yield EntryChange(server, path, "skipped", "it was changed since", now, now)

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

    def _back_up(self, change: AdoptedFile) -> Path:
        storage.make_folder(self._folder)
        storage.tighten(self._folder)
        backup = self._folder / f"{change.file.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.backup"
        storage.write(backup, change.before.encode("utf-8", "surrogateescape"))
        return backup


class _ChangedError(Exception):
    """The file changed while it was being replaced."""


def pegboard_command() -> list[str]:
    """Return the command that runs this Pegboard, and nothing of the folder in which it is started."""
    program = Path(sys.executable).with_name("pegboard")
    return [str(program)] if program.is_file() else [sys.executable, "-Pm", "pegboard"]


def masked(text: str) -> str:
    """Return a client's file for display, with secrets masked.

    Masked are, in entries, the values of variables and headers, and secret arguments; everywhere, texts whose name or
    content indicates a secret.
    """
    body = text.removeprefix(_BOM)
    try:
        root = spans(body, comments=True)
    except JsonTextError:
        return MASK
    entries = [span for _, span in _entries(root)]
    secret = {place: safe for span in entries for place, safe in _secrets_of(span)}
    starts = {span.start for span in entries}
    waiting = [(False, root)]
    while waiting:
        is_named, span = waiting.pop()
        if (span.start, span.end) in secret:
            continue
        is_named = is_named and span.start not in starts  # A server may have any name.
        waiting += [(is_named or speaks_of_secret(one.name), one.value) for one in span.members or ()]
        waiting += [(is_named, one) for one in span.items or ()]
        if isinstance(span.value, str) and (is_named or looks_secret(span.value)):
            secret[span.start, span.end] = f'"{MASK}"'
    for (start, end), new in sorted(secret.items(), reverse=True):
        body = body[:start] + new + body[end:]
    return body


def _secrets_of(entry: JsonSpan) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield start and end of each secret of an entry that its keys indicate, and the text to show instead."""
    for key in ("env", "headers"):
        holder = entry.at(key)
        members = holder.members if holder is not None else None
        yield from (((one.value.start, one.value.end), f'"{MASK}"') for one in members or ())
    args = entry.at("args")
    items = args.items if args is not None else None
    words = [str(item.json()) for item in items or ()]
    for item, word, safe in zip(items or (), words, shown_words(words, Redactor({})), strict=False):
        if word != safe:
            yield (item.start, item.end), json.dumps(safe, ensure_ascii=False)
    for key in ("url", "serverUrl", "httpUrl"):
        url = entry.at(key)
        if url is not None and isinstance(url.value, str):
            parts = urlsplit(url.value)
            if parts.query or "@" in parts.netloc or looks_secret(parts.path):
                yield (url.start, url.end), f'"{parts.scheme}://{parts.hostname}/{MASK}"'


def _entries(root: JsonSpan) -> Iterator[tuple[tuple[str, ...], JsonSpan]]:
    """Yield the entries of a client's file, each with the names that lead to it."""
    holders: list[tuple[str, ...]] = [(), ("mcp",)]
    projects = root.at("projects")
    members = projects.members if projects is not None else None
    holders += [("projects", member.name) for member in members or ()]
    for holder in holders:
        for key in ("mcpServers", "servers"):
            listed = root.at(*holder, key)
            for name in dict.fromkeys(member.name for member in (listed.members if listed else None) or ()):
                span = root.at(*holder, key, name)
                if span is not None:
                    yield (*holder, key, name), span


def _prepended(text: str, span: JsonSpan, written: Sequence[str]) -> tuple[int, int, str]:
    """Return the edit that inserts items or members at the start of a list or an object, in its layout."""
    is_filled = bool(span.items or span.members)
    space = re.match(r"\s*", text[span.start + 1 : span.end])
    gap = space[0] if space is not None and is_filled else ""
    separator = f",{gap}" if "\n" in gap else ", "
    start = span.start + 1 + len(gap)
    return start, start, separator.join(written) + (separator if is_filled and written else "")


def _start(root: JsonSpan, path: Sequence[str]) -> int:
    span = root.at(*path)
    return span.start if span is not None else -1


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise AdoptionError(f"{shown(file)} can't be read: {error.strerror or error}.") from error
