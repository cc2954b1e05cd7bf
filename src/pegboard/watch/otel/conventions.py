"""Calls and model turns in spans of the OpenTelemetry GenAI semantic conventions, older versions included.

Also those of OpenInference (LangChain, smolagents, Agno and others), of the AI SDK before version 7, and of
Strands Agents and the Agent Development Kit, which have the content in events or in attributes of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from typing import Final, Literal

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from pegboard.models import Agent, ResultMeta, ToolCall, ToolError, ToolResult
from pegboard.models.conversation import Usage
from pegboard.models.turn import LONGEST_TEXT, ModelTurn
from pegboard.ports import Redaction
from pegboard.watch.otel.spans import Attributes, TelemetrySpan

LONGEST_CONTENT: Final = 1_000_000
"""Characters of arguments and results beyond which they are shortened."""
PACK: Final = "otel"
"""Prefix of the tools' names, so that they aren't mistaken for tools that Pegboard runs."""
_LONGEST_NAME: Final = 150
_MOST_TOKENS: Final = 10**12

_CONVERSATION: Final = ("gen_ai.conversation.id", "session.id")
_ARGUMENTS: Final = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "gen_ai.tool.arguments",
    "gcp.vertex.agent.tool_call_args",
    "ai.toolCall.args",
    "input.value",
)
_RESULT: Final = (
    "gen_ai.tool.call.result",
    "tool_response",
    "gen_ai.tool.result",
    "gcp.vertex.agent.tool_response",
    "ai.toolCall.result",
    "output.value",
)
_OLD_TOOL: Final = ("gen_ai.tool.name", "ai.toolCall.name")
_TOOL: Final = (*_OLD_TOOL, "tool.name")
_PROVIDER_ID: Final = ("gen_ai.tool.call.id", "ai.toolCall.id")
_AGENT: Final = ("gen_ai.agent.name", "agent_name", "agent.name", "ai.telemetry.functionId")
_MODEL: Final = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_OUTPUT: Final = ("gen_ai.output.messages", "gen_ai.completion", "message", "events")
_INPUT_TOKENS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_OUTPUT_TOKENS: Final = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")

_AGENT_OPERATIONS: Final = frozenset({"invoke_agent", "create_agent", "invoke_workflow"})
_TURN_OPERATIONS: Final = frozenset({"chat", "text_completion", "generate_content"})
_CONTENT_EVENTS: Final[Mapping[Sequence[str], tuple[str, str]]] = {
    _ARGUMENTS: ("gen_ai.tool.message", "content"),
    _RESULT: ("gen_ai.choice", "message"),
}
"""Name and attribute of the events that have the content of a call, where its span has none."""
_OUTPUT_ATTRIBUTE: Final = re.compile(
    r"(llm\.output_messages\.\d+\.message|gen_ai\.completion\.\d+)\."
    r"(?:content|contents\.\d+\.message_content\.text|(tool_calls\.\d+\.(?:tool_call\.function\.)?)name)"
)
"""Attributes of a response whose messages have an attribute per text and per name of a proposed call."""
_MESSAGE_FACTS: Final = frozenset(
    {"name", "type", "id", "tool_call_id", "status", "artifact", "additional_kwargs", "response_metadata"}
)
"""What a message of LangChain with a result has besides its content."""
_ID: Final = re.compile(rf"[A-Za-z0-9_.@/+-]{{1,{_LONGEST_NAME}}}")

Kind = Literal["agent", "turn", "call"]

_OPENINFERENCE: Final[dict[JsonValue, Kind]] = {"TOOL": "call", "LLM": "turn", "AGENT": "agent"}


def kind_of(span: TelemetrySpan) -> Kind | None:
    """Return what a span describes, or None if it isn't one of the conventions."""
    operation = _text(span.attributes, ("gen_ai.operation.name",))
    if operation == "execute_tool":
        return None if tool_of(span) == "(merged tools)" else "call"  # The Agent Development Kit's sum of other spans.
    if operation in _TURN_OPERATIONS:
        return "turn"
    if operation in _AGENT_OPERATIONS:
        return "agent"
    if operation:
        return None
    if "openinference.span.kind" in span.attributes:
        return _OPENINFERENCE.get(_text(span.attributes, ("openinference.span.kind",)))
    # Older versions have no attribute for the operation.
    if _text(span.attributes, _OLD_TOOL):
        return "call"
    return "turn" if _text(span.attributes, ("gen_ai.request.model",)) else None


def conversation_of(span: TelemetrySpan) -> str:
    """Return the conversation that a span names; empty if it names none."""
    return _text(span.attributes, _CONVERSATION)


def tool_of(span: TelemetrySpan) -> str:
    """Return the tool of a call, with the agent's own name."""
    return _text(span.attributes, _TOOL) or span.name


def is_request(span: TelemetrySpan) -> bool:
    """Return whether a call is the request of an MCP library, which the span of an agent's call may contain."""
    return span.attributes.get("mcp.method.name") == "tools/call"


