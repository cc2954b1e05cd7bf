"""Arguments from the words of a command line, put into the fields of the form and read as those read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from pegboard.errors import FormFaults
from pegboard.forms.containers import (
    Container,
    ListField,
    MapField,
    MultiChoiceField,
    SectionField,
    TupleField,
    VariantField,
)
from pegboard.forms.fields import ChoiceField, Field, NumberField, TextField, option_of
from pegboard.forms.form import Form
from pegboard.forms.json_text import JsonTextError, parse
from pegboard.models import Fault, JsonObject
from pegboard.schema.soundness import pointer
from pegboard.schema.validation import Validator, validator

_UNKNOWN, _OTHER_CONSTANT = 2, 8
"""How much worse than another fault it is for a variant to lack a key that is given, and to have another constant."""
_MOST_TRIES = 1_000
"""Variants that are tried for one command line; real ones take up to 400."""
_MOST_DIGITS = 6
"""Digits that the number of an item may have."""


def arguments_from_pairs(
    schema: JsonValue,
    pairs: Iterable[str],
    *,
    given: JsonObject | None = None,
    aliases: Mapping[str, str] | None = None,
) -> JsonObject:
    """Reads `key=value` words by a schema, as the form reads what is typed into its fields.

    The type that the schema asks for decides how a value is read: digits stay text where text is asked for. Where
    several kinds of value fit, a value that is JSON is read as JSON, and anything else as text. A key given again adds
    to its list, in the place of the list that `given` has. `a.b=1` goes into the object `a` and `a.0=1` into the list
    `a`, unless there is a property of that very name; an object or a list may also be given whole, as JSON. `null` is
    null where that fits and text doesn't.

    Args:
        schema: The schema of the argument object.
        pairs: The words.
        given: An argument object that the words change; None for an untouched form, with its constants and defaults.
        aliases: Other names of properties.

    Returns:
        The arguments by the names of the schema, readable but not yet validated as a whole.

    Raises:
        FormFaults: All words that can't be read.
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
    """Reads words as `arguments_from_pairs` does, what can't be read as the text that it is.

    Returns:
        The arguments, and what is wrong with the words.
    """
    form = Form(schema)
    filler = _Filler(form.validator)
    names = _Names(property_names(schema), aliases or {})
    if given is not None:
        form.load(names.resolved(given))
    parts: list[Part] = []
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if equals:
            parts.append(Part(names.plain(key), text))
        else:
            filler.faults.append(Fault(path=pointer(key), message="must be written as key=value"))
    if parts:
        filler.fill(form.root, [], parts)
    if filler.tries.are_used_up:
        filler.faults.append(Fault(path="", message="could be meant in too many ways; give them as JSON"))
    unread = form.root.read().faults if form.root.state == "value" else ()
    return form.draft(), tuple(dict.fromkeys((*filler.faults, *names.faults, *unread)))


