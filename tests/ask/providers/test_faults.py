"""Failures of providers over real connections: each is a sentence with what to do, and contains nothing of the key."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from listening import KEY, Heard, hear, reach
from provider import Answer, FakeProvider, call, delta, fails, proposes, says
from web import Answer as Page
from web import Web

from pegboard.ask.providers import ModelTimeouts, model
from pegboard.errors import ModelError, ModelErrorCode
from pegboard.models.conversation import UserMessage

HALF_A_CALL = call(id="call_1", name="fs_list_dir", arguments='{"path": "sr')
HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
WHOLE = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}'
EXTRA = b'{"detail": [{"type": "extra_forbidden", "loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}'
LEAKS = f"Incorrect API key provided: {KEY[:10]}***************{KEY[-8:]}. You sent {KEY}!"
LONG_TIMEOUTS = ModelTimeouts(connect=5, first=30, silence=30)


def errors(body: object) -> Answer:
    """Return a rejection with a body in another shape than OpenAI's."""
    return Answer(status=400, body=json.dumps(body).encode(), type="application/json")


@dataclass(frozen=True)
class Fault:
    """A failure of a provider, and the expected error.

    Attributes:
        answers: The server's answers, the last one repeated.
        code: The error's code.
        says: Part of its message.
        fix: Part of what to do about it.
        text: Text that arrived before.
    """

    answers: Sequence[Answer]
    code: ModelErrorCode
    says: str
    fix: str
    text: str = ""


