"""Arguments of a tool from the words of a script command, and the command names of tools."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pegboard.data.json_text import JsonTextError, parse
from pegboard.data.pointer import pointer
from pegboard.errors import FormFaults
from pegboard.forms.form import Form
from pegboard.forms.lists import ListField, MultiChoiceField
from pegboard.forms.pairs import arguments_from_pairs, property_names
from pegboard.forms.scalars import SwitchField
from pegboard.forms.sections import SectionField
from pegboard.forms.variants import VariantField
from pegboard.models import Fault

if TYPE_CHECKING:
    from pegboard.forms.fields import Field
    from pegboard.models import JsonObject, ToolSpec

_NAME: Final = re.compile(r"[^\W\d][\w.:+-]*")
_NOT_PLAIN: Final = re.compile(r"\W")
_RESERVED: Final = frozenset({
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "help", "if", "in", "parallel", "select",
    "then", "time", "until", "while", "xargs",
})  # fmt: skip


def is_command(name: str) -> bool:
    """Return True if a script command can have this name."""
    return _NAME.fullmatch(name) is not None and name not in _RESERVED


def plain_name(name: str) -> str:
    """Return a tool's name with letters, digits and underscores only, usable as a command."""
    plain = _NOT_PLAIN.sub("_", name)
    return plain if is_command(plain) else f"_{plain}"


def whole_flag(spec: ToolSpec) -> str:
    """Return the flag for all arguments as a JSON object: `--args`, unless an argument has that name."""
    return f"--{_whole_name(property_names(spec.input_schema) | spec.parameter_aliases.keys())}"


def asks_for_help(spec: ToolSpec, words: Sequence[str]) -> bool:
    """Return True if the words request help: `--help`, or `-h` where it is not a value."""
    flags = words[: words.index("--")] if "--" in words else words
    asks = any(
        word == "--help" or (word == "-h" and not (before.startswith("--") and "=" not in before))
        for before, word in zip(["", *flags], flags, strict=False)
    )
    return asks and "help" not in property_names(spec.input_schema)


def reads_arguments(spec: ToolSpec, words: Sequence[str]) -> bool:
    """Return whether a command reads all its arguments from standard input: `--args -`."""
    flag = whole_flag(spec)
    return f"{flag}=-" in words or (flag, "-") in pairwise(words)


def arguments_from_words(spec: ToolSpec, words: Sequence[str], stdin: str | None = None) -> JsonObject:
    """Convert the words of a command to arguments, by the schema of its tool.

    A flag sets an argument, `--limit 3` or `--limit=3`, with `-` or `_` in its name, or an inner property:
    `--filter.size 3`. A boolean flag needs no value, and the prefix `no-` negates it. Repeat a flag to set a list, or
    pass the list as JSON. Words without a flag set the required arguments in order; if the last of these is a list, it
    collects the remaining words. `--args '{…}'` passes all arguments as JSON, `--args -` those on standard input,
    and other words override them. Otherwise, standard input sets the argument declared for it, unless that is set
    already.

    Args:
        spec: The tool.
        words: Words after the command's name.
        stdin: Text from standard input. Empty text counts only if the argument for it is required.

    Returns:
        The arguments, parsed but not validated as a whole.

    Raises:
        FormFaults: Some words can't be parsed; lists all of them.
    """
    if not words and stdin is None and not spec.input_schema.get("required"):
        return {}
    return _Words(spec, stdin).read(words)


def unknown_flags(spec: ToolSpec, words: Sequence[str]) -> list[str]:
    """Return a message for each flag that matches no argument.

    Args:
        spec: The tool.
        words: Words after the command's name, possibly incomplete.
    """
    if spec.input_schema.get("additionalProperties") is not False:
        return []
    flags = words[: words.index("--")] if "--" in words else words
    return [sentence for word in flags if word.startswith("--") and (sentence := _Words(spec).unknown(word[2:]))]


def stdin_argument(spec: ToolSpec) -> str | None:
    """Return the name of the argument that standard input sets, or None."""
    names = property_names(spec.input_schema)
    return next((name for name in ("stdin", spec.hints.stdin) if name in names), None)


def as_flag(fault: Fault) -> str:
    """Return a validation error as text, with the argument's name as a flag."""
    return f"--{fault.where}: {fault.message}" if fault.where else fault.message


