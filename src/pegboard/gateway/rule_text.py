"""The text of the rules' file: parsed, and edited rule by rule, so that the rest stays as the user wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from pegboard.config.complaints import complaint
from pegboard.config.lines import LINE
from pegboard.data.toml import TomlError, parse_toml
from pegboard.errors import RulesError
from pegboard.models.rule import Rule

if TYPE_CHECKING:
    from pegboard.models import JsonObject

HEAD: Final = """\
# Calls of models and MCP clients: run them (allow), ask first (ask), or reject them (deny).
# A matching deny always applies; otherwise the last matching rule does. Without a matching rule, read-only tools run
# and all others ask.
#
# [[rule]]
# allow = "notes.*"               # tools: a pattern, or a list of patterns
# where = { path = "src/**" }     # arguments: all must match; * within a folder, ** across folders, [*] a literal *
# exactly = '{"path": "a.txt"}'   # instead of where: all arguments of the call, as JSON; only with allow
# scope = "ask"                   # only models (ask) or MCP clients (mcp); both by default
"""
"""The header of a new file."""

_HEADER = re.compile(r"""\s*\[\[\s*(rule|"rule"|'rule')\s*\]\]\s*(#.*)?""", re.DOTALL)
_INLINE_WHERE = re.compile(r"\s*where\s*=")
_NOT_CHANGED = "The file was not changed. Edit it in your editor."

_Leaves: TypeAlias = dict[tuple[str, ...], list[JsonValue]]
"""Values by their keys."""


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    rule: tuple[Rule, ...] = Field(default=(), strict=False)


def read_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of a file's text.

    Raises:
        ValueError: The text is invalid; the message lists every error.
    """
    if not text:
        return ()
    try:
        return _File.model_validate(parse_toml(text)).rule
    except TomlError as error:
        raise ValueError(f"The file is not valid TOML: {error}.") from error
    except ValidationError as error:
        raise ValueError(" ".join(_sentences(error))) from error


def line_of(text: str, rule: int, about: str = "") -> int | None:
    """Return the line of a rule, from 1, or the line within it that contains a text; None if it can't be found.

    Args:
        text: The text of the file.
        rule: The rule's index, from 0.
        about: A pattern or a name in the rule.
    """
    lines = LINE.findall(text)
    headers = [number for number, line in enumerate(lines) if _HEADER.fullmatch(line)]
    if rule >= len(headers):
        return None
    end = headers[rule + 1] if rule + 1 < len(headers) else len(lines)
    within = (number for number in range(headers[rule], end) if about and about in lines[number])
    return next(within, headers[rule]) + 1


def line_of_error(text: str) -> int | None:
    """Return the line of the first error in an invalid file; None if it can't be found."""
    try:
        _File.model_validate(parse_toml(text))
    except TomlError as error:
        return error.line
    except ValidationError as error:
        position = error.errors()[0]["loc"]
        number = position[1] if len(position) > 1 else None
        return line_of(text, number, str(position[2]) if len(position) > 2 else "") if isinstance(number, int) else None
    return None


def _sentences(error: ValidationError) -> Iterator[str]:
    for item in error.errors(include_url=False, include_context=False):
        position = item["loc"]
        number = position[1] + 1 if len(position) > 1 and isinstance(position[1], int) else None
        key = ".".join(map(str, position if number is None else position[2:]))
        if item["type"] == "extra_forbidden":
            known = ", ".join(f"`{name}`" for name in (_File if number is None else Rule).model_fields)
            sentence = f"`{key}` is not a known key. Use {known}."
        else:
            sentence = complaint(f"`{key}`" if key else f"Rule {number}", item["type"], item["msg"], item["input"])
        yield sentence if number is None or not key else f"In rule {number}, {sentence}"


@dataclass
class _Piece:
    """The lines of a rule, with the comments directly above and below it."""

    lines: list[str]
    after: list[str] = field(default_factory=list)
    """The lines between this rule and the next: empty ones, and separate comments."""


# tomlkit 0.15 cannot replace this: it attaches a comment above a `[[rule]]` to the previous rule, so moving or removing
# a rule moves or keeps the wrong comment, and deleting a table of a rule deletes the comments in it.


class RuleText:
    """The text of a file whose rules are `[[rule]]` tables.

    Every change returns the text of the whole file. The text of other rules, and all comments except those of a removed
    rule, stay unchanged.

    Args:
        text: The text.

    Raises:
        RulesError: The text is invalid, or its rules are written in another way.
    """

    def __init__(self, text: str) -> None:
        try:
            self._rules = read_rules(text)
        except ValueError as error:
            raise RulesError(f"The rules can't be changed because they can't be read: {error}") from error
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._head, self._pieces = _split_rules(LINE.findall(text))
        if not self._is_consistent():
            raise RulesError(f"The rules are not written as [[rule]] tables, one after the other. {_NOT_CHANGED}")

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the text."""
        return self._rules

    def with_added(self, rule: Rule) -> str:
        """Return the text with a rule at the end."""
        last = self._pieces[-1].after if self._pieces else self._head
        before = self._pieces[-1].lines if self._pieces and not last else last
        if before and not before[-1].endswith("\n"):
            before[-1] += self._newline
        if before and before[-1].strip():
            last.append(self._newline)
        self._pieces.append(_Piece([f"[[rule]]{self._newline}", *self._toml_lines(_values_of(rule))]))
        return self._verified([*self._rules, rule])

    def with_changed(self, at: int, rule: Rule) -> str:
        """Return the text with a rule replaced; comments and unchanged lines stay."""
        piece = self._pieces[at]
        begin = next(number for number, line in enumerate(piece.lines) if _HEADER.fullmatch(line)) + 1
        body = piece.lines[begin:]
        if body and not body[-1].endswith("\n"):
            body[-1] += self._newline
        piece.lines[begin:] = self._updated_lines(body, rule)
        rules = [*self._rules]
        rules[at] = rule
        return self._verified(rules)

    def without(self, at: int) -> str:
        """Return the text without a rule and the comments directly above and below it."""
        piece = self._pieces.pop(at)
        between = self._pieces[at - 1].after if at else self._head
        if between and not between[-1].strip() and (not piece.after or not piece.after[0].strip()):
            between.pop()  # One empty line between rules is enough.
        between += piece.after
        return self._verified([*self._rules[:at], *self._rules[at + 1 :]])

    def with_moved(self, at: int, to: int) -> str:
        """Return the text with a rule moved, together with the comments directly above and below it."""
        lines = [piece.lines for piece in self._pieces]
        for one in lines:
            one[-1] = one[-1].removesuffix("\n").removesuffix("\r") + self._newline
        rules = [*self._rules]
        lines.insert(to, lines.pop(at))
        rules.insert(to, rules.pop(at))
        for piece, others in zip(self._pieces, lines, strict=True):
            piece.lines = others
        return self._verified(rules)

    def _text(self) -> str:
        pieces = (line for piece in self._pieces for line in (*piece.lines, *piece.after))
        return "".join([*self._head, *pieces])

    def _is_consistent(self) -> bool:
        """Return whether each piece is exactly one rule, and the rest contains none."""
        parts = ["".join(self._head), *("".join(piece.lines) for piece in self._pieces)]
        try:
            found = [read_rules(part) for part in parts]
        except ValueError:
            return False
        return found == [(), *((rule,) for rule in self._rules)]

    def _verified(self, rules: Sequence[Rule]) -> str:
        """Return the text after verifying that it has these rules."""
        text = self._text()
        try:
            if read_rules(text) == tuple(rules):
                return text
        except ValueError:
            pass
        raise RulesError(f"The rule can't be added to this file without changing others. {_NOT_CHANGED}")

    def _toml_lines(self, values: _Leaves) -> list[str]:
        from pegboard.presets.toml_text import TomlTextError, write_toml  # It imports the forms.

        try:
            text = "".join(write_toml(_nested(path, value)) for path, value in values.items())
        except TomlTextError as error:
            raise RulesError(f"The rule can't be written: {error}.") from error
        return [f"{line}{self._newline}" for line in text.splitlines()]

    def _updated_lines(self, body: Sequence[str], rule: Rule) -> list[str]:
        """Return the lines of a rule's table with its new values."""
        wanted = _values_of(rule)
        missing = dict(wanted)
        lines: list[str] = []
        position: int | None = None
        last = 0
        for line in body:
            if _is_comment(line):
                lines.append(line)
                continue
            try:
                values = _leaves(parse_toml(line))
            except TomlError:  # It spans several lines, so everything is written anew.
                return [*filter(_is_comment, body), *self._toml_lines(wanted)]
            if _is_up_to_date(line, values, wanted):
                lines.append(line)
                last = len(lines)
                for path in values:
                    missing.pop(path, None)
            elif position is None:
                position = len(lines)
        position = last if position is None else position
        return [*lines[:position], *self._toml_lines(missing), *lines[position:]]


def _split_rules(lines: Sequence[str]) -> tuple[list[str], list[_Piece]]:
    """Split the lines of a text into those before the first rule, and the rules."""
    headers = [number for number, line in enumerate(lines) if _HEADER.fullmatch(line)]
    begins = []
    for number in headers:
        begin = number
        while begin and lines[begin - 1].lstrip().startswith("#"):
            begin -= 1
        begins.append(begin)
    pieces = []
    for begin, header, end in zip(begins, headers, [*begins, len(lines)][1:], strict=True):
        last = header
        for number in range(header + 1, end):
            is_comment = lines[number].lstrip().startswith("#")
            if lines[number].strip() and (not is_comment or last == number - 1):
                last = number
        pieces.append(_Piece([*lines[begin : last + 1]], [*lines[last + 1 : end]]))
    return [*lines[: begins[0] if begins else len(lines)]], pieces


def _is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _is_up_to_date(line: str, values: _Leaves, wanted: _Leaves) -> bool:
    """Return whether a line of a table is still correct; keys can't be added to an inline table."""
    if not values or any(path not in wanted or wanted[path] != value for path, value in values.items()):
        return False
    return _INLINE_WHERE.match(line) is None or values.keys() == {path for path in wanted if path[0] == "where"}


def _values_of(rule: Rule) -> _Leaves:
    """Return the values of a rule's table, in the usual order."""
    values: _Leaves = {(rule.action,): [*rule.tools]}
    values.update({("where", name): [*patterns] for name, patterns in rule.where.items()})
    if rule.exactly is not None:
        values["exactly",] = [rule.exactly]
    if rule.scope is not None:
        values["scope",] = [rule.scope]
    return values


def _leaves(table: JsonValue, path: tuple[str, ...] = ()) -> _Leaves:
    """Return the values of a table by their keys, with a single text as a list."""
    if not isinstance(table, dict):
        return {path: table if isinstance(table, list) else [table]}
    return {keys: value for name, inner in table.items() for keys, value in _leaves(inner, (*path, name)).items()}


def _nested(path: tuple[str, ...], value: list[JsonValue]) -> JsonObject:
    inner: JsonValue = value[0] if len(value) == 1 else value
    for name in reversed(path[1:]):
        inner = {name: inner}
    return {path[0]: inner}