ONE = delta(content="One ")
FAULTS = {
    "401": Fault([fails(401, LEAKS, code="invalid_api_key")], "auth", "rejected the key", "OPENAI_API_KEY"),
    "403": Fault([fails(403, "You may not use it.")], "auth", "doesn't let this key use fake", "another model"),
    "404 model": Fault(
        [fails(404, "The model `fake` does not exist", code="model_not_found")],
        "unknown_model", "has no model fake", "base_url",
    ),
    "400 for an unknown model, as DeepSeek says it": Fault(
        [fails(400, "Model Not Exist", code="invalid_request_error")],
        "unknown_model", "has no model fake: Model Not Exist.", "Check the model's name.",
    ),
    "400 for an unknown model, as Mistral says it": Fault(
        [Answer(status=400, body=b'{"object": "error", "message": "Invalid model: fake", "code": "1500"}')],
        "unknown_model", "has no model fake: Invalid model: fake.", "Check the model's name.",
    ),
    "400 for an unknown model, as LiteLLM says it": Fault(
        [fails(400, "Invalid model name passed in model=fake. Call `/v1/models` to view available models")],
        "unknown_model", "has no model fake: Invalid model name passed in model=fake.", "Check the model's name.",
    ),
    "400 for an unknown model, as OpenRouter says it": Fault(
        [fails(400, "fake is not a valid model ID")],
        "unknown_model", "has no model fake: fake is not a valid model ID.", "Check the model's name.",
    ),
    "404 page": Fault([Answer(status=404, body=HTML, type="text/html")], "unknown_model", "has no model", "/v1"),
    "429 with Retry-After": Fault(
        [fails(429, "Rate limit reached", headers={"retry-after": "17"})],
        "rate_limited", "limits the rate of requests (HTTP 429): Rate limit reached.", "in 17 s",
    ),
    "429 with the time in words": Fault(
        [fails(429, "Rate limit reached. Please try again in 1m12.5s.", headers={"x-should-retry": "false"})],
        "rate_limited", "limits the rate", "in 72 s",
    ),
    "429 with the time in the words of Azure": Fault(
        [fails(429, "Please retry after 26 seconds.", headers={"x-should-retry": "false"})],
        "rate_limited", "limits the rate", "in 26 s",
    ),
    "429 with the time in minutes": Fault(
        [fails(429, "Please try again in 20 minutes.", headers={"x-should-retry": "false"})],
        "rate_limited", "limits the rate", "in 20 min",
    ),
    "429 with an impossible time in words": Fault(
        [fails(429, f"Please try again in {'9' * 400}h.", headers={"x-should-retry": "false"})],
        "rate_limited", "limits the rate", "in a minute",
    ),
    "413 for the rate of tokens": Fault(
        [fails(413, "Request too large: tokens per minute", code="rate_limit_exceeded")],
        "rate_limited", "limits the rate of tokens (HTTP 413)", "fewer tools",
    ),
    "404 of a model without tools": Fault(
        [fails(404, "No endpoints found that support tool use.")],
        "bad_request", "rejected the request (HTTP 404)", "Choose a model that supports tools",
    ),
    "500 of a server without templates": Fault(
        [fails(500, "tools param requires --jinja flag")], "server", "an internal error", "with --jinja",
    ),
    "an error without the key": Fault(
        [Answer([ONE, {"object": "error", "message": "Out of memory", "code": 500}])],
        "server", "reported an error in the middle of its answer: Out of memory.", "Try again", "One ",
    ),
    "429 for want of money": Fault(
        [fails(429, "You exceeded your current quota", code="insufficient_quota")],
        "rate_limited", "quota of your account", "plan",
    ),
    "500": Fault(
        [fails(500, "Internal failure")], "server", "an internal error (HTTP 500): Internal failure.", "server's log",
    ),
    "502 HTML": Fault(
        [Answer(status=502, body=HTML, type="text/html", headers={"retry-after-ms": "1"})],
        "server", "(HTTP 502)", "server's log",
    ),
    "503 overloaded": Fault(
        [fails(503, "The model is busy")], "server", "is overloaded (HTTP 503): The model is busy.", "log",
    ),
    "408": Fault(
        [fails(408, "Request timed out", headers={"x-should-retry": "false"})],
        "timeout", "timed out (HTTP 408): Request timed out.", "server's log",
    ),
    "context too long": Fault(
        [fails(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded")],
        "context_too_long", "too long for fake", "new session",
    ),
    "context too long, as llama.cpp says it": Fault(
        [fails(400, "the request exceeds the available context size", type="exceed_context_size_error")],
        "context_too_long", "too long for fake", "new session",
    ),
    "context too long, reported in the stream": Fault(
        [Answer([{"error": {"message": "Trying to keep the first 9000 tokens when context length is 4096"}}])],
        "context_too_long", "too long for fake", "new session",
    ),
    "a request that is too large": Fault(
        [Answer(status=413, body=HTML, type="text/html")], "context_too_long", "too long for fake", "new session",
    ),
    "an address that rejects requests": Fault(
        [Answer(status=405, body=b"", type="text/plain")], "bad_request", "rejected the request", "/v1",
    ),
    "a body that isn't compressed as declared": Fault(
        [Answer([b"no gzip"], headers={"content-encoding": "gzip", "retry-after-ms": "1"})],
        "broken_stream", "no valid answer", "/v1",
    ),
    "an invalid key in a list of errors": Fault(
        [errors([{"error": {"code": 400, "message": "API key not valid."}}])],
        "auth", "rejected the key: API key not valid.", "OPENAI_API_KEY",
    ),
    "an invalid key, as xAI says it": Fault(
        [errors({"code": "Invalid argument", "error": "Incorrect API key provided: sk***ey. See console.x.ai."})],
        "auth", "rejected the key: Incorrect API key provided: [hidden]. See console.x.ai.", "OPENAI_API_KEY",
    ),
    "an error in a list": Fault(
        [errors([{"error": {"code": 400, "message": "Own words"}}])],
        "bad_request", "rejected the request (HTTP 400): Own words.", "",
    ),
    "errors of arguments": Fault(
        [errors({"detail": [{"loc": ["body", "n", 0], "msg": "Field required", "input": {}}, {"msg": "Bad"}]})],
        "bad_request", "(HTTP 400): body.n.0: Field required; Bad.", "",
    ),
    "several errors": Fault(
        [errors({"errors": [{"code": "7003", "message": "No route"}, "Other words"]})],
        "bad_request", "(HTTP 400): No route; Other words.", "",
    ),
    "an error with an empty message": Fault(
        [errors({"error": {"message": "", "type": "invalid_request_error", "code": None}})],
        "bad_request", "(HTTP 400): invalid_request_error.", "",
    ),
    "an error without words": Fault(
        [errors({"ok": False, "found": None})], "bad_request", '(HTTP 400): {"ok": false, "found": null}.', "",
    ),
    "an error in many levels": Fault(
        [Answer(status=400, body=b'{"error":' * 700 + b"1" + b"}" * 700, type="application/json")],
        "bad_request", "rejected the request (HTTP 400)", "",
    ),
    "an error from behind a gateway": Fault(
        [errors({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "Too many tools"}}})],
        "bad_request", "(HTTP 400): Provider returned error: Too many tools.", "fewer tools",
    ),
    "a compressed answer": Fault(
        [Answer(body=gzip.compress(b"data: {}"), headers={"content-encoding": "gzip"})],
        "broken_stream", "can't be read: It is compressed", "Turn off compression",
    ),
    "a compressed error": Fault(
        [Answer(status=400, body=gzip.compress(b"{}"), headers={"content-encoding": "gzip"})],
        "bad_request", "rejected the request (HTTP 400).", "/v1",
    ),
    "a whole answer instead of a stream": Fault(
        [Answer(body=WHOLE, type="application/json")], "broken_stream", "before any text or call", "can stream",
    ),
    "a redirection in circles": Fault(
        [Answer(status=307, body=b"", headers={"location": "/v1/chat/completions"})],
        "broken_stream", "no valid answer", "/v1",
    ),
    "a model without tools": Fault(
        [fails(400, "registry.ollama.ai/library/fake does not support tools")],
        "bad_request", "rejected the request", "without tools",
    ),
    "a server that doesn't know tools": Fault(
        [Answer(status=422, body=EXTRA, type="application/json")],
        "bad_request", "(HTTP 422): body.tools: Extra inputs are not permitted.", "update the server",
    ),
    "a server without a parser of calls": Fault(
        [fails(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')],
        "bad_request", "rejected the request", "Start the server with --enable-auto-tool-choice",
    ),
    "a server without a model": Fault(
        [fails(404, "No models loaded. Please load a model in the developer page.", code="model_not_found")],
        "unknown_model", "No models loaded.", "Load the model in the server, then try again.",
    ),
    "a model that is unloaded during the answer": Fault(
        [Answer([ONE, {"error": {"message": "Model unloaded."}}])],
        "server", "reported an error", "Load the model in the server", "One ",
    ),
    "a model that can't be loaded": Fault(
        [fails(400, 'Failed to load model "fake". Error: Error loading model.')],
        "bad_request", "rejected the request", "Use a smaller model",
    ),
    "a server that is loading the model": Fault(
        [fails(503, "Loading model")], "server", "(HTTP 503): Loading model.", "Wait until the server has loaded",
    ),
    "a schema that llama.cpp can't read": Fault(
        [fails(400, "JSON schema conversion failed: Unrecognized schema")],
        "bad_request", "rejected the request", "the tool that the server can't read",
    ),
    "an invalid call that the server rejects": Fault(
        [Answer([ONE, {"error": {"message": "Failed to call a function. Please adjust your prompt."}}])],
        "server", "reported an error", "use another model", "One ",
    ),
    "a model whose providers the account doesn't allow": Fault(
        [fails(404, "No endpoints found matching your data policy (Free model publication).")],
        "unknown_model", "data policy", "privacy settings",
    ),
    "a template without a system role": Fault(
        [fails(400, "Jinja Exception: System role not supported")],
        "bad_request", "rejected the request", "Empty the system prompt",
    ),
    "too many tools for OpenAI": Fault(
        [fails(400, "Invalid 'tools': array too long. Expected an array with maximum length 128, got 296.")],
        "bad_request", "rejected the request", "Offer the model fewer tools",
    ),
    "too many tools for Google": Fault(
        [fails(400, "The number of function declarations exceeds the maximum of 512.")],
        "bad_request", "rejected the request", "Offer the model fewer tools",
    ),
    "a schema that OpenAI doesn't accept": Fault(
        [fails(400, "Invalid schema for function 'notes_add': array schema missing items.")],
        "bad_request", "rejected the request", "the tool that it rejects",
    ),
    "a schema that Anthropic doesn't accept": Fault(
        [fails(400, "tools.3.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12.")],
        "bad_request", "rejected the request", "the tool that it rejects",
    ),
    "a censored prompt": Fault(
        [fails(400, "The response was filtered due to the content management policy", code="content_filter")],
        "refused", "refused to answer", "Rephrase",
    ),
    "a refusal": Fault(
        [Answer([delta(refusal="I can't help with that."), delta("stop")])], "refused", "refused", "Rephrase",
    ),
    "malformed SSE": Fault(
        [Answer([ONE, b'data: {"choices": [{"index"\n\n'])], "broken_stream", "can't be parsed", "again", "One ",
    ),
    "SSE that is no text": Fault([Answer([ONE, b"data: \xff\xfe\n\n"])], "broken_stream", "parsed", "again", "One "),
    "chunks of another shape": Fault(
        [Answer([ONE, {"choices": "none"}])], "broken_stream", "can't be parsed", "again", "One ",
    ),
    "a chunk that is a list": Fault([Answer([ONE, b"data: [1]\n\n"])], "broken_stream", "parsed", "again", "One "),
    "no stream at all": Fault(
        [Answer(body=HTML, type="text/html")], "broken_stream", "no valid answer", "/v1",
    ),
    "an error object instead of a stream": Fault(
        [Answer(body=b'{\n  "error": {\n    "message": "No model is loaded."\n  }\n}\n', type="application/json")],
        "server", "an error instead of an answer: No model is loaded.", "again",
    ),
    "another object instead of a stream": Fault(
        [Answer(body=b'{"choices": [{"message": {"content": "Hi"}}]}', type="application/json")],
        "broken_stream", "answer", "again",
    ),
    "an error object in the stream": Fault(
        [Answer([ONE, {"error": {"message": "The GPU fell off", "code": 500}}])],
        "server", "an error in the middle", "again", "One ",
    ),
    "an error object without words in the stream": Fault(
        [Answer([ONE, {"error": "boom"}])], "server", "an error in the middle", "again", "One ",
    ),
    "a call without a name": Fault(
        [Answer([ONE, call(id="a", arguments="{}"), call(1, id="b", name="time_now"), delta("tool_calls")])],
        "broken_stream", "a tool call without the name of a tool. No call was run.", "another model", "One ",
    ),
    "a call without a name and an index": Fault(
        [Answer([delta(tool_calls=[{"id": "a", "function": {"arguments": "{}"}}]), delta("stop")])],
        "broken_stream", "a tool call without the name of a tool. No call was run.", "another model",
    ),
    "a call in the obsolete form": Fault(
        [Answer([delta(function_call={"name": "time_now", "arguments": "{}"}), delta("function_call")])],
        "broken_stream", "the obsolete form `function_call`. No call was run.", "Update the server",
    ),
    "a connection dropped mid-text": Fault(
        [Answer([ONE], end="drop")], "broken_stream", "broke in the middle", "again", "One ",
    ),
    "a connection dropped mid-arguments": Fault(
        [Answer([HALF_A_CALL], end="drop")], "broken_stream", "broke in the middle", "again",
    ),
    "a connection dropped before an answer": Fault(
        [Answer(end="drop")], "no_connection", "closed the connection without an answer", "log",
    ),
    "a clean end without finish": Fault(
        [Answer([ONE], end="close")], "broken_stream", "ended before it was complete", "again", "One ",
    ),
    "a clean end without finish mid-arguments": Fault(
        [Answer([HALF_A_CALL], end="close")], "broken_stream", "was not run", "again",
    ),
    "a clean end mid-arguments, marked as done": Fault(
        [Answer([HALF_A_CALL], end="done")], "broken_stream", "was not run", "again",
    ),
}  # fmt: skip


def texts_of(failure: ModelError) -> str:
    """Return every text of an error that may be shown, its traceback included."""
    shown = "".join(traceback.format_exception(failure))
    return "\n".join([str(failure), failure.fix, failure.detail, repr(failure), shown])


def assert_keeps_the_key(failure: ModelError) -> None:
    everything = texts_of(failure)
    behind = failure.__cause__, failure.__context__
    assert behind == (None, None)
    assert not any(KEY[at : at + 6] in everything for at in range(len(KEY) - 5))


@pytest.mark.promise("ASK-5")
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_every_failure_is_a_sentence_with_what_to_do_and_the_next_turn_works(fault: Fault) -> None:
    with FakeProvider(*fault.answers).running() as fake:
        speaker = reach(fake, timeouts=LONG_TIMEOUTS)
        heard = await hear(speaker)
        failure = heard.failed
        assert failure.code == fault.code, texts_of(failure)
        assert fault.says in str(failure)
        assert fault.fix in failure.fix
        assert heard.text == fault.text
        assert "<h" not in str(failure) + failure.fix + failure.detail
        assert_keeps_the_key(failure)
        fake.play(says("Well again."))
        assert (await hear(speaker)).ended.message.text == "Well again."


@pytest.mark.promise("ASK-5")
async def test_a_temporary_failure_is_retried_silently() -> None:
    with FakeProvider(fails(500, "Internal failure"), says("Fine.")).running() as fake:
        assert (await hear(reach(fake))).ended.message.text == "Fine."
        assert len(fake.asked) == 2


async def test_a_failing_server_gets_three_attempts() -> None:
    with FakeProvider(fails(500, "Internal failure")).running() as fake:
        await hear(reach(fake))
        assert len(fake.asked) == 3


async def test_a_long_wait_before_a_retry_is_reported_immediately_with_its_duration() -> None:
    with FakeProvider(
        fails(429, "Slow down", headers={"retry-after": "40", "retry-after-ms": "40000"})
    ).running() as fake:
        failure = (await hear(reach(fake))).failed
    assert len(fake.asked) == 1
    assert failure.retry_after == 40
    assert failure.detail == "Slow down"


@pytest.mark.promise("ASK-5")
async def test_a_wait_until_a_date_that_has_passed_is_retried_silently() -> None:
    past = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}
    with FakeProvider(fails(429, "Slow down", headers=past), says("Fine.")).running() as fake:
        assert (await hear(reach(fake))).ended.message.text == "Fine."


@pytest.mark.parametrize(("seconds", "wait"), [("5400", "in 2 hours."), ("260000", "in 3 days."), ("300", "in 5 min.")])
async def test_a_long_wait_is_given_in_hours_or_days(seconds: str, wait: str) -> None:
    with FakeProvider(fails(429, "Slow down", headers={"retry-after": seconds})).running() as fake:
        assert wait in (await hear(reach(fake))).failed.fix


async def test_the_providers_own_words_are_kept_without_terminal_escapes() -> None:
    with FakeProvider(fails(400, "No\x1b[31m such\n[b]thing[/b]" + "!" * 2000)).running() as fake:
        detail = (await hear(reach(fake))).failed.detail
    assert detail.startswith("No␛[31m such [b]thing[/b]!!!")
    assert len(detail) == 500


@pytest.mark.parametrize(
    "answer",
    [
        fails(400, LEAKS),
        fails(422, LEAKS),
        fails(429, LEAKS, headers={"retry-after": "30"}),
        fails(404, LEAKS),
        Answer([ONE, {"error": {"message": LEAKS}}]),
        Answer([ONE, f"data: {KEY}\n\n".encode()]),
        Answer(status=400, body=LEAKS.encode(), type="text/plain"),
        Answer(status=400, body=json.dumps({"detail": [{"msg": LEAKS}]}).encode(), type="application/json"),
        Answer([delta(refusal=LEAKS), delta("stop")]),
    ],
)
async def test_no_text_contains_a_piece_of_the_key_even_if_the_provider_quotes_it(answer: Answer) -> None:
    with FakeProvider(answer).running() as fake:
        assert_keeps_the_key((await hear(reach(fake))).failed)


async def test_a_hang_before_the_answer_ends() -> None:
    with FakeProvider(Answer(end="hang")).running() as fake:
        heard = await hear(reach(fake, timeouts=ModelTimeouts(first=1.0)))
        assert await asyncio.to_thread(fake.left.wait, 30)
    assert_failed(heard, "timeout", "sent nothing within 1 s")


async def test_a_hang_in_the_middle_of_an_answer_ends() -> None:
    with FakeProvider(Answer([ONE, HALF_A_CALL], end="hang")).running() as fake:
        heard = await hear(reach(fake, timeouts=ModelTimeouts(silence=0.3)))
        assert await asyncio.to_thread(fake.left.wait, 30)
    assert_failed(heard, "timeout", "stopped in the middle of its answer: nothing arrived for 0.3 s")
    assert heard.text == "One "


@pytest.mark.parametrize(
    ("name", "start"), [("ollama:x", "`ollama serve`"), ("lmstudio:x", "`lms server start`"), ("openai:x", "base_url")]
)
async def test_a_refused_connection_names_the_address_and_how_to_start_the_server(name: str, start: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening, so connections are refused
        port = taken.getsockname()[1]
        heard = await hear(model(name, base_url=f"http://127.0.0.1:{port}/v1", key=lambda _: None))
    assert_failed(heard, "no_connection", f"The connection to 127.0.0.1:{port} failed: ")
    assert start in heard.failed.fix


async def test_an_unknown_host_is_named_without_its_password() -> None:
    url = f"http://user:{KEY}@nowhere.invalid/v1"
    heard = await hear(model("openai:x", base_url=url, key=lambda _: None))
    assert_failed(heard, "no_connection", "The connection to nowhere.invalid failed: ")


async def test_an_untrusted_certificate_is_reported_as_such() -> None:
    with Web(lambda _: Page(), tls=True).running() as web:
        heard = await hear(model("openai:x", base_url=f"{web.url}/v1", key=lambda _: KEY))
    assert_failed(heard, "no_connection", "A secure connection to 127.0.0.1:")


async def test_a_server_that_requires_a_missing_key_is_reported_with_its_name() -> None:
    with FakeProvider(fails(401, "Unauthorized")).running() as fake:
        failure = (await hear(reach(fake, "llamacpp:fake", key=None))).failed
    assert failure.code == "auth"
    assert "requires a key, and none was sent: Unauthorized." in str(failure)
    assert "LLAMA_API_KEY" in failure.fix


async def test_a_missing_key_is_reported_before_anything_is_sent() -> None:
    failure = (await hear(model("openai:x", base_url=None, key=lambda _: None))).failed
    assert failure.code == "not_configured"
    assert str(failure) == "OpenAI requires a key, but OPENAI_API_KEY is not set."
    assert "pegboard auth set OPENAI_API_KEY" in failure.fix


@pytest.mark.parametrize("key", ["sk-\u201cquoted\u201d", "sk-1\nsk-2", "two words"])
async def test_an_invalid_key_is_reported_and_not_sent(key: str) -> None:
    with FakeProvider(says("Fine.")).running() as fake:
        failure = (await hear(reach(fake, key=key))).failed
    assert failure.code == "auth"
    assert "OPENAI_API_KEY" in str(failure)
    assert key not in texts_of(failure)
    assert not fake.asked


async def test_a_lone_surrogate_in_a_result_does_not_prevent_a_turn() -> None:
    with FakeProvider(says("Fine.")).running() as fake:
        heard = await hear(reach(fake), UserMessage(text="caf\u00e9 \udcff!"))
    assert heard.text == "Fine."
    assert fake.asked[0].body["messages"][0]["content"] == "café ?!"


async def test_a_model_that_ollama_lacks_is_reported_with_the_command_to_download_it() -> None:
    with FakeProvider(fails(404, 'model "qwen9" not found, try pulling it first')).running() as fake:
        failure = (await hear(reach(fake, "ollama:qwen9"))).failed
    assert "`ollama pull qwen9`" in failure.fix


async def test_a_model_that_lm_studio_has_not_loaded_is_reported_with_the_command_to_load_it() -> None:
    message = "No models loaded. Please load a model in the developer page or use the 'lms load' command."
    with FakeProvider(fails(400, message)).running() as fake:
        failure = (await hear(reach(fake, "lmstudio:qwen9"))).failed
    assert "`lms load qwen9`" in failure.fix


@pytest.mark.promise("ASK-5")
async def test_a_call_is_complete_after_a_failed_turn() -> None:
    with FakeProvider(Answer([HALF_A_CALL], end="drop"), proposes("fs_list_dir", {"path": "src"})).running() as fake:
        speaker = reach(fake)
        assert (await hear(speaker)).failed.code == "broken_stream"
        (made,) = (await hear(speaker)).ended.message.calls
    assert made.arguments == '{"path": "src"}'


def assert_failed(heard: Heard, code: ModelErrorCode, sentence: str) -> None:
    failure = heard.failed
    assert (failure.code, sentence in str(failure)) == (code, True), texts_of(failure)
    assert_keeps_the_key(failure)
