"""Files and folders that Pegboard creates are private to the user, from the first byte and under any umask."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Done, pegboard

from pegboard import storage
from pegboard.config import Secrets
from pegboard.config.paths import Paths
from pegboard.config.theme_choice import ThemeChoice
from pegboard.models import Finished, ToolCall
from pegboard.models.conversation import UserMessage
from pegboard.models.rule import Rule
from pegboard.runtime import Runtime
from pegboard.tui.state.draft import Draft, DraftFile
from pegboard.tui.widgets.clipboard import write_file

PACK = '''
from pegboard.sdk import hints

@hints(read_only=True, cache_seconds=60)
def large() -> str:
    """Return a long text that contains a secret."""
    return "token-4711 " * 300_000
'''

KEYRING = """
from keyring.backend import KeyringBackend

class Keyring(KeyringBackend):
    priority = 1
    kept = {}

    def get_password(self, service, name):
        return self.kept.get((service, name))

    def set_password(self, service, name, value):
        self.kept[service, name] = value

    def delete_password(self, service, name):
        del self.kept[service, name]
"""


def _open_to_others(*folders: Path) -> list[str]:
    """Return the files that other users can read, write or enter, including the folders themselves."""
    found = []
    for folder in folders:
        for path in (folder, *folder.rglob("*")) if folder.exists() else ():
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & 0o077:
                found.append(f"{path.relative_to(folder.parent)} {stat.filemode(mode)}")
    return found


@pytest.fixture(autouse=True)
def _no_folders(home: Path) -> None:
    """Remove the index that tests share, so that Pegboard creates every folder."""
    shutil.rmtree(home / "cache")


@pytest.fixture(params=[0o000, 0o022], ids=["umask 000", "umask 022"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def _pegboard(work: Path, *words: str, answer: str = "", **environ: str) -> Done:
    return pegboard("--packs", str(work / "packs"), *words, cwd=work, stdin=answer, env={**os.environ, **environ})


@pytest.fixture
def folders(home: Path) -> list[Path]:
    """Return the folders of configuration, data, state and cache, which don't exist yet."""
    return [home / name for name in ("config", "data", "state", "cache")]


