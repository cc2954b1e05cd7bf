"""Secrets come from the environment, a `.env` file or the keyring, and their values stay inside."""

from __future__ import annotations

import copy
import fcntl
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import keyring
import keyring.core
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked
from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError, to_json

from pegboard.config import Paths, Secret, Secrets, review_folder, trust_folder
from pegboard.config.dotenv import read_dotenv
from pegboard.config.literal_secrets import store_secret
from pegboard.config.vault import Vault
from pegboard.mcp.logins import Login, Logins
from pegboard.models import Problem

VALUE = "correct horse battery"


class Memory(KeyringBackend):
    """A keyring in memory."""

    priority = 1

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Locked(Memory):
    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringLocked(VALUE)


class Broken(Memory):
    def get_password(self, service: str, username: str) -> str | None:
        raise ValueError(VALUE)

    def set_password(self, service: str, username: str, password: str) -> None:
        raise ValueError(password)


class Silent(Memory):
    """A keyring that never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.end = Event()

    def get_password(self, service: str, username: str) -> str | None:
        self.asked += 1
        self.end.wait(60)
        return None


@pytest.fixture(autouse=True)
def memory() -> Iterator[Memory]:
    """Replace the keyring of the user who runs the tests."""
    before = keyring.get_keyring()
    backend = Memory()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


class Place:
    """A user with a working directory and a folder of settings."""

    def __init__(self, folder: Path) -> None:
        self.cwd, self.home = folder / "work", folder / "home"
        for made in (self.cwd, self.home):
            made.mkdir()
        self.paths = Paths(self.home / "config.toml", folder / "data", folder / "state", folder / "cache")

    def dotenv(self, text: str) -> None:
        """Write the working directory's `.env` and trust it."""
        (self.cwd / ".env").write_text(text)
        trust_folder(self.paths, review_folder(self.paths, self.cwd))

    def secrets(self, **environ: str) -> Secrets:
        return Secrets(self.paths, environ, self.cwd)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def why(found: Secret | Problem | str | bool | None) -> str:
    """Return the text of a value that must be a problem."""
    assert isinstance(found, Problem), found
    return str(found)


@pytest.mark.promise("STO-2")
def test_the_environment_comes_first_then_the_working_directory_then_the_settings_folder_then_the_keyring(
    place: Place,
) -> None:
    assert place.secrets().set("KEY", "of the keyring") is None
    found = place.secrets().find("KEY")
    assert found is not None
    assert (found.source, found.file, found.reveal()) == ("keyring", None, "of the keyring")
    for folder in (place.home, place.cwd):
        (folder / ".env").write_text(f"KEY='of {folder.name}'\n")
        if folder == place.cwd:
            place.dotenv("KEY='of work'\n")
        found = place.secrets().find("KEY")
        assert found is not None
        assert (found.source, found.file, found.reveal()) == (".env", folder / ".env", f"of {folder.name}")
    found = place.secrets(KEY="of the environment").find("KEY")
    assert found is not None
    assert (found.source, found.file, found.reveal()) == ("environment", None, "of the environment")


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize(("value", "words"), [("", "is empty"), ("  ", "is empty"), ("${API_KEY}", "${…}")])
def test_an_empty_value_and_an_unexpanded_variable_are_missing_and_hide_nothing(
    place: Place, value: str, words: str
) -> None:
    assert place.secrets(KEY=value).find("KEY") is None
    assert "KEY in the environment" in why(place.secrets(KEY=value).look_up("KEY"))
    assert words in why(place.secrets(KEY=value).look_up("KEY"))
    place.dotenv(f'KEY="{value}"\n')
    assert str(place.cwd / ".env") in why(place.secrets().look_up("KEY"))
    assert "KEY in the environment" in why(place.secrets(KEY=value).look_up("KEY"))
    assert why(place.secrets().set("KEY", value)).startswith("The value ")
    assert place.secrets().set("KEY", VALUE) is None
    found = place.secrets(KEY=value).find("KEY")
    assert found is not None
    assert (found.source, found.reveal()) == ("keyring", VALUE)


@pytest.mark.promise("STO-2")
def test_a_missing_secret_says_how_to_set_it(place: Place) -> None:
    assert why(place.secrets().look_up("KEY")) == (
        "KEY is not set. Set it in the environment or in a `.env` file, or run `pegboard auth set KEY`."
    )


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize("name", ["", "A B", "1A", "A=B", "../A", "A\0", "\ud800", "A" * 129])
def test_an_invalid_name_is_rejected_and_not_quoted(place: Place, name: str) -> None:
    for problem in (place.secrets().look_up(name), place.secrets().set(name, VALUE), place.secrets().remove(name)):
        assert why(problem).startswith("The name of the secret is invalid.")


