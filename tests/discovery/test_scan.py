"""Scans of packs folders: selection of files, duplicate packs, and invalid files."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from processes import command_of

import pegboard.packs
from pegboard.discovery import scan
from pegboard.models import Problem

TOOL = 'def run():\n    """Run it."""\n'


def only(problems: tuple[Problem, ...]) -> Problem:
    assert len(problems) == 1, problems
    return problems[0]


@pytest.mark.promise("DSC-1")
def test_every_python_file_directly_in_a_folder_is_read(tmp_path: Path) -> None:
    for name in ("json.py", "time.py", "_helper.py", "__init__.py", ".hidden.py", "notes.txt", "old.py.bak"):
        (tmp_path / name).write_text(TOOL)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "deep.py").write_text(TOOL)
    specs, problems = scan([tmp_path])
    assert [spec.name for spec in specs] == ["json.run", "time.run"]
    assert problems == ()


BOMB = """
import os, pathlib, sys
pathlib.Path({victim!r}).unlink()
pathlib.Path({trace!r}).write_text("ran")

def run(*, a: int = os._exit(3), b: os._exit(4) = 5):
    '''Run it.'''

@(lambda f: os._exit(5))
def other():
    '''Other.'''

class Meta(type):
    def __prepare__(*a, **k): os._exit(6)

class Boom(metaclass=Meta):
    x: os._exit(7)

__all__ = ["run", "other"] + os._exit(8)
while True:
    pass
"""


@pytest.mark.promise("DSC-1")
@pytest.mark.parametrize("padding", [0, 400_000], ids=["read here", "read by another process"])
def test_nothing_of_a_pack_is_run(tmp_path: Path, padding: int) -> None:
    packs = tmp_path / "packs"
    packs.mkdir()
    victim, trace = tmp_path / "victim", tmp_path / "trace"
    victim.write_text("here")
    bomb = BOMB.format(victim=str(victim), trace=str(trace))
    (packs / "bomb.py").write_text(f"{bomb}\n#{'x' * padding}\n")
    # child processes must not import any of these modules
    for name in ("ast", "marshal", "re", "typing", "json", "pegboard", "hashlib"):
        (packs / f"{name}.py").write_text(f"open({str(trace)!r}, 'w').write('ran')\n{TOOL}")
    code = f"""
import sys
import threading
from pegboard.discovery import scan
specs, problems = scan([{str(packs)!r}])
print(len(specs), "bomb" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=packs, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "9 False\n"), done.stderr
    assert victim.exists()
    assert not trace.exists()


@pytest.mark.promise("DSC-8")
def test_built_in_packs_are_found_like_any_other() -> None:
    specs, problems = scan([Path(pegboard.packs.__file__).parent])
    assert {"time.now", "tools.echo", "shell.pwd", "fs.list_dir", "fs.read_file"} <= {spec.name for spec in specs}
    assert problems == ()


@pytest.mark.promise("DSC-2", "DSC-8")
@pytest.mark.parametrize(
    ("file", "first", "name"),
    [
        ("shop/tools.py", "", "shop.run"),
        ("my shop/tools.py", "", "my_shop.run"),
        ("shop/tools/tools.py", "", "shop.run"),
        ("shop/tools.py", 'pack = "store"', "store.run"),
        ("shop/tool.py", "", "tool.run"),
    ],
)
def test_a_pack_in_a_file_tools_is_called_like_its_folder(tmp_path: Path, file: str, first: str, name: str) -> None:
    (pack := tmp_path / file).parent.mkdir(parents=True)
    pack.write_text(f'{first}\ndef run() -> None:\n    """Run."""\n')
    specs, problems = scan([Path(pegboard.packs.__file__).parent, pack.parent])
    assert problems == ()
    assert {"tools.echo", name} <= {spec.name for spec in specs}
    assert {spec.pack for spec in specs if spec.file == str(pack)} == {name.removesuffix(".run")}


