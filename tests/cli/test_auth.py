"""`pegboard auth`: secrets go into the keyring and are never printed."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import commands
import pytest

Command = Callable[..., commands.Done]

VALUE = "correct-horse-battery"
NO_KEYRING = "keyring.backends.fail.Keyring"

NEEDY = '''
"""Needs a key."""

from pegboard.sdk import requires_secret


@requires_secret("NEEDED")
def search() -> int:
    """Searches."""
    return 1
'''

BACKEND = '''
import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend


class Keyring(KeyringBackend):
    """Keeps passwords in a file."""

    priority = 1
    file = Path(os.environ["KEYRING_FILE"])

    def _kept(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def get_password(self, service, username):
        return self._kept().get(f"{service} {username}")

    def set_password(self, service, username, password):
        self.file.write_text(json.dumps({**self._kept(), f"{service} {username}": password}))

    def delete_password(self, service, username):
        kept = self._kept()
        del kept[f"{service} {username}"]
        self.file.write_text(json.dumps(kept))
'''


@pytest.fixture
def environment(tmp_path: Path, home: Path) -> dict[str, str]:
    """Return the environment of a machine whose keyring is a file."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "file_keyring.py").write_text(BACKEND)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(modules), os.environ.get("PYTHONPATH", "")]),
        "PYTHON_KEYRING_BACKEND": "file_keyring.Keyring",
        "KEYRING_FILE": str(tmp_path / "keyring.json"),
    }


@pytest.fixture
def pegboard(environment: dict[str, str], tmp_path: Path) -> Command:
    """Return a function that runs `pegboard` in `tmp_path` and returns the finished process."""

    def run(*arguments: str, stdin: str | bytes = "", env: dict[str, str] | None = None) -> commands.Done:
        done = commands.pegboard(*arguments, cwd=tmp_path, env={**environment, **(env or {})}, stdin=stdin)
        assert VALUE not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def kept(environment: dict[str, str]) -> dict[str, str]:
    """Return the content of the keyring."""
    found: dict[str, str] = json.loads(Path(environment["KEYRING_FILE"]).read_text())
    return found


@pytest.mark.promise("CLI-4", "STO-2")
def test_a_secret_is_set_from_a_pipe_listed_and_removed(pegboard: Command, environment: dict[str, str]) -> None:
    done = pegboard("auth", "set", "SEARCH_KEY", stdin=f"{VALUE}\n")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("SEARCH_KEY is stored in the keyring")
    assert kept(environment) == {"pegboard SEARCH_KEY": VALUE}

    listed = pegboard("auth", "list", "--json")
    row = {"name": "SEARCH_KEY", "set": True, "source": "keyring", "error": None}
    assert (listed.returncode, listed.stderr, json.loads(listed.stdout)) == (0, "", [row])
    assert pegboard("auth", "list").stdout.split()[3:] == ["SEARCH_KEY", "set", "the", "keyring"]

    removed = pegboard("auth", "remove", "SEARCH_KEY")
    assert (removed.returncode, removed.stdout) == (0, "")
    assert kept(environment) == {}
    assert pegboard("auth", "list").stdout == ""
    again = pegboard("auth", "remove", "SEARCH_KEY")
    assert (again.returncode, again.stderr) == (2, "The keyring has no secret SEARCH_KEY.\n")


@pytest.mark.promise("CLI-4")
@pytest.mark.parametrize(("stdin", "value"), [("a\r\n", "a"), (" a \n", " a "), ("a\nb\n\n", "a\nb\n"), ("ä", "ä")])
def test_a_piped_value_is_stored_without_its_last_line_break(
    pegboard: Command, environment: dict[str, str], stdin: str, value: str
) -> None:
    assert pegboard("auth", "set", "KEY", stdin=stdin).returncode == 0
    assert kept(environment) == {"pegboard KEY": value}


