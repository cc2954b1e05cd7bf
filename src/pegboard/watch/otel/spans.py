"""Spans of an OTLP request, parsed from protobuf or JSON. Everything in them is untrusted."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from pegboard.data.unicode import encodable

MOST_SPANS: Final = 10_000
"""Spans of a request beyond which it is rejected."""
MOST_OBJECTS: Final = 400_000
"""Objects and arrays of a JSON body, those in texts included, beyond which it is rejected: each takes up to 1 kB."""
MOST_ATTRIBUTES: Final = 256
"""Attributes of a span or an event beyond which they are dropped."""
MOST_EVENTS: Final = 128
"""Events of a span beyond which they are dropped."""
_UNUSED: Final = ("llm.input_messages.", "gen_ai.prompt.")
"""Prefixes of attributes that repeat the conversation before a response; they don't count."""
_MOST_ITEMS: Final = 100_000
"""Items of a list or an object in an attribute beyond which they are dropped."""
_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC).timestamp() * 1e9
_TRACE: Final = re.compile(r"[0-9a-f]{32}")
_SPAN: Final = re.compile(r"[0-9a-f]{16}")
_ERROR: Final = 2
_SPAN_PATH: Final = (1, 2, 2)
"""Protobuf fields that lead to spans: `resource_spans`, `scope_spans`, `spans`."""
_LENGTH_DELIMITED: Final = 2
_FIXED_SIZES: Final = {1: 8, 5: 4}

Attributes = Mapping[str, JsonValue]


class BodyError(ValueError):
    """A body that is not a valid request; the message is the reason."""


@dataclass(frozen=True)
class TelemetrySpan:
    """One finished operation of an agent.

    Attributes:
        trace: Its trace, 32 hexadecimal digits.
        id: Its id in the trace, 16 hexadecimal digits.
        name: Its name.
        start: Nanoseconds since 1970.
        end: Nanoseconds since 1970, not before `start`.
        attributes: Its attributes.
        resource: The attributes of the program that sent it.
        events: Names and attributes of its events.
        failed: Whether its status is an error.
        message: Description of the status.
        parent: Id of the span that contains it; empty if none does.
    """

    trace: str
    id: str
    name: str
    start: int
    end: int
    attributes: Attributes
    resource: Attributes = field(default_factory=dict)
    events: tuple[tuple[str, Attributes], ...] = ()
    failed: bool = False
    message: str = ""
    parent: str = ""


@dataclass(frozen=True)
class Received:
    """The spans of one request.

    Attributes:
        spans: The valid ones.
        rejected: Number of the others.
        reason: Why the last of them was rejected.
    """

    spans: tuple[TelemetrySpan, ...]
    rejected: int = 0
    reason: str = ""


def from_protobuf(body: bytes) -> Received:
    """Parse an `ExportTraceServiceRequest`.

    Raises:
        BodyError: It is invalid.
    """
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    _check_fields(memoryview(body), 0, _SPAN_PATH)
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise BodyError(f"The body is not a valid ExportTraceServiceRequest: {error}") from error
    return _received(request.resource_spans, _protobuf_value)


def from_json(body: bytes) -> Received:
    """Parse an `ExportTraceServiceRequest` as JSON: hexadecimal ids, camelCase names, enums as numbers.

    Raises:
        BodyError: It is invalid.
    """
    if body.count(b"{") + body.count(b"[") > MOST_OBJECTS:
        raise BodyError(f"The body has more than {MOST_OBJECTS:,} objects. Send smaller batches.")
    try:
        request = _request_type().validate_json(body)
    except ValidationError as error:
        first, *_ = error.errors(include_url=False, include_input=False, include_context=False)
        place = ".".join(map(str, first["loc"]))[:200]
        where = f" at {place}" if place else ""
        reason = f"The body is not a valid ExportTraceServiceRequest{where}: {first['msg']}"
        raise BodyError(encodable(reason[:500])) from error
    return _received(request.resource_spans, _json_value)


def _received(resource_spans: Sequence[Any], value: Callable[[Any], JsonValue]) -> Received:
    spans: list[TelemetrySpan] = []
    rejected, reason = 0, ""
    _check_number(len(resource_spans))
    _check_number(sum(len(group.scope_spans) for group in resource_spans))
    _check_number(sum(len(scope.spans) for group in resource_spans for scope in group.scope_spans))
    for group in resource_spans:
        resource = _attributes(group.resource.attributes, value)
        for scope in group.scope_spans:
            for raw in scope.spans:
                problem = _problem(raw)
                if problem:
                    rejected, reason = rejected + 1, problem
                else:
                    spans.append(_span(raw, resource, value))
    return Received(tuple(spans), rejected, reason)


def _check_number(number: int) -> None:
    if number > MOST_SPANS:
        raise BodyError(f"The body has more than {MOST_SPANS:,} spans. Send smaller batches.")


