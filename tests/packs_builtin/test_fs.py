"""The fs pack lists folders and reads files, and never leaves the working directory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pegboard.packs import _roots
from pegboard.packs.fs import FolderEntry, list_dir, read_file
from pegboard.sdk import ToolFailed, testing


def by_path(entries: list[FolderEntry]) -> dict[str, FolderEntry]:
    found = {entry["path"]: entry for entry in entries}
    assert len(found) == len(entries)
    return found


@pytest.mark.promise("PCK-2")
def test_a_folder_is_listed_sorted_with_kinds_sizes_and_link_targets(work: Path) -> None:
    assert list_dir() == [
        {"name": "a.txt", "path": "a.txt", "kind": "file", "size": 5},
        {"name": "pipe", "path": "pipe", "kind": "other"},
        {"name": "socket", "path": "socket", "kind": "other"},
        {"name": "sub", "path": "sub", "kind": "directory"},
        {"name": "to_file", "path": "to_file", "kind": "symlink", "target": "file"},
        {"name": "to_itself", "path": "to_itself", "kind": "symlink", "target": "broken"},
        {"name": "to_nothing", "path": "to_nothing", "kind": "symlink", "target": "broken"},
        {"name": "to_outside", "path": "to_outside", "kind": "symlink", "target": "outside"},
        {"name": "to_secret", "path": "to_secret", "kind": "symlink", "target": "outside"},
        {"name": "to_sub", "path": "to_sub", "kind": "symlink", "target": "directory"},
    ]


@pytest.mark.promise("PCK-2")
def test_kinds_are_right_at_every_depth_and_a_folder_precedes_its_content(work: Path) -> None:
    found = list_dir(path="sub", recursive=True)
    assert [(entry["path"], entry["kind"]) for entry in found] == [
        ("sub/b.txt", "file"),
        ("sub/deep", "directory"),
        ("sub/deep/c.txt", "file"),
        ("sub/deep/deeper", "directory"),
        ("sub/deep/deeper/deepest", "directory"),
        ("sub/deep/deeper/deepest/bottom", "directory"),
        ("sub/loop", "symlink"),
    ]


@pytest.mark.promise("PCK-2")
@pytest.mark.parametrize(("depth", "deepest"), [(1, "sub"), (2, "sub/deep"), (3, "sub/deep/deeper")])
def test_max_depth_limits_the_levels(work: Path, depth: int, deepest: str) -> None:
    folders = [entry["path"] for entry in list_dir(recursive=True, max_depth=depth) if entry["kind"] == "directory"]
    assert max(folders, key=len) == deepest


@pytest.mark.promise("PCK-2")
def test_a_loop_of_links_is_survived(work: Path) -> None:
    found = by_path(list_dir(recursive=True, max_depth=1000))
    assert found["sub/loop"] == {"name": "loop", "path": "sub/loop", "kind": "symlink", "target": "directory"}
    assert not any(path.startswith("sub/loop/") for path in found)


@pytest.mark.promise("PCK-2")
def test_a_tree_with_longer_paths_than_the_system_accepts_is_listed(work: Path) -> None:
    name = "nested" * 10
    here = os.open(".", os.O_RDONLY)
    for _ in range(150):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    found = list_dir(recursive=True, max_depth=5000)
    assert sum(entry["name"] == name for entry in found) == 150
    assert not any("error" in entry for entry in found)


@pytest.mark.promise("PCK-2")
def test_paths_of_entries_can_be_passed_on_unchanged(work: Path) -> None:
    for start in (".", "./", "sub", "sub/", "to_sub", str(work), "sub/.."):
        files = [entry["path"] for entry in list_dir(path=start, recursive=True) if entry["kind"] == "file"]
        assert {read_file(path=path) for path in files} >= {"b", "c"}


def test_a_depth_below_one_is_rejected(work: Path) -> None:
    with pytest.raises(ToolFailed, match="max_depth must be at least 1"):
        list_dir(max_depth=0)


@pytest.mark.promise("PCK-2")
def test_a_name_that_is_not_unicode_is_shown_by_its_bytes(work: Path) -> None:
    (work / "sub" / os.fsdecode(b"caf\xe9")).mkdir()
    found = by_path(list_dir(recursive=True))
    assert found["sub/caf\\xe9"]["name"] == "caf\\xe9"


WITHOUT_PRIVILEGES = """
import ctypes, json
class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
assert ctypes.CDLL(None).capset(ctypes.byref(Header(0x20080522, 0)), (ctypes.c_uint32 * 6)()) == 0
from pegboard.packs.fs import list_dir, read_file
from pegboard.sdk import ToolFailed
"""
"""Drops root's privilege to ignore permission bits."""


