"""The receiver of other agents' telemetry."""

from __future__ import annotations

import gzip
import json
import random
import re
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from commands import forked
from google.protobuf.json_format import ParseDict
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtobufSpan
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.capabilities.instrumentation import Instrumentation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from watched import PROGRAM, eventually

from pegboard.config import Paths
from pegboard.models import HistoryQuery, RecordedCall
from pegboard.models.turn import ModelTurn
from pegboard.runtime import Runtime

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
SECRET = "sk-forecast-4711-abcdef"
TRACE = "5b8efff798038103d269b633813fc60c"
NOW = time.time_ns()


@dataclass
class Receiving:
    """A started receiver."""

    process: subprocess.Popen[str]
    address: str
    messages: str = ""

    def post(self, content: bytes, headers: dict[str, str]) -> httpx2.Response:
        """Send a body."""
        return httpx2.post(self.address, content=content, headers=headers, timeout=60)

    def send(self, *spans: dict[str, Any], **resource: str) -> httpx2.Response:
        """Send spans as JSON."""
        return self.post(json.dumps(request_of(*spans, **resource)).encode(), JSON)

    def end(self, number: int = signal.SIGTERM) -> str:
        """End the receiver, which writes everything first; return its messages."""
        self.process.send_signal(number)
        _, self.messages = self.process.communicate(timeout=60)
        assert self.process.returncode == 128 + number, self.messages
        return self.messages


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiving]:
    """Run a receiver that knows a secret."""
    monkeypatch.setenv("WEATHER_API_KEY", SECRET)
    with running() as started:
        yield started


@pytest.fixture
def own_receiver() -> Iterator[Receiving]:
    """Run a receiver as a process of its own, whose memory can be measured."""
    with running(PROGRAM) as started:
        yield started


