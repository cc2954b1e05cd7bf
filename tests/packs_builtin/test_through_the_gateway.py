"""Built-in packs use the same pipeline as other packs: discovery, gateway, worker."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import JsonValue

import pegboard.packs
from pegboard.models import ToolCall
from pegboard.runtime import Runtime


@pytest.mark.promise("DSC-8")
async def test_they_are_discovered_without_a_problem(open_runtime: Callable[..., Runtime]) -> None:
    runtime = open_runtime()
    files = Path(pegboard.packs.__file__).parent.glob("[!_]*.py")
    assert {"fs.list_dir", "fs.read_file", "shell.pwd", "time.now", "tools.echo"} < {
        spec.name for spec in runtime.tools.all()
    }
    assert {spec.pack for spec in runtime.tools.all()} == {file.stem for file in files}
    assert [problem for spec in runtime.tools.all() for problem in spec.problems] == []


@pytest.mark.promise("PCK-4")
@pytest.mark.parametrize(
    ("name", "args", "meant"),
    [
        ("fs.list_dir", {"recursive": True, "maxDepth": 2}, {"recursive": True, "max_depth": 2}),
        ("fs.read_file", {"path": "a.txt", "maxBytes": 5}, {"path": "a.txt", "max_bytes": 5}),
    ],
)
async def test_camel_case_names_of_parameters_are_accepted(
    work: Path,
    open_runtime: Callable[..., Runtime],
    name: str,
    args: dict[str, JsonValue],
    meant: dict[str, JsonValue],
) -> None:
    runtime = open_runtime()
    made, result = await runtime.result(ToolCall(name=name, args=args, source="cli"))
    assert (made.args, result.error) == (meant, None)


@pytest.mark.promise("PCK-3")
async def test_a_limit_is_enforced_under_its_alias(work: Path, open_runtime: Callable[..., Runtime]) -> None:
    call = ToolCall(name="fs.read_file", args={"path": "a.txt", "maxBytes": 4}, source="cli")
    _, result = await open_runtime().result(call)
    assert result.error is not None
    assert (result.error.code, result.error.detail) == ("execution_error", "too_large")
    assert result.error.message == "a.txt has 5 bytes; the limit (max_bytes) is 4."


@pytest.fixture
def stocked(work: Path) -> Path:
    """Provide the working directory with a database, and a repository if git is installed."""
    with closing(sqlite3.connect(work / "data.db")) as connection:
        connection.execute("CREATE TABLE t (a)")
    if shutil.which("git"):
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", "repo"], cwd=work, check=True, timeout=60)
    return work


@pytest.mark.promise("SDK-8")
@pytest.mark.parametrize(
    ("name", "args", "program"),
    [
        ("ripgrep.search", {"pattern": "hel+o"}, "rg"),
        ("git.status", {"repository": "repo"}, "git"),
        ("json.query", {"filter": ".[1]", "value": [1, 2**70]}, None),
        ("sqlite.query", {"database": "data.db", "sql": "SELECT 1 AS one"}, None),
        ("text.find", {"pattern": "l+", "file": "a.txt"}, None),
        ("web.fetch", {"url": "http://127.0.0.1:1/"}, None),
    ],
)
async def test_the_packs_with_requirements_run_in_workers(
    stocked: Path, open_runtime: Callable[..., Runtime], name: str, args: dict[str, JsonValue], program: str | None
) -> None:
    if program and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")
    expected = {
        "ripgrep.search": {"matches": [{"path": "a.txt", "line": 1, "column": 1, "text": "hello"}], "truncated": False},
        "json.query": {"results": [2**70], "truncated": False},
        "sqlite.query": {"columns": ["one"], "rows": [{"one": 1}], "truncated": False},
        "text.find": {
            "matches": [{"line": 1, "column": 3, "match": "ll", "groups": [], "named": {}}],
            "truncated": False,
        },
    }
    _, result = await open_runtime().result(ToolCall(name=name, args=args, source="cli"))
    if name == "web.fetch":
        assert result.error is not None
        assert (result.error.detail, result.error.message[:14]) == ("request_failed", "Request failed")
        return
    assert result.error is None
    assert isinstance(result.data, dict)
    assert result.data == expected.get(name, {**result.data, "branch": "main"})


@pytest.mark.promise("PCK-3", "SDK-10")
async def test_the_configured_roots_are_enforced_in_workers(
    work: Path, home: Path, open_runtime: Callable[..., Runtime]
) -> None:
    (home / "config.toml").write_text(f'[packs.fs]\nroots = ["{work.parent / "outside"}"]\n')
    runtime = open_runtime()
    _, read = await runtime.result(ToolCall(name="fs.read_file", args={"path": "secret.txt"}, source="cli"))
    assert (read.data, read.error) == ("secret", None)
    _, refused = await runtime.result(ToolCall(name="fs.read_file", args={"path": str(work / "a.txt")}, source="cli"))
    assert refused.error is not None
    assert refused.error.detail == "outside"
    _, other = await runtime.result(ToolCall(name="text.count", args={"file": "a.txt"}, source="cli"))
    assert other.error is None


@pytest.mark.promise("SDK-8", "EXE-3")
async def test_a_pack_with_a_missing_program_is_blocked_with_how_to_install_it(
    work: Path, open_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(work))
    runtime = open_runtime()
    _, result = await runtime.result(ToolCall(name="ripgrep.search", args={"pattern": "hello"}, source="cli"))
    assert result.error is not None
    assert (result.error.code, result.error.detail) == ("execution_error", "dependency_missing")
    assert "`rg` is not on the PATH" in result.error.message
    assert "apt install ripgrep" in result.error.message


@pytest.mark.promise("SDK-15")
def test_they_can_be_called_by_name_in_a_plain_script(work: Path) -> None:
    script = """if True:
        from pegboard.sdk import call_tool
        print(call_tool("text.count", file="a.txt")["characters"])
        print(call_tool("json.query", filter=".a", value={"a": 1})["results"])
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("5\n[1]\n", "")
