"""Requirements of the tools in a file, as declared in its source."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from pegboard.discovery.parsed import PlainRequirement
    from pegboard.sdk.requirements import DeclaredRequirement
    from pegboard.sdk.source import DeclaredRequirements, Unreadable

_WORDS = ("requires_cli", "requires_lib", "requires_secret", "get_secret", "api_headers", "lazy_client")
"""Functions that declare requirements. Files that contain none of these names are skipped, because visiting all nodes
takes as long as parsing."""


def read(tree: ast.Module, source: str | bytes, tools: Collection[str]) -> FileRequirements | None:
    """Return the requirements of the tools in a file, or None if it declares none.

    Args:
        tree: Syntax tree of the source.
        source: Source of the file.
        tools: Names of the functions that are tools.
    """
    text = source.encode("utf-8", "replace") if isinstance(source, str) else source
    if b"pegboard" not in text or not any(word.encode() in text for word in _WORDS):
        return None
    from pegboard.sdk.source import read_requirements

    return FileRequirements(tree, read_requirements(tree), tools)


class FileRequirements:
    """Requirements of the tools in one file.

    Args:
        tree: Syntax tree of the file.
        reading: Requirements that it declares.
        tools: Names of the functions that are tools.
    """

    def __init__(self, tree: ast.Module, reading: DeclaredRequirements, tools: Collection[str]) -> None:
        self._reading = reading
        self._tools = tools
        self._readers = _readers(tree, reading, tools)

    def of(self, tool: str) -> list[PlainRequirement]:
        """Return the requirements of a tool. A secret that it reads without requiring it is optional."""
        declared = self._reading.of(tool)
        required = {requirement.name for requirement in declared if requirement.kind == "secret"}
        read = (name for name, readers in self._readers.items() if tool in readers and name not in required)
        return [*map(_plain, declared), *map(_optional_secret, read)]

    def unreadable(self, tool: str) -> list[Unreadable]:
        """Return the unreadable declarations on or inside a tool."""
        return [item for item in self._reading.unreadable if item.function == tool]

    def unreadable_elsewhere(self) -> list[Unreadable]:
        """Return the unreadable declarations outside of all tools."""
        return [item for item in self._reading.unreadable if item.function not in self._tools]


def _readers(tree: ast.Module, reading: DeclaredRequirements, tools: Collection[str]) -> dict[str, Collection[str]]:
    """Return the tools that may read each secret, except secrets declared as `extra`.

    A tool may read the secrets that it names. Any tool may read a secret named outside of all tools, unless one of
    them requires it.
    """
    secrets = reading.secrets.keys() - reading.extras
    if not secrets:
        return {}
    required = {requirement for declared in reading.functions.values() for requirement in declared}
    by_tools = {requirement.name for requirement in required if requirement.kind == "secret"}
    named: defaultdict[str, set[str]] = defaultdict(set)
    anywhere: set[str] = set()
    for statement in tree.body:
        tool: str = getattr(statement, "name", "")
        texts = {node.value for node in ast.walk(statement) if isinstance(node, ast.Constant)}
        for secret in secrets & texts:
            if tool in tools:
                named[secret].add(tool)
            elif secret not in by_tools:
                anywhere.add(secret)
    return {secret: tools if secret in anywhere else named[secret] for secret in reading.secrets if secret in secrets}


def _plain(requirement: DeclaredRequirement) -> PlainRequirement:
    return {
        "kind": requirement.kind,
        "name": requirement.name,
        "version_flag": requirement.version_flag,
        "min_version": requirement.min_version,
        "install": requirement.install,
        "optional": False,
    }


def _optional_secret(name: str) -> PlainRequirement:
    return {
        "kind": "secret",
        "name": name,
        "version_flag": "--version",
        "min_version": None,
        "install": None,
        "optional": True,
    }
