"""The receiver of other agents' telemetry."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from google.protobuf.json_format import MessageToDict
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

from pegboard.models import HistoryQuery, RecordedCall
from pegboard.runtime import Runtime

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
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
        assert self.process.returncode == 0, self.messages
        return self.messages


@pytest.fixture
def receiver() -> Iterator[Receiving]:
    """Run `pegboard watch --otel`."""
    line = [PROGRAM, "watch", "--otel", "0"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
    named = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": name}
    return span(number, **named, gen_ai__tool__call__arguments=arguments, **values)


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
            return ModelResponse([ToolCallPart("fail", {"secret": os.environ.get("WEATHER_API_KEY", "")})])
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
def test_the_calls_and_turns_of_a_real_agent_are_one_session(
    receiver: Receiving, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEATHER_API_KEY", "sk-forecast-4711-abcdef")
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
    assert first.session is not None
    bars = runtime.activity.timeline(first.session).bars
    assert [bar.kind for bar in bars] == ["turn", "call", "turn", "call"]
    assert bars[0].label.startswith("I look it up.")
    assert (bars[0].model, bars[0].state) == ("fake-1", "ok")
    assert bars[0].usage is not None
    assert bars[0].usage.output_tokens > 0
    assert "sk-forecast" not in str(runtime.activity.page().calls)
    assert "telemetry of another agent" in runtime.activity.unusable(first)
    provider.shutdown()


@pytest.mark.promise("WAT-6")
@pytest.mark.parametrize("packed", [False, True])
def test_json_and_protobuf_give_the_same_record(receiver: Receiving, packed: bool) -> None:
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
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    for one in spans:
        values = {**one, "traceId": "", "spanId": ""}
        values.pop("unknownField")
        made = ParseDict({k: v for k, v in values.items() if v != ""}, ProtobufSpan())
        made.trace_id, made.span_id = bytes.fromhex("aa" * 16), bytes.fromhex(one["spanId"])
        group.scope_spans.add().spans.append(made)
    body = request.SerializeToString()
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
