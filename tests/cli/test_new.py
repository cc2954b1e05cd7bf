"""`pegboard new` writes a pack and a test that pass unchanged, and never overwrites a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any  # Results may be any JSON value.

import commands
import pytest

import pegboard

Command = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.promise("CLI-4")


@pytest.fixture
def run(tmp_path: Path) -> Command:
    """Return a function that runs a module of this Python in the temporary folder."""

    def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        if arguments[0] == "pegboard":
            return commands.pegboard(*arguments[1:], cwd=tmp_path)
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=100, check=False
        )

    return run_module


@pytest.fixture
def new(run: Command) -> Command:
    """Return a function that runs `pegboard new`."""
    return lambda *arguments: run("pegboard", "new", *arguments)


def test_both_files_are_written_and_the_next_commands_are_printed(new: Command, tmp_path: Path) -> None:
    done = new("room")
    assert (done.returncode, done.stdout) == (0, "room.py\ntest_room.py\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["room.py", "test_room.py"]
    for line in ("pegboard --packs . tools invoke room.largest --data", "pytest test_room.py"):
        assert line in done.stderr


@pytest.mark.promise("CLI-4")
def test_a_tilde_in_the_folder_is_the_home_folder_as_it_is_for_the_command_that_is_printed(
    new: Command, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    done = new("room", "--dir=~/tools")
    assert done.stdout.splitlines()[0] == str(tmp_path / "home" / "tools" / "room.py")
    assert f"pegboard --packs {tmp_path / 'home' / 'tools'} tools invoke room.largest" in done.stderr
    assert "room.largest" in run("pegboard", "--packs=~/tools", "tools", "list").stdout
    assert not (tmp_path / "~").exists()


@pytest.mark.promise("SDK-15")
def test_the_written_test_passes(new: Command, run: Command) -> None:
    new("room")
    done = run("pytest", "-p", "no:cacheprovider", "test_room.py")
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


@pytest.mark.parametrize(
    "check",
    [
        ("ruff", "check", "--isolated", "--no-cache", "."),
        ("ruff", "format", "--isolated", "--no-cache", "--line-length", "120", "--check", "."),
        pytest.param(("mypy", "--strict", "--cache-dir", "cache", "room.py", "test_room.py"), marks=pytest.mark.slow),
    ],
    ids=["lint", "format", "types"],
)
def test_both_files_are_clean(new: Command, run: Command, check: tuple[str, ...]) -> None:
    new("room")
    done = run(*check)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.promise("SDK-12")
@pytest.mark.parametrize("name", ["testing", "host", "found", "failed", "call_tool", "folder"])
def test_the_written_test_passes_for_a_pack_with_the_name_of_something_in_it(
    new: Command, run: Command, name: str
) -> None:
    new(name)
    done = run("pytest", "-q", "-p", "no:cacheprovider", f"test_{name}.py")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.promise("DSC-2", "SDK-12")
def test_the_written_pack_is_found_without_a_problem_and_runs(new: Command, run: Command, tmp_path: Path) -> None:
    new("room")
    (tmp_path / "large").write_bytes(b"x" * 100_000)
    listed = run("pegboard", "--packs", ".", "tools", "list", "--json")
    found = {tool["name"]: tool for tool in json.loads(listed.stdout) if "room" in tool["pack"]}
    assert (listed.stderr, set(found)) == ("", {"room.largest", "room.usage"})
    assert {(tool["state"], *tool["problems"]) for tool in found.values()} == {("ready",)}
    invoked = run("pegboard", "--packs", ".", "tools", "invoke", "room.largest", "--arg", "limit=1", "--data")
    assert json.loads(invoked.stdout) == [{"path": "large", "size": 100_000}]
    assert "looked at 3 files" in invoked.stderr
    measured = run("pegboard", "--packs", ".", "tools", "invoke", "room.usage", "--data")
    assert int(measured.stdout) >= 100_000


def test_a_missing_folder_is_created(new: Command, tmp_path: Path) -> None:
    done = new("room", "--dir", "my packs")
    assert sorted(path.name for path in (tmp_path / "my packs").iterdir()) == ["room.py", "test_room.py"]
    assert "pegboard --packs 'my packs'\n" in done.stderr
    assert "pytest 'my packs/test_room.py'\n" in done.stderr


@pytest.mark.parametrize("existing", ["room.py", "test_room.py"])
def test_nothing_is_overwritten(new: Command, tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).write_text("mine")
    done = new("room")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{existing} exists.\n")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(existing, "mine")]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("_room", "helpers"),
        ("test_room", "are tests"),
        ("a.b", "letters, digits"),
        ("../room", "letters, digits"),
        ("a b", "letters, digits"),
        ("1room", "letters, digits"),
        ("", "letters, digits"),
        ("class", "it is a keyword of Python"),
        ("time", "import the library"),
        ("pydantic", "import the library"),
        ("fs", "pack fs exists already"),
    ],
)
@pytest.mark.promise("CLI-2")
def test_an_invalid_name_is_rejected(new: Command, tmp_path: Path, name: str, reason: str) -> None:
    done = new(name)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("CLI-2")
def test_a_pack_cannot_have_the_name_of_pytest_even_if_pytest_is_not_installed(home: Path, tmp_path: Path) -> None:
    del home
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith("pytest"):
            (libraries / entry.name).symlink_to(entry)
    source = Path(pegboard.__file__).parents[1]
    environ = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{libraries}"}
    command = [sys.executable, "-S", "-m", "pegboard", "new", "pytest", "--dir", "packs"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "import the library of this name" in done.stderr
    assert not (tmp_path / "packs").exists()


def test_a_folder_that_can_not_be_created_is_reported(new: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = new("room", "--dir", "file/inner")
    assert (done.returncode, done.stdout) == (1, "")
    assert "can't be written" in done.stderr


def test_a_file_that_does_not_fit_on_the_disk_leaves_no_part_of_the_pack(tmp_path: Path) -> None:
    command = 'ulimit -f 1; exec "$@"'  # 1 KiB: less than the pack, more than an empty file
    program = [sys.executable, "-m", "pegboard", "new", "room"]
    done = subprocess.run(
        ["bash", "-c", command, "bash", *program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "room.py can't be written: File too large." in done.stderr
    assert [*tmp_path.iterdir()] == []


@pytest.mark.promise("SCR-3", "CLI-1")
def test_the_example_replaces_many_calls_by_one(new: Command, run: Command, home: Path) -> None:
    done = new("--example", "shop")
    pack, script = home / "data" / "packs" / "shop.py", home / "data" / "scripts" / "late-orders.sh"
    assert (done.returncode, done.stdout.splitlines()) == (0, [str(pack), str(script)])

    said = [line.split() for line in done.stderr.splitlines() if line.startswith("  pegboard ")]
    (tool, check, ran) = [run("pegboard", *words[1:]) for words in said]
    assert (tool.stderr, json.loads(tool.stdout)["pages"]) == ("", 3)
    assert [line.split()[0] for line in check.stdout.splitlines()] == [
        "shop.list_orders", "shop.get_inventory", "shop.create_discount", "shop.get_user",
    ]  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")

    told = json.loads(run("pegboard", "script", "run", "late-orders", "--json").stdout)
    assert told["stdout"] == ran.stdout, "what is invented is always the same"
    results: dict[str, list[Any]] = {call["call"]["name"]: [] for call in told["calls"]}
    for call in told["calls"]:
        results[call["call"]["name"]].append(call["result"]["data"])
    # the answer is right
    missing = {stock["sku"] for stock in results["shop.get_inventory"] if not stock["available"]}
    late = [order for page in results["shop.list_orders"] for order in page["orders"]]
    waiting = {order["user_id"] for order in late for item in order["items"] if item["sku"] in missing}
    assert {discount["user_id"] for discount in results["shop.create_discount"]} == waiting
    assert len(ran.stdout.splitlines()) == len(waiting) > 10
    # and the guide says how much that saves
    readme = (Path(__file__).parents[2] / "src" / "pegboard" / "guide" / "scripts.md").read_text(encoding="utf-8")
    bytes_ = sum(len(json.dumps(call["result"]["data"])) for call in told["calls"])
    assert f"{len(told['calls'])} calls, {bytes_ / 1000:.0f} kB of results" in " ".join(readme.split())
    assert f"{(len(ran.stdout) + len(script.read_text())) / 1000:.1f} kB" in readme


@pytest.mark.promise("BAT-3")
def test_the_check_with_questions_in_the_guide_passes_with_the_example(new: Command, run: Command, home: Path) -> None:
    new("--example", "shop")
    guide = (Path(__file__).parents[2] / "src" / "pegboard" / "guide" / "checks.md").read_text(encoding="utf-8")
    [check] = [block for block in guide.split("```toml\n")[1:] if block.startswith('tool = "shop.list_orders"')]
    checks = home / "data" / "checks"
    checks.mkdir(parents=True)
    (checks / "late.toml").write_text(check.partition("```")[0], encoding="utf-8")
    done = run("pegboard", "check", "run", "late", "--json")
    assert [check["status"] for check in json.loads(done.stdout)["checks"]] == ["passed"], done.stdout


def test_the_example_overwrites_nothing(new: Command, home: Path) -> None:
    script = home / "data" / "scripts" / "late-orders.sh"
    script.parent.mkdir(parents=True)
    script.write_text("mine")
    done = new("--example", "shop")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{script} exists.\n")
    script.unlink()
    assert new("--example", "shop").returncode == 0
    again = new("--example", "shop")
    assert (again.returncode, "The pack shop exists already" in again.stderr) == (2, True)


@pytest.mark.promise("CLI-2")
@pytest.mark.parametrize(
    "line", [[], ["room", "--example", "shop"], ["--example", "shop", "--dir", "x"], ["--example", "x"]]
)
def test_either_a_name_or_an_example_is_required(new: Command, tmp_path: Path, line: list[str]) -> None:
    done = new(*line)
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert "Error: Invalid value" in done.stderr
    assert "--folder" not in done.stderr


@pytest.mark.promise("CLI-2")
def test_an_unknown_choice_is_reported_without_the_words_of_a_library(new: Command) -> None:
    assert "'--example': 'x' is not one of 'shop'." in new("--example", "x").stderr