@pytest.mark.promise("STO-2")
def test_a_secret_returns_its_value_only_by_reveal(place: Place) -> None:
    class Holder(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        secret: Secret

    secret = place.secrets(KEY=VALUE).find("KEY")
    assert secret is not None
    holder = Holder(secret=secret)
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        repr([secret]),
        repr(holder),
        repr(holder.model_dump()),
        to_json(secret, serialize_unknown=True).decode(),
        json.dumps({"secret": secret}, default=str),
    ]
    assert VALUE not in "".join(shown)
    with pytest.raises(PydanticSerializationError):
        holder.model_dump_json()
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="can't be pickled"):
            pickle.dumps(secret, protocol)
    assert copy.deepcopy([secret])[0] is copy.copy(secret) is secret
    with pytest.raises(TypeError):
        vars(secret)


@pytest.mark.promise("STO-2")
def test_the_keyring_stores_lists_and_deletes_secrets(place: Place, memory: Memory) -> None:
    secrets = place.secrets()
    assert [secrets.set(name, VALUE) for name in ("B", "A", "A")] == [None] * 3
    assert secrets.keyring_names() == ("A", "B")
    assert set(memory.kept) == {("pegboard", "A"), ("pegboard", "B")}
    assert (secrets.remove("A"), secrets.remove("A")) == (True, False)
    assert (secrets.keyring_names(), secrets.find("A")) == (("B",), None)
    memory.kept.clear()  # as another program might
    assert (secrets.find("B"), secrets.remove("B"), secrets.keyring_names()) == (None, True, ())


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize(
    ("backend", "words"),
    [
        (
            keyring.core.load_keyring("keyring.backends.fail.Keyring"),
            "This machine has no keyring. Set the secret in the environment or in a `.env` file",
        ),
        (Locked(), "The keyring is locked. Unlock it"),
        (Broken(), "The keyring failed (ValueError). Set the secret in the environment or in a `.env` file"),
    ],
    ids=["none", "locked", "broken"],
)
def test_a_keyring_that_fails_is_reported_without_an_exception_or_a_value(
    place: Place, backend: KeyringBackend, words: str
) -> None:
    keyring.set_keyring(backend)
    secrets = place.secrets(OTHER="of the environment")
    for problem in (secrets.look_up("KEY"), secrets.set("KEY", VALUE), secrets.remove("KEY")):
        assert words in why(problem)
        assert VALUE not in why(problem)
    assert secrets.keyring_names() == ()
    assert secrets.find("OTHER") is not None


@pytest.mark.promise("STO-2")
def test_a_keyring_that_stores_nothing_is_detected(place: Place) -> None:
    keyring.set_keyring(keyring.core.load_keyring("keyring.backends.null.Keyring"))
    assert why(place.secrets().set("KEY", VALUE)).startswith("The keyring didn't store the secret.")
    assert place.secrets().keyring_names() == ()


@pytest.mark.promise("STO-2")
def test_a_keyring_that_never_answers_is_waited_for_once(tmp_path: Path) -> None:
    silent = Silent()
    keyring.set_keyring(silent)
    vault = Vault(tmp_path / "names", timeout=0.1)
    try:
        for _ in range(3):
            assert why(vault.get("KEY")).startswith("The keyring didn't answer within 0.1 seconds.")
        assert silent.asked == 1
    finally:
        silent.end.set()


@pytest.mark.promise("STO-2")
def test_a_name_that_cannot_be_written_is_a_problem(place: Place, memory: Memory) -> None:
    place.paths.data.write_text("a file where a folder should be")
    assert "KEY was not stored because its name can't be written" in why(place.secrets().set("KEY", VALUE))
    assert memory.kept == {}


@pytest.mark.promise("STO-2")
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("A=1\nB = two words  \r\nexport C=3", {"A": "1", "B": "two words", "C": "3"}),
        ("# A=1\n\n  # B=2\nC=3 # not this\nD=4#this\nE=#5\nF= # 6", {"C": "3", "D": "4#this", "E": "#5", "F": ""}),
        ("A=''\nB=\"\"\nC=\nA.b-c=1", {"A": "", "B": "", "C": "", "A.b-c": "1"}),
        (r"A='it \n $x'" + "\n" + r'B="a\nb\t\"c\" \$x \\ \q"', {"A": r"it \n $x", "B": 'a\nb\t"c" \\$x \\ \\q'}),
        ("A='one\ntwo'\nB=\"one\ntwo\" # c\n", {"A": "one\ntwo", "B": "one\ntwo"}),
        ("A=${B}\nB='$C'\n", {"A": "${B}", "B": "$C"}),
        ("A=1\nA=2", {"A": "2"}),
        ("\ufeffA=ä€", {"A": "ä€"}),
        ("A=a'b\"c=d", {"A": "a'b\"c=d"}),
        ("", {}),
    ],
)
def test_a_dotenv_file_is_parsed(tmp_path: Path, text: str, values: dict[str, str]) -> None:
    file = tmp_path / ".env"
    file.write_bytes(text.encode())
    read = read_dotenv(file)
    assert (read.values, read.problems) == (values, ())