class _Words:
    """Parser of the words of one command."""

    def __init__(self, spec: ToolSpec, stdin: str | None = None) -> None:
        self._spec = spec
        self._stdin = stdin
        self._names = property_names(spec.input_schema)
        self._aliases = spec.parameter_aliases
        self._whole = _whole_name(self._names | self._aliases.keys())
        self._object: JsonObject | None = None
        self._pairs: list[str] = []
        self._given: set[str] = set()
        self._positional: list[str] = []
        self._faults: list[Fault] = []

    @cached_property
    def _root(self) -> Field:
        return Form(self._spec.input_schema).root

    def read(self, words: Sequence[str]) -> JsonObject:
        left = list(words)
        while left:
            word = left.pop(0)
            if word == "--":
                self._positional += left
                break
            if word.startswith("--"):
                self._flag(word[2:], left)
            elif word[:1] == "-" and word[1:2].isalpha():
                message = f"unknown flag {word}; flags start with two dashes: {', '.join(self._flags())}"
                self._faults.append(Fault(path="", message=message))
            else:
                self._positional.append(word)
        stdin = self._stdin
        taker = stdin_argument(self._spec) if stdin is not None and self._accepts(stdin) else None
        if taker in self._given:
            taker = None
        self._assign_positional(taker)
        if taker is not None and taker not in self._given:
            self._pairs.append(f"{taker}={stdin}")
        try:
            found = self._found()
        except FormFaults as faults:
            self._faults += faults.faults
            found = {}
        if self._faults:
            raise FormFaults(self._faults)
        return found

    def unknown(self, flag: str) -> str | None:
        """Return why a flag is unknown, or None if it is known."""
        name = flag.partition("=")[0]
        heads = {*self._heads(self._key(name)), *self._heads(self._key(name.removeprefix("no-")))}
        if name == self._whole or heads & (self._names | self._aliases.keys()):
            return None
        return f"unknown flag --{name}; flags are {', '.join(self._flags()) or 'not accepted'}"

    def _found(self) -> JsonObject:
        if self._object is not None and not self._pairs:
            return self._object
        return arguments_from_pairs(self._spec.input_schema, self._pairs, given=self._object, aliases=self._aliases)

    def _flag(self, flag: str, left: list[str]) -> None:
        name, equals, value = flag.partition("=")
        if name == self._whole:
            self._set_object(value if equals or not left else left.pop(0))
            return
        key = self._key(name)
        field = self._field(key)
        if not equals and field is None and name.startswith("no-"):
            denied = self._key(name.removeprefix("no-"))
            if _is_switch(self._field(denied)):
                self._add_pair(denied, "false")
                return
        if equals:
            self._add_pair(key, value)
        elif _is_switch(field) and not (left and left[0] in ("true", "false", "null")):
            self._add_pair(key, "true")
        elif left and not left[0].startswith("--"):
            self._add_pair(key, left.pop(0))
        elif self._can_stand_alone(key, field):
            self._add_pair(key, "true")
        else:
            self._faults.append(Fault(path=pointer(key), message="needs a value"))

    def _set_object(self, text: str) -> None:
        if text == "-" and self._stdin is not None:
            text, self._stdin = self._stdin, None
        try:
            value = parse(text)
        except JsonTextError as error:
            self._faults.append(Fault(path=pointer(self._whole), message=str(error)))
            return
        if not isinstance(value, dict):
            self._faults.append(Fault(path=pointer(self._whole), message="must be a JSON object"))
            return
        self._object = value
        self._given |= {self._aliases.get(name, name) for name in value}

    def _add_pair(self, key: str, value: str) -> None:
        head = next((name for name in self._heads(key) if name in self._names or name in self._aliases), key)
        self._given.add(self._aliases.get(head, head))
        self._pairs.append(f"{key}={value}")

    def _key(self, name: str) -> str:
        """Return the key for a flag, with `_` for `-` where the schema has it."""
        for head in self._heads(name):
            for known in (head, head.replace("-", "_")):
                if known in self._names or known in self._aliases:
                    return known + name[len(head) :]
        return name

    def _heads(self, key: str) -> Iterator[str]:
        while key:
            yield key
            key = key.rpartition(".")[0]

    def _field(self, key: str) -> Field | None:
        """Return the field for a key, or None if the key does not lead to a single field."""
        field: Field = self._root
        key = self._aliases.get(key, key)
        while key:
            if isinstance(field, VariantField):
                inner = (field.candidate(index) for index in range(len(field.variants)))
                sections = [one for one in inner if isinstance(one, SectionField)]
                if len(sections) != 1:
                    return None
                field = sections[0]
            if not isinstance(field, SectionField):
                return None
            head = next((name for name in self._heads(key) if name in field.named), None)
            if head is None:
                return None
            field, key = field.named[head], key[len(head) + 1 :]
        return field

    def _can_stand_alone(self, key: str, field: Field | None) -> bool:
        """Return True if a flag without a value means true. Unknown flags do; validation rejects them with a reason."""
        if field is None:
            return key.partition(".")[0] not in self._names
        return isinstance(field, VariantField) and any(
            _is_switch(field.candidate(index)) for index in range(len(field.variants))
        )

    def _required(self) -> list[str]:
        required = self._spec.input_schema.get("required")
        names = required if isinstance(required, list) else []
        return [name for name in names if isinstance(name, str)]

    def _accepts(self, stdin: str) -> bool:
        return bool(stdin) or stdin_argument(self._spec) in self._required()

    def _assign_positional(self, taker: str | None) -> None:
        """Assign the words without a flag to the required arguments."""
        wanted = [name for name in self._required() if name not in self._given]
        if taker in wanted and len(self._positional) < len(wanted):
            wanted.remove(taker)
        for name, word in zip(wanted, self._positional, strict=False):
            self._add_pair(name, word)
        more = self._positional[len(wanted) :]
        if more and wanted and isinstance(self._field(wanted[-1]), ListField | MultiChoiceField):
            for word in more:
                self._add_pair(wanted[-1], word)
        elif more:
            message = f"unexpected {more[0]!r}; {_flag_hint(self._flags())}"
            self._faults.append(Fault(path="", message=message))

    def _flags(self) -> list[str]:
        properties = self._spec.input_schema.get("properties")
        return [f"--{name}" for name in properties] if isinstance(properties, dict) else []


def _whole_name(names: Collection[str]) -> str:
    name = "args"
    while name in names:
        name = f"_{name}"
    return name


def _flag_hint(flags: Sequence[str]) -> str:
    return f"to set an argument, use its flag: {', '.join(flags)}" if flags else "the tool has no arguments"


def _is_switch(field: Field | None) -> bool:
    return isinstance(field, SwitchField)