@contextmanager
def running(*program: str) -> Iterator[Receiving]:
    """Run `pegboard watch --otel`, by default without loading its libraries again; see `commands`."""
    command = [*(program or forked("pegboard")), "watch", "--otel", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Receiving(process, process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate(timeout=20)


def request_of(*spans: dict[str, Any], **resource: str) -> dict[str, Any]:
    """Return a request as JSON."""
    group = {"resource": {"attributes": attributes(**resource)}, "scopeSpans": [{"scope": {}, "spans": [*spans]}]}
    return {"resourceSpans": [group]}


def protobuf_of(*spans: dict[str, Any]) -> bytes:
    """Return a request as protobuf."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    ids = {"traceId": "trace_id", "spanId": "span_id", "parentSpanId": "parent_span_id"}
    for one in spans:
        made = ParseDict({k: v for k, v in one.items() if k not in {*ids, "unknownField"}}, ProtobufSpan())
        for key, name in ids.items():
            setattr(made, name, bytes.fromhex(one.get(key, "")))
        group.scope_spans.add().spans.append(made)
    return bytes(request.SerializeToString())


def attributes(**values: Any) -> list[dict[str, Any]]:
    """Return attributes as JSON; `__` in a name is a dot."""
    kinds = {str: "stringValue", bool: "boolValue", float: "doubleValue", dict: "kvlistValue"}
    return [
        {
            "key": key.replace("__", "."),
            "value": {"intValue": str(value)} if type(value) is int else {kinds[type(value)]: value},
        }
        for key, value in values.items()
    ]


def span(number: int, *, trace: str = TRACE, seconds: float = 0.5, **values: Any) -> dict[str, Any]:
    """Return a span as JSON."""
    start = NOW + number * 1_000_000_000
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": f"span {number}",
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + int(seconds * 1e9)),
        "attributes": attributes(**values),
        "unknownField": {"a": [1]},
    }


def tool(number: int, name: str = "weather", arguments: str = '{"city": "Oslo"}', **values: Any) -> dict[str, Any]:
    """Return the span of a tool call."""
    values |= {"gen_ai__tool__name": name, "gen_ai__tool__call__arguments": arguments}
    return span(number, gen_ai__operation__name="execute_tool", **values)


def recorded(count: int, **query: Any) -> list[RecordedCall]:
    """Return the recorded calls as the Activity page finds them, the oldest first, when there are enough."""
    runtime = Runtime.from_environment()
    found = eventually(
        lambda: len(calls := runtime.activity.page(HistoryQuery(sources=("otel",), **query)).calls) >= count and calls
    )
    assert len(found) == count
    return [*reversed(found)]


def weather_agent(provider: TracerProvider, version: Any = 5) -> Agent[None, str]:
    """Return an agent that calls two tools, one of which fails, and then answers."""

    def respond(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn == 0:
            return ModelResponse([TextPart("I look it up."), ToolCallPart("weather", {"city": "Oslo", "days": 2})])
        if turn == 1:
            return ModelResponse([ToolCallPart("fail", {"secret": SECRET})])
        return ModelResponse([TextPart("It rains in Oslo.")])

    agent = Agent(
        FunctionModel(respond, model_name="fake-1"),
        name="forecaster",
        capabilities=[Instrumentation(settings=InstrumentationSettings(tracer_provider=provider, version=version))],
    )

    @agent.tool_plain
    def weather(city: str, days: int) -> dict[str, Any]:
        return {"city": city, "rain": [True] * days}

    @agent.tool_plain
    def fail(secret: str) -> str:
        raise ValueError(f"no such station: {len(secret)}")

    return agent


@pytest.mark.promise("WAT-6")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("version", [2, 5, 6])
def test_the_calls_and_turns_of_a_real_agent_are_one_session(receiver: Receiving, version: int) -> None:
    provider = TracerProvider(resource=Resource.create({"service.name": "weather-service"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(receiver.address)))
    with pytest.raises(ValueError, match="no such station"):
        weather_agent(provider, version).run_sync("Will it rain in Oslo?")
    assert provider.force_flush()
    first, second = recorded(2)
    assert (first.tool, first.args, first.ok) == ("otel.weather", {"city": "Oslo", "days": 2}, True)
    assert (second.tool, second.ok, second.state, first.agent) == ("otel.fail", False, "failed", "forecaster")
    assert second.error is not None
    assert "no such station" in second.error.message
    assert first.duration_ms > 0
    assert first.session == second.session
    runtime = Runtime.from_environment()
    result = runtime.activity.result(first.id)
    assert result is not None
    assert result.data == {"city": "Oslo", "rain": [True, True]}
    session = first.session
    assert session is not None
    # The turns are written after the calls.
    eventually(lambda: len(runtime.activity.timeline(session).bars) == 4)
    bars = runtime.activity.timeline(session).bars
    assert [bar.kind for bar in bars] == ["turn", "call", "turn", "call"]
    assert bars[0].label.startswith("I look it up.")
    assert (bars[0].model, bars[0].state) == ("fake-1", "ok")
    assert bars[0].usage is not None
    assert bars[0].usage.output_tokens > 0
    assert SECRET not in str((bars, second))
    assert "fail {" in bars[2].label
    assert [first.turn, second.turn] == [bars[0].id, bars[2].id]
    assert "telemetry of another agent" in runtime.activity.unusable(first)
    provider.shutdown()


@pytest.mark.promise("WAT-6")
@pytest.mark.parametrize("packed", [False, True])
def test_json_and_protobuf_become_the_same_record(receiver: Receiving, packed: bool) -> None:
    spans = [
        tool(1, gen_ai__tool__call__result='{"rain": true}', gen_ai__conversation__id="talk-1"),
        {**tool(2, arguments="not JSON", error__type="TimeoutError"), "status": {"code": 2, "message": "too slow"}},
        span(
            3,
            gen_ai__operation__name="chat",
            gen_ai__request__model="m",
            gen_ai__usage__input_tokens=7,
            gen_ai__output__messages='[{"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]}]',
        ),
    ]
    body = json.dumps(request_of(*spans, service__name="app")).encode()
    headers = {"content-encoding": "gzip"} if packed else {}
    assert receiver.post(gzip.compress(body) if packed else body, JSON | headers).json() == {}
    body = protobuf_of(*({**one, "traceId": "aa" * 16} for one in spans))
    answer = receiver.post(gzip.compress(body) if packed else body, PROTOBUF | headers)
    assert answer.status_code == 200
    assert ExportTraceServiceResponse.FromString(answer.content) == ExportTraceServiceResponse()
    receiver.end()
    calls = recorded(4)
    assert {call.session for call in calls} == {"otel:talk-1"}
    for good, bad in (calls[:2], calls[2:]):
        assert (good.args, good.duration_ms, good.ok) == ({"city": "Oslo"}, 500.0, True)
        assert bad.args == {"value": "not JSON"}
        assert bad.error is not None
        assert bad.error.message == "TimeoutError: too slow"
    bars = Runtime.from_environment().activity.timeline("otel:talk-1").bars
    assert [bar.label for bar in bars if bar.kind == "turn"] == ["Hi", "Hi"]
    assert [bar.usage.input_tokens for bar in bars if bar.usage] == [7, 7]


@pytest.mark.promise("WAT-6")
def test_a_span_that_is_sent_again_is_recorded_once_even_after_a_restart(receiver: Receiving) -> None:
    turn = span(2, gen_ai__operation__name="chat", gen_ai__request__model="m")
    for _ in range(3):
        assert receiver.send(tool(1), turn, tool(1)).status_code == 200
    receiver.end()
    with running() as other:
        assert other.send(tool(1), turn).status_code == 200
        other.end()
    [call] = recorded(1)
    assert len(Runtime.from_environment().activity.timeline(str(call.session)).bars) == 2


@pytest.mark.promise("WAT-6")
@pytest.mark.parametrize("order", ["one request", "request first", "call first"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_call_that_the_agent_and_its_mcp_library_both_describe_is_recorded_once(
    receiver: Receiving, order: str, packed: bool
) -> None:
    request = tool(2, "say", mcp__method__name="tools/call") | {"parentSpanId": f"{1:016x}"}
    request["attributes"] = [one for one in request["attributes"] if "arguments" not in one["key"]]
    call = tool(1, "notes_say", '{"text": "hi"}')
    other = tool(3, "say", "{}", mcp__method__name="tools/call") | {"parentSpanId": f"{9:016x}"}
    inner = tool(4, "search", "{}", mcp__method__name="tools/call") | {"parentSpanId": f"{1:016x}"}
    batches = {
        "one request": [[request, call]],
        "request first": [[request], [call]],
        "call first": [[call], [request]],
    }
    for batch in [*batches[order], [other, inner], [request]]:
        content = protobuf_of(*batch) if packed else json.dumps(request_of(*batch)).encode()
        assert receiver.post(content, PROTOBUF if packed else JSON).status_code == 200
    receiver.end()
    found = {(one.tool, json.dumps(one.args)) for one in recorded(3)}
    assert found == {("otel.notes_say", '{"text": "hi"}'), ("otel.say", "{}"), ("otel.search", "{}")}


@pytest.mark.promise("WAT-6")
def test_unknown_spans_are_ignored_and_counted(receiver: Receiving) -> None:
    others = [span(number, http__method="GET") for number in range(2, 5)]
    agent = span(9, gen_ai__operation__name="invoke_agent")
    assert receiver.send(tool(1), *others, agent, span(10, gen_ai__operation__name="embeddings")).json() == {}
    assert "4 spans were ignored" in receiver.end(signal.SIGINT)
    recorded(1)


@pytest.mark.promise("WAT-6")
def test_invalid_spans_are_reported_as_partial_success(receiver: Receiving) -> None:
    invalid = [tool(2) | change for change in ({"traceId": "zz"}, {"spanId": "0" * 16}, {"startTimeUnixNano": "0"})]
    answer = receiver.send(tool(1), *invalid, tool(3) | {"startTimeUnixNano": "9" * 25})
    assert answer.status_code == 200
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "4"
    assert "startTimeUnixNano" in answer.json()["partialSuccess"]["errorMessage"]
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(name="without ids")
    raw = receiver.post(request.SerializeToString(), PROTOBUF)
    assert ExportTraceServiceResponse.FromString(raw.content).partial_success.rejected_spans == 1
    receiver.end()
    recorded(1)


def deep(levels: int) -> bytes:
    """Return a request whose attribute is nested."""
    value = '{"arrayValue":{"values":[' * levels + "]}}" * levels
    return (
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"a","value":' + value.encode() + b"}]}]}]}]}"
    )


def deep_protobuf(levels: int) -> bytes:
    """Return the same as protobuf, made by hand because the library refuses to."""
    content = b""
    for tags in [b"\x0a\x2a"] * levels + [b"\x12", b"\x4a", b"\x12", b"\x12", b"\x0a"]:
        for tag in tags:
            size, length = len(content), b""
            while size > 127:
                length += bytes([size & 127 | 128])
                size >>= 7
            content = bytes([tag]) + length + bytes([size]) + content
    return content


def empty_spans(count: int) -> bytes:
    """Return a request of spans without content."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.extend([ProtobufSpan()] * count)
    return bytes(request.SerializeToString())


HOSTILE: dict[str, tuple[Callable[[], bytes], dict[str, str], int]] = {
    "random": (lambda: random.Random(4).randbytes(5000), PROTOBUF, 400),
    "random JSON": (lambda: random.Random(5).randbytes(5000), JSON, 400),
    "no object": (lambda: b"[1]", JSON, 400),
    "wrong type": (lambda: b'{"resourceSpans": 3}', JSON, 400),
    "deep JSON": (lambda: deep(5000), JSON, 400),
    "brackets": (lambda: b"[" * 1_000_000, JSON, 400),
    "deep protobuf": (lambda: deep_protobuf(500), PROTOBUF, 400),
    "many spans": (lambda: deep(0).replace(b'{"attr', b"{}," * 2_000_000 + b'{"attr'), JSON, 400),
    "spans without content": (lambda: empty_spans(500_000), PROTOBUF, 400),
    "huge": (lambda: bytes(2**24 + 1), PROTOBUF, 413),
    "gzip bomb": (lambda: gzip.compress(bytes(2**27)), PROTOBUF | {"content-encoding": "gzip"}, 413),
    "no gzip": (lambda: b"no gzip", JSON | {"content-encoding": "gzip"}, 400),
    "half a gzip": (lambda: gzip.compress(bytes(1000))[:-9], JSON | {"content-encoding": "gzip"}, 400),
    "other encoding": (lambda: b"", JSON | {"content-encoding": "br"}, 415),
    "text": (lambda: b"{}", {"content-type": "text/plain"}, 415),
    "other host": (lambda: b"{}", JSON | {"host": "evil.example:4318"}, 403),
    "web page": (lambda: b"{}", JSON | {"origin": "https://evil.example"}, 403),
}
PAGES = {
    "page of another site": {"origin": "https://evil.example"},
    "page without an origin": {"origin": "null"},
    "page on another port of this machine": {"origin": "http://127.0.0.1:1"},
    "extension": {"origin": "chrome-extension://abc"},
    "page whose name was rebound to this machine": {
        "host": "evil.example:{port}",
        "origin": "http://evil.example:{port}",
    },
    "page without the port": {"host": "127.0.0.1"},
}


@pytest.mark.promise("WAT-6")
def test_hostile_bodies_are_rejected_with_a_reason_and_harm_nothing(own_receiver: Receiving) -> None:
    receiver = own_receiver
    for name, (body, headers, code) in HOSTILE.items():
        answer = receiver.post(body(), headers)
        assert (name, answer.status_code) == (name, code)
        if headers.get("content-type") == PROTOBUF["content-type"]:
            status = ExportTracePartialSuccess()  # The wire format of its message is that of a `google.rpc.Status`.
            status.ParseFromString(answer.content)
            reason = status.error_message
        else:
            reason = answer.text if code == 415 and "text" in headers["content-type"] else answer.json()["message"]
        assert len(reason) > 20, name
    assert httpx2.get(receiver.address).status_code == 405
    assert httpx2.post(receiver.address.replace("traces", "logs"), headers=JSON).status_code == 404
    assert receiver.send(tool(1)).json() == {}
    memory = Path(f"/proc/{receiver.process.pid}/status").read_text("utf-8")
    [peak] = [int(line.split()[1]) for line in memory.splitlines() if line.startswith("VmHWM")]
    assert peak < 600_000
    receiver.end()
    recorded(1)


@pytest.mark.promise("WAT-6")
@pytest.mark.parametrize("headers", PAGES.values(), ids=PAGES)
def test_a_web_page_cannot_send_spans(receiver: Receiving, headers: dict[str, str]) -> None:
    port = str(urlsplit(receiver.address).port)
    headers = {name: value.replace("{port}", port) for name, value in headers.items()}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [tool(1)]}]}]}).encode()
    assert receiver.post(body, JSON | headers).status_code == 403
    # What a page can send without being asked for permission: a simple request, and the request for that permission.
    assert receiver.post(body, {"content-type": "text/plain"} | headers).status_code == 403
    asked = httpx2.options(receiver.address, headers=headers | {"access-control-request-method": "POST"})
    assert asked.status_code == 403
    assert not [name for name in asked.headers if name.startswith("access-control-")]
    receiver.end()
    assert not Runtime.from_environment().activity.page(HistoryQuery()).calls


