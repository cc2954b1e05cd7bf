"""Language models of the runtime: detection on this machine, requirements, and closing."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from pegboard.ask.providers import ProviderModel
from pegboard.config import Paths, Settings
from pegboard.config.settings import ModelSettings
from pegboard.errors import ModelError
from pegboard.models.ask import AskFinished
from pegboard.models.conversation import Prompt, TextDelta, UserMessage
from pegboard.runtime import Runtime

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from provider import Answer, FakeProvider, delta, says, usage
from web import Silent, Web

PORTS = "pegboard.ask.providers.servers.USUAL_PORTS"


@pytest.fixture
def runtime(open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """Return a runtime without any key."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return open_runtime()


async def test_a_server_is_reported_before_a_slower_one_has_responded(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        Web(lambda _: Silent(then="stall")).running() as slow,
        FakeProvider(says("Fine."), models=["qwen3:8b"]).running() as fast,
    ):
        monkeypatch.setattr(PORTS, {"lmstudio": int(slow.url.rpartition(":")[2]), "ollama": fast.port})
        async with aclosing(runtime.models.local_servers()) as servers:
            first = await anext(servers)
            assert first.names == ("ollama:qwen3:8b",)
            assert first.base_url == fast.url


def open_files() -> int:
    """Return the number of open files and connections of this process."""
    return len([*Path("/dev/fd").iterdir()])


async def test_changed_settings_close_the_connections_to_models_that_have_answered(runtime: Runtime) -> None:
    go = threading.Event()

    def pieces() -> Iterator[dict[str, Any]]:
        yield delta(role="assistant", content="one ")
        assert go.wait(30)
        yield from (delta(content="two"), delta("stop"), usage(1, 1))

    await runtime.reload()
    with FakeProvider(Answer(pieces()), says("Fine.")).running() as fake:
        prompt = Prompt(messages=(UserMessage(text="Hello"),))
        async with aclosing(runtime.models.get("openai:gpt-5-mini", fake.url).stream(prompt)) as events:
            texts = [event.text if isinstance(event := await anext(events), TextDelta) else ""]
            await runtime.reload()
            go.set()
            texts += [event.text async for event in events if isinstance(event, TextDelta)]
        assert "".join(texts) == "one two"
        await runtime.reload()
        before = open_files()
        for _ in range(5):
            async with aclosing(runtime.models.get("openai:gpt-5-mini", fake.url).stream(prompt)) as events:
                assert [event async for event in events]
            await runtime.reload()
        async with asyncio.timeout(30):
            while open_files() > before:  # noqa: ASYNC110 - the server closes its ends, too
                await asyncio.sleep(0.005)


@pytest.mark.promise("ASK-5")
async def test_the_requirements_of_a_model_are_reported_without_its_key(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = runtime.models.requirements("openai:gpt-5-mini")
    assert (needs.title, needs.needs_key, needs.secret, needs.secret_place) == ("OpenAI", True, "OPENAI_API_KEY", None)
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-hush")
    needs = runtime.models.requirements("google:gemini-3-pro")
    assert (needs.secret, needs.secret_place) == ("GEMINI_API_KEY", "environment")
    assert "hush" not in str(needs)
    needs = runtime.models.requirements("ollama:qwen3")
    assert (needs.is_local, needs.needs_key, needs.start) == (True, False, "`ollama serve`")
    assert runtime.models.requirements("ollama:qwen3", "http://box.example:1/v1").start == ""
    assert not runtime.models.requirements("offline").needs_key
    with pytest.raises(ModelError, match="provider opnai is unknown"):
        runtime.models.requirements("opnai:x")


@pytest.mark.parametrize("there", [True, False])
def test_a_library_that_is_not_installed_is_reported(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    monkeypatch.setattr("pegboard.ask.providers.requirements.find_spec", lambda _: object() if there else None)
    assert runtime.models.requirements("anthropic:x").extra == ("" if there else "anthropic")
    assert runtime.models.requirements("openai:x").extra == ""


async def test_asks_share_a_connection_which_is_closed_with_the_runtime(runtime: Runtime) -> None:
    with FakeProvider(says("Fine.")).running() as fake:
        for _ in range(2):
            asking = runtime.ask(model="ollama:m", base_url=fake.url)
            events = [event async for event in asking.run("Go.")]
            assert isinstance(events[-1], AskFinished)
            assert events[-1].outcome.answer == "Fine."
        model = runtime.models.get("ollama:m", fake.url)
        assert isinstance(model, ProviderModel)
        assert model is runtime.models.get("ollama:m", fake.url)
        [line] = model._kept
        assert not line.connection._http.is_closed
        await runtime.close()
    assert line.connection._http.is_closed


@pytest.mark.parametrize(
    ("asked", "is_there"), [("ollama:m", True), (None, True), ("openai:m", False), ("openrouter:a/m", False)]
)
def test_the_configured_base_url_applies_only_to_the_configured_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None, is_there: bool
) -> None:
    """Otherwise another provider's key would be sent there."""
    monkeypatch.setenv("OPENAI_API_KEY", "the-key-of-openai")
    monkeypatch.setenv("OPENROUTER_API_KEY", "the-key-of-openrouter")
    settings = Settings(model=ModelSettings(name="ollama:qwen3", base_url="http://box.example:1/v1"))
    paths = Paths(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state", tmp_path / "cache")
    runtime = Runtime(settings, paths)
    model = runtime.models.get(asked)
    assert isinstance(model, ProviderModel)
    assert (model._endpoint.base_url == "http://box.example:1/v1") is is_there