def calls_same_tool(request: str, call: str) -> bool:
    """Return whether the tool of an MCP request is that of an agent's call, which may have a prefix."""
    return call == request or call.endswith(tuple(f"{mark}{request}" for mark in "_-./:"))


def session_of(identity: str) -> str:
    """Return the session id of a conversation or a trace. It never equals that of a chat."""
    known = _ID.fullmatch(identity)
    return f"{PACK}:{identity if known else sha256(identity.encode('utf-8', 'replace')).hexdigest()[:32]}"


def id_of(span: TelemetrySpan) -> str:
    """Return the call id of a span. A span that is sent again has the same one."""
    digest = blake2b(f"{span.trace}{span.id}".encode(), digest_size=10).hexdigest()
    return f"{span.start // 1_000_000:012x}{digest}"[:32]


def call_of(span: TelemetrySpan, session: str, redaction: Redaction) -> tuple[ToolCall, ToolResult, datetime]:
    """Return the call that a span describes, its result and its start, without secrets."""
    warnings: list[str] = []
    arguments = _content(span, _ARGUMENTS, redaction, "The arguments", warnings)
    data = _content(span, _RESULT, redaction, "The result", warnings)
    call = ToolCall(
        id=id_of(span),
        name=f"{PACK}.{_name(redaction.text(tool_of(span)))}",
        args=arguments if isinstance(arguments, dict) else {} if arguments is None else {"value": arguments},
        source="otel",
        session=session,
        agent=_agent(span, redaction),
        provider_id=_text(span.attributes, _PROVIDER_ID)[:_LONGEST_NAME] or None,
    )
    process = span.resource.get("process.pid")
    meta = ResultMeta(
        duration_ms=_duration(span),
        worker=f"pid {process}" if isinstance(process, int) and not isinstance(process, bool) else None,
        warnings=tuple(warnings),
    )
    error = _error(span, redaction)
    return call, ToolResult(ok=error is None, data=data, error=error, meta=meta), _start(span)


def turn_of(span: TelemetrySpan, session: str, redaction: Redaction) -> tuple[ToolCall, ToolResult, datetime]:
    """Return the model turn that a span describes as a record, and its start, without secrets."""
    text = "\n".join(_answers(span))
    if _is_failed(span):
        text = f"{text}\n{_reason(span)}" if text else _reason(span)
    turn = ModelTurn(
        model=_name(redaction.text(_text(span.attributes, _MODEL) or span.name)),
        text=_shortened(text, LONGEST_TEXT, redaction),
        usage=Usage(
            input_tokens=_tokens(span.attributes, _INPUT_TOKENS), output_tokens=_tokens(span.attributes, _OUTPUT_TOKENS)
        ),
    )
    error = _error(span, redaction)
    result = ToolResult(ok=error is None, error=error, meta=ResultMeta(duration_ms=_duration(span)))
    return turn.call(id_of(span), "otel", session, _agent(span, redaction)), result, _start(span)


# Attributes


def _text(attributes: Attributes, keys: Iterable[str]) -> str:
    """Return the first attribute that is a text; empty if none is."""
    return next((value for key in keys if isinstance(value := attributes.get(key), str) and value), "")


def _first(span: TelemetrySpan, keys: Sequence[str]) -> JsonValue:
    """Return the first attribute of a span or of its events."""
    for attributes in (span.attributes, *(attributes for _, attributes in span.events)):
        for key in keys:
            if attributes.get(key) is not None:
                return attributes[key]
    return None


def _tokens(attributes: Attributes, keys: Iterable[str]) -> int:
    found = next((value for key in keys if isinstance(value := attributes.get(key), int | float)), 0)
    return int(found) if 0 <= found <= _MOST_TOKENS else 0


def _name(text: str) -> str:
    """Return a name on one line without spaces and control characters, shortened."""
    return "".join(sign if sign.isprintable() and not sign.isspace() else "_" for sign in text[:_LONGEST_NAME]) or "_"


def _agent(span: TelemetrySpan, redaction: Redaction) -> Agent:
    name = _text(span.attributes, _AGENT) or _text(span.resource, ("service.name",))
    shown = "".join(sign if sign.isprintable() else " " for sign in redaction.text(name)[:_LONGEST_NAME]).strip()
    return Agent(name=shown or "agent")


def _start(span: TelemetrySpan) -> datetime:
    return datetime.fromtimestamp(span.start / 1e9, UTC)


def _duration(span: TelemetrySpan) -> float:
    return (span.end - span.start) / 1e6


def _is_failed(span: TelemetrySpan) -> bool:
    return span.failed or bool(_text(span.attributes, ("error.type",)))


def _error(span: TelemetrySpan, redaction: Redaction) -> ToolError | None:
    if not _is_failed(span):
        return None
    return ToolError(code="execution_error", message=_shortened(_reason(span), LONGEST_TEXT, redaction))