@pytest.mark.promise("DSC-7")
@pytest.mark.parametrize(
    ("content", "reason", "line"),
    [
        (b"def f(:\n", "invalid syntax", 1),
        (b"x = 1\n  y = 2\n", "unexpected indent", 2),
        (b"print 'old'\n", "print", 1),
        (b"match x:\n    case y z:\n        pass\n", "", 2),
        (b"# coding: no-such\n", "no-such", None),
        (b"x = '\xff'\n", "utf-8" if sys.version_info < (3, 14) else "UTF-8", None),
        (b"a\0b\n", "null bytes", None),
        (b"\x7fELF\x02\x01\x01", "", None),
        (b"x = " + b"-" * 100_000 + b"1\n", "nested too deeply", None),
        (b"x = " + b"(" * 5_000 + b")" * 5_000 + b"\n", "nested", None),
        pytest.param(
            b"x = y" + b".a" * 50_000 + b"\n",
            "nested too deeply",
            None,
            marks=pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 can parse it"),
        ),
    ],
)
def test_a_file_that_cannot_be_parsed_is_a_problem_with_its_reason(
    packs: Path, content: bytes, reason: str, line: int | None
) -> None:
    bad = packs / "bad.py"
    bad.write_bytes(content)
    specs, problems = scan([packs])
    assert [spec.name for spec in specs] == ["one.run", "two.run"]
    problem = only(problems)
    assert problem.file == str(bad)
    assert problem.severity == "error"
    assert problem.message.startswith("The file could not be parsed: ")
    assert reason in problem.message
    if line is not None:
        assert problem.line == line