@pytest.mark.promise("WAT-6")
def test_hostile_spans_are_recorded_within_limits(receiver: Receiving) -> None:
    nested = "[" * 150 + "]" * 150
    spans = [
        tool(1, name="a\x1b[31m b\n" + "x" * 5000, arguments=json.dumps({"text": "y" * 2_000_000})),
        tool(2, arguments=nested),
        tool(3, arguments="[" * 100_000, gen_ai__tool__call__result=f"the key is {SECRET}."),
        tool(4, gen_ai__conversation__id="\x1b]0;" + "z" * 100_000, gen_ai__agent__name="\x1b[1m" + "n" * 100_000),
        span(5, gen_ai__operation__name="chat", gen_ai__usage__input_tokens=2**63 - 1, gen_ai__completion="w" * 90_000),
        tool(6) | {"endTimeUnixNano": "1"},
        tool(7) | {"attributes": tool(7)["attributes"] + attributes(**{f"extra{n}": "v" for n in range(5000)})},
    ]
    assert receiver.send(*spans).json() == {}
    assert receiver.send(*[tool(number, trace="ab" * 16) for number in range(10, 5_010)]).status_code == 200
    assert receiver.send(*[tool(number, trace="ab" * 16) for number in range(5_010, 10_020)]).status_code == 200
    messages = receiver.end()
    assert "10 spans were not recorded because a session has at most 10,000." in messages
    runtime = Runtime.from_environment()
    calls = {call.tool: call for call in runtime.activity.page(HistoryQuery(sources=("otel",)), limit=20_000).calls}
    assert len(calls) == 2
    first = next(call for name, call in calls.items() if name != "otel.weather")
    assert first.tool.isprintable()
    assert len(first.tool) < 200
    assert len(first.args["value"]) == 1_000_000  # type: ignore[arg-type]
    result = runtime.activity.result(first.id)
    assert result is not None
    assert "2,000,0" in result.meta.warnings[0]
    [bar] = [bar for bar in runtime.activity.timeline(str(first.session)).bars if bar.kind == "turn"]
    assert bar.usage is not None
    assert bar.usage.input_tokens == 0
    everything = [*runtime.activity.export_matching(HistoryQuery(sources=("otel",)))]
    assert len(everything) == 10_006
    assert not any(SECRET in line or "\x1b" in line for line in everything)


