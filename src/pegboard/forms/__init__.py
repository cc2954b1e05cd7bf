"""Argument forms without an interface: from a JSON Schema to fields, and from their content to arguments.

The interface shows the fields of a `Form`; the command line uses `arguments_from_pairs`. Both interpret typed text by
the type in the schema, never by its appearance. `copied_as` writes a call as text, and `pasted` parses such text.
"""

from typing import TYPE_CHECKING

from pegboard.data.json_text import JsonTextError
from pegboard.on_demand import on_demand

if TYPE_CHECKING:
    from pegboard.forms.containers import Container
    from pegboard.forms.copy_as import CopyKind, copied_as
    from pegboard.forms.fields import Field, State
    from pegboard.forms.form import Form
    from pegboard.forms.lists import ListField, MultiChoiceField, TupleField
    from pegboard.forms.masks import Masks
    from pegboard.forms.pairs import arguments_from_pairs
    from pegboard.forms.paste import Pasted, pasted
    from pegboard.forms.scalars import ChoiceField, ConstField, JsonField, NumberField, Option, SwitchField, TextField
    from pegboard.forms.sections import MapEntry, MapField, SectionField
    from pegboard.forms.variants import VariantField

__all__ = [
    "ChoiceField",
    "ConstField",
    "Container",
    "CopyKind",
    "Field",
    "Form",
    "JsonField",
    "JsonTextError",
    "ListField",
    "MapEntry",
    "MapField",
    "Masks",
    "MultiChoiceField",
    "NumberField",
    "Option",
    "Pasted",
    "SectionField",
    "State",
    "SwitchField",
    "TextField",
    "TupleField",
    "VariantField",
    "arguments_from_pairs",
    "copied_as",
    "pasted",
]

_ON_DEMAND = {
    "ChoiceField": "scalars",
    "ConstField": "scalars",
    "Container": "containers",
    "CopyKind": "copy_as",
    "Field": "fields",
    "Form": "form",
    "JsonField": "scalars",
    "ListField": "lists",
    "MapEntry": "sections",
    "MapField": "sections",
    "Masks": "masks",
    "MultiChoiceField": "lists",
    "NumberField": "scalars",
    "Option": "scalars",
    "Pasted": "paste",
    "SectionField": "sections",
    "State": "fields",
    "SwitchField": "scalars",
    "TextField": "scalars",
    "TupleField": "lists",
    "VariantField": "variants",
    "arguments_from_pairs": "pairs",
    "copied_as": "copy_as",
    "pasted": "paste",
}
"""Name → module, imported on first use."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