@pytest.mark.promise("DSC-7")
@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + TOOL.encode(),
        b"# -*- coding: latin-1 -*-\n" + 'def run():\n    """Größe."""\n'.encode("latin-1"),
        TOOL.replace("\n", "\r\n").encode(),
        TOOL.replace("\n", "\r").encode(),
        TOOL.encode() + b"x = '\\d'\n",
    ],
    ids=["byte order mark", "declared encoding", "windows lines", "old mac lines", "invalid escape"],
)
def test_unusual_but_valid_files_are_packs(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.py").write_bytes(content)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        specs, problems = scan([tmp_path])
    assert [spec.name for spec in specs] == ["odd.run"]
    assert problems == ()
    assert caught == []


@pytest.mark.promise("DSC-7")
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux to bind a socket anywhere")
def test_pipes_and_sockets_are_a_problem_and_are_not_opened(packs: Path) -> None:
    os.mkfifo(packs / "pipe.py")
    (packs / "folder.py").mkdir()
    (packs / "dangling.py").symlink_to(packs / "nowhere")
    (packs / "loop.py").symlink_to(packs / "loop.py")
    with socket.socket(socket.AF_UNIX) as listening:
        # the path of a socket must be short
        here = os.open(packs, os.O_RDONLY)
        try:
            listening.bind(f"/proc/self/fd/{here}/socket.py")
        finally:
            os.close(here)
        specs, problems = scan([packs])
    assert [spec.name for spec in specs] == ["one.run", "two.run"]
    named = {Path(problem.file or "").name: problem.message for problem in problems}
    assert named.keys() == {"pipe.py", "folder.py", "dangling.py", "loop.py", "socket.py"}
    assert named["pipe.py"] == "It is not a regular file."
    assert "No such file" in named["dangling.py"]


@pytest.mark.promise("DSC-7")
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_or_folder_is_a_problem(packs: Path) -> None:
    (packs / "one.py").chmod(0)
    closed = packs / "closed"
    closed.mkdir(mode=0)
    specs, problems = scan([packs, closed])
    assert [spec.name for spec in specs] == ["two.run"]
    assert ["Permission denied" in problem.message for problem in problems] == [True, True]


@pytest.mark.promise("DSC-7")
def test_a_given_path_that_cannot_be_followed_is_a_problem(packs: Path, tmp_path: Path) -> None:
    (tmp_path / "given.py").symlink_to("x" * 300)  # no one may follow it, not even root
    (tmp_path / "within").mkdir()
    (tmp_path / "within" / "folder").symlink_to("x" * 300)
    specs, [problem] = scan([tmp_path / "given.py", tmp_path / "within", packs])
    assert [spec.name for spec in specs] == ["one.run", "two.run"]
    assert (problem.file, "could not be read" in problem.message) == (str(tmp_path / "given.py"), True)


@pytest.mark.promise("DSC-7")
def test_a_file_that_is_far_too_large_is_a_problem(packs: Path) -> None:
    with (packs / "huge.py").open("wb") as file:
        file.truncate(6_000_000)
    specs, problems = scan([packs])
    assert len(specs) == 2
    assert "too large" in only(problems).message


@pytest.mark.promise("DSC-7")
def test_a_file_name_that_is_not_valid_text_is_a_problem(packs: Path) -> None:
    Path(os.fsdecode(os.fsencode(packs) + b"/bad\xff.py")).write_text(TOOL)
    specs, problems = scan([packs])
    assert len(specs) == 2
    problem = only(problems)
    assert problem.file is not None
    problem.file.encode()


@pytest.mark.promise("DSC-7")
def test_a_missing_folder_is_a_warning_only(packs: Path) -> None:
    specs, problems = scan([packs / "nowhere", packs])
    assert len(specs) == 2
    problem = only(problems)
    assert (problem.severity, problem.file) == ("warning", str(packs / "nowhere"))


@pytest.mark.promise("DSC-7")
def test_of_two_packs_with_the_same_name_the_first_is_used_and_the_problem_names_both(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(TOOL.replace("Run it", f"From {folder}"))
    (tmp_path / "b" / "zz.py").write_text(f'pack = "same"\n{TOOL}')
    specs, problems = scan([tmp_path / "b", tmp_path / "a"])
    assert [spec.description for spec in specs] == ["From b."]
    assert [problem.file for problem in problems] == [str(tmp_path / "b" / "zz.py"), str(tmp_path / "a" / "same.py")]
    assert all(str(tmp_path / "b" / "same.py") in problem.message for problem in problems)


def test_a_folder_that_is_given_twice_counts_once(packs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (packs.parent / "link").symlink_to(packs)
    monkeypatch.chdir(packs)
    specs, problems = scan([packs, ".", f"{packs}/", packs.parent / "link", packs / ".." / "packs"])
    assert len(specs) == 2
    assert problems == ()


def test_a_path_may_be_one_file(packs: Path) -> None:
    specs, problems = scan([str(packs / "two.py"), packs / "gone.py", packs / "one.py" / "x"])
    assert [spec.name for spec in specs] == ["two.run"]
    assert [problem.file for problem in problems] == [str(packs / "gone.py"), str(packs / "one.py" / "x")]


def test_a_file_that_is_given_beside_its_folder_counts_once(packs: Path) -> None:
    specs, problems = scan([packs / "two.py", packs])
    assert [spec.name for spec in specs] == ["two.run", "one.run"]
    assert scan([packs / "two.py", packs, packs / "one.py"]) == (specs, problems)
    assert problems == ()


def test_a_files_problems_come_with_those_of_its_tools(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text('pack = "?"\ndef f(a):\n    """Do it."""\n')
    specs, problems = scan([tmp_path])
    assert len(problems) == 2
    assert specs[0].problems == problems[1:]


def test_child_processes_read_the_same_as_this_process(tmp_path: Path) -> None:
    many, few = tmp_path / "many", tmp_path / "few"
    for folder, padding in ((many, 8_000), (few, 0)):
        folder.mkdir()
        for number in range(30):
            (folder / f"p{number:02}.py").write_text(
                f'def f{number}(*, a: list[int | None] = [], b: "Gone"):\n    """Do {number}."""\n#{"x" * padding}\n'
            )
        (folder / "q.py").write_text("def (")
    here, problems_here = scan([few])
    there, problems_there = scan([many])
    assert [spec.input_schema for spec in here] == [spec.input_schema for spec in there]
    assert [spec.name for spec in there] == [f"p{number:02}.f{number}" for number in range(30)]
    assert [problem.message for problem in problems_here] == [problem.message for problem in problems_there]
    assert len(problems_here) == 31


@pytest.mark.promise("DSC-7")
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux to find the processes")
def test_a_killed_child_process_loses_no_file(tmp_path: Path) -> None:
    for number in range(60):
        body = "".join(f"\ndef f{item}(*, a: int = {item}):\n    '''Do it.'''\n" for item in range(150))
        (tmp_path / f"p{number:02}.py").write_text(body)
    found: list[int] = []
    scanning = threading.Thread(target=lambda: found.append(len(scan([tmp_path])[0])))
    scanning.start()
    killed: set[int] = set()
    while scanning.is_alive() and len(killed) < 2:
        for process in _children() - killed:
            killed.add(process)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    scanning.join(100)
    assert killed
    assert found == [60 * 150]


def _children() -> set[int]:
    """Return the child processes that read files."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found.update(int(number) for number in (task / "children").read_text().split())
    return {number for number in found if b"pegboard.discovery.reader" in command_of(number)}
