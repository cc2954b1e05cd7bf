"""The commands, packs and configuration that the README and the guide show work as they are."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import shell_function

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = ROOT / "src" / "pegboard" / "guide"
DOCUMENTS = "\n".join([README, *(file.read_text(encoding="utf-8") for file in sorted(GUIDE.glob("*.md")))])
KEPT_OUT = re.compile(r"note: the allow list excludes \d+ more tools\n")
"""Of the built-in tools: the tour and the configuration both admit `fs.*` and `time.now`."""


def _block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", DOCUMENTS, re.MULTILINE | re.DOTALL)
    [found] = [block for block in blocks if containing in block]
    return str(found)


def _run(line: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of Pegboard or pytest."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    definitions = shell_function() + f'pytest() {{ {shlex.quote(sys.executable)} -m pytest "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", definitions + line],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env={**own, **env},
        check=False,
    )


@pytest.mark.promise("CLI-1")
def test_every_command_line_of_the_tour_works(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    lines = _block("sh", "pegboard tools list  ").splitlines()
    assert len(lines) >= 8
    for line in lines:
        done = _run(line, tmp_path)
        assert done.returncode == 0, line
        assert (KEPT_OUT if "--tool-allow" in line else re.compile("")).fullmatch(done.stderr), line


@pytest.mark.promise("CLI-4", "SCR-3")
def test_the_scripts_that_it_shows_run(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        ["bash", "-ec", shell_function() + _block("sh", "script run -")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env=own,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, _, rest = done.stdout.partition("\n")
    assert first == "src/a.txt: 2 lines"
    assert "usage: fs.list_dir [--path string]" in rest
    assert rest.endswith("}\nfs.read_file  ?\n")


@pytest.mark.promise("CLI-4", "SCR-3")
def test_the_example_that_it_shows_runs(tmp_path: Path) -> None:
    lines = _block("sh", "pegboard new --example").splitlines()
    assert len(lines) == 3
    for line in lines:
        done = _run(line, tmp_path)
        assert done.returncode == 0, line + done.stdout + done.stderr


@pytest.mark.promise("SDK-11", "SDK-12", "SDK-13", "CFG-2")
def test_the_pack_that_it_teaches_is_found_without_a_problem_and_runs(tmp_path: Path) -> None:
    (tmp_path / "shelf.py").write_text(_block("python", "SHELF = "), encoding="utf-8")
    (tmp_path / "test_shelf.py").write_text(_block("python", "import shelf"), encoding="utf-8")
    listed = _run("pegboard --packs . tools list --json", tmp_path)
    [tool] = [tool for tool in json.loads(listed.stdout) if "shelf" in tool["pack"]]
    assert (listed.stderr, tool["problems"]) == ("", [])
    assert tool["inputSchema"]["properties"]["name"]["description"] == 'Kind of item, such as "hammer".'
    counted = _run("pegboard --packs . tools invoke shelf.count --arg name=hammer --arg unit=dozen", tmp_path)
    assert json.loads(counted.stdout)["result"]["data"] == 0.25
    assert "counted" in counted.stderr
    failed = _run("pegboard --packs . tools invoke shelf.count --arg name=axe", tmp_path)
    assert json.loads(failed.stdout)["result"]["error"]["detail"] == "not_found"
    tested = _run("pytest -p no:cacheprovider test_shelf.py", tmp_path)
    assert tested.returncode == 0, tested.stdout
    assert "2 passed" in tested.stdout


@pytest.mark.promise("CLI-4")
def test_every_command_that_it_teaches_to_write_a_pack_with_works(tmp_path: Path) -> None:
    for line in _block("sh", "pegboard new room").splitlines():
        done = _run(line, tmp_path)
        assert done.returncode == 0, line + done.stdout + done.stderr


def test_each_block_about_packs_is_run_by_one_of_these_tests() -> None:
    section = (GUIDE / "packs.md").read_text(encoding="utf-8")
    begins = re.findall(r"^```(\w+)\n(.*\n)", section, re.MULTILINE)
    assert [(language, line.split()[0]) for language, line in begins] == [
        ("sh", "pegboard"),
        ("python", '"""The'),
        ("python", "import"),
    ]


@pytest.mark.promise("CFG-1")
def test_the_configuration_that_it_shows_has_no_problem(tmp_path: Path, home: Path) -> None:
    (home / "config.toml").write_text(_block("toml", "[packs]"), encoding="utf-8")
    (home / "tools").mkdir()
    listed = _run("pegboard tools list", tmp_path, PEGBOARD_UI__THEME="pegboard-light")
    assert listed.returncode == 0
    assert KEPT_OUT.fullmatch(listed.stderr)
    assert {line.split(".")[0] for line in listed.stdout.splitlines()} == {"fs", "time"}


def test_the_pictures_that_it_shows_exist() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_the_documents_that_it_links_to_exist() -> None:
    for file in [ROOT / "README.md", *GUIDE.glob("*.md"), *(ROOT / ".github").glob("*.md")]:
        links = re.findall(r"\]\((?!https?:)([^)#]+)", file.read_text(encoding="utf-8"))
        assert [link for link in links if not (file.parent / link).exists()] == [], file
