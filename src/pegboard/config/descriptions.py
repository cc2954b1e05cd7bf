"""Descriptions of settings: the meaning and the allowed values of each, from the models that define them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, get_args

from pegboard.config.settings import Section, Settings


def description(key: str) -> str:
    """Return sentences on the meaning and the allowed values of a setting; empty if Pegboard doesn't define it.

    Args:
        key: Dotted, such as `tools.timeout`; of an entry of a table, the description of the table.
    """
    section: type[Section] = Settings
    names = key.split(".")
    while names and names[0] in section.model_fields:
        name = names.pop(0)
        annotation = section.model_fields[name].annotation
        inner = _section_in(annotation)
        if inner is None or not names:
            schema = section.model_json_schema()
            values = _values(schema["properties"][name]) if not names else ""
            return " ".join(filter(None, (_docstrings(section).get(name, ""), values)))
        if not inspect.isclass(annotation):
            names.pop(0)  # the name of an entry, such as a server
        section = inner
    return ""


def _section_in(annotation: object) -> type[Section] | None:
    """Return the section that a field is, or that each entry of its table is."""
    for one in (annotation, *get_args(annotation)):
        if inspect.isclass(one) and issubclass(one, Section):
            return one
    return None


@cache
def _docstrings(section: type[Section]) -> Mapping[str, str]:
    """Return the docstrings of the fields of a model, which Python itself doesn't keep."""
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    found: dict[str, str] = {}
    for field, text in pairwise(definition.body if isinstance(definition, ast.ClassDef) else []):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            value = text.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = inspect.cleandoc(value.value)
    return found


def _values(schema: Mapping[str, Any]) -> str:
    """Return a sentence on the few values that the JSON Schema of a setting allows; empty if there are many."""
    options = ["true", "false"] if schema.get("type") == "boolean" else [*map(str, schema.get("enum", ()))]
    return f"Allowed: {', '.join(options[:-1])} or {options[-1]}." if options else ""
