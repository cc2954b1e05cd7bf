"""Python files in the working directory are never imported, whatever their names are."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest

PROGRAM = str(Path(sys.executable).with_name("pegboard"))
PACK = """
from pegboard.sdk import hints

@hints(read_only=True)
def value() -> list[int]:
    'Return a large value.'
    return [*range(400_000)]
"""
COMMANDS = {
    "a tool": ["tools", "invoke", "kit.value"],
    "a script": ["script", "run", "it.sh"],
    "a server": ["mcp", "test", "cat"],
    "a watched server": ["watch", "--name", "cat", "--", "true"],
    "a batch": ["batch", "kit.value", "--from", "rows.jsonl", "--engine", "dask://local?workers=1"],
    "requirements": ["deps"],
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a folder with a file for each importable module; each notes its name in `ran` when it runs."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    installed = importlib.metadata.packages_distributions()
    for name in {*sys.stdlib_module_names, *installed, "pegboard", "sitecustomize", "usercustomize"}:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write(__file__ + '\\n')\n")
    (folder / "it.sh").write_text("seq 3 | xargs -P 2 -I{} tools.echo --value {}\nkit.value | jq length\n")
    (folder / "rows.jsonl").write_text("{}\n")
    return folder


@pytest.fixture
def ran(tmp_path: Path) -> Callable[[], str]:
    """Return a function that returns the names of the files that ran."""
    file = tmp_path / "ran"
    return lambda: file.read_text() if file.exists() else ""


@pytest.mark.promise("SEC-1")
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_no_command_runs_files_of_the_working_directory(
    hostile: Path,
    ran: Callable[[], str],
    home: Path,
    write_pack: Callable[[str, str], Path],
    arguments: list[str],
) -> None:
    packs = write_pack("kit.py", PACK)
    for number in range(30):  # enough that another process reads them
        write_pack(f"large{number}.py", "# a comment\n" * 9_000)
    (home / "config.toml").write_text('[mcp.servers.cat]\ncommand = "cat"\ntimeout = 1\n')
    environ = {**os.environ, "PEGBOARD_PACKS": str(packs)}
    done = subprocess.run(
        [PROGRAM, *arguments], cwd=hostile, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran() == ""
    assert done.returncode == (1 if "cat" in arguments and "test" in arguments else 0), done.stdout + done.stderr


@pytest.mark.promise("SEC-1", "WEB-2")
async def test_the_app_in_a_browser_runs_no_files_of_the_working_directory(
    hostile: Path, ran: Callable[[], str], home: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "web", "--port", "0", cwd=hostile, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(60), aiohttp.ClientSession() as client:
            assert process.stdout is not None
            address = (await process.stdout.readline()).decode().strip()
            url = f"http://{urlsplit(address).netloc}"
            admitted = await asyncio.to_thread(httpx.get, address)
            headers = {"Origin": url, "Cookie": admitted.headers["Set-Cookie"].partition(";")[0]}
            async with client.ws_connect(f"{url}/ws?width=100&height=30", headers=headers) as socket:
                screen = ""
                while "Tools" not in screen and not ran():
                    screen += (await socket.receive_bytes()).decode("utf-8", "replace")
    finally:
        process.terminate()
        await process.wait()
    assert ran() == ""


@pytest.mark.promise("SEC-1")
def test_printed_and_written_commands_run_no_files_of_the_folder_in_which_they_start(
    hostile: Path, ran: Callable[[], str], home: Path, tmp_path: Path
) -> None:
    python = str(Path(sys.base_prefix) / "bin/python3")  # has no program `pegboard` beside it
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if Path(path).is_dir())}

    def run(*command: str, cwd: Path) -> str:
        return subprocess.run(
            command, cwd=cwd, env=environ, stdout=subprocess.PIPE, text=True, timeout=60, check=True
        ).stdout

    clients = tmp_path / "clients.json"
    clients.write_text(json.dumps({"mcpServers": {"one": {"command": "true", "args": []}}}))
    printed = json.loads(run(python, "-m", "pegboard", "serve", "--print-config", "claude-code", cwd=tmp_path))
    run(python, "-m", "pegboard", "adopt", str(clients), cwd=tmp_path)
    written = json.loads(clients.read_text())
    entry = printed["mcpServers"]["pegboard"]
    version = run(entry["command"], *entry["args"][: entry["args"].index("serve")], "--version", cwd=hostile)
    assert version.startswith("pegboard ")
    entry = written["mcpServers"]["one"]
    run(entry["command"], *entry["args"], cwd=hostile)
    run(python, "-m", "pegboard", "adopt", str(clients), cwd=tmp_path)
    assert json.loads(clients.read_text()) == written
    assert ran() == ""
