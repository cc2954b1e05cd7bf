"""Arguments from `key=value` words of a command line, converted by the fields of a form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from pegboard.data.json_text import JsonTextError, parse
from pegboard.data.pointer import pointer
from pegboard.errors import FormFaults
from pegboard.forms.containers import Container
from pegboard.forms.form import Form
from pegboard.forms.lists import ListField, MultiChoiceField, TupleField
from pegboard.forms.scalars import ChoiceField, NumberField, SwitchField, TextField, option_of
from pegboard.forms.sections import MapField, SectionField
from pegboard.forms.variants import VariantField
from pegboard.models import Fault
from pegboard.schema.validation import validator

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.fields import Field
    from pegboard.models import JsonObject
    from pegboard.schema.validation import Validator

_UNKNOWN, _OTHER_CONSTANT = 2, 8
"""Weights of an undeclared key and of another variant's constant, in validation errors."""
_MOST_TRIES = 1_000
"""Maximum number of variants tried per command line. Real ones need up to 400."""
_MOST_PARTS = 32
"""Names in the key of a word. Each costs several calls on Python's stack."""
_MOST_DIGITS = 6
"""Maximum number of digits of an item's index."""


def arguments_from_pairs(
    schema: JsonValue,
    pairs: Iterable[str],
    *,
    given: JsonObject | None = None,
    aliases: Mapping[str, str] | None = None,
) -> JsonObject:
    """Convert `key=value` words to arguments by a schema.

    The type in the schema decides how a value is parsed: digits stay text if the schema asks for a string. If several
    types fit, valid JSON is parsed as JSON and anything else is text, also a number with more digits than a float
    keeps. A repeated key appends to its list and replaces
    the list in `given`. `a.b=1` sets a property of the object `a` and `a.0=1` an item of the list `a`, unless a
    property has that exact name. Objects and lists can also be passed whole, as JSON. `null` is null if that is allowed
    and text is not.

    Args:
        schema: Schema of the argument object.
        pairs: The words.
        given: Argument object to change, or None for an untouched form with its constants and defaults.
        aliases: Alias → name of a property.

    Returns:
        The arguments by their names in the schema, parsed but not validated as a whole.

    Raises:
        FormFaults: Some words can't be parsed; lists all of them.
    """
    found, faults = read_pairs(schema, pairs, given=given, aliases=aliases)
    if faults:
        raise FormFaults(faults)
    return found


def read_pairs(
    schema: JsonValue,
    pairs: Iterable[str],
    *,
    given: JsonObject | None = None,
    aliases: Mapping[str, str] | None = None,
) -> tuple[JsonObject, tuple[Fault, ...]]:
    """Convert words like `arguments_from_pairs`, keeping values that can't be parsed as text.

    Returns:
        The arguments, and the validation errors of the words.
    """
    form = Form(schema)
    filler = _Filler(form.validator)
    names = _Names(property_names(schema), aliases or {})
    if given is not None:
        form.load(names.resolved(given))
    parts: list[_Part] = []
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            filler.faults.append(Fault(path=pointer(key), message="must be written as key=value"))
        elif key.count(".") >= _MOST_PARTS:
            message = f"a key has more than {_MOST_PARTS} parts; pass the value as JSON"
            filler.faults.append(Fault(path="", message=message))
        else:
            parts.append(_Part(names.plain(key), text))
    if parts:
        filler.fill(form.root, [], parts)
    if filler.tries.are_used_up:
        filler.faults.append(Fault(path="", message="are too ambiguous; pass them as JSON"))
    unread = form.root.read().faults if form.root.state == "value" else ()
    return form.draft(), tuple(dict.fromkeys((*filler.faults, *names.faults, *unread)))


def property_names(schema: JsonValue) -> set[str]:
    """Return the names of all arguments in a schema, in any variant."""
    checker = validator(schema)
    names, seen = set[str](), set[int]()
    left: list[JsonValue] = [checker.schema]
    while left:
        node = left.pop()
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        for keyword in ("properties", "required"):
            listed = node.get(keyword)
            names.update(name for name in (listed if isinstance(listed, dict | list) else ()) if isinstance(name, str))
        left.append(checker.target(node))
        for keyword in ("allOf", "anyOf", "oneOf"):
            inner = node.get(keyword)
            left.extend(inner if isinstance(inner, list) else ())
    return names