@pytest.mark.promise("STO-2")
def test_an_invalid_line_affects_no_other_line_and_is_not_quoted(place: Place) -> None:
    lines = ["A=1", "hunter2", "1B=hunter2", "C='hunter2", 'D="hunter2" more', "E='x\ny'", "F hunter2", "G=7"]
    place.dotenv("\n".join(lines))
    secrets = place.secrets()
    assert secrets.dotenv_names() == ("A", "E", "G")
    problems = secrets.problems()
    assert [problem.line for problem in problems] == [2, 3, 4, 5, 8]
    assert {problem.file for problem in problems} == {str(place.cwd / ".env")}
    assert "hunter2" not in "".join(map(str, problems))


@pytest.mark.promise("STO-2")
def test_a_dotenv_file_that_is_not_text_is_a_problem(place: Place) -> None:
    (place.home / ".env").write_bytes(b"A=1\nB=\xff\n")
    (place.home / ".env").chmod(0o600)
    assert [problem.message for problem in place.secrets().problems()] == ["This file is not UTF-8 text."]
    (place.home / ".env").unlink()
    (place.home / ".env").mkdir(mode=0o700)
    assert [problem.message for problem in place.secrets().problems()] == ["This is not a regular file."]
    assert place.secrets().find("A") is None


@pytest.mark.promise("STO-2")
def test_a_large_dotenv_file_is_a_problem_and_is_not_parsed(place: Place) -> None:
    (place.home / ".env").write_text(f"A={' ' * 300_000}x\n")
    (place.home / ".env").chmod(0o600)
    assert [problem.message for problem in place.secrets().problems()] == [
        "This file is longer than 250,000 characters."
    ]
    assert place.secrets().find("A") is None


@pytest.mark.promise("STO-2")
def test_a_folder_that_is_both_is_read_once(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("nonsense\n")
    (tmp_path / ".env").chmod(0o600)
    paths = Paths(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state", tmp_path / "cache")
    assert len(Secrets(paths, {}, tmp_path).problems()) == 1


@pytest.mark.promise("STO-2")
def test_variables_with_names_of_secrets_are_known(place: Place) -> None:
    place.dotenv("db-password=a\nHOST=b\nTOKEN=c\n")
    environ = {
        "TOKEN": "d",
        "githubApiKey": "e",
        "PWD": "f",
        "SSH_AUTH_SOCK": "g",
        "PEGBOARD_KEYS__X": "h",
        "LANG": "i",
    }
    known = place.secrets(**environ).known()
    assert dict(known) == {"db-password": "a", "TOKEN": "d", "githubApiKey": "e"}
    assert ("TOKEN", "c") in known, "both may be in use"


@pytest.mark.promise("STO-2")
def test_a_secret_stored_without_a_keyring_goes_to_the_file_behind_a_link_that_only_the_user_can_read_then(
    place: Place,
) -> None:
    keyring.set_keyring(Broken())
    file = place.home / "dotfiles"
    file.write_text("A='1'\n")
    file.chmod(0o644)
    link = place.home / ".env"
    link.symlink_to(file)
    assert store_secret(place.secrets(), place.paths, "B", VALUE) == str(link)
    assert (link.is_symlink(), file.read_text()) == (True, f"A='1'\nB='{VALUE}'\n")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.promise("STO-2")
def test_a_stored_secret_leaves_the_encoding_and_the_line_ends_of_the_file(place: Place) -> None:
    keyring.set_keyring(Broken())
    file = place.home / ".env"
    file.write_bytes(b"\xef\xbb\xbfA='1'\r\n")
    assert store_secret(place.secrets(), place.paths, "B", VALUE) == str(file)
    assert file.read_bytes() == f"\ufeffA='1'\r\nB='{VALUE}'\r\n".encode()
    assert dict(read_dotenv(file).values) == {"A": "1", "B": VALUE}


@pytest.mark.promise("STO-2")
def test_secrets_that_two_processes_store_at_the_same_time_are_both_kept(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring.set_keyring(Broken())
    lock = fcntl.flock

    def lock_after_another(descriptor: int, operation: int) -> None:
        (place.home / ".env").write_text("A='1'\n")
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", lock_after_another)
    store_secret(place.secrets(), place.paths, "B", VALUE)
    assert dict(read_dotenv(place.home / ".env").values) == {"A": "1", "B": VALUE}


@pytest.mark.promise("MCP-7")
def test_a_login_that_was_stored_while_the_keyring_was_locked_replaces_the_earlier_one(
    memory: Memory, tmp_path: Path
) -> None:
    logins, url = Logins(tmp_path / "logins"), "https://vault.example/mcp"
    assert logins.write(Login(url=url, tokens={"access_token": "earlier"})) is None
    keyring.set_keyring(Locked())
    assert logins.write(Login(url=url, tokens={"access_token": "later"})) is None
    keyring.set_keyring(memory)
    found = logins.read(url)
    assert isinstance(found, Login)
    assert found.tokens == {"access_token": "later"}
