"""Forms of `pegboard watch` without the command-line parser, which delays the start."""

from __future__ import annotations


def watched_command(arguments: list[str]) -> tuple[str, list[str]] | None:
    """Return the server's name and command; None if the arguments need the command-line parser."""
    name, rest = "", arguments[1:]
    if rest[:1] == ["--name"] and len(rest) > 2:
        name, rest = rest[1], rest[2:]
    if arguments[:1] != ["watch"] or rest[:1] != ["--"] or len(rest) < 2 or name.startswith("-"):
        return None
    return name, rest[1:]


def hook_name(arguments: list[str]) -> str | None:
    """Return the agent's name in `watch --hook NAME`; None if the arguments need the command-line parser."""
    name = arguments[2] if len(arguments) == 3 and arguments[:2] == ["watch", "--hook"] else ""
    is_name = name[:1].isalpha() and name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if is_name else None