def keys(schema: JsonValue, start: str = "") -> list[str]:
    """Return completions for the key of a word.

    Args:
        schema: Schema of the argument object.
        start: Typed part of the key.

    Returns:
        Matching keys with their separator: `path=`, or `filter.` if the key has inner properties.
    """
    return list(dict.fromkeys(key for key in _keys_in(Form(schema).root, start, "") if key.startswith(start)))


def _keys_in(field: Field, start: str, outer: str) -> Iterator[str]:
    if isinstance(field, VariantField):
        for index in range(len(field.variants)):
            yield from _keys_in(field.candidate(index), start, outer)
    if not isinstance(field, SectionField):
        return
    for name, inner in field.named.items():
        within = f"{outer}{name}."
        if start.startswith(within):
            yield from _keys_in(inner, start, within)
        else:
            yield within if _has_names(inner) else f"{outer}{name}="


def _has_names(field: Field) -> bool:
    if isinstance(field, VariantField):
        return any(_has_names(field.candidate(index)) for index in range(len(field.variants)))
    return isinstance(field, SectionField) and bool(field.names)


class _Part(NamedTuple):
    """Text for a part of a field."""

    key: str
    text: str


class _Names:
    """Resolver of argument aliases.

    Args:
        known: Names in the schema.
        aliases: Alias → name.
    """

    def __init__(self, known: Collection[str], aliases: Mapping[str, str]) -> None:
        self._known = known
        self._aliases = {alias: name for alias, name in aliases.items() if alias not in known}
        self._used: dict[str, str] = {}
        self.faults: list[Fault] = []

    def plain(self, key: str) -> str:
        """Return a key with the name in the schema. Using two names for one argument is a validation error."""
        used = _longest({*self._known, *self._aliases}, key)
        if used is None:
            return key
        name = self._aliases.get(used, used)
        first = self._used.setdefault(name, used)
        if first != used:
            self.faults.append(Fault(path=pointer(used), message=f"is another name of `{first}`, which is given too"))
        return name + key[len(used) :]

    def resolved(self, given: JsonObject) -> JsonObject:
        """Return arguments by their names in the schema. Second names of an argument stay, and are rejected later."""
        found = {name: value for name, value in given.items() if name not in self._aliases}
        for name in given:
            if name in self._aliases:
                plain = self._aliases[name]
                found[name if plain in found else plain] = given[name]
        return found