@pytest.fixture
def work(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "book.py").write_text(PACK)
    (tmp_path / "fakering.py").write_text(KEYRING)
    monkeypatch.setenv("PEGBOARD_CONFIG", str(home / "config" / "deep" / "config.toml"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.promise("SEC-7", "STO-2")
@pytest.mark.usefixtures("umask")
def test_all_files_that_the_commands_write_are_private(work: Path, folders: list[Path]) -> None:
    ring = {"PYTHONPATH": str(work), "PYTHON_KEYRING_BACKEND": "fakering.Keyring"}
    for done in (
        _pegboard(work, "tools", "list"),
        _pegboard(work, "tools", "invoke", "book.large"),
        _pegboard(work, "tools", "invoke", "book.large", A_TOKEN="token-4711"),
        _pegboard(work, "ask", "What time is it?", "--session", "one"),
        _pegboard(work, "script", "run", "-", answer="book.large | wc -c"),
        _pegboard(work, "presets", "save", "time.now", "mine"),
        _pegboard(work, "auth", "set", "A_TOKEN", answer="value\n", **ring),
        _pegboard(work, "new", "--example", "shop"),
        _pegboard(work, "tools", "invoke", "shop.list_orders"),
        _pegboard(work, "sessions", "list"),
        _pegboard(work, "history"),
    ):
        assert done.returncode == 0, done.stderr
    config, data, state, cache = folders
    written = {path.name for folder in folders[1:] for path in folder.rglob("*")}
    assert {"history.db", "history.db.lock", "results", "sessions", "presets", "keyring", "A_TOKEN", "index"} <= written
    assert any(path.suffix == ".json" for path in (state / "results").iterdir())
    assert not config.exists()
    assert _open_to_others(data, state, cache) == []


@pytest.mark.promise("SEC-7")
@pytest.mark.usefixtures("umask")
async def test_all_files_that_the_app_writes_are_private(work: Path, folders: list[Path]) -> None:
    runtime = Runtime.from_environment(packs=[work / "packs"])
    runtime.tools.scan()
    async with runtime:
        async for _ in runtime.call(ToolCall(name="book.large", source="ask", session="s")):
            pass
        runtime.sessions.start("s")
        runtime.sessions.append("s", UserMessage(text="Hello"))
        with runtime.sessions.held("s"):
            assert (folders[2] / "sessions").is_dir()
        runtime.scripts.saved.write("mine", "echo a")
        runtime.presets.save("book.large", "mine", {})
        runtime.rules.add(runtime.rules.read(), Rule(allow=("book.*",)))
        assert runtime.history.records()
        draft = DraftFile(runtime.paths.state, "script-draft")
        draft.read()
        draft.keep(Draft("echo b"))
        draft.write()
        ThemeChoice(runtime.paths.state / "theme", "dark").save("light")
        write_file(b"copied", runtime.paths.state)
        assert (runtime.paths.database.with_name("history.db-wal")).exists(), "it is looked at while it is in use"
        assert _open_to_others(*folders) == []
        draft.close()
    assert _open_to_others(*folders) == []
    assert {"approvals.toml"} == {path.name for path in folders[0].rglob("*.toml")}


@pytest.mark.promise("SEC-7")
async def test_the_first_permanent_approval_creates_a_private_file(work: Path, folders: list[Path]) -> None:
    (work / "packs" / "other.py").write_text('def act() -> str:\n    """Acts."""\n    return "done"\n')

    from pegboard.models import ToolSpec
    from pegboard.models.approval import Approval
    from pegboard.models.rule import Rule

    class Person:
        async def decide(self, _spec: ToolSpec, _call: ToolCall) -> Approval:
            return Approval(answer="always", rule=Rule(allow=("other.act",)))

    before = os.umask(0)
    try:
        async with Runtime.from_environment(packs=[work / "packs"]) as runtime:
            await asyncio.to_thread(runtime.tools.scan)
            runtime.rules.approve_with(Person())
            events = [event async for event in runtime.call(ToolCall(name="other.act", source="ask", session="s"))]
            assert isinstance(events[-1], Finished)
            assert events[-1].result.ok
            assert runtime.paths.approvals.exists()
    finally:
        os.umask(before)
    assert _open_to_others(*folders) == []


@pytest.mark.promise("SEC-7")
def test_a_history_that_was_open_to_others_is_closed_to_them(work: Path, folders: list[Path]) -> None:
    assert _pegboard(work, "tools", "invoke", "time.now").returncode == 0
    database = folders[2] / "history.db"
    database.chmod(0o644)
    results = folders[2] / "results"
    results.mkdir(mode=0o755)
    assert _pegboard(work, "tools", "invoke", "time.now").returncode == 0
    assert stat.S_IMODE(results.stat().st_mode) == 0o700
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


@pytest.mark.promise("SEC-7")
def test_secrets_beside_the_configuration_that_others_can_read_are_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "config" / ".env"
    file.parent.mkdir()
    file.write_text("A_TOKEN=x\n")
    paths = Paths(file.with_name("config.toml"), tmp_path / "data", tmp_path / "state", tmp_path / "cache")
    for mode, count in ((0o644, 1), (0o620, 1), (0o600, 0)):
        file.chmod(mode)
        problems = Secrets(paths, {}, tmp_path).problems()
        assert len(problems) == count
        assert all("chmod 600" in problem.fix for problem in problems)


@pytest.mark.promise("SEC-7", "STO-3")
@pytest.mark.usefixtures("umask")
def test_a_file_is_private_from_the_first_byte_and_whole_or_absent(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "file"
    storage.make_folder(file.parent)
    with storage.replacing(file) as out:
        out.write(b"half")
        out.flush()
        assert _open_to_others(file.parent) == []
        assert not file.exists()
    assert file.read_bytes() == b"half"
    with pytest.raises(KeyboardInterrupt), storage.replacing(file):
        raise KeyboardInterrupt
    with pytest.raises(FileExistsError):
        storage.write(file, b"other", replace=False)
    assert [(path.name, path.read_bytes()) for path in file.parent.iterdir()] == [("file", b"half")]
    assert _open_to_others(file.parent) == []


def test_a_new_file_is_written_where_the_file_system_has_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", fail)
    file = tmp_path / "new"
    storage.write(file, b"content", replace=False)
    with pytest.raises(FileExistsError):
        storage.write(file, b"other", replace=False)
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("new", b"content")]


@pytest.mark.promise("SEC-7", "STO-3")
@pytest.mark.usefixtures("umask")
def test_a_rewritten_file_keeps_its_permissions_and_the_link_to_it_and_a_new_one_is_private(tmp_path: Path) -> None:
    file, link, missing = tmp_path / "file", tmp_path / "link", tmp_path / "missing"
    file.write_bytes(b"old")
    file.chmod(0o666)
    link.symlink_to(file.name)
    storage.rewrite(link, b"new")
    assert (link.is_symlink(), file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (True, b"new", 0o666)
    storage.rewrite(missing, b"new")
    assert stat.S_IMODE(missing.stat().st_mode) == 0o600
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(OSError, match="symbolic links"):
        storage.rewrite(link, b"new")
    assert {one.name for one in tmp_path.iterdir()} == {"file", "link", "missing"}


@pytest.mark.promise("STO-3")
def test_of_concurrent_writers_one_wins_completely(tmp_path: Path) -> None:
    contents = [bytes([65 + number]) * 200_000 for number in range(8)]
    threads = [threading.Thread(target=storage.write, args=(tmp_path / "file", content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (tmp_path / "file").read_bytes() in contents
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.promise("STO-3")
def test_a_name_as_long_as_the_file_system_accepts_can_be_written(tmp_path: Path) -> None:
    storage.write(tmp_path / ("n" * 255), b"content")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"content"
