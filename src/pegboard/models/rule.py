"""The user's rules: which calls of models and MCP clients run, ask first, or are refused."""

from __future__ import annotations

import json
import re
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pegboard.models.model import DataModel
from pegboard.models.problem import Problem

RuleAction: TypeAlias = Literal["allow", "ask", "deny"]
RuleScope: TypeAlias = Literal["ask", "mcp"]

_WHOSE = {"ask": "of models", "mcp": "of MCP clients"}
_AMBIGUOUS = re.compile(
    r'^$|^["\s]|\s$|,(?!\S)|(?<!\S)(?:=|or|where|with\s+exactly|in\s+calls)(?!\S)|(?![\w\s])[^\x00-\x7f]'
)
"""What would look like another part of a rule; characters such as the blank of Braille look like spaces."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _patterns_of(where: object) -> object:
    """Flatten nested tables to dotted names, and write numbers and booleans as patterns."""
    if not isinstance(where, dict):
        return where
    flat: dict[object, object] = {}
    for name, value in where.items():
        if isinstance(value, dict):
            inner = _patterns_of(value)
            assert isinstance(inner, dict), "it contains a table"
            flat |= {f"{name}.{below}": patterns for below, patterns in inner.items()}
        elif isinstance(value, list | tuple):
            flat[name] = [_pattern(one) for one in value]
        else:
            flat[name] = _pattern(value)
    return flat


def _pattern(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Patterns: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_listed), Field(strict=False)]


class Rule(BaseModel):
    """One rule: exactly one of `allow`, `ask` and `deny`, with its conditions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    allow: Patterns = ()
    ask: Patterns = ()
    deny: Patterns = ()
    where: Annotated[dict[str, Patterns], BeforeValidator(_patterns_of)] = Field(default_factory=dict)
    """Argument, alias or dotted path → patterns of which one must match. Values are compared by type."""
    exactly: str | None = None
    """All arguments of the calls that the rule allows, as a JSON object; only these values match, by type."""
    scope: RuleScope | None = None
    """Whose calls the rule applies to: a model's or an MCP client's; both if None."""

    @model_validator(mode="after")
    def _check_shape(self) -> Rule:
        if sum(map(bool, (self.allow, self.ask, self.deny))) != 1:
            raise ValueError("should have exactly one of allow, ask and deny, with a list of tools")
        if empty := [name for name, patterns in self.where.items() if not patterns]:
            raise ValueError(f"can never match because `{empty[0]}` has no pattern")
        if self.exactly is not None:
            if not self.allow or self.where:
                raise ValueError("should use `exactly` only with `allow`, and without `where`")
            try:
                arguments = json.loads(self.exactly)
            except (ValueError, RecursionError):
                arguments = None
            if not isinstance(arguments, dict):
                raise ValueError("should have a JSON object with all arguments in `exactly`")
        return self

    @property
    def action(self) -> RuleAction:
        """Action of the rule."""
        return "allow" if self.allow else "ask" if self.ask else "deny"

    @property
    def tools(self) -> tuple[str, ...]:
        """Patterns of the tools that the rule applies to."""
        return self.allow or self.ask or self.deny

    def __str__(self) -> str:
        """Return the rule as text: `allow fs.write_file where path = src/**`.

        A name or a pattern that would look like more than one condition is in quotes.
        """
        where = ", ".join(
            f"{_shown(name)} = {' or '.join(map(_shown, patterns))}" for name, patterns in self.where.items()
        )
        exactly = f" with exactly {self.exactly}" if self.exactly is not None else ""
        whose = f" in calls {_WHOSE[self.scope]}" if self.scope else ""
        return f"{self.action} {', '.join(map(_shown, self.tools))}{f' where {where}' if where else ''}{exactly}{whose}"


def _shown(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if _AMBIGUOUS.search(text) else text


class RuleFile(DataModel):
    """The rules as last read from their file."""

    file: str
    """Absolute path of the file, which may be missing."""
    rules: tuple[Rule, ...] = ()
    """The rules in order; empty if the file can't be used."""
    problem: Problem | None = None
    """Why the file can't be used."""
    text: str = Field(default="", repr=False)
    """The text that was read, to detect changes."""
