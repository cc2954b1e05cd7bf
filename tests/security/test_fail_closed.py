"""A configuration that can't be read admits nothing, in every command and in the app, which report the reason."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import commands
import pytest

from pegboard.config import load
from pegboard.errors import ModelError
from pegboard.models import JsonObject, ToolCall
from pegboard.runtime import Runtime

sys.path.insert(0, str(Path(__file__).parents[1] / "tui"))

from stage import on_stage

READING: dict[str, JsonObject] = {
    "fs.read_file": {"path": "etc/hostname"},
    "fs.list_dir": {},
    "ripgrep.search": {"pattern": "root", "path": "etc/passwd"},
    "git.status": {},
    "sqlite.tables": {"database": "etc/passwd"},
    "text.count": {"file": "etc/hostname"},
    "json.shape": {"file": "etc/hostname"},
    "shell.pwd": {},
}
"""Calls of built-in tools whose paths start at the working directory."""


def pegboard(cwd: Path, *arguments: str, **environ: str) -> commands.Done:
    """Run a command without a terminal."""
    return commands.pegboard(*arguments, cwd=cwd, env={**os.environ, **environ})


async def assert_nothing_runs(tool_allow: str | None = None) -> None:
    """Check that no tool is listed and that a call is rejected with the reason."""
    async with Runtime.from_environment(tool_allow=tool_allow) as runtime:
        runtime.tools.scan()
        blocked = runtime.settings.loaded.blocked
        assert blocked is not None
        assert "No tool runs until this is fixed." in blocked.fix
        assert blocked in runtime.problems()
        assert runtime.tools.all() == ()
        _, result = await runtime.result(ToolCall(name="time.now", source="form"))
        assert result.error is not None
        assert result.error.code == "tool_not_found"
        assert blocked.message in result.error.message


@pytest.mark.promise("SEC-4", "EXE-2")
@pytest.mark.parametrize(
    "text",
    [
        b'[tools]\nallow = ["time.now"]\n[ui]\ntheme = \n',
        b'[tools]\nallow = ["time.now"]\n[ui]\ntheme = "\xff"\n',
        b'[tools]\nallow = ["time.now"]\n[tools]\n',
        b"[tools]\nallow = 3\n",
        b"[tools]\nallow = true\n",
        b"[tools]\nallow = {}\n",
        b'[tools]\nallow = ["time.now", 3]\n',
        b'[[tools]]\nallow = ["time.now"]\n',
        b"tools = 3\n",
        b"packs = 3\n",
        b'[tools]\nalow = ["time.now"]\n',
        b'[tools]\nallowed = ["time.now"]\n',
        b'[tools]\ndeny = ["fs.*"]\n',
        b'[tool]\nallow = ["time.now"]\n',
        b'allow = ["time.now"]\n',
        b'[ui]\nallow = ["time.now"]\n',
        b'[packs]\nroots = ["/srv"]\n',
        b"a = " + b"[" * 5000,
        b"\x00",
        b"[tools]\nallow = [" + b"9" * 5000 + b"]",
    ],
)
async def test_a_broken_configuration_admits_nothing(home: Path, text: bytes) -> None:
    (home / "config.toml").write_bytes(text)
    await assert_nothing_runs()


@pytest.mark.promise("SEC-4", "EXE-2")
@pytest.mark.parametrize("kind", ["folder", "fifo", "loop", "gone", "device", "below a file"])
async def test_a_configuration_file_that_cannot_be_opened_admits_nothing(
    home: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "config.toml"
    match kind:
        case "folder":
            file.mkdir()
        case "fifo":
            os.mkfifo(file)
        case "loop":
            file.symlink_to(file)
        case "gone":
            file.symlink_to(home / "unmounted" / "config.toml")
        case "device":
            file.symlink_to("/dev/zero")
        case "below a file":
            file.write_text("")
            monkeypatch.setenv("PEGBOARD_CONFIG", str(file / "config.toml"))
    await assert_nothing_runs()


@pytest.mark.promise("SEC-4", "CFG-1")
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PEGBOARD_TOOLS__ALLOW__X", "1"),
        ("PEGBOARD_TOOLS__ALOW", "time.now"),
        ("PEGBOARD_TOOLS_ALLOW", "time.now"),
        ("PEGBOARD_TOOLS", '{ allow = ["time.now"] }'),
    ],
)
async def test_a_broken_variable_admits_nothing(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    await assert_nothing_runs()


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize("value", ["3", "[3]", "true", "{}", '["*"', ""])
async def test_an_allow_list_of_no_patterns_in_a_variable_admits_nothing(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("PEGBOARD_TOOLS__ALLOW", value)
    async with Runtime.from_environment() as runtime:
        runtime.tools.scan()
        assert runtime.tools.all() == ()


@pytest.mark.promise("SEC-4")
async def test_no_other_source_opens_what_a_broken_one_closed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: Callable[[Path], None]
) -> None:
    (home / "config.toml").write_text("[tools]\nallow = 3\n")
    (tmp_path / "pegboard.toml").write_text('[tools]\nallow = ["*"]\n')
    monkeypatch.chdir(tmp_path)
    trust(tmp_path)
    monkeypatch.setenv("PEGBOARD_TOOLS__ALLOW", "*")
    await assert_nothing_runs(tool_allow="*")


@pytest.mark.promise("SEC-4", "EXE-2")
async def test_an_allow_list_of_the_command_line_only_narrows(home: Path) -> None:
    (home / "config.toml").write_text('[tools]\nallow = ["time.now", "fs.*"]\n')
    async with Runtime.from_environment(tool_allow="*.now,tools.*") as runtime:
        runtime.tools.scan()
        assert [spec.name for spec in runtime.tools.all()] == ["time.now"]
        assert "within time.now, fs.*" in str(runtime.tools.why_not("tools.echo"))


@pytest.mark.promise("SEC-4")
async def test_it_admits_again_once_it_is_fixed(home: Path) -> None:
    (home / "config.toml").write_text("[tools\n")
    await assert_nothing_runs()
    (home / "config.toml").write_text('[tools]\nallow = ["time.now"]\n')
    async with Runtime.from_environment() as runtime:
        runtime.tools.scan()
        assert [spec.name for spec in runtime.tools.all()] == ["time.now"]


@pytest.mark.promise("SEC-4", "CFG-1")
@pytest.mark.parametrize(
    "text",
    [
        "[ui]\ntheme = 3\n",
        "[tools]\ntimout = 3\n",
        '[tools]\ntimeout = "x"\n',
        "[keys]\na = 3\n",
        "[packs]\nfolder = 'x'\n",
        "[packs.web]\nprivate = 'yes'\n",
        "[packs.fs]\nroots = 3\n",
        "[model]\nname = 3\n",
        "[ask]\nsteps = 0\n",
        "[mcp.servers.a]\nallow = []\n",
    ],
)
def test_other_errors_affect_only_their_own_value(home: Path, text: str) -> None:
    (home / "config.toml").write_text(text)
    settings, problems = load()
    assert settings.loaded.blocked is None
    assert settings.loaded.model_blocked is None
    assert problems[0].line


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize("config", ["roots = 3", "roots = [3]", "roots = []", 'root = ["/srv"]', 'Roots = ["/srv"]'])
async def test_a_pack_with_broken_roots_reads_nothing(home: Path, tmp_path: Path, config: str) -> None:
    (home / "config.toml").write_text(f"[packs.fs]\n{config}\n")
    file = tmp_path / "a.txt"
    file.write_text("text")
    async with Runtime.from_environment() as runtime:
        runtime.tools.scan()
        _, result = await runtime.result(ToolCall(name="fs.read_file", args={"path": str(file)}, source="form"))
        assert result.error is not None
        _, result = await runtime.result(ToolCall(name="fs.list_dir", args={}, source="form"))
        assert not result.ok
        if config != "roots = []":
            assert any("packs.fs" in problem.message for problem in runtime.problems())


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize("when", ["before the start", "before the first call", "between calls"])
async def test_built_in_packs_read_nothing_after_the_working_directory_was_deleted(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    if when == "before the start":
        folder.rmdir()
    async with Runtime.from_environment() as runtime:
        runtime.tools.scan()
        if when == "between calls":
            _, result = await runtime.result(ToolCall(name="fs.list_dir", source="mcp"))
            assert result.data == []
        if when != "before the start":
            folder.rmdir()
        for _ in range(2):  # the second call may get another worker
            for name, args in READING.items():
                _, result = await runtime.result(ToolCall(name=name, args=args, source="mcp"))
                assert result.error is not None, name
                assert result.error.message == "The working directory no longer exists.", name


@pytest.mark.promise("SEC-4")
async def test_a_folder_that_replaced_the_working_directory_is_not_read(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = tmp_path / "work", tmp_path / "other"
    for each in (folder, other):
        each.mkdir()
    (other / "a.txt").write_text("of another folder")
    monkeypatch.chdir(folder)
    async with Runtime.from_environment() as runtime:
        runtime.tools.scan()
        _, result = await runtime.result(ToolCall(name="fs.list_dir", source="mcp"))
        assert result.data == []
        folder.rmdir()
        folder.symlink_to(other)
        for _ in range(3):
            _, result = await runtime.result(ToolCall(name="fs.read_file", args={"path": "a.txt"}, source="mcp"))
            assert result.error is not None
            assert result.error.message == "The working directory no longer exists."


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize(
    ("key", "value"), [("private", '"no"'), ("private", "1"), ("secrets", "3"), ("secrets", "[3]")]
)
def test_a_broken_permission_of_a_pack_is_not_granted(home: Path, key: str, value: str) -> None:
    (home / "config.toml").write_text(f"[packs.web]\n{key} = {value}\n")
    settings, problems = load()
    assert settings.packs.of("web") == {}
    assert [problem.line for problem in problems] == [2]


@pytest.mark.promise("SEC-4")
@pytest.mark.parametrize("name", ["PEGBOARD_MODEL_BASE_URL", "PEGBOARD_MODEL__BASEURL", "PEGBOARD_MODEL__BASE_URL__X"])
def test_no_model_is_used_while_the_variable_of_its_base_url_is_broken(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "http://box.example")
    with pytest.raises(ModelError, match="can't be used"):
        Runtime.from_environment().models.get("openai:gpt")


@pytest.mark.promise("SEC-4", "CLI-2")
def test_every_command_reports_why_nothing_runs(home: Path, tmp_path: Path) -> None:
    (home / "config.toml").write_text('[tools]\nallow = ["time.now"]\n[ui\n')
    said = f"error: {home / 'config.toml'}:3: This file is not valid TOML"
    listed = pegboard(tmp_path, "tools", "list", "--json", "--tool-allow", "*")
    assert (listed.returncode, json.loads(listed.stdout)) == (0, [])
    invoked = pegboard(tmp_path, "tools", "invoke", "time.now")
    assert (invoked.returncode, json.loads(invoked.stdout)["result"]["ok"]) == (3, False)
    (tmp_path / "it.sh").write_text("time.now")
    script = pegboard(tmp_path, "script", "run", "it.sh")
    assert script.returncode != 0
    asked = pegboard(tmp_path, "ask", "time.now", "--with-tools")
    for done in (listed, invoked, script, asked):
        assert said in done.stderr, done
        assert "No tool runs until this is fixed." in done.stderr
    assert '"ok": true' not in asked.stdout


@pytest.mark.promise("SEC-4")
async def test_the_app_reports_why_nothing_runs(home: Path) -> None:
    (home / "config.toml").write_text("[tools]\nallow = 3\n")
    async with on_stage(Runtime.from_environment()) as stage:
        await stage.until_seen("No tool runs")
        assert "Configuration error" in stage.text
