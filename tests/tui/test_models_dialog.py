"""The dialog of models: configured, local, of known providers, and typed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator

import pytest
from stage import Stage, on_stage

from pegboard.ask.providers import LocalServer
from pegboard.config import Paths, Settings
from pegboard.config.settings import ModelSettings
from pegboard.models.model_requirements import ModelRequirements
from pegboard.runtime import Runtime
from pegboard.tui.chat.models import ModelChoice, ModelList, ModelsScreen

OLLAMA = LocalServer(
    provider="ollama", title="Ollama", base_url="http://127.0.0.1:11434/v1", models=("qwen3:8b", "[red]x\x1b[2J")
)
STUDIO = LocalServer(provider="lmstudio", title="LM Studio", base_url="http://127.0.0.1:1234/v1", models=("phi",))


class Machine(Runtime):
    """A runtime with two local model servers, the second of which responds once `go_on` is set."""

    go_on: asyncio.Event


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a runtime without keys and with a configured model."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return built(ModelSettings(name="ollama:qwen3:8b"))


def built(model: ModelSettings) -> Machine:
    machine = Machine(Settings(model=model), Paths.from_environment())
    machine.go_on = asyncio.Event()
    machine.go_on.set()

    async def local_servers() -> AsyncGenerator[LocalServer]:
        yield OLLAMA
        await machine.go_on.wait()
        yield STUDIO

    machine.models.local_servers = local_servers  # type: ignore[method-assign]
    return machine


async def open_list(stage: Stage, runtime: Runtime, current: str = "offline") -> list[ModelChoice | None]:
    """Open the dialog, wait for the providers, and append the result to a list."""
    closed: list[ModelChoice | None] = []
    await stage.app.push_screen(ModelsScreen(runtime, current), closed.append)
    await stage.until_seen("vllm:…")
    return closed


def shown(stage: Stage) -> list[str]:
    """Return the lines of the list without their notes."""
    models = stage.app.screen.query_one(ModelList)
    return [line.split("  ")[0] for y in range(models.size.height) if (line := models.render_line(y).text.strip())]


async def has_closed(stage: Stage, closed: list[ModelChoice | None]) -> None:
    await stage.until(lambda: closed, "the list is closed")


@pytest.mark.promise("ASK-5", "TUI-4")
async def test_local_servers_are_listed_as_they_respond(machine: Machine) -> None:
    machine.go_on.clear()
    async with on_stage(machine) as stage:
        closed = await open_list(stage, machine)
        await stage.until_seen("Local servers: Ollama (2 models) · looking for local model servers")
        assert shown(stage)[:4] == ["ollama:qwen3:8b", "● offline", "ollama:[red]x␛[2J", "openai:…"]
        await stage.press("down")
        machine.go_on.set()
        await stage.until_seen("Local servers: Ollama (2 models), LM Studio (1 model)")
        assert "looking" not in stage.text
        assert "lmstudio:phi" in shown(stage)
        await stage.until_seen("is not a model's name")  # with a control character in it
        await stage.press("escape")
        await has_closed(stage, closed)
    assert closed == [None]


async def test_the_configured_model_is_listed_once_unless_its_base_url_differs(machine: Machine) -> None:
    async with on_stage(machine) as stage:
        closed = await open_list(stage, machine)
        await stage.press("home", "enter")
        await has_closed(stage, closed)
        assert closed == [ModelChoice("ollama:qwen3:8b", None)]
    elsewhere = built(ModelSettings(name="ollama:qwen3:8b", base_url="http://box.example:1/v1"))
    async with on_stage(elsewhere) as stage:
        closed = await open_list(stage, elsewhere, "ollama:qwen3:8b")
        await stage.until(lambda: shown(stage).count("● ollama:qwen3:8b") == 2, "both are listed")
        await stage.press("home")
        await stage.until_seen("at box.example:1")
        await stage.press("enter")
        await has_closed(stage, closed)
        assert closed == [ModelChoice("ollama:qwen3:8b", "http://box.example:1/v1")]


@pytest.mark.promise("ASK-5", "TUI-1")
async def test_a_long_command_that_installs_a_library_hides_no_other_requirement(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = machine.models.requirements
    command = f"uv pip install --python /home/{'ann/' * 25}bin/python 'pegboard[google]'"

    def requirements(name: str, base_url: str | None = None) -> ModelRequirements:
        return known(name, base_url).model_copy(update={"extra": "google", "install": command})

    monkeypatch.setattr(machine.models, "requirements", requirements)
    async with on_stage(machine, size=(80, 24)) as stage:
        await stage.app.push_screen(ModelsScreen(machine, "offline"))
        await stage.until_seen("google:…")
        await stage.type("google")
        await stage.until_seen("'pegboard[google]'`.")
        await stage.until_seen("✗ GOOGLE_API_KEY is not set.")


@pytest.mark.promise("ASK-5", "TUI-1")
async def test_a_requirement_uses_the_space_beside_a_short_name(machine: Machine) -> None:
    async with on_stage(machine, size=(60, 30)) as stage:
        await open_list(stage, machine)
        await stage.until_seen("requires OPENROUTER_API_KEY │")


@pytest.mark.promise("ASK-5", "STO-2")
async def test_a_provider_shows_its_requirements_and_the_origin_of_its_key(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-hush")
    async with on_stage(machine) as stage:
        closed = await open_list(stage, machine)
        await stage.until_seen("requires OPENROUTER_API_KEY")
        assert "key from environment" in stage.text
        assert "running locally" in stage.text
        await stage.type("openai")
        await stage.until_seen("✗ OPENAI_API_KEY is not set. Run `pegboard auth set OPENAI_API_KEY`.")
        await stage.press("ctrl+u")
        await stage.type("anthr")
        await stage.until_seen("✓ ANTHROPIC_API_KEY from environment")
        assert "hush" not in stage.text
        await stage.press("enter")
        assert not closed
        await stage.type("claude-opus-4-5")
        await stage.until_seen("use anthropic:claude-opus-4-5")
        await stage.press("enter")
        await has_closed(stage, closed)
    assert closed == [ModelChoice("anthropic:claude-opus-4-5", None)]


async def test_a_server_that_does_not_respond_shows_how_to_start_it(machine: Machine) -> None:
    async with on_stage(machine) as stage:
        await open_list(stage, machine)
        await stage.type("llamacpp")
        await stage.until_seen("Start its server with `llama-server -m MODEL.gguf`.")
        await stage.press("ctrl+u")
        await stage.type("lmstudio:x")
        await stage.until_seen("LM Studio at 127.0.0.1:1234")
        assert "Start its server" not in stage.text


@pytest.mark.promise("ASK-5")
async def test_an_unknown_provider_is_rejected_with_a_suggestion(machine: Machine) -> None:
    async with on_stage(machine) as stage:
        closed = await open_list(stage, machine)
        await stage.type("opnai:gpt-5")
        await stage.until_seen("The provider opnai is unknown.")
        assert "Did you mean openai:gpt-5?" in stage.text
        await stage.press("enter")
        await stage.until(lambda: stage.text.count("provider opnai is unknown") == 2, "it is said aloud")
        assert not closed
        await stage.press("escape")
        await has_closed(stage, closed)
    assert closed == [None]


async def test_a_typed_name_stays_marked_while_servers_respond(machine: Machine) -> None:
    machine.go_on.clear()
    async with on_stage(machine) as stage:
        closed = await open_list(stage, machine)
        await stage.type("lmstudio:p")
        assert shown(stage) == ["use lmstudio:p"]
        machine.go_on.set()
        await stage.until(lambda: shown(stage) == ["use lmstudio:p", "lmstudio:phi"], "the server's model is listed")
        await stage.press("enter")
        await has_closed(stage, closed)
    assert closed == [ModelChoice("lmstudio:p", None)]


@pytest.mark.promise("ASK-8")
async def test_without_servers_the_offline_model_is_available(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.ask.providers.servers.USUAL_PORTS", {})
    runtime = Runtime(Settings(), Paths.from_environment())
    async with on_stage(runtime) as stage:
        closed = await open_list(stage, runtime)
        await stage.until_seen("No local model server responds.")
        assert shown(stage)[0] == "● offline"
        await stage.until_seen("It doesn't reason")
        await stage.press("enter")
        await has_closed(stage, closed)
    assert closed == [ModelChoice("offline", None)]


def test_the_dialog_imports_no_client_library() -> None:
    code = "import sys, pegboard.tui.chat.models; print(sys.modules.keys() & {'httpx', 'openai', 'pydantic_ai'})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"
