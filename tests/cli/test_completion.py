"""Completion by shells: its installation, and names, which bash inserts and zsh evaluates, whatever they contain."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import commands
import pytest
from terminals import Terminal

Command = Callable[..., commands.Done]

NAMES = (
    "a b",
    "it's",
    "$(touch ran)",
    "\\$(touch ran)",
    "\\`touch ran\\`",
    "a;touch ran;",
    "x'; touch ran; '",
    "größe-1",
)


@pytest.fixture
def checks(tmp_path: Path) -> Path:
    """Return a folder that the user doesn't trust, with checks of these names."""
    folder = tmp_path / "checks"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.toml").write_text('tool = "fs.list_dir"\n')
    return folder


def _offered(pegboard: Command, *words: str) -> list[str]:
    environment = {"COMP_WORDS": "\n".join(("pegboard", *words)), "COMP_CWORD": str(len(words))}
    return pegboard(env={"_PEGBOARD_COMPLETE": "complete_bash", **environment}).stdout.strip("\n").splitlines()


@pytest.mark.promise("CLI-1", "SEC-1")
@pytest.mark.usefixtures("checks")
@pytest.mark.parametrize(("typed", "before"), [("", ""), ("'", "'"), ('"', '"')])
def test_bash_inserts_each_completed_name_as_one_word_and_runs_nothing_in_it(
    pegboard: Command, tmp_path: Path, typed: str, before: str
) -> None:
    offered = _offered(pegboard, "check", "delete", typed)
    line = " ".join(f"{before}{word}{before}" for word in offered)
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {line}"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert sorted(done.stdout.splitlines()) == sorted(NAMES)
    assert not (tmp_path / "ran").exists()


@pytest.mark.promise("CLI-1")
@pytest.mark.usefixtures("checks")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [("a\\ ", ["a\\ b"]), ("'a ", ["a b"]), ('"a ', ["a b"]), ("it", ["it\\'s"]), ("gr", ["größe-1"]), ("b", [])],
)
def test_bash_completes_a_name_that_was_typed_with_quotes(pegboard: Command, typed: str, offered: list[str]) -> None:
    assert _offered(pegboard, "check", "delete", typed) == offered


@pytest.mark.promise("SEC-1")
@pytest.mark.usefixtures("checks")
def test_zsh_gets_no_name_in_which_it_would_run_a_command(pegboard: Command) -> None:
    done = pegboard(env={"_PEGBOARD_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "pegboard check delete "})
    assert done.stdout.splitlines() == [
        """_arguments '*: :(("\\$(touch ran)\"""",
        '"a b"',
        '"a;touch ran;"',
        """"größe-1"))'""",
    ]


@pytest.mark.promise("CLI-2")
def test_on_a_terminal_installing_completion_reports_its_file_without_escapes(tmp_path: Path, home: Path) -> None:
    program = f"{shlex.quote(sys.executable)} -m pegboard --install-completion"
    terminal = Terminal(["bash", "--norc", "-c", f"{program}; exit $?"], {"HOME": str(tmp_path)}, (200, 24))
    try:
        assert terminal.read_all() == 0
    finally:
        terminal.close()
    assert f"bash completion installed in {tmp_path / '.bash_completions'}" in terminal.output.splitlines()[0]
    assert "␛" not in terminal.output
