"""The index on disk: unchanged files are not parsed again, changes are always noticed, and damage is repaired."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

import pegboard.packs
from pegboard.discovery import scan, sweep
from pegboard.discovery.files import Stamp
from pegboard.discovery.index import Index

_WATCHED_SCAN = """
import json, sys
from pathlib import Path
parsed, opened = [], []
def hook(event, arguments):
    if event == "compile" and arguments[1] in ("<pegboard pack>", b"<pegboard pack>"):
        parsed.append(1)
    if event == "open" and str(arguments[0]).startswith(sys.argv[1]):
        opened.append(str(arguments[0]))
from pegboard.discovery import scan, sweep
import pegboard.discovery.scanner
sys.addaudithook(hook)
sys.executable = ""  # without it, this process reads all files itself
specs, problems = scan([sys.argv[1]], index=Path(sys.argv[2]))
print(json.dumps([len(parsed), len(set(opened)), [spec.model_dump(mode="json") for spec in specs], len(problems)]))
"""


class Watched(NamedTuple):
    """Result of a scan in a separate process."""

    parsed: int
    opened: int
    specs: list[dict[str, object]]
    problems: int

    @property
    def names(self) -> list[object]:
        return [spec["name"] for spec in self.specs]


def scan_elsewhere(packs: Path, index: Path) -> Watched:
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED_SCAN, str(packs), str(index)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return Watched(*json.loads(done.stdout))


@pytest.mark.promise("DSC-6")
def test_an_unchanged_file_is_not_parsed_again_in_another_process(packs: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    first = scan_elsewhere(packs, index)
    second = scan_elsewhere(packs, index)
    assert (first.parsed, second.parsed) == (2, 0)
    assert second.specs == first.specs


@pytest.mark.promise("DSC-6")
def test_an_old_unchanged_file_is_not_opened(tmp_path: Path) -> None:
    packs = Path(pegboard.packs.__file__).parent
    first = scan_elsewhere(packs, tmp_path)
    second = scan_elsewhere(packs, tmp_path)
    assert first.parsed == first.opened > 3
    assert (second.parsed, second.opened) == (0, 0)
    assert second.specs == first.specs


@pytest.mark.promise("DSC-6")
def test_one_changed_file_causes_one_parse(packs: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    scan_elsewhere(packs, index)
    (packs / "two.py").write_text('def walk():\n    """Walk."""\n')
    changed = scan_elsewhere(packs, index)
    assert (changed.parsed, changed.names) == (1, ["one.run", "two.walk"])
    (packs / "three.py").write_text('def run():\n    """Run."""\n')
    added = scan_elsewhere(packs, index)
    assert (added.parsed, added.names) == (1, ["one.run", "three.run", "two.walk"])
    (packs / "one.py").unlink()
    removed = scan_elsewhere(packs, index)
    assert (removed.parsed, removed.names) == (0, ["three.run", "two.walk"])


@pytest.mark.promise("DSC-6")
def test_an_edit_within_the_resolution_of_file_times_is_noticed(packs: Path, tmp_path: Path) -> None:
    file = packs / "one.py"
    for number in range(20):
        # the same size, inode and time: only the content differs
        file.write_text(f'def run{number:03}():\n    """Run."""\n')
        os.utime(file, (1_700_000_000, 1_700_000_000))
        specs, _ = scan([packs], index=tmp_path / "index")
        assert specs[0].name == f"one.run{number:03}"


@pytest.mark.promise("DSC-6")
def test_a_file_read_right_after_its_change_is_read_again(packs: Path, tmp_path: Path) -> None:
    scan([packs], index=tmp_path)
    file = packs / "one.py"
    file.write_text('def later():\n    """Run."""\n')
    status = file.stat()
    # the index after an edit within the resolution of file times after the read
    index = Index(tmp_path, str(packs))
    entries = index.load()
    stamp = Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    entries[str(file)] = entries[str(file)]._replace(stamp=stamp)
    index.save(entries, {str(file)})
    specs, _ = scan([packs], index=tmp_path)
    assert [spec.name for spec in specs] == ["one.later", "two.run"]


@pytest.mark.promise("DSC-6", "DSC-7")
def test_a_file_that_could_not_be_read_for_a_moment_is_read_again(
    packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, file = tmp_path / "index", str(packs / "one.py")
    for one in packs.iterdir():  # so that their stamps are settled
        os.utime(one, (1_700_000_000, 1_700_000_000))
    scan([packs], index=index)
    opens = os.open

    def refuse(path: str, flags: int, *rest: int) -> int:
        if path == file:
            raise OSError(errno.EMFILE, "Too many open files", path)
        return opens(path, flags, *rest)

    (packs / "one.py").write_text('def walk():\n    """Walk."""\n')
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        for _ in range(2):
            specs, [problem] = scan([packs], index=index)
            assert [spec.name for spec in specs] == ["two.run"]
            assert "Too many open files" in problem.message
    monkeypatch.setattr("pegboard.discovery.index._SETTLED_AFTER", -1)
    specs, problems = scan([packs], index=index)
    assert [spec.name for spec in specs] == ["one.walk", "two.run"]
    assert problems == ()


@pytest.mark.promise("DSC-6")
def test_a_pack_whose_helper_is_missing_is_read_from_the_index_until_the_helper_exists(
    packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.discovery.index._SETTLED_AFTER", -1)
    source = 'from _kinds import Kind\n\ndef run(*, kind: Kind):\n    """Run."""\n'
    (packs / "one.py").write_text(source)
    found = [scan([packs], index=tmp_path / "index") for _ in range(2)]
    assert found[0] == found[1]
    (packs / "_kinds.py").write_text('from typing import Literal\n\nKind = Literal["a", "b"]\n')
    specs, _ = scan([packs], index=tmp_path / "index")
    assert "enum" in str(specs[0].input_schema)
    assert "enum" not in str(found[1][0][0].input_schema)


def test_a_touched_file_is_not_parsed_again(packs: Path, tmp_path: Path) -> None:
    scan_elsewhere(packs, tmp_path / "index")
    os.utime(packs / "one.py", (1_800_000_000, 1_800_000_000))
    assert scan_elsewhere(packs, tmp_path / "index").parsed == 0


def test_a_file_that_cannot_be_parsed_is_kept_in_the_index_too(packs: Path, tmp_path: Path) -> None:
    (packs / "bad.py").write_text("def (")
    first = scan_elsewhere(packs, tmp_path / "index")
    second = scan_elsewhere(packs, tmp_path / "index")
    assert (first.parsed, second.parsed) == (3, 0)
    assert first.problems == second.problems == 1


@pytest.mark.promise("DSC-6")
@pytest.mark.parametrize("damage", ["delete", "cut", "empty", "garbage", "flip", "folder", "foreign"])
def test_a_damaged_index_is_rebuilt(packs: Path, tmp_path: Path, damage: str) -> None:
    index = tmp_path / "index"
    expected = scan([packs], index=index)
    files = sorted(index.iterdir())
    assert files
    for file in files:
        content = file.read_bytes()
        match damage:
            case "delete":
                file.unlink()
            case "cut":
                file.write_bytes(content[: len(content) // 2])
            case "empty":
                file.write_bytes(b"")
            case "garbage":
                file.write_bytes(os.urandom(len(content)))
            case "flip":
                file.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
            case "folder":
                file.unlink()
                file.mkdir()
            case _:
                file.write_bytes(content.replace(b"pegboard index", b"pegboard xedni"))
    again = scan_elsewhere(packs, index)
    assert again.parsed == 2
    assert again.specs == [spec.model_dump(mode="json") for spec in expected[0]]
    assert again.problems == (1 if damage == "folder" else 0)  # it can't be replaced, which is reported
    if damage != "folder":
        assert scan_elsewhere(packs, index).parsed == 0


@pytest.mark.promise("DSC-6")
def test_an_index_that_cannot_be_written_is_a_warning_only(packs: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    specs, problems = scan([packs], index=blocked / "index")
    assert len(specs) == 2
    assert [problem.severity for problem in problems] == ["warning"]
    assert "could not be written" in problems[0].message


@pytest.mark.promise("DSC-6")
def test_processes_and_threads_can_write_the_index_concurrently(packs: Path, tmp_path: Path) -> None:
    for number in range(40):
        (packs / f"p{number}.py").write_text(f'def f{number}():\n    """Do it."""\n')
    index = tmp_path / "index"
    command = [sys.executable, "-c", _WATCHED_SCAN, str(packs), str(index)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(scan([packs], index=index)[0]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in running]
    assert found == [42] * 4
    assert [len(answer[2]) for answer in answers] == [42] * 3
    assert scan_elsewhere(packs, index).parsed == 0
    assert all("." not in file.name for file in index.iterdir()), "no drafts are left"


def test_folders_keep_their_entries_in_the_index(packs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "three.py").write_text('def run():\n    """Run."""\n')
    index = tmp_path / "index"
    scan([packs, other], index=index)
    scan([other], index=index)
    scan([packs / "one.py"], index=index)
    assert scan_elsewhere(packs, index).parsed == 0
    assert scan_elsewhere(other, index).parsed == 0


def test_removed_files_leave_the_index_in_time(packs: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    scan([packs], index=index)
    (packs / "one.py").unlink()
    (packs / "three.py").write_text('def run():\n    """Run."""\n')
    scan([packs], index=index)
    assert set(Index(index, str(packs)).load()) == {str(packs / "two.py"), str(packs / "three.py")}


def test_a_known_link_into_a_folder_that_cannot_be_entered_is_a_problem(packs: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    (packs / "three.py").symlink_to(packs / "one.py")
    scan([packs], index=index)
    (packs / "three.py").unlink()
    (packs / "three.py").symlink_to("x" * 300)  # no one may follow it, not even root
    (packs / "two.py").write_text('def walk():\n    """Walk."""\n')
    specs, [problem] = scan([packs], index=index)
    assert [spec.name for spec in specs] == ["one.run", "two.walk"]
    assert (problem.file, "could not be read" in problem.message) == (str(packs / "three.py"), True)


def test_models_from_the_index_are_like_any_other(packs: Path, tmp_path: Path) -> None:
    (packs / "one.py").write_text(
        "from pegboard.sdk import aliases, hints\n"
        '@hints(read_only=True)\n@aliases("also", a="b")\ndef run(a: "Gone"):\n    """Run."""\n'
    )
    scan([packs], index=tmp_path / "index")
    specs, problems = scan([packs], index=tmp_path / "index")
    for spec in specs:
        again = type(spec).model_validate(spec.model_dump())
        assert again == spec
        assert again.model_dump_json() == spec.model_dump_json()
        assert spec.model_copy(update={"name": "x"}).name == "x"
        assert spec.location.file == str(packs / f"{spec.pack}.py")
    assert len(problems) == 2


def test_a_scan_leaves_the_garbage_collector_as_it_was(packs: Path) -> None:
    import gc

    scan([packs])
    assert gc.isenabled()


def aged(index: Path, days: float) -> None:
    past = time.time() - days * 86_400
    for file in index.iterdir():
        os.utime(file, (past, past))


@pytest.mark.promise("DSC-6")
def test_index_files_unused_for_two_weeks_are_deleted(packs: Path, tmp_path: Path) -> None:
    index, gone = tmp_path / "index", tmp_path / "gone"
    gone.mkdir()
    (gone / "old.py").write_text('def old():\n    """Old."""\n')
    scan([gone], index=index)
    of_gone = set(index.iterdir())
    draft = of_gone.copy().pop().with_name(f".{next(iter(of_gone)).name}.0123abcd")
    draft.write_bytes(b"half")
    mine = index / "notes.txt"
    mine.write_text("mine")
    shutil.rmtree(gone)
    scan_elsewhere(packs, index)
    used = set(index.iterdir()) - of_gone - {draft}
    aged(index, 15)
    assert scan_elsewhere(packs, index).parsed == 0
    sweep(index)
    assert set(index.iterdir()) == used
    assert scan_elsewhere(packs, index).parsed == 0


def test_index_files_used_within_two_weeks_are_kept(packs: Path, tmp_path: Path) -> None:
    scan([packs], index=tmp_path / "index")
    aged(tmp_path / "index", 13)
    expected = set((tmp_path / "index").iterdir())
    sweep(tmp_path / "index")
    assert set((tmp_path / "index").iterdir()) == expected


def test_sweeping_a_missing_index_does_nothing(tmp_path: Path) -> None:
    sweep(tmp_path / "none")
    assert not (tmp_path / "none").exists()
