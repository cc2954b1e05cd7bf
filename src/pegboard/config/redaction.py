"""Redaction of secrets in text that is shown, recorded or written to files."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus, unquote

from pegboard.data.mask import SECRET

if TYPE_CHECKING:
    from pydantic import JsonValue

SHORTEST: Final = 6
"""Minimum length of a secret; a shorter one would match too much unrelated text."""

_NESTED: Final = 3
"""Number of JSON texts within each other in which a secret is found: `{"body": "{\\"token\\": …}"}` are two."""

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORD: Final = re.compile(
    r"auth|authorization|bearer|cookie|credential|dsn|jwt|pass|pat|pwd|signature"
    r"|.*(?:key|passphrase|passwd|password|secret|token)",
    re.IGNORECASE,
)


_CODE_IN_JSON: Final = re.compile(r"\\u[0-9a-f]{4}")
"""Escaped character of JSON as Python writes it; other programs write the digits in uppercase."""
_PART_OF_URL: Final = re.compile(r"[^\s/?#]+")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://\Z", re.IGNORECASE)
_LONGEST_SCHEME: Final = 64

AUTHENTICATION: Final = re.compile(r"(?i)((?:bearer|basic|token)\s+)?(.*)", re.DOTALL)
"""Value of a header or variable: its scheme, and the credential."""
_ANY_AUTHENTICATION: Final = re.compile(r"\s*[A-Za-z][\w-]*\s+(.+)", re.DOTALL)


class Redactor:
    """Replacer of secrets by `«secret NAME»`, in every form in which they may be written.

    Besides the value itself it matches: the value as escaped in URLs and in JSON, also in JSON within JSON; as base64,
    also within longer base64 such as that of `user:password`; each line of a value that has several; the user name and
    password of a URL.

    Args:
        values: Names and values of the secrets; several values may have one name. Those of fewer than 6 characters are
            ignored.
        mark: Replacement, with `{}` for the name.
    """

    def __init__(self, values: Mapping[str, str] | Iterable[tuple[str, str]], mark: str = SECRET) -> None:
        self._mark = mark
        found: dict[str, str] = {}
        for name, value in values.items() if isinstance(values, Mapping) else values:
            for form in _forms(value):
                found.setdefault(form, name)
        # The longest first: of two matches with one start the longer one is replaced.
        self._names = dict(sorted(found.items(), key=lambda item: len(item[0]), reverse=True))
        self._by_head: dict[str, list[str]] = {}
        for form in self._names:
            for length in range(1, min(len(form), SHORTEST + 1)):
                self._by_head.setdefault(form[:length], []).append(form)

    def __repr__(self) -> str:
        return f"<Redactor of {len(set(self._names.values()))} secrets>"

    @property
    def forms(self) -> tuple[str, ...]:
        """Every text that is replaced, the longest first."""
        return tuple(self._names)

    def text(self, text: str) -> str:
        """Return a text without secrets, in time linear in its length."""
        finder = self._finder(text)
        return finder.without(text) if finder else text

    def unfinished(self, text: str) -> int:
        """Return the length of the suffix that could be the start of a secret."""
        longest = len(next(iter(self._names), ""))
        for start in range(max(len(text) - longest + 1, 0), len(text)):
            end = text[start:]
            if any(form.startswith(end) and form != end for form in self._by_head.get(end[:SHORTEST], ())):
                return len(end)
        return 0

    def value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value without secrets in its texts, keys and numbers.

        It is the same object if it contains none, otherwise a copy.
        """
        texts, numbers = _scalars(value)
        finder = self._finder("\n".join(texts))
        if finder is None and numbers.isdisjoint(self._names):
            return value
        # Not by recursion: values may be nested deeper than Python's stack.
        top: list[JsonValue] = [None]
        waiting: list[tuple[JsonValue, list[JsonValue] | dict[str, JsonValue], int | str]] = [(value, top, 0)]
        while waiting:
            here, holder, place = waiting.pop()
            kept: JsonValue = here
            match here:
                case str():
                    kept = finder.without(here) if finder else here
                case dict():
                    kept = inside = _with_plain_keys(here, finder) if finder else dict(here)
                    waiting += [(item, inside, key) for key, item in inside.items()]
                case list():
                    kept = items = [*here]
                    waiting += [(item, items, index) for index, item in enumerate(here)]
                case int() | float() if not isinstance(here, bool):
                    # Only a whole secret: parts of it would match too many numbers.
                    digits = _digits(here)
                    kept = self._mark.format(self._names[digits]) if digits in self._names else here
            holder[place] = kept  # type: ignore[index]  # a list comes with an index, an object with a key
        return top[0]

    def _finder(self, text: str) -> _Finder | None:
        # A pattern of one text is much faster than alternatives, so it contains only the forms that occur.
        there = {form: name for form, name in self._names.items() if form in text}
        return _Finder(there, self._mark) if there else None