@pytest.mark.promise("WAT-6")
def test_everything_that_was_accepted_is_written_before_the_end(receiver: Receiving) -> None:
    for first in range(1, 8001, 2000):
        spans = [tool(number, trace=f"{first:032x}") for number in range(first, first + 2000)]
        assert receiver.send(*spans).json() == {}
    assert receiver.end() == ""
    assert Runtime.from_environment().activity.count(HistoryQuery(sources=("otel",))).calls == 8000


@pytest.mark.promise("WAT-6")
def test_senders_try_again_while_the_record_is_locked_and_nothing_accepted_is_lost(
    receiver: Receiving,
) -> None:
    assert receiver.send(tool(1), span(100, gen_ai__operation__name="chat")).status_code == 200
    recorded(1)
    locking = sqlite3.connect(Paths.from_environment().database, isolation_level=None)
    locking.execute("BEGIN IMMEDIATE")
    codes = []
    try:
        for number in range(2, 12):
            turn = span(number + 100, gen_ai__operation__name="chat", http__body="x" * 15_000_000)
            codes.append((answer := receiver.send(tool(number), turn)).status_code)
            if codes[-1] == 503:
                assert answer.headers["retry-after"] == "1"
                break
    finally:
        locking.execute("ROLLBACK")
        locking.close()
    accepted = codes.count(200)
    assert codes == [200] * accepted + [503]
    assert 3 <= accepted <= 5
    receiver.end()
    [call, *_] = recorded(accepted + 1)
    assert len(Runtime.from_environment().activity.timeline(str(call.session)).bars) == 2 * (accepted + 1)


