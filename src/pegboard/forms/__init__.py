"""Forms without a screen: from a JSON Schema to fields, and from what is put into them to the arguments of a call.

A screen shows the fields of a `Form`; the command line gives `arguments_from_pairs` its words. Both read what was typed
by the type that the schema asks for, never by what it looks like. `copied_as` writes a call as text for other places,
`pasted` reads such text.
"""

from pegboard.forms.containers import (
    Container,
    ListField,
    MapEntry,
    MapField,
    MultiChoiceField,
    SectionField,
    TupleField,
    VariantField,
)
from pegboard.forms.copy_as import CopyKind, copied_as
from pegboard.forms.fields import (
    ChoiceField,
    ConstField,
    Field,
    JsonField,
    NumberField,
    Option,
    State,
    SwitchField,
    TextField,
)
from pegboard.forms.form import Form
from pegboard.forms.json_text import JsonTextError
from pegboard.forms.pairs import arguments_from_pairs
from pegboard.forms.paste import Pasted, PasteKind, pasted

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
    "MultiChoiceField",
    "NumberField",
    "Option",
    "PasteKind",
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