def property_names(schema: JsonValue) -> set[str]:
    """Gives the names of all arguments that a schema speaks of, in whatever variant."""
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
    """Gives the keys that words may have, for whoever is typing one.

    Args:
        schema: The schema of the argument object.
        start: What is typed of the key.

    Returns:
        Those that begin so, each with what is typed after it: `path=`, or `filter.` where the keys go on.
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


class Part(NamedTuple):
    """A text for something within a field."""

    key: str
    text: str


class _Names:
    """Other names of arguments.

    Args:
        known: The names that the schema has.
        aliases: Other name → name.
    """

    def __init__(self, known: Collection[str], aliases: Mapping[str, str]) -> None:
        self._known = known
        self._aliases = {alias: name for alias, name in aliases.items() if alias not in known}
        self._said: dict[str, str] = {}
        self.faults: list[Fault] = []

    def plain(self, key: str) -> str:
        """Gives a key by the name that the schema has; two names for one argument are a fault."""
        said = _longest({*self._known, *self._aliases}, key)
        if said is None:
            return key
        name = self._aliases.get(said, said)
        first = self._said.setdefault(name, said)
        if first != said:
            self.faults.append(Fault(path=pointer(said), message=f"is another name of `{first}`, which is given too"))
        return name + key[len(said) :]

    def resolved(self, given: JsonObject) -> JsonObject:
        """Gives arguments by the names that the schema has; a second name for the same one stays, and is refused."""
        found = {name: value for name, value in given.items() if name not in self._aliases}
        for name in given:
            if name in self._aliases:
                plain = self._aliases[name]
                found[name if plain in found else plain] = given[name]
        return found


class _Filler:
    """Puts texts into fields.

    Args:
        validator: What tells which variant fits.
        tries: What counts the variants tried.
    """

    def __init__(self, validator: Validator, tries: _Tries | None = None) -> None:
        self._validator = validator
        self.tries = tries or _Tries()
        self.faults: list[Fault] = []
        """What has no place in the fields; what was put in and can't be read, the fields say themselves."""

    def fill(self, field: Field, texts: list[str], parts: list[Part]) -> None:
        """Puts in what is given for a field as a whole, or for parts of it."""
        if texts and parts:
            self._refuse(field.path, "is given in parts and as a whole")
            parts = []
        if isinstance(field, VariantField):
            self._choose(field, texts, parts)
        elif texts:
            self._write(field, texts)
        else:
            self._fill_parts(field, parts)

    def _refuse(self, path: str, message: str) -> None:
        self.faults.append(Fault(path=path, message=message))

    # --- As a whole ---

    def _write(self, field: Field, texts: list[str]) -> None:
        text = texts[0]
        if texts == ["null"] and field.nullable and isinstance(field, ChoiceField | NumberField | Container):
            field.set_null()
        elif isinstance(field, ListField | MultiChoiceField):
            self._write_list(field, texts)
        elif len(texts) > 1:
            self._refuse(field.path, "is given more than once, and is no list")
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

    # --- In parts ---

    def _fill_parts(self, field: Field, parts: list[Part]) -> None:
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
                    self._refuse(field.path + pointer(part.key), f"has no place: `{field.name}` has no parts")

    def _fill_section(self, field: SectionField, parts: list[Part]) -> None:
        further = [part for part in parts if _longest(field.names, part.key) is None]
        for name, (texts, inner) in _grouped(field.names, parts).items():
            self.fill(field.named[name], texts, inner)
        if further:
            self._fill_map(field.rest, further)

    def _fill_map(self, field: MapField, parts: list[Part]) -> None:
        keys = {entry.key for entry in field.entries}
        for part in parts:
            if _longest(keys, part.key) is None:
                keys.add(self._key(field, part.key))
        for key, (texts, inner) in _grouped(keys, parts).items():
            entry = next((entry for entry in field.entries if entry.key == key), None) or field.add(key)
            entry.is_named = True
            self.fill(entry.field, texts, inner)

    def _key(self, field: MapField, key: str) -> str:
        """Gives the key of the entry that a key leads to or into: a value without parts takes all of it."""
        head, dot, _ = key.partition(".")
        if not dot:
            return key
        entry = field.add(head)
        has_parts = _has_parts(entry.field)
        field.remove(field.entries.index(entry))
        return head if has_parts else key

    def _fill_list(self, field: ListField, parts: list[Part]) -> None:
        heads = {part.key.partition(".")[0] for part in parts}
        numbers = {head for head in heads if head.isdecimal() and head.isascii() and len(head) <= _MOST_DIGITS}
        for head in sorted(heads - numbers):
            self._refuse(field.path + pointer(head), "must be the number of an item, counted from 0")
        for head, (texts, inner) in sorted(_grouped(numbers, parts).items(), key=lambda item: int(item[0])):
            self._fill_row(field, int(head), texts, inner)

    def _fill_row(self, field: ListField, index: int, texts: list[str], parts: list[Part]) -> None:
        if index < len(field.rows):
            self.fill(field.rows[index], texts, parts)
        elif index == len(field.rows) and field.can_add:
            self.fill(field.add(), texts, parts)
        else:
            self._refuse(f"{field.path}/{index}", f"has no place: the list has {len(field.rows)} items")

    # --- One of several kinds ---

    def _choose(self, field: VariantField, texts: list[str], parts: list[Part]) -> None:
        """Chooses the variant that what is given fits, and puts it in there."""
        if texts == ["null"] and field.nullable:
            field.set_null()
            return
        broken = _broken_json(field, texts)
        if broken:
            self._refuse(field.path, broken)
            return
        before = field.draft() if parts and field.touched and field.state == "value" else None
        order = list(range(len(field.variants)))
        if before is not None:
            order.insert(0, order.pop(field.chosen))
        best: _Trial | None = None
        for chosen in order:
            trial = self._tried(field, chosen, texts, parts, before)
            if trial is not None and (best is None or trial.cost < best.cost):
                best = trial
            if best is not None and best.cost == (0, 0):
                break
        if best is not None:
            self.faults += best.faults
            field.adopt(best.chosen, best.inner)
        elif texts:
            field.load(texts[0])

    def _tried(
        self, field: VariantField, chosen: int, texts: list[str], parts: list[Part], before: JsonValue
    ) -> _Trial | None:
        """Puts what is given into one of the variants; None if it is no use to try it."""
        inner = field.candidate(chosen)
        if _would_go_on(inner, texts) or self.tries.are_used_up:
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
        return _Trial(chosen, inner, filler.faults, (badness, _stretch(inner, texts)))