@pytest.mark.promise("WAT-6", "ACT-1")
def test_calls_belong_to_the_last_turn_of_their_session_that_started_before_them(receiver: Receiving) -> None:
    chats = [
        span(number, trace=trace, gen_ai__operation__name="chat", gen_ai__request__model="m", gen_ai__completion=text)
        for number, trace, text in ((2, TRACE, "First"), (4, TRACE, "Second"), (6, "ab" * 16, "Other"))
    ]
    receiver.send(tool(5), *chats, tool(3), tool(1))
    receiver.send(tool(7, trace="ab" * 16), tool(8))
    receiver.end()
    activity = Runtime.from_environment().activity
    listed = activity.page(HistoryQuery(parent="none", turns=True)).calls
    turns = {call.id: ModelTurn.of(call).text for call in listed if call.is_turn}
    belonging = {round(call.at.timestamp() * 1e9) // 10**9: turns.get(call.turn or "") for call in recorded(5)}
    start = NOW // 10**9
    assert {number: belonging[start + number] for number in (1, 3, 5, 7, 8)} == {
        1: None,
        3: "First",
        5: "Second",
        7: "Other",
        8: "Second",
    }


@pytest.mark.promise("WAT-6", "ACT-4")
def test_a_value_can_be_redacted_in_model_turns(receiver: Receiving) -> None:
    text = "Call the number 0049-555-0199."
    receiver.send(tool(1), span(2, gen_ai__operation__name="chat", gen_ai__completion=text))
    receiver.end()
    [call] = recorded(1)
    runtime = Runtime.from_environment()
    assert runtime.activity.redact("0049-555-0199").messages == 1
    labels = [bar.label for bar in runtime.activity.timeline(str(call.session)).bars]
    assert labels[1].startswith("Call the number")
    assert "0199" not in str(labels)


@pytest.mark.promise("WAT-6")
def test_a_slow_or_silent_client_does_not_hold_up_others(receiver: Receiving) -> None:
    port = int(re.findall(r":(\d+)/", receiver.address)[0])
    head = f"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    try:
        for one in silent:
            one.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
        assert receiver.send(tool(1)).json() == {}
        recorded(1)
    finally:
        for one in silent:
            one.close()
    receiver.end()


def test_only_a_free_port_is_accepted(receiver: Receiving) -> None:
    port = re.findall(r":(\d+)/", receiver.address)[0]
    for arguments, code, text in (
        ([port], 1, "can't be used"),
        (["http"], 2, "is not a port"),
        (["1", "2"], 2, "accepts only a port"),
        (["70000"], 2, "is not a port"),
    ):
        ended = subprocess.run(
            [PROGRAM, "watch", "--otel", *arguments], capture_output=True, text=True, timeout=60, check=False
        )
        assert (ended.returncode, text in ended.stderr) == (code, True), ended.stderr


def openinference(number: int, kind: str, **values: Any) -> dict[str, Any]:
    """Return a span as OpenInference's instrumentations send it."""
    return span(number, openinference__span__kind=kind, **values)


PROPOSED = {
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.contents.0.message_content.text": "I look it up.",
    "llm.output_messages.0.message.content": "I look it up.",
    "llm.output_messages.1.message.tool_calls.0.tool_call.id": "call_0",
    "llm.output_messages.1.message.tool_calls.0.tool_call.function.name": "weather",
    "llm.output_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"city": "Oslo"}',
}


@pytest.mark.promise("WAT-6")
@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ('{"city": "Oslo"}', '{"rain": true}'),  # OpenAI Agents, Agno
        ('{"args": [], "sanitize_inputs_outputs": true, "kwargs": {"city": "Oslo"}}', '{"rain": true}'),  # smolagents
        (
            '{"city": "Oslo"}',
            '{"type": "tool", "data": {"content": "{\\"rain\\": true}", "name": "weather"}}',
        ),  # LangChain
    ],
)
def test_agents_that_are_instrumented_by_openinference_are_recorded(
    receiver: Receiving, arguments: str, result: str
) -> None:
    chat: dict[str, Any] = {f"llm.input_messages.{n}.message.content": "before" for n in range(300)}
    chat |= PROPOSED | {"llm.token_count.prompt": 100, "llm.token_count.completion": 20, "llm.model_name": "fake-1"}
    weather = openinference(3, "TOOL", tool__name="weather", input__value=arguments, output__value=result)
    thrown = attributes(**{"exception.type": "ValueError", "exception.message": "no such station"})
    failed = openinference(4, "TOOL", tool__name="fail", input__value="{}") | {
        "status": {
            "code": 2,
            "message": "ValueError('no such station')Traceback (most recent call last):\n\n\n File x",
        },
        "events": [{"name": "exception", "attributes": thrown}],
    }
    receiver.send(
        openinference(1, "AGENT", agent__name="forecaster", session__id="talk-2"),
        span(2, **chat | {"openinference.span.kind": "LLM"}),
        weather,
        failed,
        openinference(5, "CHAIN", input__value="{}"),
    )
    assert "1 span was ignored" in receiver.end()
    call, other = recorded(2)
    assert (call.tool, call.args, call.ok, other.tool) == ("otel.weather", {"city": "Oslo"}, True, "otel.fail")
    assert other.error is not None
    assert other.error.message == "ValueError: no such station"
    activity = Runtime.from_environment().activity
    answer = activity.result(call.id)
    assert answer is not None
    assert answer.data == {"rain": True}
    [turn, *_] = activity.timeline("otel:talk-2").bars
    assert (turn.kind, turn.model, turn.label) == ("turn", "fake-1", 'I look it up. weather {"city": "Oslo"}')
    assert turn.usage is not None
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (100, 20)
    assert call.turn == other.turn == turn.id


