"""Which calls of models and other agents run, ask, or are refused: the user's rules, in a file that they can read."""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from pegboard.config.files import read_text, shown
from pegboard.models import Problem, ToolCall, ToolSpec

Action: TypeAlias = Literal["allow", "ask", "deny"]

_HEAD: Final = """\
# Which calls of models and MCP clients run (allow), ask first (ask) or are refused (deny).
# A deny that fits always holds; of the others, the last one that fits. Where none does, tools that only read run, and
# all others ask.
#
# [[rule]]
# allow = "notes.*"               # patterns of tools: one, or a list
# where = { path = "src/**" }     # patterns of arguments; all must fit: * within a folder, ** across
# scope = "ask"                   # only models (ask) or MCP clients (mcp); both if left out
"""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Patterns: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_listed), Field(strict=False)]


class Rule(BaseModel):
    """One rule of the file: exactly one of `allow`, `ask` and `deny`, and when it holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    allow: Patterns = ()
    ask: Patterns = ()
    deny: Patterns = ()
    where: dict[str, Patterns] = Field(default_factory=dict)
    """Argument → patterns of which one must fit. Text is compared as it is, anything else as JSON."""
    scope: Literal["ask", "mcp"] | None = None
    """Whose calls it is for: a model's or an MCP client's; both if None."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Rule:
        if sum(map(bool, (self.allow, self.ask, self.deny))) != 1:
            raise ValueError("should have exactly one of allow, ask and deny, with the tools it is for")
        return self

    @property
    def action(self) -> Action:
        """What it says."""
        return "allow" if self.allow else "ask" if self.ask else "deny"

    def fits(self, spec: ToolSpec, call: ToolCall) -> bool:
        """Tells whether the rule is about this call."""
        from fnmatch import fnmatchcase

        if self.scope is not None and self.scope != call.source:
            return False
        if not any(fnmatchcase(spec.name, pattern) for pattern in self.allow or self.ask or self.deny):
            return False
        return all(self._argument_fits(patterns, _value(spec, call, name)) for name, patterns in self.where.items())

    def _argument_fits(self, patterns: Sequence[str], value: JsonValue) -> bool:
        """Tells whether an argument fits; of a list, every item where it allows, and any where it doesn't."""
        if value is None:
            return False
        items = value if isinstance(value, list) else [value]
        fitting = (any(self._text_fits(pattern, _text(item)) for pattern in patterns) for item in items)
        return bool(items) and (all(fitting) if self.allow else any(fitting))

    def _text_fits(self, pattern: str, text: str) -> bool:
        matches = _compiled(pattern).fullmatch
        if self.allow:
            # `src/../../etc` begins with `src/`, and is elsewhere
            return ".." not in re.split(r"[/\\]", text) and matches(text) is not None
        return matches(text) is not None or matches(posixpath.normpath(re.sub("/+", "/", text))) is not None


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rule: tuple[Rule, ...] = Field(default=(), strict=False)


class Verdict(NamedTuple):
    """What the rules say of one call."""

    action: Action
    reason: str
    """Why, as a sentence."""