def _span(raw: Any, resource: Attributes, value: Callable[[Any], JsonValue]) -> TelemetrySpan:  # noqa: ANN401 - of either format
    return TelemetrySpan(
        trace=_hex(raw.trace_id),
        id=_hex(raw.span_id),
        name=raw.name[:200],
        start=raw.start_time_unix_nano,
        end=max(raw.start_time_unix_nano, min(raw.end_time_unix_nano, int(_LATEST))),
        attributes=_attributes(raw.attributes, value),
        resource=resource,
        events=tuple((event.name, _attributes(event.attributes, value)) for event in raw.events[:MOST_EVENTS]),
        failed=raw.status.code == _ERROR,
        message=raw.status.message,
        parent=_hex(raw.parent_span_id),
    )


def _problem(raw: Any) -> str:  # noqa: ANN401 - of either format
    """Return why a span is invalid; empty if it is valid."""
    trace, span = _hex(raw.trace_id), _hex(raw.span_id)
    if not _TRACE.fullmatch(trace) or not trace.strip("0"):
        return "A trace id has 16 bytes, which are not all 0; in JSON, 32 hexadecimal digits."
    if not _SPAN.fullmatch(span) or not span.strip("0"):
        return "A span id has 8 bytes, which are not all 0; in JSON, 16 hexadecimal digits."
    if not 0 < raw.start_time_unix_nano < _LATEST:
        return "startTimeUnixNano is missing or outside the calendar."
    return ""


def _hex(identity: bytes | str) -> str:
    return identity.hex() if isinstance(identity, bytes) else identity.lower()


def _attributes(pairs: Iterable[Any], value: Callable[[Any], JsonValue]) -> Attributes:
    used = (pair for pair in pairs if not pair.key.startswith(_UNUSED))
    return {pair.key: value(pair.value) for pair in islice(used, MOST_ATTRIBUTES)}


# Protobuf


def _check_fields(message: memoryview, seen: int, path: Sequence[int]) -> int:
    """Count the fields of a message down to its spans, because an empty span takes many times its bytes when parsed.

    Args:
        message: The message.
        seen: Number of fields counted before.
        path: Field numbers that lead to the spans.

    Returns:
        The number of fields, those counted before included.

    Raises:
        BodyError: There are too many, or the message is invalid.
    """
    at = 0
    try:
        while at < len(message):
            seen += 1
            _check_number(seen // 2)  # Groups and scopes have fields besides their spans.
            tag, at = _varint(message, at)
            if tag & 7 == _LENGTH_DELIMITED:
                length, at = _varint(message, at)
                if tag >> 3 == path[0] and len(path) > 1:
                    seen = _check_fields(message[at : at + length], seen, path[1:])
                at += length
            elif tag & 7 == 0:
                _, at = _varint(message, at)
            else:
                at += _FIXED_SIZES[tag & 7]
    except (IndexError, KeyError) as error:
        raise BodyError("The body is not a valid ExportTraceServiceRequest: a field is malformed.") from error
    return seen


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return a number and the index after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
    return value, at


def _protobuf_value(raw: Any) -> JsonValue:  # noqa: ANN401 - a generated class
    kind = raw.WhichOneof("value")
    match kind:
        case None:
            return None
        case "array_value":
            return [_protobuf_value(item) for item in raw.array_value.values[:_MOST_ITEMS]]
        case "kvlist_value":
            return {pair.key: _protobuf_value(pair.value) for pair in raw.kvlist_value.values[:_MOST_ITEMS]}
        case "bytes_value":
            return base64.b64encode(raw.bytes_value).decode()
        case "string_value" | "bool_value" | "int_value" | "double_value":
            found: JsonValue = getattr(raw, kind)
            return found
        case _:
            return None


# JSON


class _Message(BaseModel):
    """A message of the protocol as JSON; unknown fields are ignored, and null is the same as a missing field."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: object) -> object:
        return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


class _Value(_Message):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | None = None
    double_value: float | None = None
    array_value: _Array | None = None
    kvlist_value: _Pairs | None = None
    bytes_value: str | None = None


class _Array(_Message):
    values: list[_Value] = []


class _Pair(_Message):
    key: str = ""
    value: _Value = _Value.model_construct()


class _Pairs(_Message):
    values: list[_Pair] = []


class _Attributed(_Message):
    attributes: list[_Pair] = []


class _Event(_Attributed):
    name: str = ""


class _Status(_Message):
    code: int = 0
    message: str = ""


class _Span(_Attributed):
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    name: str = ""
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    events: list[_Event] = []
    status: _Status = _Status.model_construct()


class _Scope(_Message):
    spans: list[_Span] = []


class _Resource(_Message):
    resource: _Attributed = _Attributed.model_construct()
    scope_spans: list[_Scope] = []


class _Request(_Message):
    resource_spans: list[_Resource] = []


@cache
def _request_type() -> TypeAdapter[_Request]:
    return TypeAdapter(_Request)


def _json_value(raw: _Value) -> JsonValue:
    if raw.array_value is not None:
        return [_json_value(item) for item in raw.array_value.values]
    if raw.kvlist_value is not None:
        return {pair.key: _json_value(pair.value) for pair in raw.kvlist_value.values}
    for found in (raw.string_value, raw.bool_value, raw.int_value, raw.double_value):
        if found is not None:
            return found
    return raw.bytes_value