def _reason(span: TelemetrySpan) -> str:
    """Return why the operation failed."""
    thrown = next((attributes for name, attributes in span.events if name == "exception"), {})
    kind = _text(thrown, ("exception.type",)) or _text(span.attributes, ("error.type",))
    reported = "" if "Traceback (most recent call last)" in span.message else span.message
    message = (
        reported or _text(thrown, ("exception.message",)) or span.message or _text(span.attributes, ("error.message",))
    )
    if message:
        return message if not kind or kind in message else f"{kind}: {message}"
    return f"The agent reported {kind}." if kind else "The agent reported an error without a reason."


# Content


def _content(
    span: TelemetrySpan, keys: Sequence[str], redaction: Redaction, what: str, warnings: list[str]
) -> JsonValue:
    """Return arguments or a result, parsed if they are JSON, without secrets."""
    value = _first(span, keys)
    if value is None:
        event, attribute = _CONTENT_EVENTS[keys]
        value = next((attributes.get(attribute) for name, attributes in span.events if name == event), None)
        match _parsed(value):
            case [{"text": str() as text, **rest}] if not rest:  # the content of a message
                value = text
    if value is None:
        return None
    text = value if isinstance(value, str) else to_json(value).decode()
    if len(text) > LONGEST_CONTENT:
        warnings.append(f"{what} had {len(text):,} characters; the record has the first {LONGEST_CONTENT:,}.")
        return redaction.text(text)[:LONGEST_CONTENT]
    return redaction.value(_plain(_parsed(value)))


def _plain(value: JsonValue) -> JsonValue:
    """Return arguments or a result without what a framework adds around them; data that only look alike stay whole."""
    match value:
        case {"args": [], "sanitize_inputs_outputs": _, "kwargs": dict(arguments), **more} if not more:  # smolagents
            return arguments
        case {"input_str": _, "inputs": dict(arguments), "metadata": _, **more} if more.keys() == {"tags", "kwargs"}:
            return arguments  # OpenLLMetry, of LangChain
        case {"type": "tool", "data": {"content": content, **facts}, **more} if (
            not more and facts and facts.keys() <= _MESSAGE_FACTS
        ):  # a message of LangChain, from OpenInference
            return _parsed(content)
        case {"output": {"lc": _, "kwargs": {"type": "tool", "content": content}}}:  # the same, from OpenLLMetry
            return _parsed(content)
    return value


def _parsed(value: JsonValue) -> JsonValue:
    """Return the value of a JSON text; other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        parsed: JsonValue = from_json(value, allow_inf_nan=False)
    except ValueError:
        return value
    return parsed


def _shortened(text: str, longest: int, redaction: Redaction) -> str:
    text = redaction.text(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _answers(span: TelemetrySpan) -> Iterator[str]:
    """Yield the texts and the proposed calls of a response."""
    listed = [*_listed_answers(span.attributes)]
    if listed:
        yield from listed
        return
    found = _parsed(_first(span, _OUTPUT))
    messages = found if isinstance(found, list) else [found]
    marks = {"role", "message", "parts", "content"}
    if messages and all(isinstance(part, dict) and not marks & part.keys() for part in messages):
        yield from _parts({"parts": [*messages]})  # An event may have only the parts of its message.
        return
    for message in messages:
        inner = message.get("message", message) if isinstance(message, dict) else message
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, dict) and inner.get("role", "assistant") in ("assistant", "model"):
            yield from _parts(inner)


def _listed_answers(attributes: Attributes) -> Iterator[str]:
    """Yield the texts and the proposed calls of a response that has an attribute for each of them."""
    for key, value in attributes.items():
        found = _OUTPUT_ATTRIBUTE.fullmatch(key)
        if not found or not isinstance(value, str):
            continue
        message, call = found.groups()
        if call:
            yield f"{value} {attributes.get(f'{message}.{call}arguments') or '{}'}"
        elif key == f"{message}.content" or f"{message}.content" not in attributes:
            yield value
    if text := _text(attributes, ("ai.response.text",)):
        yield text
    proposed = _parsed(attributes.get("ai.response.toolCalls"))
    yield from _parts({"parts": proposed})


def _parts(message: dict[str, JsonValue]) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
    parts = message.get("parts", content)
    for part in parts if isinstance(parts, list) else []:
        if not isinstance(part, dict):
            continue
        text = part.get("content", part.get("text"))
        if part.get("type", "text") == "text" and isinstance(text, str):
            yield text
        elif call := _proposed(part):
            yield call


def _proposed(part: dict[str, JsonValue]) -> str:
    """Return the name and the arguments of a proposed call; empty if a part isn't one."""
    match part:
        case {"type": "tool_call", "name": name}:
            arguments = part.get("arguments")
        case {"toolUse": {"name": name, "input": arguments}} | {"toolName": name, "input": arguments}:
            pass
        case _:
            return ""
    return f"{name} {arguments if isinstance(arguments, str) else to_json(arguments or {}).decode()}"