class _Tries:
    """How many variants were tried; what nobody would type could otherwise take for ever."""

    count = 0

    @property
    def are_used_up(self) -> bool:
        """Whether no more is to be tried."""
        return self.count >= _MOST_TRIES


class _Trial(NamedTuple):
    """A variant with what was given in it."""

    chosen: int
    inner: Field
    faults: list[Fault]
    cost: tuple[int, int]
    """How badly it fits, and how far it reads more into a text than that is."""


def _longest(known: Collection[str], key: str) -> str | None:
    """Gives the longest of the known names that a key is, or is before a dot; None if there is none."""
    cut = len(key)
    while cut >= 0:
        if key[:cut] in known:
            return key[:cut]
        cut = key.rfind(".", 0, cut)
    return None


def _grouped(names: Collection[str], parts: Iterable[Part]) -> dict[str, tuple[list[str], list[Part]]]:
    """Sorts what is given by the name it belongs to: texts for the thing itself, and parts of it."""
    groups: dict[str, tuple[list[str], list[Part]]] = {}
    for part in parts:
        name = _longest(names, part.key)
        if name is None:
            continue
        texts, inner = groups.setdefault(name, ([], []))
        if name == part.key:
            texts.append(part.text)
        else:
            inner.append(Part(part.key[len(name) + 1 :], part.text))
    return groups


def _has_parts(field: Field) -> bool:
    if isinstance(field, VariantField):
        return any(_has_parts(field.candidate(index)) for index in range(len(field.variants)))
    return isinstance(field, SectionField | MapField | ListField)


def _parsed(texts: list[str]) -> tuple[JsonValue, ...]:
    """Gives the only text's value as the only item; nothing if there are more texts or it is no JSON."""
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


def _stretch(inner: Field, texts: list[str]) -> int:
    """Gives how far a field goes in taking a text for what it is: not at all where that is such JSON."""
    if not texts:
        return 0
    match inner:
        case TextField():
            return 0 if _json_text(texts) is not None else 1
        case ListField() | MultiChoiceField():
            return 0 if _json_list(texts) is not None else 2
        case NumberField():
            return 0 if _parsed(texts) else 2
        case _:
            return 0


def _would_go_on(inner: Field, texts: list[str]) -> bool:
    """Whether a text would become a list of a choice that it would become a list of, and so on."""
    if not isinstance(inner, ListField) or not inner.can_add or len(texts) != 1 or _json_list(texts) is not None:
        return False
    return isinstance(inner.row_at(0), VariantField)


def _broken_json(field: VariantField, texts: list[str]) -> str:
    """Says what is wrong with a text that begins like an object or a list, where one fits; empty if nothing is."""
    start = texts[0].lstrip()[:1] if len(texts) == 1 else ""
    kinds: tuple[type[Field], ...] = {"{": (SectionField, MapField), "[": (ListField, MultiChoiceField)}.get(start, ())
    if not kinds:
        return ""
    try:
        parse(texts[0])
    except JsonTextError as error:
        if any(isinstance(field.candidate(index), kinds) for index in range(len(field.variants))):
            return f"{error}; as text it stands in quotes"
    return ""


def _is_another_constant(field: Field) -> bool:
    return isinstance(field, ChoiceField) and field.state == "value" and bool(field.read().faults)
