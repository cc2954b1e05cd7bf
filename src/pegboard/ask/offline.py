"""The built-in model that needs neither key nor network: it matches words to tools, and says so."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from pydantic import JsonValue

from pegboard.ask.call_text import new_id
from pegboard.data.json_text import JsonTextError, parse, write
from pegboard.models import JsonObject
from pegboard.models.conversation import (
    CallDelta,
    Message,
    ModelEvent,
    ModelMessage,
    OfferedTool,
    Prompt,
    ProposedCall,
    TextDelta,
    ToolMessage,
    TurnEnded,
    Usage,
    UserMessage,
)
from pegboard.models.model_requirements import OFFLINE

HONEST: Final = (
    "I am the offline model: I don't reason, I only match your words to tools. To use a language model, press `f2` in"
    " the app, or pass `--model`, such as `ollama:qwen3` or `openai:gpt-5-mini`."
)

_TAIL: Final = "The offline model doesn't reason. `f2` in the app, or `--model`, connects a language model."
_EXAMPLE: Final = "Name a tool and its arguments (`fs.list_dir path=.`)."
_SURE: Final = 4.0
"""Minimum score of a tool that is called."""
_CLEAR: Final = 1.1
"""Factor by which the best tool's score must exceed the second's."""
_SHOWN_TOOLS: Final = 5
_SHOWN_TEXT: Final = 4_000
_WORD: Final = re.compile(r"[^\W_]+")
_KEY: Final = re.compile(r"(?<!\S)([A-Za-z_][\w.-]*)=")
_BARE: Final = re.compile(r"\S*")
_BRACKETS: Final = re.compile(r"[{\[].*?[}\]](?=\s|$)", re.DOTALL)
_VALUES: Final = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL),
    "'": re.compile(r"'[^']*+'"),
    "{": _BRACKETS,
    "[": _BRACKETS,
}
"""Values after `key=` that may contain spaces, by their first character."""
_QUOTE: Final = re.compile(r"[\"“`]|(?<!\w)'|https?://")
_QUOTED: Final = {
    '"': re.compile(r'((?:[^"\\]|\\.)*+)"', re.DOTALL),
    "“": re.compile(r"([^”]*+)”"),
    "`": re.compile(r"([^`]*+)`"),
}
"""Quoted text after its opening quotation mark."""
_SINGLE_QUOTED: Final = re.compile(r"([^']*+)'(?!\w)")
_EMPTY: Final = """
a about all an and any are as at be by can could do does for from get have how i in is it its me my of on or
please that the there these this to was what which who will with you your tool tools use call run one if
"""
"""Words that don't help to choose a tool."""
_EMPTY_WORDS: Final = frozenset(_EMPTY.split()) | {"give", "gives"}
_PIECE: Final = re.compile(r"\S+\s*|\s+")


class OfflineModel:
    """A `pegboard.ports.Model` that matches words: it finds the tool that a message names and fills its arguments.

    Arguments are read from `key=value`, JSON objects and quoted text. If the match is unclear, it asks back.
    """

    @property
    def name(self) -> str:
        """Name in the configuration."""
        return OFFLINE

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent]:
        """Yield an answer in pieces; see `pegboard.ports.Model`."""
        said = await asyncio.to_thread(_answer, prompt)  # a pasted text may be long
        for piece in _PIECE.findall(said.text):
            yield TextDelta(text=piece)
            await asyncio.sleep(0)
        for index, call in enumerate(said.calls):
            yield CallDelta(index=index, name=call.name)
            for piece in _PIECE.findall(call.arguments):
                yield CallDelta(index=index, arguments=piece)
                await asyncio.sleep(0)
        usage = Usage(input_tokens=sum(len(_text(message).split()) for message in prompt.messages))
        usage += Usage(output_tokens=len(said.text.split()))
        yield TurnEnded(message=said, usage=usage, reason="calls" if said.calls else "stop")


