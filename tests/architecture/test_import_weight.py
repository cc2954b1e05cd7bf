"""Cost of imports: in a clean interpreter, heavy libraries are not loaded until they are needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pegboard.tui import result

HEAVY = {
    "textual",
    "httpx",
    "mcp",
    "pydantic_ai",
    "openai",
    "anthropic",
    "jsonschema",
    "sqlite3",
    "watchfiles",
    "keyring",
}


def _loaded_after(code: str) -> set[str]:
    return {name for name in _modules_after(code) if "." not in name}


def _modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import pegboard",
        "import pegboard.worker",
        "import pegboard.sdk",
        "import pegboard.discovery",
        "import pegboard.packs",
        "import pegboard.models",
        "import pegboard.registry",
        "import pegboard.config",
        "import pegboard.results",
        "import pegboard.forms",
        "import pegboard.presets",
        "import pegboard.health",
    ],
)
def test_importing_the_core_loads_nothing_heavy(code: str) -> None:
    assert _loaded_after(code) & (HEAVY | {"asyncio", "typer"}) == set()


def test_editing_arguments_on_a_terminal_loads_no_interface() -> None:
    code = "import asyncio, os; from pegboard.cli.approval import edit_arguments; os.environ['VISUAL'] = 'true'"
    assert "textual" not in _loaded_after(f"{code}\nasyncio.run(edit_arguments({{}}))")


@pytest.mark.parametrize("code", ["import pegboard", "import pegboard.worker", "import pegboard.sdk"])
def test_a_worker_starts_without_pydantic(code: str) -> None:
    assert _loaded_after(code) & {"pydantic", "pydantic_core"} == set()


def test_importing_the_built_in_packs_loads_no_pack() -> None:
    script = "import sys, pegboard.packs; print([name for name in sys.modules if name.startswith('pegboard.packs.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_listing_tools_loads_neither_textual_nor_mcp_nor_asyncio() -> None:
    code = (
        "from pegboard.cli import program\n"
        "try:\n    program(['tools'])(['tools', 'list', '--json'])\nexcept SystemExit:\n    pass"
    )
    loaded = _loaded_after(code)
    assert "pegboard" in loaded
    assert loaded & (HEAVY | {"asyncio"}) == set()


def test_the_first_frame_is_painted_without_pydantic() -> None:
    code = """
from pegboard.tui.app import PegboardApp

class FirstFrame(PegboardApp):
    modules = None

    def _display(self, screen, renderable):
        self.modules = self.modules or {*sys.modules}
        super()._display(screen, renderable)
        self.exit()

from pegboard.config import simple_appearance
from pegboard.runtime import Runtime
app = FirstFrame(Runtime.from_environment(), simple_appearance())
app.run(headless=True)
for name in {*sys.modules} - app.modules:
    del sys.modules[name]
"""
    loaded = _loaded_after(code)
    assert "textual" in loaded
    assert loaded & (HEAVY - {"textual"} | {"pydantic", "pydantic_core", "markdown_it", "attr"}) == set()


def test_an_idle_app_loads_no_parser_and_builds_no_validator_before_the_first_key() -> None:
    code = """
import asyncio
from pegboard.config import simple_appearance
from pegboard.runtime import Runtime
from pegboard.tui.app import PegboardApp

async def main():
    app = PegboardApp(Runtime.from_environment(), simple_appearance())
    async with app.run_test(size=(120, 40)) as pilot:
        async with asyncio.timeout(30):
            while app.tool_scan.scanning or not app.screen.settled:
                await pilot.pause(0.02)
        app.loaded = {*sys.modules}
    for name in {*sys.modules} - app.loaded:
        del sys.modules[name]

asyncio.run(main())
"""
    loaded = _modules_after(code)
    assert "pydantic" in loaded
    assert loaded & {"jsonschema", "referencing", "attr", "markdown_it", "mcp", "pydantic_ai", "keyring"} == set()
    late = {"discovery.parser", "forms.paste", "forms.copy_as", "results.table"}
    late |= {f"tui.result.{module}" for module in result._ON_DEMAND.values() if module != "pane"}
    assert loaded & {f"pegboard.{name}" for name in late} == set()
    assert "zipfile" not in loaded, "pydantic built a validator: its search for plugins imports this"
