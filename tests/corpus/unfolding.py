"""All leaf fields of a form, with every section, variant, row and entry opened and recursion followed once."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.forms import Container, Field, Form, ListField, MapField, MultiChoiceField, SectionField, VariantField

_DEEPEST = 40
"""Maximum depth. Only a list of lists of itself recurses without a section or a choice in between."""


def leaves(form: Form) -> Iterator[Field]:
    """Yield every leaf field. Sections with the same names are opened once. This changes the form."""
    yield from _leaves(form.root, set(), 0)


def _leaves(field: Field, opened: set[tuple[str, ...]], depth: int) -> Iterator[Field]:
    if not isinstance(field, Container) or isinstance(field, MultiChoiceField):
        yield field
    elif isinstance(field, VariantField):
        yield from _variants(field, opened, depth)
    elif depth < _DEEPEST:
        if isinstance(field, SectionField) and field.names:
            if field.names in opened:
                return
            opened.add(field.names)
        for inner in _inside(field):
            yield from _leaves(inner, opened, depth + 1)


def _variants(field: VariantField, opened: set[tuple[str, ...]], depth: int) -> Iterator[Field]:
    is_any = field.type_label.startswith("any")
    for index in range(len(field.variants)):
        field.choose(index)
        if is_any and isinstance(field.inner, Container):
            yield from _leaves(field.inner, opened, _DEEPEST)  # lists and objects of any value are not opened further
        else:
            yield from _leaves(field.inner, opened, depth + 1)


def _inside(field: Container) -> list[Field]:
    match field:
        case SectionField():
            return list(field.children)
        case ListField():
            return [*field.rows[: field.fixed], *([field.row_at(field.fixed)] if field.can_add else [])]
        case MapField():
            return [field.add(key).field for key in field.key_options[:1] or ("key",)]
    raise TypeError(field.kind)
