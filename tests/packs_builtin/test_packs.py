"""The small packs: time, tools, shell; and rules for all built-in packs."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import pegboard.packs
from pegboard.packs.shell import pwd
from pegboard.packs.time import now
from pegboard.packs.tools import echo
from pegboard.sdk import ToolFailed
from pegboard.sdk.findings import ProbeResult, report_row
from pegboard.sdk.source import read_requirements

FILES = sorted(Path(pegboard.packs.__file__).parent.glob("[!_]*.py"))


@pytest.mark.promise("PCK-1")
def test_now_returns_one_time_in_two_formats() -> None:
    before = datetime.now(UTC).timestamp()
    moment = now()
    after = datetime.now(UTC).timestamp()
    assert int(before * 1000) <= moment["timestamp"] <= after * 1000
    iso = datetime.fromisoformat(moment["iso"])
    assert iso.utcoffset() is not None
    assert round(iso.timestamp() * 1000) == moment["timestamp"]


@pytest.mark.promise("PCK-1")
@pytest.mark.parametrize("value", [None, True, 0, -1.5, "", "ü", [], [1, [None]], {}, {"a": {"b": []}}])
def test_echo_returns_any_value_unchanged(value: object) -> None:
    assert echo(value=value) == value
    assert type(echo(value=value)) is type(value)


@pytest.mark.promise("PCK-1")
def test_pwd_is_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert pwd() == str(tmp_path)


def test_pwd_fails_if_the_working_directory_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ToolFailed, match="no longer exists"):
        pwd()


def hints() -> dict[str, dict[str, object]]:
    """Return the hints of every built-in tool, read as discovery does: without running anything."""
    found: dict[str, dict[str, object]] = {}
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
                continue
            calls = [item for item in node.decorator_list if isinstance(item, ast.Call)]
            said = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "hints"]
            keywords = [keyword for call in said for keyword in call.keywords if keyword.arg]
            found[f"{file.stem}.{node.name}"] = {str(item.arg): ast.literal_eval(item.value) for item in keywords}
    return found


@pytest.mark.promise("PCK-1")
def test_every_built_in_tool_is_read_only_and_only_pwd_may_be_cached() -> None:
    said = hints()
    assert {name.partition(".")[0] for name in said} == {file.stem for file in FILES}
    assert all(tool["read_only"] is True for tool in said.values())
    assert [name for name, tool in said.items() if "cache_seconds" in tool] == ["shell.pwd"]


def test_importing_the_folder_loads_no_pack() -> None:
    code = "import sys, pegboard.packs; print([name for name in sys.modules if name.startswith('pegboard.packs.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the imported libraries, except the standard one, the SDK, helpers and types."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add("" if node.module == "pegboard.sdk" else str(node.module).partition(".")[0])
    return {name for name in names - {"", "annotated_types", "pydantic"} if name not in sys.stdlib_module_names}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_packs_import_libraries_late_and_declare_them_with_a_hint_that_updates_old_ones(file: Path) -> None:
    tree = ast.parse(file.read_text())
    assert imported(tree.body) == set()
    said = {requirement.name for requirement in read_requirements(tree).pack if requirement.kind == "lib"}
    assert imported(ast.walk(tree)) <= said
    for requirement in read_requirements(tree).pack:
        hint = report_row(file.stem, requirement, ProbeResult("outdated"))["install"]
        assert requirement.kind != "lib" or f"{requirement.name}>=" in hint or not requirement.min_version


def test_packs_need_at_least_the_versions_that_are_installed_with_the_program() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    bounds = {found.name: found.specifier for found in map(Requirement, project["dependencies"])}
    needed = [one for file in FILES for one in read_requirements(ast.parse(file.read_text())).pack if one.kind == "lib"]
    assert {one.name for one in needed if one.min_version} == {"jq", "markdownify", "pygit2"}
    for one in needed:
        lowest = next((bound.version for bound in bounds.get(one.name, ()) if bound.operator == ">="), None)
        assert one.min_version in (None, lowest)