@pytest.mark.promise("WAT-6")
def test_content_in_events_of_a_span_is_recorded(receiver: Receiving) -> None:
    def event(name: str, **values: Any) -> dict[str, Any]:
        return {"name": name, "attributes": attributes(**values)}

    parts = '[{"text": "I look."}, {"toolUse": {"toolUseId": "1", "name": "weather", "input": {"city": "Oslo"}}}]'
    receiver.send(  # As Strands Agents do
        span(1, gen_ai__operation__name="chat", gen_ai__request__model="m")
        | {"events": [event("gen_ai.user.message", content="Hi"), event("gen_ai.choice", message=parts)]},
        span(2, gen_ai__operation__name="execute_tool", gen_ai__tool__name="weather")
        | {
            "events": [
                event("gen_ai.tool.message", role="tool", content='{"city": "Oslo"}'),
                event("gen_ai.choice", message='[{"text": "{\\"rain\\": true}"}]'),
            ]
        },
    )
    receiver.end()
    [call] = recorded(1)
    assert call.args == {"city": "Oslo"}
    activity = Runtime.from_environment().activity
    result = activity.result(call.id)
    assert result is not None
    assert result.data == {"rain": True}
    assert activity.timeline(str(call.session)).bars[0].label == 'I look. weather {"city":"Oslo"}'


