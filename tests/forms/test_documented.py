"""Parameters that only the description of a tool describes."""

from __future__ import annotations

import pytest

from pegboard.forms.documented import description_beside_form, documented
from pegboard.models import JsonObject

GOOGLE = """Find.

Args:
    ctx: The context.
    text (str, optional): The words.
    limit: Most.

Raises:
    E: No."""
SPHINX = "Find.\n\n:param text: The words.\n:param limit: Most."
NUMPY = "Find.\n\nParameters\n----------\ntext : str\n    The words.\nlimit : int\n    Most."
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "title": "Text"},
        "limit": {"type": "integer", "description": "At most."},
    },
}


@pytest.mark.promise("TUI-3")
@pytest.mark.parametrize("description", [GOOGLE, SPHINX, NUMPY], ids=["google", "sphinx", "numpy"])
def test_a_parameter_without_a_description_has_that_of_the_docstring(description: str) -> None:
    found = documented(SCHEMA, description)
    text = {"type": "string", "title": "Text", "description": "The words."}
    assert found["properties"] == {"text": text, "limit": {"type": "integer", "description": "At most."}}
    assert documented(SCHEMA, "") is SCHEMA, "it was not changed itself"
    assert "The words." not in description_beside_form(SCHEMA, description)


@pytest.mark.parametrize("description", ["", "Find: all.", "Find.\n\nArgs:\n    other: Unknown."])
@pytest.mark.parametrize("schema", [SCHEMA, {}, {"properties": True}, {"properties": {"other": True}}])
def test_a_schema_stays_the_same_without_such_a_parameter(description: str, schema: JsonObject) -> None:
    assert documented(schema, description) is schema


def test_other_sections_stay_and_so_do_parameters_that_the_form_lacks() -> None:
    assert description_beside_form(SCHEMA, GOOGLE) == "Find.\n\nRaises:\n    E: No."
    assert description_beside_form({"properties": {"text": {}}}, GOOGLE) == GOOGLE
