"""Errors of pydantic about values of TOML files, in plain words."""

from __future__ import annotations

_WANTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_type": "a number",
    "int_type": "a whole number",
    "is_instance_of": "the path of a folder",
    "model_type": "a table",
    "string_type": "text",
    "tuple_type": "a list",
}
"""What pydantic's errors about types ask for, in the words of TOML."""


def complaint(subject: str, kind: str, message: str, value: object) -> str:
    """Return an error as a sentence, without the value itself, which may be a secret.

    Args:
        subject: What has the error, such as a key in backticks.
        kind: Pydantic's name for the error.
        message: Pydantic's message, or that of a validator, which continues the subject.
        value: The invalid value.
    """
    if kind in _WANTED:
        return f"{subject} should be {_WANTED[kind]}, but is {kind_of(value)}."
    return f"{subject} {message.removeprefix('Value error, ').removeprefix('Input ')}."


def is_about_type(kind: str) -> bool:
    """Return whether an error, by pydantic's name for it, means that a value has the wrong type."""
    return kind in _WANTED


def kind_of(value: object) -> str:
    """Return the type of a value in the words of TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"