class _Filler:
    """Writer of texts into fields.

    Args:
        validator: Validator that compares variants.
        tries: Counter of tried variants, shared between nested writers.
    """

    def __init__(self, validator: Validator, tries: _Tries | None = None) -> None:
        self._validator = validator
        self.tries = tries or _Tries()
        self.faults: list[Fault] = []
        """Validation errors of words that match no field. Fields report unreadable values themselves."""

    def fill(self, field: Field, texts: list[str], parts: list[_Part]) -> None:
        """Write the texts for a field as a whole, or for its parts."""
        if texts and parts:
            self._refuse(field.path, "is set both as a whole and in parts")
            parts = []
        if isinstance(field, VariantField):
            self._choose(field, texts, parts)
        elif texts:
            self._write(field, texts)
        else:
            self._fill_parts(field, parts)

    def _refuse(self, path: str, message: str) -> None:
        self.faults.append(Fault(path=path, message=message))

    # --- Whole values ---

    def _write(self, field: Field, texts: list[str]) -> None:
        text = texts[0]
        if texts == ["null"] and field.nullable and isinstance(field, ChoiceField | NumberField | Container):
            field.set_null()
        elif isinstance(field, ListField | MultiChoiceField):
            self._write_list(field, texts)
        elif len(texts) > 1:
            self._refuse(field.path, "is set more than once but is not a list")
        elif isinstance(field, TextField) and not text:
            field.empty()
        elif text.strip() or isinstance(field, TextField):
            field.write(text)
        elif isinstance(field, ChoiceField) and (option := option_of(field.options, text)) is not None:
            field.choose(field.options.index(option))
        else:
            self._refuse(field.path, "is empty")

    def _write_list(self, field: ListField | MultiChoiceField, texts: list[str]) -> None:
        whole = _json_list(texts)
        if whole is not None and (self._validator.fits(field.schema, whole) or not self._fits_as_row(field, whole)):
            field.load(whole)
        elif isinstance(field, MultiChoiceField):
            field.fill(texts)
        else:
            field.clear()
            if not isinstance(field, TupleField):
                field.empty()
            for index, text in enumerate(texts):
                self._fill_row(field, index, [text], [])

    def _fits_as_row(self, field: Field, whole: JsonValue) -> bool:
        return self._validator.fits(field.schema, [whole])

    # --- Parts ---

    def _fill_parts(self, field: Field, parts: list[_Part]) -> None:
        if isinstance(field, Container) and (field.is_raw or field.state == "null"):
            field.clear()
        match field:
            case SectionField():
                self._fill_section(field, parts)
            case MapField():
                self._fill_map(field, parts)
            case ListField():
                self._fill_list(field, parts)
            case _:
                for part in parts:
                    self._refuse(field.path + pointer(part.key), f"can't be set: `{field.name}` has no parts")

    def _fill_section(self, field: SectionField, parts: list[_Part]) -> None:
        further = [part for part in parts if _longest(field.names, part.key) is None]
        for name, (texts, inner) in _grouped(field.names, parts).items():
            self.fill(field.named[name], texts, inner)
        if further:
            self._fill_map(field.rest, further)

    def _fill_map(self, field: MapField, parts: list[_Part]) -> None:
        keys = {entry.key for entry in field.entries}
        for part in parts:
            if _longest(keys, part.key) is None:
                keys.add(self._key(field, part.key))
        for key, (texts, inner) in _grouped(keys, parts).items():
            entry = next((entry for entry in field.entries if entry.key == key), None) or field.add(key)
            entry.is_named = True
            self.fill(entry.field, texts, inner)

    def _key(self, field: MapField, key: str) -> str:
        """Return the map key that a dotted key refers to: all of it, unless the entry's value has parts."""
        head, dot, _ = key.partition(".")
        if not dot:
            return key
        entry = field.add(head)
        has_parts = _has_parts(entry.field)
        field.remove(field.entries.index(entry))
        return head if has_parts else key

    def _fill_list(self, field: ListField, parts: list[_Part]) -> None:
        heads = {part.key.partition(".")[0] for part in parts}
        numbers = {head for head in heads if head.isdecimal() and head.isascii() and len(head) <= _MOST_DIGITS}
        for head in sorted(heads - numbers):
            self._refuse(field.path + pointer(head), "must be the index of an item, starting at 0")
        for head, (texts, inner) in sorted(_grouped(numbers, parts).items(), key=lambda item: int(item[0])):
            self._fill_row(field, int(head), texts, inner)

    def _fill_row(self, field: ListField, index: int, texts: list[str], parts: list[_Part]) -> None:
        if index < len(field.rows):
            self.fill(field.rows[index], texts, parts)
        elif index == len(field.rows) and field.can_add:
            self.fill(field.add(), texts, parts)
        else:
            self._refuse(f"{field.path}/{index}", f"can't be set: the list has {len(field.rows)} items")

    # --- Unions ---

    def _choose(self, field: VariantField, texts: list[str], parts: list[_Part]) -> None:
        """Choose the variant that fits best and fill it."""
        if texts == ["null"] and field.nullable:
            field.set_null()
            return
        broken = _json_error(field, texts)
        if broken:
            self._refuse(field.path, broken)
            return
        before = field.draft() if parts and field.touched and field.state == "value" else None
        order = list(range(len(field.variants)))
        if before is not None:
            order.insert(0, order.pop(field.chosen))
        best: _Trial | None = None
        for chosen in order:
            trial = self._try_variant(field, chosen, texts, parts, before)
            if trial is not None and (best is None or trial.cost < best.cost):
                best = trial
            if best is not None and best.cost == (0, 0):
                break
        if best is not None:
            self.faults += best.faults
            field.adopt(best.chosen, best.inner)
        elif texts:
            field.load(texts[0])

    def _try_variant(
        self, field: VariantField, chosen: int, texts: list[str], parts: list[_Part], before: JsonValue
    ) -> _Trial | None:
        """Fill one of the variants, or return None if it can't be the right one."""
        inner = field.candidate(chosen)
        if _would_recurse(inner, texts) or self.tries.are_used_up:
            return None
        self.tries.count += 1
        if before is not None:
            inner.load(before)
        unquoted = _json_text(texts)
        filler = _Filler(self._validator, self.tries)
        filler.fill(inner, [unquoted] if unquoted is not None and isinstance(inner, TextField) else texts, parts)
        reading = inner.read()
        badness = len(filler.faults) + len(reading.faults)
        for value in reading.value:
            badness += len(self._validator.faults_within(inner.schema, value, ""))
            if isinstance(inner, SectionField) and isinstance(value, dict):
                badness += _UNKNOWN * sum(name not in inner.names for name in value)
                badness += _OTHER_CONSTANT * sum(_is_another_constant(one) for one in inner.built)
        return _Trial(chosen, inner, filler.faults, (badness, _reinterpretation(inner, texts)))