@pytest.mark.promise("WAT-6")
def test_calls_and_turns_with_attributes_of_their_own_are_recorded(receiver: Receiving) -> None:
    proposed = '[{"toolCallId": "call_0", "toolName": "weather", "input": {"city": "Oslo"}}]'
    receiver.send(
        # The AI SDK, before version 7
        span(1, gen_ai__request__model="m", ai__response__text="I look.", ai__response__toolCalls=proposed),
        span(
            2,
            ai__telemetry__functionId="forecaster",
            ai__toolCall__name="weather",
            ai__toolCall__id="call_0",
            ai__toolCall__args='{"city": "Oslo"}',
            ai__toolCall__result='{"rain": true}',
        ),
        # The Agent Development Kit
        span(
            3,
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="weather",
            gcp__vertex__agent__tool_call_args='{"city": "Oslo"}',
            gcp__vertex__agent__tool_response='{"rain": true}',
        ),
        span(4, gen_ai__operation__name="execute_tool", gen_ai__tool__name="(merged tools)"),
    )
    receiver.end()
    calls = recorded(2)
    activity = Runtime.from_environment().activity
    assert [call.args for call in calls] == [{"city": "Oslo"}] * 2
    results = [activity.result(call.id) for call in calls]
    assert [result.data for result in results if result] == [{"rain": True}] * 2
    assert calls[0].agent == "forecaster"
    assert activity.timeline(str(calls[0].session)).bars[0].label == 'I look. weather {"city":"Oslo"}'


