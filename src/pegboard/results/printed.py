"""Output of a program in a result, such as that of a script or of an agent's shell command."""

from __future__ import annotations

from pydantic import JsonValue

from pegboard.results.clean import clean


def printed(value: JsonValue) -> tuple[list[str], int] | None:
    """Return the sanitized lines that a program printed; None if the value isn't the output of a program.

    It is if it is an object with a text `stdout`, not all is blank, and nothing else in it has parts of its own.

    Returns:
        The lines of stdout, then those of stderr, each after `! `, and the index of the first of these.
    """
    if not isinstance(value, dict) or not isinstance(out := value.get("stdout"), str):
        return None
    err = value.get("stderr")
    if any(isinstance(item, dict | list) and item for item in value.values()):
        return None
    lines, marked = _lines(out), [f"! {line}" for line in _lines(err if isinstance(err, str) else "")]
    return ([*lines, *marked], len(lines)) if lines or marked else None


def _lines(text: str) -> list[str]:
    return clean(text.removesuffix("\n")).split("\n") if text.strip() else []