class Rules:
    """The rules of the file, which is read again when it changes, and the approvals of this process's sessions.

    A file that can't be used allows nothing, since what it would deny isn't known: then every call asks, of tools that
    only read too.

    Args:
        file: Where the rules are, which needn't be there; without one, only sessions' approvals are kept.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lock = Lock()
        self._mark: tuple[int, int] | None = None
        self._rules: tuple[Rule, ...] = ()
        self._problem: Problem | None = None
        self._unkept: Problem | None = None
        self._sessions: set[tuple[str, str]] = set()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was wrong with the file when it was last read or written."""
        return tuple(problem for problem in (self._problem, self._unkept) if problem is not None)

    def verdict(self, spec: ToolSpec, call: ToolCall) -> Verdict:
        """Says whether a call would run, ask or be refused; reads the file if it changed.

        Args:
            spec: The tool.
            call: The call, its arguments by the names of the schema.
        """
        with self._lock:
            self._refresh()
            rules, problem = self._rules, self._problem
        fitting = [rule for rule in rules if rule.fits(spec, call)]
        if any(rule.action == "deny" for rule in fitting):
            return Verdict("deny", f"A rule of {self._name} denies {spec.name}.")
        if call.session is not None and (call.session, spec.name) in self._sessions:
            return Verdict("allow", f"{spec.name} was allowed in this session.")
        if problem is not None:
            return Verdict("ask", f"The rules can't be read: {problem.message}")
        if fitting:
            said = "allows" if fitting[-1].action == "allow" else "wants to be asked about"
            return Verdict(fitting[-1].action, f"A rule of {self._name} {said} {spec.name}.")
        if spec.hints.read_only:
            return Verdict("allow", f"{spec.name} only reads.")
        manner = "may delete or overwrite" if spec.hints.destructive else "may change things"
        return Verdict("ask", f"{spec.name} {manner}.")

    def allow_in_session(self, spec: ToolSpec, call: ToolCall) -> None:
        """Lets the tool's calls of this session run from now on, as long as this process lives."""
        if call.session is not None:
            self._sessions.add((call.session, spec.name))

    def allow_always(self, spec: ToolSpec) -> None:
        """Adds a rule to the file that lets the tool run from now on; that it couldn't be done is a problem."""
        if self._file is None:
            return
        rule = f"\n[[rule]]\nallow = {json.dumps(_literal(spec.name))}\n"
        with self._lock:
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                head = "" if self._file.exists() else _HEAD
                # one write at the end keeps what the user wrote, and what another process adds at the same time
                with self._file.open("a", encoding="utf-8") as opened:
                    opened.write(head + rule)
            except OSError as error:
                message = f"The approval can't be kept: {error.strerror or error}."
                self._unkept = Problem(message=message, severity="warning", file=shown(self._file))

    @property
    def _name(self) -> str:
        return self._file.name if self._file else "the rules"

    def _refresh(self) -> None:
        if self._file is None:
            return
        try:
            status = self._file.stat()
            mark = status.st_mtime_ns, status.st_size
        except OSError:
            mark = (0, 0)
        if mark != self._mark:
            self._mark = mark
            self._rules, self._problem = _read(self._file)


def _read(file: Path) -> tuple[tuple[Rule, ...], Problem | None]:
    """Reads the rules; of a file with a fault none, for what it denies isn't known."""
    text = read_text(file)
    if isinstance(text, Problem):
        return (), text
    try:
        return _File.model_validate(tomllib.loads(text)).rule, None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        message = f"This file is no TOML: {error}."
    except ValidationError as error:
        message = "; ".join(_sentences(error))
    fix = "Until it is mended, every call of a model or an MCP client asks."
    return (), Problem(message=message, fix=fix, file=shown(file))


def _sentences(error: ValidationError) -> Iterator[str]:
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        place = item["loc"]
        number = f"rule {place[1] + 1}" if len(place) > 1 and isinstance(place[1], int) else "the file"
        where = ".".join(map(str, place[2:])) if number != "the file" else ".".join(map(str, place))
        yield f"{number}{': ' + where if where else ''}: {item['msg'].removeprefix('Value error, ')}"


def _value(spec: ToolSpec, call: ToolCall, name: str) -> JsonValue:
    """Gives an argument, or what the tool takes where it was left out."""
    if name in call.args:
        return call.args[name]
    properties = spec.input_schema.get("properties")
    described = properties.get(name) if isinstance(properties, Mapping) else None
    return described.get("default") if isinstance(described, Mapping) else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _literal(name: str) -> str:
    """Gives a pattern that only fits this name."""
    return re.sub(r"[*?[]", lambda sign: f"[{sign[0]}]", name)


@lru_cache(maxsize=500)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern: `?` is a character and `*` are any, both within a folder; `**` goes across."""
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(signs.get(part, re.escape(part)) for part in parts), re.DOTALL)
