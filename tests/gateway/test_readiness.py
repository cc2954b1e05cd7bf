"""Calls of tools with missing requirements, through a real runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.models import CallSource, JsonObject, ToolCall, ToolError, ToolResult
from pegboard.runtime import Runtime

PACK = '''
from pegboard.sdk import get_secret, requires_cli, requires_secret

@requires_cli("needed-here", min_version="2", install="make needed-here")
def work(*, times: int = 1) -> str:
    """Needs a program."""
    return "done"

@requires_secret("NEEDED_KEY")
@requires_cli("needed-here")
def ask() -> str:
    """Needs a program and a secret."""
    return "answered"

def free() -> str:
    """Reads a secret, and does without it too."""
    return get_secret("OTHER_KEY") or "nothing"
'''


@pytest.fixture
def runtime(
    write_pack: Callable[[str, str], Path],
    open_runtime: Callable[..., Runtime],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Runtime:
    """Return a runtime with tools that need a missing program."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return open_runtime(write_pack("needy.py", PACK))


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], None]:
    """Return a function that installs the required program in a version."""

    def put(version: str) -> None:
        file = tmp_path / "bin" / "needed-here"
        file.write_text(f"#!/bin/sh\necho needed-here {version}\n")
        file.chmod(0o755)

    return put


async def _call(runtime: Runtime, tool: str, source: CallSource = "form", args: JsonObject | None = None) -> ToolResult:
    return (await runtime.result(ToolCall(name=tool, args=args or {}, source=source)))[1]


def _error(result: ToolResult) -> ToolError:
    assert result.error is not None
    return result.error


@pytest.mark.promise("EXE-3", "EXE-7")
@pytest.mark.parametrize("source", ["form", "cli", "ask", "mcp", "script"])
async def test_a_tool_with_a_missing_requirement_fails_with_the_words_of_the_report_for_every_caller(
    runtime: Runtime, source: CallSource
) -> None:
    error = _error(await _call(runtime, "needy.work", source))
    [row] = runtime.health.rows("needy.work")
    assert (error.code, error.detail) == ("execution_error", "dependency_missing")
    assert row.error == "`needed-here` is not on the PATH."
    assert f"{row.error} How to get it: make needed-here" in error.message
    [record] = runtime.history.records()
    assert (record.tool, record.ok, record.error) == ("needy.work", False, error)


async def test_all_missing_requirements_of_a_tool_are_reported_together(runtime: Runtime) -> None:
    error = _error(await _call(runtime, "needy.ask"))
    assert "needed-here" in error.message
    assert "NEEDED_KEY is not set." in error.message


async def test_validation_errors_come_first(runtime: Runtime) -> None:
    assert _error(await _call(runtime, "needy.work", args={"times": "x"})).code == "invalid_args"


async def test_a_requirement_installed_in_the_meantime_is_found_at_the_next_call(
    runtime: Runtime, program: Callable[[str], None]
) -> None:
    assert _error(await _call(runtime, "needy.work")).detail == "dependency_missing"
    program("1.0")
    assert "`needed-here` is 1.0; 2 or later is required." in _error(await _call(runtime, "needy.work")).message
    program("2.0")
    assert (await _call(runtime, "needy.work")).data == "done"
    spec = runtime.tools.get("needy.work")
    assert spec is not None
    assert runtime.health.state(spec) == "ready"


@pytest.mark.promise("SDK-10")
async def test_a_tool_without_an_optional_requirement_runs(runtime: Runtime) -> None:
    assert (await _call(runtime, "needy.free")).data == "nothing"
    spec = runtime.tools.get("needy.free")
    assert spec is not None
    assert runtime.health.state(spec) == "degraded"
