"""The configuration of a git repository: read without includes, and rewritten with harmless values only."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"|\\(.)|([^"\\#;]+)')
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}
_CORE = ("filemode", "ignorecase", "precomposeunicode", "symlinks", "autocrlf", "eol")
_PLAIN = re.compile(r"[A-Za-z0-9_-]*")


class ConfigValue(NamedTuple):
    """One value of a configuration."""

    section: str
    """In lower case."""
    subsection: str
    key: str
    """In lower case."""
    text: str


class GitConfig:
    """The values of a configuration file.

    Args:
        texts: The contents of its files; later values win.
    """

    def __init__(self, *texts: str) -> None:
        self._values = [value for text in texts for value in _parsed(text)]

    def get(self, section: str, key: str) -> str | None:
        """Return the last value of a key in a section without a subsection."""
        found = [value.text for value in self._values if value[:3] == (section, "", key)]
        return found[-1] if found else None

    def is_true(self, section: str, key: str, *, default: bool) -> bool:
        """Return a value as git reads a boolean."""
        text = self.get(section, key)
        return default if text is None else text.lower() in {"true", "yes", "on", "1"}

    def harmless(self) -> str:
        """Return a configuration with descriptive values only: no program, other file or address."""
        lines = ["[core]", "repositoryformatversion = 0", "bare = false", "safecrlf = false", "quotepath = false"]
        for key in _CORE:
            text = self.get("core", key)
            if text is not None and _PLAIN.fullmatch(text):
                lines.append(f"{key} = {text or 'false'}")
        return "\n".join([*lines, *_sections(self._tracking())]) + "\n"

    def _tracking(self) -> Iterator[ConfigValue]:
        kinds = {("branch", "remote"), ("branch", "merge"), ("remote", "fetch")}
        return (value for value in self._values if (value.section, value.key) in kinds and value.subsection)


def _sections(values: Iterable[ConfigValue]) -> Iterator[str]:
    for value in values:
        if not re.search(r"[\0\n]", value.subsection + value.text):
            yield f"[{value.section} {_quoted(value.subsection)}]"
            if value.section == "remote":
                yield "url = none:"  # libgit2 ignores a remote without an address
            yield f"{value.key} = {_quoted(value.text)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _parsed(text: str) -> Iterator[ConfigValue]:
    """Yield the values of a configuration; skip lines that git would reject."""
    section, subsection = "", ""
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\n", r"\1", text.removeprefix("\ufeff").replace("\r\n", "\n"))
    for line in joined.split("\n"):
        rest = line.strip()
        if found := _SECTION.match(rest):
            section, _, dotted = found[1].lower().partition(".")
            subsection = dotted if found[2] is None else re.sub(r"\\(.)", r"\1", found[2])
            rest = rest[found.end() :].strip()
        if not rest or rest[0] in "#;[":
            continue
        key, has_value, value = rest.partition("=")
        key = re.split(r"\s*[#;]", key)[0].strip().lower()
        yield ConfigValue(section, subsection, key, _value(value) if has_value else "true")


def _value(text: str) -> str:
    found, at, text = "", 0, text.strip()
    while piece := _PIECE.match(text, at):
        at = piece.end()
        escaped = piece[0] if piece[1] is None else piece[1]
        found += piece[3] or re.sub(r"\\(.)", lambda each: _ESCAPED.get(each[1], each[1]), escaped)
    # Trailing white space counts only within quotes.
    return found if text[:at].endswith('"') else found.rstrip()