@pytest.mark.promise("WAT-6")
def test_a_run_stays_one_session_if_only_its_last_span_names_the_conversation(receiver: Receiving) -> None:
    def turn(number: int) -> dict[str, Any]:
        return openinference(number, "LLM", llm__model_name="m")

    receiver.send(turn(2), openinference(3, "TOOL", tool__name="weather"))  # exporters send every 5 seconds
    receiver.send(turn(4), openinference(5, "TOOL", tool__name="fail"), openinference(1, "AGENT", session__id="talk-3"))
    receiver.end()
    first, second = recorded(2)
    assert first.session == second.session
    assert len(Runtime.from_environment().activity.timeline(str(first.session)).bars) == 4


@pytest.mark.promise("WAT-6")
def test_calls_of_langchain_lack_what_openllmetry_adds_around_arguments_and_results(receiver: Receiving) -> None:
    arguments = {"input_str": "{'city': 'Oslo'}", "tags": [], "metadata": {"langgraph_step": 2}, "kwargs": {}}
    message = {"content": '{"rain": true}', "type": "tool", "name": "weather", "tool_call_id": "call_0"}
    result = {"output": {"lc": 1, "type": "constructor", "kwargs": message}, "kwargs": {"tags": []}}
    receiver.send(
        tool(
            1,
            arguments=json.dumps(arguments | {"inputs": {"city": "Oslo"}}),
            gen_ai__tool__call__result=json.dumps(result),
        )
    )
    receiver.end()
    [call] = recorded(1)
    assert call.args == {"city": "Oslo"}
    stored = Runtime.from_environment().activity.result(call.id)
    assert stored is not None
    assert stored.data == {"rain": True}


@pytest.mark.promise("WAT-6")
@pytest.mark.parametrize(
    "data",
    [
        {"type": "tool", "data": {"content": "hammer", "price": 5}},
        {"type": "tool", "data": {"content": "hammer", "name": "Thor's"}, "id": 3},
        {"input_str": "Oslo", "inputs": {"city": "Oslo"}, "metadata": {"unit": "C"}},
        {"args": [], "sanitize_inputs_outputs": True, "kwargs": {"city": "Oslo"}, "retries": 2},
    ],
)
def test_data_that_only_look_like_what_a_framework_adds_are_recorded_whole(
    receiver: Receiving, data: dict[str, Any]
) -> None:
    receiver.send(tool(1, arguments=json.dumps(data), gen_ai__tool__call__result=json.dumps(data)))
    receiver.end()
    [call] = recorded(1)
    stored = Runtime.from_environment().activity.result(call.id)
    assert stored is not None
    assert (call.args, stored.data) == (data, data)


@pytest.mark.promise("WAT-6")
def test_an_operation_that_is_not_a_text_does_not_end_the_record(receiver: Receiving) -> None:
    strange = span(1) | {
        "attributes": [{"key": "gen_ai.operation.name", "value": {"arrayValue": {"values": [{"stringValue": "chat"}]}}}]
    }
    receiver.send(strange, tool(2))
    receiver.send(tool(3))
    assert "1 span was ignored" in receiver.end()
    recorded(2)


@pytest.mark.promise("WAT-6", "BAT-3")
def test_a_kept_call_of_another_agent_has_no_question_because_only_its_models_text_is_known(
    receiver: Receiving,
) -> None:
    receiver.send(
        span(1, gen_ai__operation__name="chat", gen_ai__request__model="m", gen_ai__completion="I look it up."),
        tool(2, gen_ai__tool__call__result='{"rain": true}'),
    )
    receiver.end()
    [call] = recorded(1)
    assert call.turn is not None
    kept = subprocess.run(
        [PROGRAM, "check", "keep", call.id, "--json"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "I look it up." not in kept.stdout
