"""What the tools of a file need, as the SDK reads it from the source."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from pegboard.discovery.parsed import PlainRequirement
    from pegboard.sdk.requirements import Requirement
    from pegboard.sdk.source import Reading, Unreadable

_WORDS = ("requires_cli", "requires_lib", "requires_secret", "get_secret", "api_headers", "lazy_client")
"""A file without any of these names neither needs nor reads anything, and reading all of its nodes takes as long as
parsing them did."""


def read(tree: ast.Module, source: str | bytes, tools: Collection[str]) -> Requirements | None:
    """Reads what the tools of a file need; None where the file speaks of no such thing.

    Args:
        tree: The source, parsed.
        source: The same, as it stands in the file.
        tools: The names of the functions that are tools.
    """
    text = source.encode("utf-8", "replace") if isinstance(source, str) else source
    if b"pegboard" not in text or not any(word.encode() in text for word in _WORDS):
        return None
    from pegboard.sdk.source import read_requirements

    return Requirements(tree, read_requirements(tree), tools)


class Requirements:
    """What the tools of one file need.

    Args:
        tree: The file's source, parsed.
        reading: What it says.
        tools: The names of the functions that are tools.
    """

    def __init__(self, tree: ast.Module, reading: Reading, tools: Collection[str]) -> None:
        self._reading = reading
        self._tools = tools
        self._readers = _readers(tree, reading, tools)

    def of(self, tool: str) -> list[PlainRequirement]:
        """Gives what one tool needs; a secret that it reads without requiring it is optional."""
        said = self._reading.of(tool)
        required = {requirement.name for requirement in said if requirement.kind == "secret"}
        read = (name for name, readers in self._readers.items() if tool in readers and name not in required)
        return [*map(_plain, said), *map(_optional_secret, read)]

    def unreadable(self, tool: str) -> list[Unreadable]:
        """Gives what can't be read above or inside a tool."""
        return [item for item in self._reading.unreadable if item.function == tool]

    def unreadable_elsewhere(self) -> list[Unreadable]:
        """Gives what can't be read anywhere else than above or inside a tool."""
        return [item for item in self._reading.unreadable if item.function not in self._tools]


def _readers(tree: ast.Module, reading: Reading, tools: Collection[str]) -> dict[str, Collection[str]]:
    """Gives the tools that may read each secret.

    They are those in which it is named. What is named outside of them may be read by any of them, unless one requires
    it: then it is known who has to do with it. Secrets that nothing is lacking without are left out.
    """
    secrets = reading.secrets.keys() - reading.extras
    if not secrets:
        return {}
    required = {requirement for said in reading.functions.values() for requirement in said}
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


def _plain(requirement: Requirement) -> PlainRequirement:
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
