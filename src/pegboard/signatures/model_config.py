"""Settings of pydantic that a class declares, and the names of its fields in JSON."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pegboard.sdk.literals import text

if TYPE_CHECKING:
    from pegboard.sdk.scope import Scope

_CONFIGS = frozenset({"model_config", "__pydantic_config__"})

_Setting = tuple[str | None, "ast.expr", "Scope"]
"""Name, value, and the scope of the value. The name is None if the setting can't be read."""


class ModelConfig:
    """Settings of a class and its ancestors.

    Args:
        ours: The class and its ancestors from the same file and project, base classes first.
    """

    def __init__(self, ours: tuple[tuple[Scope, ast.ClassDef], ...]) -> None:
        self._settings = {
            name: (value, scope) for home, node in ours for name, value, scope in _settings_of_class(node, home)
        }

    @property
    def extra(self) -> str | None:
        """Treatment of unknown keys: `forbid`, `allow` or `ignore`; None if unset or dynamic."""
        return text(*self._settings["extra"]) if "extra" in self._settings else None

    def has(self, setting: str) -> bool:
        """Return whether the class declares a setting."""
        return setting in self._settings

    def name(self, field: str, alias: str | None) -> str | None:
        """Return the name of a field in arguments, or None if it can't be determined.

        Args:
            field: Name in the class.
            alias: Alias in `Field(...)`; empty if it can't be read.
        """
        if None in self._settings:
            return None
        if self._is("validate_by_alias", value=False):
            return field
        known = self._generated(field, "validation_alias") if alias is None else alias
        if not known and (self._is("populate_by_name", value=True) or self._is("validate_by_name", value=True)):
            return field
        return known or None

    def written_name(self, field: str, alias: str | None) -> str | None:
        """Return the name of a field of a model in results, or None if it can't be determined.

        Args:
            field: Name in the class.
            alias: Alias for results in `Field(...)`; empty if it can't be read.
        """
        if not self.has("serialize_by_alias") or self._is("serialize_by_alias", value=False):
            return field
        if not self._is("serialize_by_alias", value=True):
            return None
        return (self._generated(field, "serialization_alias") if alias is None else alias) or None

    def _is(self, name: str, *, value: bool) -> bool:
        node, _ = self._settings.get(name, (None, None))
        return isinstance(node, ast.Constant) and node.value is value

    def _generated(self, field: str, purpose: str) -> str:
        if "alias_generator" not in self._settings:
            return field
        node, scope = self._settings["alias_generator"]
        if isinstance(node, ast.Call) and scope.qualified(node.func) in {
            "pydantic.AliasGenerator",
            "pydantic.aliases.AliasGenerator",
        }:
            arguments = dict(zip(("alias", "validation_alias", "serialization_alias"), node.args, strict=False))
            arguments |= {str(keyword.arg): keyword.value for keyword in node.keywords}
            chosen = (arguments.get(name, ast.Constant(None)) for name in (purpose, "alias"))
            node = next((node for node in chosen if not _is_none(node)), ast.Constant(None))
        if _is_none(node):
            return field
        generator = _GENERATORS.get(scope.qualified(node) or "")
        return generator(field) if generator else ""


def alias_of(node: ast.expr, scope: Scope) -> str | None:
    """Return the name in an argument `alias` or `validation_alias`: the first choice; empty if it can't be read."""
    if _is_none(node):
        return None
    called = (scope.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and called.rpartition(".")[2] == "AliasChoices":
        return next((name for choice in node.args if (name := alias_of(choice, scope))), "")
    return text(node, scope) or ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _settings_of_class(node: ast.ClassDef, scope: Scope) -> Iterator[_Setting]:
    yield from _keywords(node.keywords, scope)
    for decorator in node.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "config":
                yield from _settings(keyword.value, scope)
    for statement in node.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if name in _CONFIGS:
                yield from _settings(value, scope)
            case ast.ClassDef(name="Config", body=body):  # pydantic's older way
                for item in body:
                    if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
                        yield item.targets[0].id, item.value, scope


def _settings(node: ast.expr, scope: Scope) -> Iterator[_Setting]:
    if isinstance(node, ast.Name | ast.Attribute):
        found = scope.find(node)
        if found is not None and isinstance(found.definition, ast.Call | ast.Dict):
            node, scope = found.definition, found.scope
    if isinstance(node, ast.Call):
        yield from _keywords(node.keywords, scope)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield text(key, scope), value, scope
    else:
        yield None, node, scope


def _keywords(keywords: list[ast.keyword], scope: Scope) -> Iterator[_Setting]:
    for keyword in keywords:
        if keyword.arg is None:  # `**settings`
            yield from _settings(keyword.value, scope)
        else:
            yield keyword.arg, keyword.value, scope


def _to_pascal(name: str) -> str:
    return re.sub(r"([0-9A-Za-z])_(?=[0-9A-Z])", r"\1", name.title())


def _to_camel(name: str) -> str:
    if re.match(r"[a-z]+[A-Za-z0-9]*$", name) and not re.search(r"\d[a-z]", name):
        return name
    return re.sub(r"^_*[A-Z]", lambda match: match[0].lower(), _to_pascal(name))


def _to_snake(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    for before, after in (("[a-z]", "[A-Z]"), ("[0-9]", "[A-Z]"), ("[a-z]", "[0-9]")):
        name = re.sub(f"({before})({after})", r"\1_\2", name)
    return name.replace("-", "_").lower()


_GENERATORS: dict[str, Callable[[str], str]] = {
    "pydantic.alias_generators.to_pascal": _to_pascal,
    "pydantic.alias_generators.to_camel": _to_camel,
    "pydantic.alias_generators.to_snake": _to_snake,
}
"""pydantic's generators, which must not be imported here: processes that read files don't load other packages."""
