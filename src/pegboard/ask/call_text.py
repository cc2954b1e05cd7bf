"""Parsers for what models write: arguments of calls, and calls within text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Final

from pydantic import JsonValue

from pegboard.data.json_text import JsonTextError, parse, write
from pegboard.models import JsonObject
from pegboard.models.conversation import ModelMessage, ProposedCall

_BETWEEN: Final = re.compile(r"(?:```[\w-]*|</?(?:tool_call|tools)>|\s+)*")
"""Text that may surround calls; some servers drop one of two tags."""
_DECODER: Final = json.JSONDecoder()
_NAME_KEYS: Final = ("name", "tool", "tool_name", "function")
_ARGUMENT_KEYS: Final = ("arguments", "args", "parameters", "input")
_SHOWN: Final = 200
"""Characters of invalid arguments that are quoted to the model."""


class UnreadableArguments(Exception):  # noqa: N818 - its name is the condition
    """Arguments that can't be parsed; the message is written for the model."""


def arguments(text: str) -> JsonObject:
    """Parse the arguments of a proposed call; an empty text is an empty object.

    Args:
        text: As the model wrote them.

    Raises:
        UnreadableArguments: They are not a JSON object, or nested too deeply.
    """
    if not text.strip():
        return {}
    try:
        value = parse(text)
    except JsonTextError as error:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise UnreadableArguments(f"The arguments text {error}. It was: {shown}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnreadableArguments('The arguments must be a JSON object such as {"path": "."}.')
    return value


def plain_arguments(text: str) -> str:
    """Return the text of arguments alone: some models quote it as a JSON string, some servers send `{}` before it."""
    if text.startswith("{}{"):
        return text.removeprefix("{}")
    if not text.lstrip().startswith('"'):
        return text
    try:
        value = parse(text)
    except JsonTextError:
        return text
    return value if isinstance(value, str) and value.lstrip().startswith("{") else text


def with_own_ids(message: ModelMessage) -> ModelMessage:
    """Return a model's message with a unique id for each call; some servers send none, or repeat them."""
    seen: set[str] = set()
    calls = []
    for call in message.calls:
        fits = call.provider_id and call.provider_id not in seen
        calls.append(call if fits else call.model_copy(update={"provider_id": new_id()}))
        seen.add(calls[-1].provider_id)
    return message.model_copy(update={"calls": tuple(calls)})


def calls_in_text(text: str, is_tool: Callable[[str], bool]) -> tuple[ProposedCall, ...]:
    """Return the calls of a message that a small model wrote as text, in order.

    The whole message must consist of calls: JSON objects that name known tools, bare, in code fences or in
    `<tool_call>` tags. Next to other text, or to JSON that isn't a call, they are quotations and none is returned.

    Args:
        text: The whole message.
        is_tool: Predicate on a name: whether such a tool was offered.
    """
    calls = [_call(value, is_tool) for value in _values(text)]
    return tuple(call for call in calls if call is not None) if None not in calls else ()


def _call(value: JsonValue, is_tool: Callable[[str], bool]) -> ProposedCall | None:
    if not isinstance(value, dict):
        return None
    within = value.get("function")  # {"function": {"name": …, "arguments": …}}
    said = within if isinstance(within, dict) else value
    name, given = _first(said, _NAME_KEYS), _first(said, _ARGUMENT_KEYS)
    if not (isinstance(name, str) and is_tool(name)) or _is_schema(given):
        return None
    written = given if isinstance(given, str) else write({} if given is None else given)
    return ProposedCall(provider_id=new_id(), name=name, arguments=written, from_text=True)


def new_id() -> str:
    """Return an id for a call that has none from its provider."""
    return f"call_{os.urandom(12).hex()}"


def _values(text: str) -> list[JsonValue]:
    """Return the JSON objects of a text, those of lists included; an empty list if the text contains anything else."""
    values: list[JsonValue] = []
    end = _end_of_gap(text, 0)
    try:
        while end < len(text):
            if text[end] not in "{[":
                return []
            start, (_, end) = end, _DECODER.raw_decode(text, end)
            value = parse(text[start:end])
            values += value if isinstance(value, list) else [value]
            end = _end_of_gap(text, end)
    except (ValueError, RecursionError):  # JsonTextError is one
        return []
    return values


def _end_of_gap(text: str, start: int) -> int:
    gap = _BETWEEN.match(text, start)
    return gap.end() if gap else start


def _is_schema(given: JsonValue) -> bool:
    """Return whether this is a schema of arguments; asked for its tools, a model recites them."""
    return isinstance(given, dict) and given.get("type") == "object" and isinstance(given.get("properties"), dict)


def _first(value: JsonObject, keys: Sequence[str]) -> JsonValue:
    return next((value[key] for key in keys if key in value), None)