def without_privileges(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PRIVILEGES + code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.promise("PCK-2")
@pytest.mark.skipif(sys.platform != "linux", reason="permission bits are given back their meaning by a call of Linux")
def test_an_unreadable_folder_is_an_entry_with_an_error(work: Path) -> None:
    (work / "sub" / "deep").chmod(0)
    try:
        out = without_privileges("print([entry for entry in list_dir(path='sub', recursive=True)])")
    finally:
        (work / "sub" / "deep").chmod(0o700)
    assert "{'name': 'deep', 'path': 'sub/deep', 'kind': 'directory', 'error': 'permission denied'}" in out
    assert "b.txt" in out


@pytest.mark.promise("PCK-2")
@pytest.mark.skipif(sys.platform != "linux", reason="permission bits are given back their meaning by a call of Linux")
def test_a_folder_that_may_only_be_passed_through_is_passed_through(work: Path) -> None:
    (work / "sub").chmod(0o100)
    try:
        out = without_privileges("print(read_file(path='sub/deep/c.txt'), len(list_dir(path='sub/deep')))")
    finally:
        (work / "sub").chmod(0o700)
    assert out == "c 2\n"


@pytest.mark.promise("PCK-3")
@pytest.mark.skipif(sys.platform != "linux", reason="permission bits are given back their meaning by a call of Linux")
def test_an_unreadable_file_or_folder_is_a_failure(work: Path) -> None:
    (work / "a.txt").chmod(0)
    (work / "sub").chmod(0)
    try:
        out = without_privileges("""
for act, path in ((read_file, "a.txt"), (list_dir, "sub")):
    try: act(path=path)
    except ToolFailed as failure: print(failure)
""")
    finally:
        (work / "sub").chmod(0o700)
    assert out == "a.txt can't be read: permission denied.\nsub can't be read: permission denied.\n"


@pytest.mark.promise("PCK-3")
def test_text_is_read_unchanged(work: Path) -> None:
    (work / "text").write_bytes("grün\r\n\ttab\n".encode())
    assert read_file(path="text") == "grün\r\n\ttab\n"
    (work / "mark").write_bytes(b"\xef\xbb\xbfx")
    assert read_file(path="mark") == "x"
    (work / "empty").touch()
    assert read_file(path="empty") == ""
    assert read_file(path="empty", max_bytes=0) == ""
    assert read_file(path="to_file") == read_file(path="sub/../a.txt") == read_file(path=str(work / "a.txt")) == "hello"


@pytest.mark.promise("PCK-3")
def test_over_the_limit_the_error_names_size_and_limit(work: Path) -> None:
    (work / "large").write_bytes(b"x" * 204_801)
    with pytest.raises(ToolFailed, match=r"large has 204801 bytes; the limit \(max_bytes\) is 204800\."):
        read_file(path="large")
    assert len(read_file(path="large", max_bytes=204_801)) == 204_801
    assert len(read_file(path="large", max_bytes=10**15)) == 204_801


@pytest.mark.promise("PCK-3")
@pytest.mark.parametrize("content", [b"\xff\xfe", b"PK\x03\x04\x00\x00", "ü".encode("latin-1"), b"a\0b"])
def test_a_file_that_is_not_text_is_a_failure(work: Path, content: bytes) -> None:
    (work / "binary").write_bytes(content)
    with pytest.raises(ToolFailed, match="binary is not text"):
        read_file(path="binary")


@pytest.mark.promise("PCK-3")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("sub", "sub is a folder, not a file"),
        (".", "is a folder, not a file"),
        ("", "is a folder, not a file"),
        ("pipe", "is a device, a pipe or a socket"),
        ("socket", "is a device, a pipe or a socket"),
        ("nothing", "nothing does not exist"),
        ("to_nothing", "to_nothing does not exist"),
        ("to_itself", "to_itself "),
        ("a.txt/b", "a.txt/b "),
        ("x" * 300, "can't be read: file name too long"),
        ("a\0b", "NUL"),
        ("\ud800", "surrogates"),
    ],
)
def test_a_path_that_is_not_a_file_is_rejected_immediately(work: Path, path: str, reason: str) -> None:
    with pytest.raises(ToolFailed, match=reason):
        read_file(path=path)