class _Tries:
    """Counter of tried variants, which bounds the time for ambiguous input."""

    count = 0

    @property
    def are_used_up(self) -> bool:
        """True if no more variants should be tried."""
        return self.count >= _MOST_TRIES


class _Trial(NamedTuple):
    """Variant filled with the input."""

    chosen: int
    inner: Field
    faults: list[Fault]
    cost: tuple[int, int]
    """Number of errors, then how far the text was reinterpreted."""


def _longest(known: Collection[str], key: str) -> str | None:
    """Return the longest known name that is the key or a dotted prefix of it, or None."""
    cut = len(key)
    while cut >= 0:
        if key[:cut] in known:
            return key[:cut]
        cut = key.rfind(".", 0, cut)
    return None


def _grouped(names: Collection[str], parts: Iterable[_Part]) -> dict[str, tuple[list[str], list[_Part]]]:
    """Group texts by name: those for the field itself, and those for its parts."""
    groups: dict[str, tuple[list[str], list[_Part]]] = {}
    for part in parts:
        name = _longest(names, part.key)
        if name is None:
            continue
        texts, inner = groups.setdefault(name, ([], []))
        if name == part.key:
            texts.append(part.text)
        else:
            inner.append(_Part(part.key[len(name) + 1 :], part.text))
    return groups


def _has_parts(field: Field) -> bool:
    if isinstance(field, VariantField):
        return any(_has_parts(field.candidate(index)) for index in range(len(field.variants)))
    return isinstance(field, SectionField | MapField | ListField)


def _parsed(texts: list[str]) -> tuple[JsonValue, ...]:
    """Return the value of a single JSON text as the only item, or nothing."""
    if len(texts) != 1:
        return ()
    try:
        return (parse(texts[0]),)
    except JsonTextError:
        return ()


def _json_list(texts: list[str]) -> list[JsonValue] | None:
    value = _parsed(texts) if texts[0].lstrip().startswith("[") else ()
    return value[0] if value and isinstance(value[0], list) else None


def _json_text(texts: list[str]) -> str | None:
    value = _parsed(texts)
    return value[0] if value and isinstance(value[0], str) else None


def _reinterpretation(inner: Field, texts: list[str]) -> int:
    """Return how far a field reinterprets a text: 0 if the text is JSON of the field's type."""
    if not texts:
        return 0
    match inner:
        case TextField():
            return 0 if _json_text(texts) is not None else 1
        case ListField() | MultiChoiceField():
            return 0 if _json_list(texts) is not None else 2
        case SwitchField():
            return 0 if any(isinstance(one, bool) for one in _parsed(texts)) else 2
        case NumberField():
            return 0 if _is_exact(_parsed(texts), texts[0]) else 2
        case _:
            return 0


def _is_exact(value: tuple[JsonValue, ...], text: str) -> bool:
    """Return whether a text is JSON of which a number keeps every digit."""
    return any(not isinstance(one, float) or Decimal(repr(one)) == Decimal(text.strip()) for one in value)


def _would_recurse(inner: Field, texts: list[str]) -> bool:
    """Return True if the rows of a list are unions that would read the same text as a list again."""
    if not isinstance(inner, ListField) or not inner.can_add or len(texts) != 1 or _json_list(texts) is not None:
        return False
    return isinstance(inner.row_at(0), VariantField)


def _json_error(field: VariantField, texts: list[str]) -> str:
    """Return the error of a text that starts like an object or a list, if one of these fits, or an empty string."""
    start = texts[0].lstrip()[:1] if len(texts) == 1 else ""
    kinds: tuple[type[Field], ...] = {"{": (SectionField, MapField), "[": (ListField, MultiChoiceField)}.get(start, ())
    if not kinds:
        return ""
    try:
        parse(texts[0])
    except JsonTextError as error:
        if any(isinstance(field.candidate(index), kinds) for index in range(len(field.variants))):
            return f"{error}; to pass it as text, put it in quotes"
    return ""


def _is_another_constant(field: Field) -> bool:
    return isinstance(field, ChoiceField) and field.state == "value" and bool(field.read().faults)