def _answer(prompt: Prompt) -> ModelMessage:
    last = prompt.messages[-1] if prompt.messages else None
    if isinstance(last, ToolMessage):
        return ModelMessage(text=_report(prompt.messages))
    if not isinstance(last, UserMessage):
        return ModelMessage(text=HONEST)
    if not prompt.tools:
        return ModelMessage(text=f"{HONEST} I was offered no tools, so I can't do anything.")
    given = _Given.of(last.text)
    weights = _weights(prompt.tools)
    scores = sorted(
        ((_score(tool, given, weights), tool) for tool in prompt.tools), key=lambda one: (-one[0], one[1].name)
    )
    best, tool = scores[0]
    second = scores[1][0] if len(scores) > 1 else 0.0
    if best < _SURE:
        return ModelMessage(text=f"{HONEST}\n\n{_EXAMPLE} I have {_some(scores)}.")
    if best < second * _CLEAR and not given.names(tool):
        likely = [one for one in scores if one[0] * _CLEAR > best]
        return ModelMessage(text=f"I am not sure which tool you mean: {_some(likely)}? {_EXAMPLE}")
    arguments, missing = _arguments(tool, given)
    if missing:
        asked = " ".join(f"{name}=…" for name in missing)
        return ModelMessage(text=f"`{tool.name}` requires more arguments. Send your message again with `{asked}`.")
    call = ProposedCall(provider_id=new_id(), name=tool.name, arguments=write(arguments))
    return ModelMessage(text=f"Your message matches `{tool.name}` best, so I call it.", calls=(call,))


@dataclass(frozen=True)
class _Given:
    """The parts of a user's message."""

    text: str
    words: frozenset[str]
    pairs: Mapping[str, str]
    quoted: tuple[str, ...]
    json: JsonObject

    @classmethod
    def of(cls, text: str) -> _Given:
        pairs, rest = _pairs(text)
        found: JsonObject = {}
        begin, end = rest.find("{"), rest.rfind("}")
        if 0 <= begin < end:
            try:
                value = parse(rest[begin : end + 1])
            except JsonTextError:
                value = None
            if isinstance(value, dict):
                found, rest = value, rest[:begin] + rest[end + 1 :]
        quoted, rest = _quoted(rest)
        return cls(text, frozenset(_stems(rest)), pairs, quoted, found)

    def names(self, tool: OfferedTool) -> bool:
        """Return whether the message contains the tool's name, as offered or with a dot."""
        pattern = re.escape(tool.name).replace("_", "[._]")
        return re.search(rf"(?<![\w.]){pattern}(?![\w])", self.text) is not None


def _pairs(text: str) -> tuple[dict[str, str], str]:
    """Return the `key=value` pairs of a text, and the text without them."""
    pairs: dict[str, str] = {}
    rest: list[str] = []
    unclosed: set[str] = set()
    end = 0
    while (key := _KEY.search(text, end)) is not None:
        rest.append(text[end : key.start()])
        value, sign = None, text[key.end() : key.end() + 1]
        if sign in _VALUES and sign not in unclosed:
            value = _VALUES[sign].match(text, key.end())
            if value is None:
                unclosed.add(sign)  # its end is missing after every later key too, and each search reads the whole rest
        value = value or _BARE.match(text, key.end())
        assert value is not None, "it matches an empty text too"
        pairs[key[1]], end = value[0], value.end()
    return pairs, " ".join([*rest, text[end:]])


def _quoted(text: str) -> tuple[tuple[str, ...], str]:
    """Return the quoted parts and the URLs of a text, and the text without them."""
    found: list[str] = []
    rest: list[str] = []
    unclosed: set[str] = set()
    begin = end = 0
    while (mark := _QUOTE.search(text, end)) is not None:
        sign, end = mark[0], mark.end()
        if sign in unclosed:
            continue
        pattern = _SINGLE_QUOTED if sign == "'" else _QUOTED.get(sign, _BARE)
        part = pattern.match(text, end)
        if part is None:
            if sign != "'":
                unclosed.add(sign)  # as above
            continue
        if pattern is _BARE and not part[0]:
            continue
        found.append(sign + part[0] if pattern is _BARE else part[1])
        rest.append(text[begin : mark.start()])
        begin = end = part.end()
    return tuple(found), " ".join([*rest, text[begin:]])