@pytest.mark.promise("PCK-2")
@pytest.mark.parametrize(
    ("path", "reason"), [("a.txt", "a.txt is not a folder"), ("pipe", "not a folder"), ("nothing", "does not exist")]
)
def test_a_path_that_is_not_a_folder_is_rejected(work: Path, path: str, reason: str) -> None:
    with pytest.raises(ToolFailed, match=reason):
        list_dir(path=path)


@pytest.mark.promise("PCK-3")
@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "/proc/self/environ"])
def test_generated_files_never_hang(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    if not Path(path).exists():
        pytest.skip(f"no {path} here")
    with pytest.raises(ToolFailed, match=r"is a device|more than 3 bytes|not text"):
        read_file(path=path, max_bytes=3)


@pytest.mark.promise("PCK-3")
@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../outside",
        "../workshop",
        "sub/../../outside",
        "/",
        "/etc",
        "to_outside",
        "to_outside/../outside",
        "sub/loop/to_outside",
        "../outside/nothing",
    ],
)
def test_nothing_outside_is_listed(work: Path, path: str) -> None:
    with pytest.raises(ToolFailed, match="is outside"):
        list_dir(path=path)


@pytest.mark.promise("PCK-3")
@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "../workshop/secret.txt",
        "/etc/passwd",
        "to_secret",
        "to_outside/secret.txt",
        "sub/loop/to_secret",
        "../work/../outside/secret.txt",
        "../outside/nothing",
    ],
)
def test_nothing_outside_is_read_or_reported_to_exist(work: Path, path: str) -> None:
    with pytest.raises(ToolFailed, match="is outside"):
        read_file(path=path)


@pytest.mark.promise("PCK-3")
@pytest.mark.parametrize("root", ["nothing", "a.txt"])
def test_a_root_that_does_not_exist_or_is_a_file_is_named_instead_of_the_path(work: Path, root: str) -> None:
    with testing.host(config={"fs": {"roots": [str(work / root)]}}):
        for tool in (list_dir, lambda: read_file(path="a.txt")):
            with pytest.raises(ToolFailed, match=rf"{work / root}\. Create it, or correct `roots`"):
                tool()


@pytest.mark.promise("PCK-3")
def test_a_recursive_list_never_leaves_the_folder(work: Path) -> None:
    assert not any("secret.txt" in entry["path"] for entry in list_dir(recursive=True, max_depth=50))


@pytest.mark.promise("PCK-3")
def test_a_link_created_after_the_check_is_not_followed(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = _roots.resolve

    def swap_after_the_check(path: str) -> _roots.ResolvedPath:
        checked = resolve(path)
        (work / "sub").rename(work / "moved")
        (work / "sub").symlink_to(work.parent / "outside")
        return checked

    (work / "sub" / "secret.txt").write_text("mine")
    monkeypatch.setattr(_roots, "resolve", swap_after_the_check)
    with pytest.raises(ToolFailed, match=r"sub/secret\.txt is not a folder|can't be read"):
        read_file(path="sub/secret.txt")


@pytest.mark.slow
@pytest.mark.promise("PCK-3")
def test_swapping_a_folder_for_a_link_repeatedly_reveals_nothing(work: Path) -> None:
    (work / "sub" / "secret.txt").write_text("mine")
    (work / "link").symlink_to(work.parent / "outside")
    stop = threading.Event()
    exchange = ctypes.CDLL(None, use_errno=True)

    def swap() -> None:
        while not stop.is_set():
            # 2 is RENAME_EXCHANGE: swap both atomically.
            exchange.renameat2(-100, b"sub", -100, b"link", 2)

    if not hasattr(exchange, "renameat2"):
        pytest.skip("the system can't exchange two names")
    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[str] = set()
    try:
        for _ in range(3000):
            try:
                seen.add(read_file(path="sub/secret.txt"))
            except ToolFailed:
                seen.add("refused")
    finally:
        stop.set()
        thread.join()
    assert "secret" not in seen
    assert seen <= {"mine", "refused"}


def test_every_descriptor_is_closed(work: Path) -> None:
    def count() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    before = count()
    for act, path in ((read_file, "a.txt"), (read_file, "pipe"), (read_file, "sub/none/x"), (list_dir, "a.txt/b")):
        try:
            act(path=path)
        except ToolFailed:
            continue
    list_dir(recursive=True)
    assert count() == before