@pytest.mark.promise("CLI-4", "CLI-2")
@pytest.mark.parametrize(
    ("line", "stdin", "words"),
    [
        (["KEY"], "", "is empty"),
        (["KEY"], "${TOKEN}\n", "${…}"),
        (["KEY"], b"\xff", "not UTF-8"),
        (["KEY"], "x" * 100_001, "longer than 100,000 bytes"),
        (["KEY", VALUE], "", "be an argument"),
        ([f"KEY={VALUE}"], "x", "The name of the secret is invalid"),
        ([VALUE + " "], "x", "The name of the secret is invalid"),
    ],
)
def test_a_value_that_cannot_be_stored_is_rejected_without_showing_it(
    pegboard: Command, environment: dict[str, str], line: list[str], stdin: str | bytes, words: str
) -> None:
    done = pegboard("auth", "set", *line, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert not Path(environment["KEYRING_FILE"]).exists()


@pytest.mark.promise("CLI-4", "STO-2")
@pytest.mark.parametrize("backend", [NO_KEYRING, "keyring.backends.null.Keyring", "no.such.Keyring", ""])
def test_without_a_keyring_the_message_suggests_the_environment_or_a_dotenv_file(
    pegboard: Command, backend: str
) -> None:
    env = {"PYTHON_KEYRING_BACKEND": backend}
    done = pegboard("auth", "set", "KEY", stdin=VALUE, env=env)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Set the secret in the environment or in a `.env` file instead." in done.stderr
    listed = pegboard("auth", "list", "--json", env=env)
    assert (listed.returncode, listed.stdout) == (0, "[]\n")


@pytest.mark.promise("CLI-4")
def test_without_a_keyring_nothing_can_be_removed(pegboard: Command) -> None:
    done = pegboard("auth", "remove", "KEY", env={"PYTHON_KEYRING_BACKEND": NO_KEYRING})
    assert (done.returncode, "This machine has no keyring." in done.stderr) == (1, True)


@pytest.mark.promise("CLI-4", "STO-2")
def test_the_list_has_secrets_of_the_keyring_of_dotenv_files_and_of_packs(
    pegboard: Command, home: Path, tmp_path: Path, trust: Callable[[Path], None]
) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "needy.py").write_text(NEEDY)
    (home / "config.toml").write_text(
        '[packs.web]\nsecrets = ["GRANTED", "SHELL_KEY"]\n[packs.b]\nsecrets = "A_KEY, B"\n'
    )
    (tmp_path / ".env").write_text(f"DOT_KEY={VALUE}\nEMPTY=\nbroken {VALUE}\n")
    trust(tmp_path)
    pegboard("auth", "set", "RING_KEY", stdin=VALUE)
    listed = pegboard("auth", "list", "--json", "--packs", "packs", env={"SHELL_KEY": VALUE})
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert {name: (row["set"], row["source"]) for name, row in rows.items()} == {
        "A_KEY": (False, None),
        "B": (False, None),
        "DOT_KEY": (True, ".env"),
        "EMPTY": (False, None),
        "GRANTED": (False, None),
        "NEEDED": (False, None),
        "RING_KEY": (True, "keyring"),
        "SHELL_KEY": (True, "environment"),
    }
    assert rows["GRANTED"]["error"] == "GRANTED is not set."
    assert "is empty" in rows["EMPTY"]["error"]
    assert f"{tmp_path / '.env'}:3: Expected `NAME=value` on this line." in listed.stderr


@pytest.mark.promise("CLI-4")
def test_another_source_of_the_secret_is_reported(
    pegboard: Command, tmp_path: Path, trust: Callable[[Path], None]
) -> None:
    (tmp_path / ".env").write_text(f"KEY={VALUE}\n")
    trust(tmp_path)
    note = f"note: KEY is also set in {tmp_path / '.env'}, which"
    assert f"{note} comes first." in pegboard("auth", "set", "KEY", stdin="another").stderr
    assert f"{note} stays." in pegboard("auth", "remove", "KEY").stderr


ON_A_TERMINAL = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"


def on_a_terminal(environment: dict[str, str], folder: Path, key: bytes, *arguments: str) -> tuple[int, bytes]:
    """Run `pegboard` on its own terminal and type once it stopped to echo; return its exit code and output."""
    ours, its = os.openpty()
    command = [sys.executable, "-c", ON_A_TERMINAL, sys.executable, "-m", "pegboard", *arguments]
    with subprocess.Popen(command, stdin=its, cwd=folder, env=environment) as process:
        shown, end, is_asked = b"", time.monotonic() + 60, False
        try:
            while time.monotonic() < end:
                if select.select([ours], [], [], 0.05)[0]:
                    shown += os.read(ours, 1000)
                elif process.poll() is not None:
                    return process.returncode, shown
                elif not is_asked and b"Value of" in shown and not termios.tcgetattr(ours)[3] & termios.ECHO:
                    is_asked = True
                    os.write(ours, key)
        finally:
            process.kill()
            os.close(ours)
            os.close(its)
        pytest.fail(f"it didn't end: {shown!r}")


@pytest.mark.promise("CLI-4")
def test_on_a_terminal_the_value_is_asked_for_and_not_shown(environment: dict[str, str], tmp_path: Path) -> None:
    code, shown = on_a_terminal(environment, tmp_path, VALUE.encode() + b"\n", "auth", "set", "KEY")
    assert code == 0
    assert b"is stored in the keyring" in shown
    assert VALUE.encode() not in shown
    assert kept(environment) == {"pegboard KEY": VALUE}


@pytest.mark.promise("CLI-4", "CLI-2")
@pytest.mark.parametrize(("key", "code"), [(b"\x03", 130), (b"\x04", 2), (b"\n", 2)], ids=["ctrl+c", "ctrl+d", "enter"])
def test_on_a_terminal_the_prompt_can_be_cancelled(
    environment: dict[str, str], tmp_path: Path, key: bytes, code: int
) -> None:
    ended, shown = on_a_terminal(environment, tmp_path, key, "auth", "set", "KEY")
    assert ended == code
    assert b"Traceback" not in shown
    assert b"without a terminal" not in shown
    assert not Path(environment["KEYRING_FILE"]).exists()
