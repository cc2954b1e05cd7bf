"""Output of a program in a result, such as that of a script or of an agent's shell command."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from pegboard.results.clean import clean


def is_printed(value: JsonValue) -> bool:
    """Return whether a value is the output of a program.

    It is if it is an object with a text `stdout`, not all is blank, and nothing else in it has parts of its own.
    """
    if not isinstance(value, dict) or not isinstance(value.get("stdout"), str):
        return False
    if any(isinstance(item, dict | list) and item for item in value.values()):
        return False
    return any(_text(value, name).strip() for name in ("stdout", "stderr"))


def printed(value: JsonValue) -> tuple[list[str], int] | None:
    """Return the sanitized lines that a program printed; None if the value isn't the output of a program.

    Returns:
        The lines of stdout, then those of stderr, each after `! `, and the index of the first of these.
    """
    if not isinstance(value, dict) or not is_printed(value):
        return None
    lines, marked = _lines(_text(value, "stdout")), [f"! {line}" for line in _lines(_text(value, "stderr"))]
    return [*lines, *marked], len(lines)


def _text(value: Mapping[str, JsonValue], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


def _lines(text: str) -> list[str]:
    return clean(text.removesuffix("\n")).split("\n") if text.strip() else []
