"""Every command as users start it: the other tests run commands in processes that have loaded Pegboard already."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import commands
import pytest
from terminals import Terminal
from terminals import pegboard as in_terminal

from pegboard.cli import COMMANDS

PROGRAM = str(Path(sys.executable).with_name("pegboard"))
LINES = {
    "adopt": ["adopt", "servers.json", "--dry-run"],
    "approve": ["approve", "--json"],
    "ask": ["ask", "tools.echo value=3", "--json"],
    "auth": ["auth", "list", "--json"],
    "batch": ["batch", "--help"],
    "check": ["check", "list", "--json"],
    "config": ["config", "show", "--json"],
    "deps": ["deps", "--json"],
    "guide": ["guide", "--json"],
    "history": ["history", "--json"],
    "mcp": ["mcp", "list", "--json"],
    "new": ["new", "room"],
    "paths": ["paths", "--json"],
    "pause": ["pause", "--json"],
    "presets": ["presets", "list", "--json"],
    "resume": ["resume", "--json"],
    "rules": ["rules", "list", "--json"],
    "script": ["script", "run", "-"],
    "serve": ["serve", "--print-config", "cursor"],
    "sessions": ["sessions", "list", "--json"],
    "stop": ["stop", "--json"],
    "tools": ["tools", "invoke", "fs.read_file", "--arg", "path=greeting.txt", "--data"],
    "trust": ["trust", "--list", "--json"],
    "watch": ["watch", "--", "echo", "{}"],
    "web": ["web", "--help"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "greeting.txt").write_text("héllo\n", encoding="utf-8")
    (tmp_path / "servers.json").write_text('{"mcpServers": {"x": {"command": "y"}}}', encoding="utf-8")
    return tmp_path


@pytest.mark.promise("CLI-1", "CLI-2", "CLI-3", "CLI-4")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_in_a_process_of_its_own(command: str, folder: Path) -> None:
    line = [PROGRAM, *LINES[command]]
    script = "fs.read_file --path greeting.txt; time.now >/dev/null"
    done = subprocess.run(
        line, input=script, cwd=folder, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    if command in {"script", "tools"}:
        assert "héllo" in done.stdout
    else:
        assert done.stdout


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize("line", [["tools", "invoke", "nope.x"], ["nope"], ["--version"]])
def test_the_command_server_answers_like_a_process_of_its_own(line: list[str], folder: Path) -> None:
    done = subprocess.run([PROGRAM, *line], capture_output=True, text=True, timeout=60, cwd=folder, check=False)
    served = commands.pegboard(*line, cwd=folder)
    assert (served.returncode, served.stderr) == (done.returncode, done.stderr)
    assert len(served.stdout) == len(done.stdout)


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize("line", [["nope"], ["tools", "list"]])
def test_the_command_server_writes_the_same_to_a_terminal(line: list[str]) -> None:
    written = []
    for is_forked in (True, False):
        with in_terminal(*line, is_forked=is_forked) as terminal:
            written.append((terminal.read_all(), terminal.output))
    assert written[0] == written[1]
    assert written[0][1]


def test_the_command_server_separates_commands(folder: Path, home: Path) -> None:
    first, second = folder / "first", folder / "second"
    first.mkdir()
    second.mkdir()
    (second / "greeting.txt").write_text("other\n", encoding="utf-8")
    env = {"PATH": "", "PEGBOARD_CACHE_DIR": str(home / "cache"), "PEGBOARD_TOOLS__ALLOW": "time.*"}
    assert "fs.list_dir" not in commands.pegboard("tools", "list", cwd=first, env=env).stdout
    assert "fs.list_dir" in commands.pegboard("tools", "list", cwd=first).stdout
    assert commands.pegboard(*LINES["tools"], cwd=second).stdout == "other\n\n"
    assert commands.pegboard(*LINES["tools"], cwd=first).returncode == 1
    echoed = commands.pegboard("tools", "invoke", "tools.echo", "--args", "-", "--data", stdin='{"value": "ü"}')
    assert echoed.stdout == "ü\n"
    with pytest.raises(subprocess.TimeoutExpired):
        commands.pegboard("script", "run", "-", stdin="sleep 50", timeout=0.5)


@pytest.mark.parametrize("sent", ["nothing", "streams", "request"])
def test_the_command_server_continues_after_a_client_that_ended_early(home: Path, tmp_path: Path, sent: str) -> None:
    request = {"arguments": ["pegboard", "script", "run", "-"], "cwd": str(tmp_path), "env": {}, "umask": 0o77}
    with Path(os.devnull).open("r+b") as null:
        for _ in range(20):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(commands.address())
                if sent != "nothing":
                    socket.send_fds(client, [b"\0"], [null.fileno()] * 3)
                if sent == "request":
                    client.sendall(json.dumps(request).encode() + b"\n")
    assert commands.pegboard("tools", "list").returncode == 0


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize("arguments", [["trust"], ["new", "room"], ["mcp", "test", "files"]], ids=" ".join)
def test_a_command_in_a_deleted_folder_explains_what_to_do(home: Path, tmp_path: Path, arguments: list[str]) -> None:
    (home / "config.toml").write_text('[mcp.servers.files]\ncommand = "cat"\n')
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["bash", "-c", 'rmdir "$PWD"; exec "$@"', "bash", PROGRAM, *arguments],
        cwd=tmp_path / "gone",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "The working directory no longer exists." in done.stderr
    assert "a folder that exists" in done.stderr


def _restricted(program: list[str]) -> list[str]:
    """Return a command that may not enter every folder, even for root."""
    if os.geteuid() != 0:
        return program
    if shutil.which("setpriv") is None:
        pytest.skip("requires setpriv")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *program]


@pytest.mark.promise("CLI-2", "EXE-4")
@pytest.mark.parametrize(
    ("line", "code", "out", "error"),
    [
        ("tools list time", 0, "time.now", ""),
        ("tools list nope", 0, "", "No tool matches 'nope'."),
        ("tools invoke time.now --data", 0, "iso", ""),
        ("tools invoke fs.list_dir --data", 1, "null", ". can't be read: permission denied."),
        ("new room", 1, "", "You may not enter the working directory. Change to another folder"),
        ("trust", 1, "", "You may not enter the working directory. Change to another folder"),
    ],
)
def test_a_folder_that_the_user_may_not_enter_affects_only_what_uses_its_files(
    home: Path, tmp_path: Path, line: str, code: int, out: str, error: str
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    done = subprocess.run(
        ["bash", "-c", 'chmod 0 .; exec "$@"', "bash", *_restricted([PROGRAM, *line.split()])],
        cwd=closed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    closed.chmod(0o700)
    assert (done.returncode, out in done.stdout, error in done.stderr) == (code, True, True), done


@pytest.mark.promise("DSC-7", "CLI-2")
@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("tools list time", "This packs folder could not be read: Permission denied."),
        ("tools invoke time.now", ""),
        ("presets list", "The presets can't be read: Permission denied."),
        ("check compat", "This packs folder could not be read: Permission denied."),
    ],
)
def test_a_data_folder_that_the_user_may_not_enter_is_a_problem(home: Path, line: str, error: str) -> None:
    (home / "data").mkdir(mode=0)
    program = _restricted([PROGRAM, *line.split()])
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    (home / "data").chmod(0o700)
    assert (done.returncode, error in done.stderr) == (0, True), done


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize("line", ["history --json", "history", "tools invoke fs.read_file --arg path=large.txt --data"])
def test_data_that_does_not_fit_on_the_disk_is_a_failure_without_the_buffers_of_python(
    line: str, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "large.txt").write_text("x" * 5000, encoding="utf-8")
    assert commands.pegboard("tools", "invoke", "tools.echo", "--arg", f"value={'x' * 5000}").returncode == 0
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))  # noqa: E731
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [PROGRAM, *line.split()],
            cwd=tmp_path,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            preexec_fn=limit,
            stdout=out,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
    assert (done.returncode, (tmp_path / "out").stat().st_size) == (1, 3000)
    assert "File too large" in done.stderr


@pytest.mark.promise("TUI-1")
def test_the_app_does_not_start_invisibly_if_the_stream_on_which_it_draws_is_redirected(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    terminal = Terminal(["sh", "-c", f'exec "{PROGRAM}" 2> "{errors}"'], None, (100, 30))
    try:
        assert terminal.read_all() == 2
    finally:
        terminal.close()
    assert "pegboard needs a terminal" in errors.read_text()


@pytest.mark.promise("TUI-1")
def test_the_app_draws_in_utf_8_whatever_the_locale_says(home: Path) -> None:
    with in_terminal(environ={"PYTHONIOENCODING": "iso-8859-1"}) as terminal:
        terminal.read_until("list_dir")
        assert "─" in terminal.output
        assert "\\u2500" not in terminal.output
        terminal.type("\x11")  # ctrl+q
        assert terminal.read_all() == 0


@pytest.mark.promise("TUI-6")
@pytest.mark.parametrize(
    ("environ", "colors"),
    [
        ({"TERM": "xterm-ghostty"}, "38;2"),
        ({"TERM": "xterm-256color", "WT_SESSION": "1"}, "38;2"),
        ({"TERM": "xterm-256color"}, "38;5"),
        ({"TERM": "linux"}, ""),
    ],
)
def test_the_app_uses_the_colors_that_a_terminal_has(home: Path, environ: dict[str, str], colors: str) -> None:
    with in_terminal(environ={"COLORTERM": "", **environ}, is_forked=True) as terminal:
        terminal.read_until("list_dir")
        terminal.type("\x11")  # ctrl+q
        assert terminal.read_all() == 0
    assert {kind for kind in ("38;2", "38;5") if f"[{kind};" in terminal.output} == set(filter(None, [colors]))


@pytest.mark.promise("SEC-7")
@pytest.mark.parametrize("is_recorded", [True, False])
def test_the_app_names_a_chat_to_resume_at_its_end_only_if_it_is_recorded(home: Path, is_recorded: bool) -> None:
    if not is_recorded:
        (home / "state" / "history.db").mkdir(parents=True)
    (home / "config.toml").write_text('[keys]\n"mode.chat" = "ctrl+x"\n"chat.sessions" = ""\n')
    with in_terminal(size=(160, 40)) as terminal:
        terminal.read_until("type to filter")
        terminal.type("\x18")  # ctrl+x
        terminal.read_until("Ask something")
        terminal.type("hello")
        terminal.type("\r")
        terminal.read_until("I am the offline model")
        terminal.type("\x11")  # ctrl+q
        assert terminal.read_all() == 0
    after = terminal.output.rpartition("\x1b[?1049l")[2]
    assert ("Resume the chat: " in after, "not recorded" in after) == (is_recorded, not is_recorded)
    assert ("press ctrl+x, then “Sessions” in the app" in after) is is_recorded
