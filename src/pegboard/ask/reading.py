"""What a model wrote, read as calls: arguments that may be cut, and calls that it wrote into its text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from pegboard.forms.json_text import JsonTextError, parse, write
from pegboard.models import JsonObject
from pegboard.models.conversation import ModelMessage, ProposedCall

_FENCED: Final = re.compile(
    r"```[\w-]*\s*\n?(?P<fenced>.*?)```|<(?P<tag>tool_call|tools)>(?P<tagged>.*?)(?:</(?P=tag)>|\Z)", re.DOTALL
)
_CLOSING: Final = "</tool_call>"
_LINE_OF_JSON: Final = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)
_DECODER: Final = json.JSONDecoder()
_NAME_KEYS: Final = ("name", "tool", "tool_name", "function")
_ARGUMENT_KEYS: Final = ("arguments", "args", "parameters", "input")
_SHOWN: Final = 200
"""Characters of unreadable arguments that the model is told again."""
_DEEPEST: Final = 150
"""Levels of lists and objects that arguments may have; results have the same limit."""


class UnreadableArguments(Exception):  # noqa: N818 - it is what they are
    """Arguments that can't be run; the message tells the model what was wrong."""


def arguments(text: str, *, is_cut: bool = False) -> JsonObject:
    """Reads the arguments of a proposed call; none at all are an empty object.

    Args:
        text: As the model wrote them.
        is_cut: Whether the model ran out of tokens there, so that none at all are missing ones.

    Raises:
        UnreadableArguments: They are no JSON object, or only the beginning of one.
    """
    if not text.strip() and not is_cut:
        return {}
    try:
        value = parse(text)
    except JsonTextError as error:
        if is_cut:
            raise UnreadableArguments(
                f"The arguments were cut off after {len(text):,} characters, because the answer became too long."
                " Call it again with shorter ones."
            ) from None
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise UnreadableArguments(f"The arguments text {error}. It was: {shown}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnreadableArguments('The arguments must be a JSON object such as {"path": "."}.')
    if _depth_is_over(value, _DEEPEST):
        raise UnreadableArguments(f"The arguments are nested deeper than {_DEEPEST} levels.")
    return value


def with_own_ids(message: ModelMessage) -> ModelMessage:
    """Gives a model's message with an id for each call that is its alone; some servers give none, or the same."""
    seen: set[str] = set()
    calls = []
    for call in message.calls:
        fits = call.provider_id and call.provider_id not in seen
        calls.append(call if fits else call.model_copy(update={"provider_id": new_id()}))
        seen.add(calls[-1].provider_id)
    return message.model_copy(update={"calls": tuple(calls)})


def calls_in_text(text: str, is_tool: Callable[[str], bool]) -> tuple[ProposedCall, ...]:
    """Finds the calls that a small model wrote as text: JSON with the name of a known tool, fenced or alone.

    Args:
        text: What the model said.
        is_tool: Tells whether a tool of a name was offered.
    """
    blocks = [one["fenced"] or one["tagged"] or "" for one in _FENCED.finditer(text)] or [_before_closing(text)]
    found = []
    for block in blocks:
        for value in _objects(block.strip()):
            within = value.get("function")  # {"function": {"name": …, "arguments": …}}
            said = within if isinstance(within, dict) else value
            name, given = _first(said, _NAME_KEYS), _first(said, _ARGUMENT_KEYS)
            if isinstance(name, str) and is_tool(name) and not _is_schema(given):
                written = given if isinstance(given, str) else write({} if given is None else given)
                call = ProposedCall(provider_id=new_id(), name=name, arguments=written, from_text=True)
                found.append(call)
    return tuple(found)


def new_id() -> str:
    """Gives an id for a call that has none from its provider."""
    return f"call_{os.urandom(12).hex()}"


def _before_closing(text: str) -> str:
    """Gives the JSON before a closing tag whose opening one the model forgot, or all of the text."""
    before, closing, _ = text.partition(_CLOSING)
    start = _LINE_OF_JSON.search(before) if closing else None
    return before[start.end() :] if start else text


def _objects(text: str) -> Iterator[JsonObject]:
    """Gives the objects of a text that is JSON and nothing else: one, a list of them, or one after the other."""
    values = []
    end = 0
    try:
        while end < len(text):
            if text[end] not in "{[":
                return
            start, (_, end) = end, _DECODER.raw_decode(text, end)
            values.append(parse(text[start:end]))
            while text[end : end + 1].isspace():
                end += 1
    except (ValueError, RecursionError):  # JsonTextError is one
        return
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield item


def _is_schema(given: JsonValue) -> bool:
    """Whether it is what a tool takes, not what it is given: asked for its tools, a model recites them."""
    return isinstance(given, dict) and given.get("type") == "object" and isinstance(given.get("properties"), dict)


def _first(value: JsonObject, keys: Sequence[str]) -> JsonValue:
    return next((value[key] for key in keys if key in value), None)


def _depth_is_over(value: JsonValue, levels: int) -> bool:
    layer: list[JsonValue] = [value]
    for _ in range(levels):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(layer)
