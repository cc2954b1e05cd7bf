"""Redaction of secrets in the events and the record of a call."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from models import ScriptedModel, calls, says

from pegboard.config import Paths, Secrets, Settings
from pegboard.gateway.redaction import redacted_texts
from pegboard.models import CallEvent, Finished, Log, ResultMeta, ToolCall, ToolResult
from pegboard.runtime import Runtime
from pegboard.runtime.redaction import SecretRedaction

SOURCE = (Path(__file__).parents[1] / "packs" / "teller.py").read_text()
MARK = "«secret TELLER_KEY»"

pytestmark = pytest.mark.promise("STO-2")


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    value = f"sk_live_{secrets.token_hex(16)}"
    monkeypatch.setenv("TELLER_KEY", value)
    return value


@pytest.fixture
def runtime(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], secret: str) -> Runtime:
    return open_runtime(write_pack("teller.py", SOURCE))


async def _events(runtime: Runtime, tool: str, **args: object) -> list[CallEvent]:
    call = ToolCall.model_validate({"name": f"teller.{tool}", "args": args, "source": "form", "timeout": 60})
    return [event async for event in runtime.call(call)]


def _result(events: list[CallEvent]) -> ToolResult:
    assert isinstance(events[-1], Finished)
    return events[-1].result


def _text(events: list[CallEvent], stream: str) -> str:
    return "".join(event.text for event in events if isinstance(event, Log) and event.stream == stream)


async def _kept(home: Path, runtime: Runtime) -> bytes:
    """Return the bytes of all files of the state folder, once everything is written."""
    runtime.history.records()
    await runtime.close()
    return b"".join(file.read_bytes() for file in (home / "state").rglob("*") if file.is_file())


async def test_results_output_and_logs_of_a_tool_do_not_contain_the_secret(
    runtime: Runtime, secret: str, home: Path
) -> None:
    events = await _events(runtime, "tell")
    told = "".join(event.model_dump_json() for event in events)
    assert secret not in told
    assert _text(events, "stdout") == f"printed {MARK}\n"
    assert _text(events, "stderr") == f"errs {MARK}\n"
    assert _text(events, "log") == f"logged {MARK}\n"
    data = _result(events).data
    assert isinstance(data, dict)
    assert data["is"] == [MARK]
    assert MARK in data
    assert MARK in str(data["as"])
    assert secret.encode() not in await _kept(home, runtime)


async def test_a_secret_that_is_printed_in_pieces_is_redacted_too(runtime: Runtime) -> None:
    events = await _events(runtime, "tell_bit_by_bit")
    assert _text(events, "stdout") == f"<{MARK}>sk_live_no"


async def test_a_result_that_is_kept_whole_is_kept_without_the_secret(
    write_pack: Callable[[str, str], Path],
    open_runtime: Callable[..., Runtime],
    secret: str,
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
) -> None:
    monkeypatch.setenv("PEGBOARD_TOOLS__RESULT_LIMIT", "1000")
    runtime = open_runtime(write_pack("teller.py", SOURCE))
    result = _result(await _events(runtime, "tell_at_length"))
    assert result.meta.truncated is not None
    whole = await asyncio.to_thread(Path(result.meta.truncated.file).read_text, "utf-8")
    assert whole.count(MARK) == 10
    assert secret.encode() not in await _kept(home, runtime)


@pytest.mark.parametrize("how", ["said", "raised"])
async def test_a_failure_does_not_contain_the_secret(runtime: Runtime, secret: str, home: Path, how: str) -> None:
    result = _result(await _events(runtime, "fail", how=how))
    assert result.error is not None
    assert MARK in result.error.message
    assert secret not in result.model_dump_json()
    assert secret.encode() not in await _kept(home, runtime)


async def test_warnings_and_metadata_of_a_result_do_not_contain_the_secret(secret: str) -> None:
    meta = ResultMeta(warnings=(f"{secret} is wrong",), server_meta={"key": [secret]}, traceback=f"at {secret}")
    meta = meta.model_copy(update={"content": ({"text": secret},)})
    redaction = SecretRedaction(Secrets(Paths.from_environment()), Settings())
    redaction.add({"TELLER_KEY": secret})
    result = redacted_texts(ToolResult(ok=True, meta=meta), redaction)
    assert result.meta.warnings == (f"{MARK} is wrong",)
    assert result.meta.server_meta == {"key": [MARK]}
    assert result.meta.content == ({"text": MARK},)
    assert result.meta.traceback == f"at {MARK}"


async def test_all_values_of_a_name_are_redacted(secret: str, home: Path) -> None:
    (home / ".env").write_text("TELLER_KEY=of-the-file-1234\n")
    redaction = SecretRedaction(Secrets(Paths.from_environment()), Settings())
    await redaction.renew()
    redaction.add({"TELLER_KEY": "of-a-folder-1234"})
    assert redaction.text(f"{secret} of-the-file-1234 of-a-folder-1234") == f"{MARK} {MARK} {MARK}"


async def test_an_argument_reaches_the_tool_as_it_is_and_the_record_without_the_secret(
    runtime: Runtime, secret: str
) -> None:
    assert _result(await _events(runtime, "echo", value=secret)).data == [MARK, len(secret)]
    [record] = runtime.history.records()
    assert record.args == {"value": MARK}


async def test_refused_calls_are_recorded_without_the_secret(runtime: Runtime, secret: str) -> None:
    assert secret not in _result(await _events(runtime, "echo", value=[secret])).model_dump_json()
    assert secret not in _result(await _events(runtime, "ehco", value=secret)).model_dump_json()
    assert [record.args for record in runtime.history.records()] == [{"value": MARK}, {"value": [MARK]}]


async def test_the_record_of_a_chat_does_not_contain_the_secret(runtime: Runtime, secret: str, home: Path) -> None:
    model = ScriptedModel(calls(("teller_echo", {"value": secret})), says(f"It is {secret}."), says("Still."))
    for text in (f"Try {secret}.", "And now?"):
        async for _ in runtime.ask("s", model=model, system=f"Use {secret}.").run(text):
            pass
    assert f"Use {secret}." in model.prompts[0].model_dump_json()
    assert f"Try {secret}." in model.prompts[0].model_dump_json()
    assert secret not in "".join(message.model_dump_json() for message in model.prompts[2].messages[1:])
    runtime.sessions.rename("s", f"About {secret}")
    assert [session.name for session in runtime.sessions.list()] == [f"About {MARK}"]
    texts = [entry.message.text for entry in runtime.sessions.entries("s")]
    assert (texts[0], texts[3]) == (f"Try {MARK}.", f"It is {MARK}.")
    assert secret.encode() not in await _kept(home, runtime)


@pytest.mark.parametrize("word", ["arguments", "provider_id", "from_text"])
async def test_a_secret_that_is_a_common_word_does_not_end_a_chat(
    word: str, open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELLER_KEY", word)
    runtime = open_runtime()
    async for _ in runtime.ask("s", model=ScriptedModel(calls(("time_now", {})), says(f"No {word}."))).run("Go."):
        pass
    assert [entry.message.text for entry in runtime.sessions.entries("s")][-1] == f"No {MARK}."


async def test_a_secret_of_a_dotenv_file_is_redacted(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime], home: Path
) -> None:
    (home / ".env").write_text("OTHER_TOKEN=some-token-in-a-file\n")
    runtime = open_runtime(write_pack("teller.py", SOURCE))
    data = _result(await _events(runtime, "echo", value="it is some-token-in-a-file.")).data
    assert data == ["it is «secret OTHER_TOKEN».", 27]


async def test_a_secret_that_was_changed_a_moment_ago_is_redacted(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _events(runtime, "tell")
    monkeypatch.setenv("TELLER_KEY", changed := f"sk_live_{secrets.token_hex(16)}")
    told = "".join(event.model_dump_json() for event in await _events(runtime, "tell"))
    assert MARK in told
    assert changed not in told