def _weights(tools: Sequence[OfferedTool]) -> Mapping[str, float]:
    """Return the weight of each word: the fewer tools contain it, the heavier."""
    spoken = Counter(word for tool in tools for word in {*_stems(tool.name), *_stems(tool.description)})
    return {word: log(1 + len(tools) / count) for word, count in spoken.items()}


def _score(tool: OfferedTool, given: _Given, weights: Mapping[str, float]) -> float:
    """Return how well a tool fits: by its name first, then its description and the names of its arguments."""
    if given.names(tool):
        return 100.0 + len(tool.name)

    def weight(words: Iterable[str]) -> float:
        return sum(weights[word] for word in words)

    named = set(_stems(tool.name))
    summary, _, rest = tool.description.partition("\n")
    described = set(_stems(summary)) - named
    score = 2.0 * weight(given.words & named) + weight(given.words & described)
    score += 0.25 * weight(given.words & set(_stems(rest)) - named - described)
    score *= 1 + len(given.words & named) / max(1, len(named))
    properties = _properties(tool)
    score += 2.0 * sum(name in properties for name in (*given.pairs, *given.json))
    return score - 1.5 * len(_arguments(tool, given)[1])


def _arguments(tool: OfferedTool, given: _Given) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the arguments that a message contains for a tool, and the names of missing ones."""
    properties = _properties(tool)
    required = tool.parameters.get("required")
    wanted = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    arguments: JsonObject = {**given.json}
    arguments |= {name: _typed(properties.get(name), value) for name, value in given.pairs.items()}
    order = [*wanted, *(name for name in properties if name not in wanted)]
    free = (name for name in order if name not in arguments and _takes_text(properties.get(name)))
    for name, value in zip([*free], given.quoted, strict=False):
        arguments[name] = value
    missing = tuple(name for name in wanted if name not in arguments and "default" not in _schema(properties.get(name)))
    return arguments, missing


def _typed(schema: JsonValue, text: str) -> JsonValue:
    """Parse the value of `key=value`: text if the tool accepts text, otherwise JSON if it is JSON."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].replace('\\"', '"') if text[0] == '"' else text[1:-1]
    if _types(schema) == {"string"}:
        return text
    try:
        return parse(text)
    except JsonTextError:
        return text


def _types(schema: JsonValue) -> set[str]:
    said = _schema(schema).get("type")
    return {one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)}


def _takes_text(schema: JsonValue) -> bool:
    types = _types(schema)
    return not types or "string" in types


def _schema(schema: JsonValue) -> JsonObject:
    return schema if isinstance(schema, dict) else {}


def _properties(tool: OfferedTool) -> JsonObject:
    return _schema(tool.parameters.get("properties"))


def _stems(text: str) -> Iterator[str]:
    """Yield significant words without the endings of plurals and verbs."""
    for word in _WORD.findall(re.sub(r"([a-z])([A-Z])", r"\1 \2", text).casefold().replace("_", " ")):
        if word not in _EMPTY_WORDS:
            yield re.sub(r"(?<=\w{3})(?:ies|es|s|ing|ed)$", "", word)


def _some(scores: Sequence[tuple[float, OfferedTool]]) -> str:
    names = [f"`{tool.name}`" for _, tool in scores[:_SHOWN_TOOLS]]
    more = len(scores) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def _report(messages: Sequence[Message]) -> str:
    """Return a report of the last turn's results."""
    answers: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        answers.insert(0, message)
    parts = []
    for answer in answers:
        text = answer.text if len(answer.text) <= _SHOWN_TEXT else f"{answer.text[:_SHOWN_TEXT]}\n… (shortened)"
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        parts.append(f"`{answer.name}` {'returned' if answer.ok else 'failed'}:\n\n{fence}\n{text}\n{fence}")
    return "\n\n".join([*parts, _TAIL])


def _text(message: Message) -> str:
    return message.text
