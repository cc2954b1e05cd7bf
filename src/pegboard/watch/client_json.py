"""The text of a client's file in JSON with comments: most clients."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from pydantic import JsonValue

from pegboard.config.client_formats import ClientFormatError, server_places
from pegboard.config.display import looks_secret
from pegboard.config.redaction import is_secret_name
from pegboard.data.json_spans import JsonSpan, spans
from pegboard.data.json_text import JsonTextError
from pegboard.data.mask import MASK
from pegboard.watch.client_text import VARIABLE_KEYS, ClientEntry, ClientText, safe_entry


class JsonText(ClientText):
    """JSON with or without comments.

    Args:
        body: The text, without a byte order mark.

    Raises:
        ClientFormatError: It is not JSON.
    """

    def __init__(self, body: str) -> None:
        try:
            self._root = spans(body, comments=True)
        except JsonTextError as error:
            raise ClientFormatError(str(error)) from None
        super().__init__(body, self._root.json())

    def entry(self, place: tuple[str, ...]) -> ClientEntry | None:
        """Return the entry at a place; None if it has none."""
        span = self._root.at(*place)
        return None if span is None else ClientEntry(place, span.json(), self.body[span.start : span.end], span.start)

    def wrapped(self, entry: ClientEntry, words: Sequence[str], variables: Mapping[str, str]) -> str:
        """Return the text of an entry whose command line begins with more words; the rest stays as it is written."""
        span = spans(entry.text, comments=True)
        command, args = span.at("command"), span.at("args")
        assert command is not None, "it has a command"
        env_key, env = next(
            ((key, found) for key in VARIABLE_KEYS if (found := span.at(key)) is not None), ("env", None)
        )
        if command.items is not None and env is None:
            env_key = "environment"
        new_env = f', "{env_key}": {{{", ".join(_members(variables))}}}' if variables and env is None else ""
        written = [json.dumps(word, ensure_ascii=False) for word in words]
        own = entry.text[command.start : command.end]
        if command.items is not None:
            edits = [_prepended(entry.text, command, written), (command.end, command.end, new_env)]
        elif args is None:
            added = f', "args": [{", ".join([*written[1:], own])}]{new_env}'
            edits = [(command.start, command.end, written[0]), (command.end, command.end, added)]
        else:
            edits = [
                (command.start, command.end, written[0]),
                _prepended(entry.text, args, [*written[1:], own]),
                (args.end, args.end, new_env),
            ]
        if env is not None:
            present = {one.name for one in env.members or ()}
            edits.append(_prepended(entry.text, env, _members(variables, present), "{}"))
        changed = entry.text
        for start, end, new in sorted(edits, reverse=True):
            changed = changed[:start] + new + changed[end:]
        return changed

    def replaced(self, entry: ClientEntry, value: Mapping[str, JsonValue]) -> str:
        """Return the text of an entry with another value, in its layout."""
        found = re.search(r"\{[ \t]*\r?\n([ \t]*)", entry.text)
        if found is None:
            return json.dumps(value, ensure_ascii=False)
        end = re.search(r"([ \t]*)\}$", entry.text)
        outer = end[1] if end is not None else ""
        step = found[1].removeprefix(outer) or "  "
        return json.dumps(value, ensure_ascii=False, indent=step).replace("\n", f"\n{outer}")

    def says(self, text: str, entry: ClientEntry) -> bool:
        """Return whether a text of an entry has the same value as the entry."""
        try:
            return spans(text, comments=True).json() == entry.value
        except JsonTextError:
            return False

    def masked(self) -> str:
        """Return the text for display, with secrets masked."""
        entries = [span for place in server_places(self.content) if (span := self._root.at(*place)) is not None]
        secret = {place: safe for span in entries for place, safe in _secrets_of(span)}
        starts = {span.start for span in entries}
        waiting = [(False, self._root)]
        while waiting:
            is_named, span = waiting.pop()
            if (span.start, span.end) in secret:
                continue
            is_named = is_named and span.start not in starts  # A server may have any name.
            waiting += [(is_named or is_secret_name(one.name), one.value) for one in span.members or ()]
            waiting += [(is_named, one) for one in span.items or ()]
            if isinstance(span.value, str) and (is_named or looks_secret(span.value)):
                secret[span.start, span.end] = f'"{MASK}"'
        body = self.body
        for (start, end), new in sorted(secret.items(), reverse=True):
            body = body[:start] + new + body[end:]
        return body


def _secrets_of(entry: JsonSpan) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield start and end of each secret of an entry that its keys indicate, and the text to show instead."""
    for (key, step), text in safe_entry(entry.json()).items():
        span = entry.at(key) if step == -1 else entry.at(key, step) if isinstance(step, str) else None
        if isinstance(step, int) and step >= 0 and (holder := entry.at(key)) is not None and holder.items:
            span = holder.items[step]
        if span is not None:
            yield (span.start, span.end), json.dumps(text, ensure_ascii=False)


def _members(variables: Mapping[str, str], present: Collection[str] = ()) -> list[str]:
    """Return the variables that an entry doesn't set, as members of a JSON object."""
    return [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in variables.items() if key not in present]


def _prepended(text: str, span: JsonSpan, written: Sequence[str], brackets: str = "[]") -> tuple[int, int, str]:
    """Return the edit that inserts items or members at the start of a list or an object, in its layout.

    A null is replaced by a list or an object in these brackets, unless it has no content.
    """
    if span.items is None and span.members is None:
        return span.start, span.end, ", ".join(written).join(brackets) if written else "null"
    is_filled = bool(span.items or span.members)
    space = re.match(r"\s*", text[span.start + 1 : span.end])
    gap = space[0] if space is not None and is_filled else ""
    separator = f",{gap}" if "\n" in gap else ", "
    start = span.start + 1 + len(gap)
    return start, start, separator.join(written) + (separator if is_filled and written else "")
