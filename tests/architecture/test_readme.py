"""The commands, packs and configuration that the README and the guide show work as they are."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from commands import shell_function

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = ROOT / "src" / "pegboard" / "guide"
DOCUMENTS = "\n".join([README, *(file.read_text(encoding="utf-8") for file in sorted(GUIDE.glob("*.md")))])
NOT_HERE = {"run", "test"}
"""Markers of blocks that install Pegboard; `.ci/run` runs the second one."""
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


def _pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(GUIDE.glob("*.md"))]


def _commands(page: Path) -> list[str]:
    """Return the blocks of shell commands of a page that this file runs here."""
    blocks = re.findall(r"^(?:<!-- (\w+) -->\n)?```sh\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [
        block for marker, block in blocks if marker not in NOT_HERE and "pipx" not in block and "ckan." not in block
    ]


@pytest.mark.promise("CLI-1", "DOC-1")
@pytest.mark.parametrize("page", _pages(), ids=lambda page: page.stem)
def test_every_command_of_the_documents_works(page: Path, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("a note\n", encoding="utf-8")
    blocks = _commands(page)
    for block in blocks:
        # The line needs a server of its user.
        offline = "\n".join(line for line in block.splitlines() if "--model ollama" not in line)
        done = _shell(offline, tmp_path)
        assert done.returncode == 0, offline + done.stdout + done.stderr
        assert "problem" not in done.stderr.casefold()
    assert blocks or page.stem in ("architecture", "configuration", "tools")


def _shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a block of commands in bash, with `pegboard` and `python` of this environment."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    functions = shell_function() + f'python() {{ {shlex.quote(sys.executable)} "$@"; }}\n'
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", functions + commands],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        env=own,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.mark.promise("DOC-1")
def test_the_keys_of_the_documents_are_those_of_the_app() -> None:
    known = _keys_of_commands()
    rows = re.findall(r"^\| `(.+?)` \| `([\w.]+)` \|", DOCUMENTS, re.MULTILINE)
    assert len(rows) > 30
    assert [(key, command) for key, command in rows if key not in known.get(command, ())] == []


def _keys_of_commands() -> dict[str, list[str]]:
    """Return the keys of every command as users read them."""
    import pegboard.tui
    from pegboard.tui.commands import Command
    from pegboard.tui.shell.help import shown_keys

    found: dict[str, list[str]] = {}
    for module in pkgutil.walk_packages(pegboard.tui.__path__, "pegboard.tui."):
        for value in vars(importlib.import_module(module.name)).values():
            for command in getattr(value, "ACTIONS", ()) if isinstance(value, type) else ():
                if isinstance(command, Command):
                    found.setdefault(command.id, []).extend(
                        [*command.keys.split(","), *shown_keys(command.keys).split(", ")]
                    )
    return found


@pytest.mark.promise("DOC-2")
async def test_a_newcomer_reaches_a_result_with_the_steps_of_the_tour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pegboard.runtime import Runtime
    from pegboard.tui.app import PegboardApp
    from pegboard.tui.result import ResultPane

    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    [paragraph] = re.findall(r"<!-- newcomer -->\n(.*?)\n\n", README, re.DOTALL)
    steps = re.findall(r"\b(type|press)\s+`([^`]+)`", paragraph, re.IGNORECASE)
    assert [kind.lower() for kind, _ in steps] == ["type", "press", "press"]
    app = PegboardApp(Runtime.from_environment())
    async with app.run_test(size=(120, 40)) as pilot, asyncio.timeout(60):
        while not app.tool_scan.catalogue.entries:
            await pilot.pause(0.05)
        for kind, text in steps:
            await pilot.press(*(text if kind.lower() == "type" else [text]))
            await pilot.pause(0.3)
        while (result := app.screen.query_one(ResultPane).result) is None:
            await pilot.pause(0.05)
    assert result.ok
    assert "a.txt" in json.dumps(result.data)


@pytest.mark.promise("DOC-2")
def test_a_newcomer_tries_a_pack_in_at_most_five_steps(tmp_path: Path) -> None:
    [block] = re.findall(r"<!-- pack -->\n```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert len(block.splitlines()) <= 5
    done = _shell(block, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    assert len(README.split()) <= 900
    assert re.search(r"<!-- run -->\n```sh\n.*pegboard\n```", README)
    assert re.search(r"<!-- test -->\n```sh\n.*pytest\n```", README)


@pytest.mark.promise("DOC-1")
def test_every_page_of_the_guide_is_listed_and_has_a_summary() -> None:
    from pegboard.guide import ORDER, pages

    assert {page.name for page in pages()} == {file.stem for file in GUIDE.glob("*.md")} <= set(ORDER)
    for page in pages():
        assert page.title[0].isupper(), page.name
        assert 15 < len(page.summary) < 200, (page.name, page.summary)
        assert page.summary[0] not in "#|`", page.name
        assert f"guide/{page.name}.md" in README, page.name


@pytest.mark.promise("CLI-4", "SCR-3")
def test_the_scripts_that_it_shows_run(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "src" / "it's $(help).txt").write_text("three\n", encoding="utf-8")
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        ["bash", "-ec", shell_function() + _block("sh", "-P 4")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env=own,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, second, rest = done.stdout.split("\n", 2)
    assert (first, second) == ("src/a.txt: 2 lines", "src/it's $(help).txt: 1 lines")
    assert "usage: fs.list_dir [--path string]" in rest
    assert rest.endswith("}\nfs.read_file  ?\n")


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


@pytest.mark.promise("CFG-1", "DOC-1")
def test_the_keys_that_it_assigns_have_no_problem() -> None:
    from pegboard.config import Settings
    from pegboard.tui.app import PegboardApp
    from pegboard.tui.shell.keymap import command_groups, key_problems
    from pegboard.tui.tools.screen import ToolsScreen

    keys = tomllib.loads(_block("toml", "[packs]"))["keys"]
    assert key_problems(Settings(keys=keys), command_groups(PegboardApp, ToolsScreen)) == []


@pytest.mark.promise("MCP-3", "MCP-1")
def test_the_servers_that_it_configures_have_no_problem_and_the_commands_add_them(tmp_path: Path, home: Path) -> None:
    (home / "config.toml").write_text(_block("toml", "[mcp.servers.files]"), encoding="utf-8")
    done = _run("pegboard config show", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (home / "config.toml").unlink()
    for line in _block("sh", "pegboard mcp add").splitlines():
        done = _run(line, tmp_path)
        assert done.returncode == 0, done.stderr
    assert "${HUB_TOKEN}" in (home / "config.toml").read_text(encoding="utf-8")


@pytest.mark.promise("CFG-1", "DOC-1")
def test_the_guide_describes_every_setting() -> None:
    from pegboard.config.settings import Section, Settings

    sections = {name: field.annotation for name, field in Settings.model_fields.items()}
    lines = DOCUMENTS.splitlines()
    missing = [
        f"{section}.{key}"
        for section, model in sections.items()
        if isinstance(model, type) and issubclass(model, Section)
        for key in model.model_fields
        if not any(re.search(rf"\b{key}\b(`| = )|\[{section}\.{key}\b", line) for line in lines)
    ]
    assert not missing


@pytest.mark.promise("ASK-5", "DOC-1")
def test_the_guide_lists_every_provider_with_its_keys() -> None:
    from pegboard.ask.providers.endpoint import PROVIDERS

    page = (GUIDE / "models.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|(.+)", page, re.MULTILINE))
    for name, provider in PROVIDERS.items():
        assert provider.title in rows[name]
        assert [key for key in provider.secrets if f"`{key}`" not in rows[name]] == []


def test_the_theme_that_it_shows_has_no_problem(tmp_path: Path) -> None:
    from pegboard.tui.shell import themes

    (tmp_path / "night.toml").write_text(_block("toml", "primary"), encoding="utf-8")
    [theme], problems = themes.load([tmp_path])
    assert (theme.name, problems) == ("night", [])


@pytest.mark.promise("BAT-3", "DOC-1")
def test_the_check_that_it_shows_passes(tmp_path: Path, home: Path) -> None:
    (tmp_path / "src" / "lib").mkdir(parents=True)
    (home / "data" / "checks").mkdir(parents=True)
    (home / "data" / "checks" / "lists.toml").write_text(_block("toml", "[expect]"), encoding="utf-8")
    done = _run("pegboard check run --update", tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_pictures_that_it_shows_exist() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_the_documents_that_it_links_to_exist() -> None:
    for file in [ROOT / "README.md", *GUIDE.glob("*.md"), *(ROOT / ".github").glob("*.md")]:
        links = re.findall(r"\]\((?!https?:)([^)#]+)", file.read_text(encoding="utf-8"))
        assert [link for link in links if not (file.parent / link).exists()] == [], file