class _Finder:
    """Matcher of some forms of secrets.

    Args:
        forms: Form → name of the secret, the longest form first.
        mark: Replacement, with `{}` for the name.
    """

    def __init__(self, forms: Mapping[str, str], mark: str) -> None:
        self._mark = mark
        self._forms = forms
        self._longest = max(map(len, forms))
        self._pattern = re.compile("|".join(map(_repeated, forms)))

    def without(self, text: str) -> str:
        """Replace all matches."""
        pieces: list[str] = []
        at = 0
        for start, end in self._places(text):
            form = next(form for form in self._forms if text.startswith(form, start))
            pieces += (text[at:start], self._mark.format(self._forms[form]))
            at = end
        return "".join((*pieces, text[at:])) if pieces else text

    def _places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each stretch of overlapping matches."""
        match = self._pattern.search(text)
        while match:
            start, end = match.span()
            match = self._next(text, match, end)
            while match and match.start() < end:
                end = max(end, match.end())
                match = self._next(text, match, end)
            yield start, end

    def _next(self, text: str, match: re.Match[str], end: int) -> re.Match[str] | None:
        # Earlier matches are too short to extend beyond `end`.
        return self._pattern.search(text, max(match.start() + 1, end - self._longest + 1))


def _repeated(form: str) -> str:
    """Return the pattern of a form that may overlap itself: `abab` is in `ababab` twice, as one stretch."""
    step = next((step for step in range(1, len(form)) if form.startswith(form[step:])), None)
    return re.escape(form) + (f"(?:{re.escape(form[-step:])})*+" if step else "")


def _with_plain_keys(items: Mapping[str, JsonValue], finder: _Finder) -> dict[str, JsonValue]:
    plain: dict[str, JsonValue] = {}
    for key, item in items.items():
        name = shown = finder.without(key)
        again = 2
        while name in plain or (name != key and name in items):
            name = f"{shown} {again}"
            again += 1
        plain[name] = item
    return plain


def _scalars(value: JsonValue) -> tuple[list[str], set[str]]:
    """Return all texts in a value, its keys included, and the digits of all its numbers."""
    texts: list[str] = []
    numbers: set[str] = set()
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                texts.append(text)
            case dict() as inner:
                texts += inner
                waiting += inner.values()
            case list() as items:
                waiting += items
            case int() | float() as number:
                numbers.add(_digits(number))
    return texts, numbers


def is_secret_name(name: str) -> bool:
    """Return whether a value of this name may be a secret: `apiKey`, `GITHUB_TOKEN`, `db-password`."""
    return any(
        _SECRET_WORD.fullmatch(word.rstrip("sS")) or _SECRET_WORD.fullmatch(word) for word in _WORDS.findall(name)
    )


def credentials(value: str, *, is_proxy: bool = False) -> tuple[str, ...]:
    """Return the secret parts of the URLs in a text: passwords, and user names that may be tokens.

    Args:
        value: The text.
        is_proxy: Whether it may be a URL without a scheme, such as `user:password@host:8080`.
    """
    found: list[str] = []
    for part_of_url in _PART_OF_URL.finditer(value) if "@" in value else ():
        user, _, host = part_of_url[0].rpartition("@")
        if not user:
            continue
        start = part_of_url.start()
        before = _SCHEME.search(value[max(0, start - _LONGEST_SCHEME) : start])
        scheme, host = before and before[0], host.partition(":")[0]
        _, colon, password = user.partition(":")
        if not (scheme or (is_proxy and colon)) or not (password or (scheme and scheme.lower().startswith("http"))):
            continue
        for part in (user, password, unquote(user), unquote(password)):
            # A short one is combined with the host: alone it would match too much unrelated text.
            found += (part, f"{part}@{host}") if part in (user, unquote(user)) else (part,)
    return tuple(dict.fromkeys(filter(None, found)))


def credential_of(name: str, text: str) -> str:
    """Return the secret part of a header or a variable; of cookies, their values as lines."""
    if name.lower() == "cookie":
        return "\n".join((pair.partition("=")[2] or pair).strip() for pair in text.split(";"))
    is_header = name.lower().endswith("authorization")
    found = (is_header and _ANY_AUTHENTICATION.fullmatch(text)) or AUTHENTICATION.fullmatch(text)
    return found[found.re.groups] if found else text


def _forms(value: str) -> Iterator[str]:
    whole = value.strip()
    lines = [line.strip() for line in whole.splitlines()]
    plain = (line for line in lines if not line.startswith("-----"))
    for part in dict.fromkeys((value, whole, *plain, *credentials(value, is_proxy=True))):
        if len(part) >= SHORTEST:
            yield part
            yield from _escaped(part)
            yield from _base64(part.encode(errors="surrogateescape"))


def _escaped(value: str) -> Iterator[str]:
    for form in _quoted(value):
        yield form
        yield _CODE_IN_JSON.sub(lambda code: rf"\u{code[0][2:].upper()}", form)


def _quoted(value: str) -> Iterator[str]:
    forms = {value: None}
    for _ in range(_NESTED + 1):  # the history is another level
        forms = dict.fromkeys(_in_json(form, ascii_only=ascii_only) for form in forms for ascii_only in (True, False))
        yield from forms
    for ascii_only in (True, False) if "/" in value else ():
        form = value
        for _ in range(_NESTED):
            form = _in_json(form, ascii_only=ascii_only).replace("/", "\\/")
            yield from (form, _in_json(form, ascii_only=False))
    yield repr(value)[1:-1]
    raw = value.encode(errors="surrogateescape")
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield from (quoted, re.sub("%..", lambda code: code[0].lower(), quoted))


def _in_json(value: str, *, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only)[1:-1]


def _base64(value: bytes) -> Iterator[str]:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(value).decode()
        yield from (whole, whole.rstrip("="))
        for before in range(3):
            # Within unknown bytes, only some characters depend on the value alone.
            text = encode(bytes(before) + value).decode().rstrip("=")
            start = before + 1 if before else 0
            is_whole = (before + len(value)) % 3 == 0
            yield text[start : None if is_whole else -1]


def _digits(number: float) -> str:
    try:
        return str(number)
    except ValueError:  # longer than Python writes
        return ""
