"""The runtime, as the interface and the commands use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path

import pytest

from pegboard.config import Paths, Settings, ToolsSettings
from pegboard.models import Problem, ToolCall
from pegboard.runtime import Runtime
from pegboard.schema.arguments import prepare

GREET = '''
def hello(*, name: str) -> str:
    """Greets somebody."""
    return f"Hello {name}"
'''


async def _next_change(runtime: Runtime, change: Callable[[], object]) -> None:
    """Make a change while the folders are watched, and wait until the runtime has seen it."""
    async with aclosing(runtime.tools.watch()) as changes:
        await anext(changes)
        change()
        await asyncio.wait_for(anext(changes), 20)


@pytest.mark.promise("DSC-6")
async def test_a_new_pack_is_picked_up_live(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    runtime = open_runtime(write_pack("greet.py", GREET))
    await _next_change(runtime, lambda: write_pack("other.py", GREET))
    assert runtime.tools.get("other.hello") is not None


@pytest.mark.promise("DSC-6")
async def test_a_change_that_another_scan_found_first_is_picked_up_live(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    runtime = open_runtime(write_pack("greet.py", GREET))

    def change() -> None:
        write_pack("other.py", GREET)
        assert runtime.tools.scan()

    await _next_change(runtime, change)
    assert runtime.tools.get("other.hello") is not None


@pytest.mark.promise("DSC-6")
async def test_a_removed_pack_goes_live(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    folder = write_pack("greet.py", GREET)
    runtime = open_runtime(folder)
    await _next_change(runtime, (folder / "greet.py").unlink)
    assert runtime.tools.get("greet.hello") is None


@pytest.mark.promise("DSC-6")
async def test_the_data_folders_packs_are_found_when_the_folder_appears(
    home: Path, open_runtime: Callable[..., Runtime]
) -> None:
    runtime = open_runtime()
    packs = home / "data" / "packs"
    assert not packs.exists()
    assert runtime.problems() == ()

    def appear() -> None:
        packs.mkdir(parents=True, exist_ok=True)
        (packs / "greet.py").write_text(GREET)

    await _next_change(runtime, appear)
    assert runtime.tools.get("greet.hello") is not None


@pytest.mark.promise("STO-1")
async def test_the_last_arguments_and_the_uses_of_a_tool_are_remembered(
    write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]
) -> None:
    runtime = open_runtime(write_pack("greet.py", GREET))
    assert runtime.history.last_arguments("greet.hello") is None
    await runtime.result(ToolCall(name="greet.hello", args={"name": "a"}, source="form"))
    await runtime.result(ToolCall(name="greet.hello", args={"name": 1}, source="form"))
    assert runtime.history.last_arguments("greet.hello") == {"name": 1}
    uses = runtime.history.uses("greet.hello")
    assert (uses.calls, uses.failures) == (2, 1)


def test_problems_of_configuration_and_packs_are_listed_together(
    home: Path, write_pack: Callable[[str, str], Path]
) -> None:
    (home / "config.toml").write_text("[uii]\n")
    runtime = Runtime.from_environment(packs=[write_pack("broken.py", "def broken(:\n")])
    runtime.tools.scan()
    files = {Path(problem.file or "").name for problem in runtime.problems()}
    assert files == {"config.toml", "broken.py"}


async def test_a_missing_required_argument_that_has_a_default_is_filled_in(
    open_runtime: Callable[..., Runtime],
) -> None:
    spec = open_runtime().tools.get("tools.echo")
    assert spec is not None
    schema = {"type": "object", "required": ["value"], "properties": {"value": {"default": [1]}, "x": {"default": 2}}}
    described = spec.model_copy(update={"input_schema": schema})
    assert prepare(described, {}) == {"value": [1]}
    assert prepare(described, {"value": None}) == {"value": None}


def test_the_configuration_is_read_once_when_it_is_first_needed() -> None:
    reads = 0

    def read() -> tuple[Settings, tuple[Problem, ...]]:
        nonlocal reads
        reads += 1
        return Settings(tools=ToolsSettings(allow=("fs.*",))), (Problem(message="It is odd."),)

    runtime = Runtime(read, Paths.from_environment())
    assert reads == 0
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: runtime.settings, range(100)))
    assert (reads, len({id(settings) for settings in found})) == (1, 1)
    runtime.tools.scan()
    assert {spec.pack for spec in runtime.tools.all()} == {"fs"}
    assert [problem.message for problem in runtime.problems(packs=False)] == ["It is odd."]


@pytest.mark.promise("CFG-1")
async def test_a_reload_reads_the_configuration_from_which_the_runtime_was_built(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('[ui]\ntheme = "nord"\n')
    runtime = Runtime.from_environment({"PEGBOARD_CONFIG": str(file), "PEGBOARD_UI__FOCUS": "result"})
    assert runtime.settings.ui.theme == "nord"
    file.write_text('[ui]\ntheme = "dracula"\n')
    await runtime.reload()
    assert (runtime.settings.ui.theme, runtime.settings.ui.focus) == ("dracula", "result")
