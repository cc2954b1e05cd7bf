"""The git pack returns what the git program prints."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pegboard.packs import git
from pegboard.sdk import ToolFailed

from .repositories import Git, made

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed here")

LETTERS = {".": "unmodified", "M": "modified", "T": "type_changed", "A": "added", "D": "deleted", "R": "renamed"}
LETTERS |= {"U": "unmerged"}
NAMES = [
    "a.txt",
    "b c.txt",
    "sub/d.txt",
    "sub/deep/e.txt",
    "sub.txt",
    "grün.txt",
    "crlf.bat",
    "link",
    "run.sh",
    "other/f.txt",
]


def changed(path: Path, chance: random.Random) -> None:
    """Change a file, a link or the mode of a script, or delete it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or (path.exists() and chance.random() < 0.2):
        path.unlink()
    elif path.name == "link":
        path.symlink_to(chance.choice(NAMES))
    else:
        lines = (
            path.read_bytes().splitlines(keepends=True)
            if path.exists()
            else [b"begin %d\n" % chance.randrange(10**9) for _ in range(5)]
        )
        end = b"\r\n" if path.suffix == ".bat" else b"\n"
        lines.insert(chance.randrange(len(lines) + 1), b"line %d" % chance.randrange(10**9) + end)
        path.write_bytes(b"".join(lines))
        if path.name == "run.sh":
            path.chmod(chance.choice([0o644, 0o755]))


def grown(folder: Path, seed: int) -> Git:
    """Create a repository by random changes: commits, branches, merges, and uncommitted changes."""
    chance = random.Random(seed)
    run = made(folder, a="one\ntwo\n")
    (folder / ".gitattributes").write_text("*.bat text eol=crlf\n*.bin binary\n")
    (folder / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n")

    def change() -> None:
        for name in chance.sample(NAMES, 3):
            changed(folder / name, chance)

    for number in range(8):
        if chance.random() < 0.3:
            run("checkout", "--quiet", "-B", chance.choice(["main", "side"]))
        change()
        run("add", "--all")
        at = f"2025-01-{number + 2:02}T03:04:05+01:00"
        run("commit", "--quiet", "--allow-empty", "--message", f"Commit {number}\n\nBody {number}", at=at)
    run("tag", "v1", "HEAD~3")
    run("tag", "-a", "-m", "annotated", "v2", "HEAD~2")
    run("checkout", "--quiet", "-B", "other", "v1")
    change()
    run("add", "--all")
    run("commit", "--quiet", "--allow-empty", "--message", "Aside", at="2025-01-20T03:04:05+01:00")
    run("merge", "--quiet", "--message", "Merge", "side" if run("branch", "--list", "side") else "main", check=False)
    if chance.random() < 0.5:
        run("add", "--all")
        run("commit", "--quiet", "--allow-empty", "--message", "Merged", at="2025-01-21T03:04:05+01:00")
    if chance.random() < 0.5:
        run("gc", "--quiet")
    change()
    run("add", chance.choice(["a.txt", "sub", "."]), check=False)
    change()
    (folder / "build").mkdir()
    (folder / "build" / "x").touch()
    (folder / "new" / "empty").mkdir(parents=True)
    (folder / "new" / "x.log").touch()
    if chance.random() < 0.5:
        (folder / "new" / "keep.log").touch()
    if chance.random() < 0.5:
        for path in folder.glob("*.txt"):
            os.utime(path, (1e9, 1e9))
    return run


def printed_status(run: Git) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return what `git status` prints: changed files with their states, and untracked ones."""
    changed, untracked = {}, []
    rows = iter(run("-c", "status.renames=true", "status", "--porcelain=v2", "-z").split("\0"))
    for row in rows:
        kind, _, rest = row.partition(" ")
        if kind == "?":
            untracked.append(rest)
        elif kind in {"1", "2", "u"}:
            fields = rest.split(" ", {"1": 7, "2": 8, "u": 9}[kind])
            changed[fields[-1]] = (LETTERS[fields[0][0]], LETTERS[fields[0][1]])
            if kind == "2":
                next(rows)
    return changed, sorted(untracked)


def plain(patch: str) -> list[str]:
    """Return the lines of a patch without parts that may differ: ids, and the text after `@@` and names with spaces."""
    lines = [line for line in patch.splitlines() if not line.startswith(("index ", "similarity ", "dissimilarity "))]
    lines = [line.rstrip("\t") if line.startswith(("--- ", "+++ ")) else line for line in lines]
    return [line[: line.index(" @@") + 3] if line.startswith("@@ ") else line for line in lines]


@pytest.mark.parametrize("seed", range(4))
def test_it_returns_what_the_program_prints(work: Path, seed: int) -> None:
    run = grown(work / "repo", seed)
    status = git.status(repository="repo")
    changed, untracked = printed_status(run)
    assert {each["path"]: (each["staged"], each["unstaged"]) for each in status["changed"]} == changed
    assert status["untracked"] == untracked
    assert (status["branch"], status["commit"]) == (run("branch", "--show-current"), run("rev-parse", "HEAD"))

    found = git.log(repository="repo", max_commits=100)["commits"]
    assert [each["commit"] for each in found] == run("log", "--format=%H").split("\n")
    rows = run("log", "--format=%s%x00%b%x00%aI%x01").split("\x01")[:-1]
    printed = [tuple(text.strip("\n") for text in row.split("\0")) for row in rows]
    assert [(each["subject"], each["body"], each["date"]) for each in found] == printed
    for paths in (["a.txt"], ["sub"], ["sub/d.txt", "link"], ["sub/deep/"]):
        asked = [each["commit"] for each in git.log(repository="repo", paths=paths)["commits"]]
        assert sorted(asked) == sorted(run("log", "--format=%H", "--", *paths).split())
    assert [each["commit"] for each in git.log(repository="repo", since_revision="v2")["commits"]] == run(
        "log", "--format=%H", "v2.."
    ).split()
    for commit in found:
        if len(commit["parents"]) < 2:
            asked_patch = git.show(repository="repo", revision=commit["commit"])["patch"]
            assert plain(asked_patch) == plain(run("show", "--format=", "--no-color", commit["commit"]))

    if not run("ls-files", "--unmerged"):
        patches: list[tuple[Callable[[], str], list[str]]] = [
            (lambda: git.diff(repository="repo")["patch"], ["diff"]),
            (lambda: git.diff(repository="repo", staged=True)["patch"], ["diff", "--cached"]),
            (lambda: git.diff(repository="repo", base="v1")["patch"], ["diff", "v1"]),
            (lambda: git.diff(repository="repo", base="v1", staged=True)["patch"], ["diff", "--cached", "v1"]),
            (lambda: git.diff(repository="repo", base="v1", target="v2")["patch"], ["diff", "v1", "v2"]),
            (lambda: git.diff(repository="repo", paths=["sub", "a.txt"])["patch"], ["diff", "--", "sub", "a.txt"]),
        ]
        for ask, command in patches:
            assert plain(ask()) == plain(run(*command))

    for path in run("ls-tree", "-r", "--name-only", "-z", "HEAD").split("\0")[:-1]:
        if not (content := run("cat-file", "blob", f"HEAD:{path}")):
            continue
        assert git.read_file(repository="repo", path=path).rstrip("\n") == content
        lines = run("blame", "-s", "-l", "--root", "HEAD", "--", path).split("\n")
        assert [each["commit"] for each in git.blame(repository="repo", path=path)] == [
            line.split()[0] for line in lines
        ]


def test_worktrees_and_submodules_are_opened(work: Path) -> None:
    run = made(work / "repo", a="one\n")
    made(work / "inner", b="two\n")
    run("submodule", "--quiet", "add", str(work / "inner"), "sub")
    run("commit", "--quiet", "--message", "Add")
    run("worktree", "add", "--quiet", "-b", "side", "../tree")
    assert git.status(repository="tree")["branch"] == "side"
    assert git.status(repository="repo")["branch"] == "main"
    assert git.status(repository="repo/sub")["top"] == str(work / "repo" / "sub")
    assert git.status(repository="repo")["changed"] == []


@pytest.mark.parametrize("change", ["edit", "stage", "add", "commit"])
def test_a_submodule_with_any_change_is_modified(work: Path, change: str) -> None:
    run = made(work / "repo", a="one\n")
    made(work / "inner", b="two\n")
    run("submodule", "--quiet", "add", str(work / "inner"), "sub")
    run("commit", "--quiet", "--message", "Add")
    (work / "repo" / "sub" / ("new.txt" if change == "add" else "b.txt")).write_text("three\n")
    inside = Git(work / "repo" / "sub")
    if change == "stage":
        inside("add", ".")
        (work / "repo" / "sub" / "b.txt").write_text("two\n")
    elif change == "commit":
        inside("commit", "--quiet", "--all", "--message", "Change")
    assert git.status(repository="repo")["changed"] == [{"path": "sub", "staged": "unmodified", "unstaged": "modified"}]
    assert list(printed_status(run)[0].items()) == [("sub", ("unmodified", "modified"))]
    assert [each["path"] for each in git.diff(repository="repo")["files"]] == (["sub"] if change == "commit" else [])


def test_shallow_clones_alternates_and_reference_logs_are_read(work: Path) -> None:
    run = made(work / "repo", a="one\n")
    for number in range(3):
        (work / "repo" / "a.txt").write_text(f"{number}\n")
        run("commit", "--quiet", "--all", "--message", str(number))
    Git(work)("clone", "--quiet", "--shared", "repo", "shared")
    Git(work)("clone", "--quiet", "--depth", "2", f"file://{work}/repo", "shallow")
    assert len(git.log(repository="shared")["commits"]) == 4
    assert [each["subject"] for each in git.log(repository="shallow")["commits"]] == ["2", "1"]
    assert git.show(repository="repo", revision="HEAD@{2}")["commit"]["subject"] == "0"
    assert git.branches(repository="shared")[0]["upstream"] == "origin/main"


@pytest.mark.parametrize("version", ["2", "4"])
def test_every_version_of_the_index_is_read(work: Path, version: str) -> None:
    run = made(work / "repo", **{f"file_{number}" + "x" * number: "text\n" for number in range(20)})
    run("update-index", "--index-version", version)
    (work / "repo" / "planned").write_text("planned\n")
    run("add", "--intent-to-add", "planned")
    (work / "repo" / "file_3xxx.txt").write_text("changed\n")
    states = [(each["path"], each["staged"], each["unstaged"]) for each in git.status(repository="repo")["changed"]]
    assert states == [("file_3xxx.txt", "unmodified", "modified"), ("planned", "unmodified", "added")]


@pytest.mark.parametrize("content", [b"", b"DIRC", b"x" * 100, b"DIRC\0\0\0\2\0\0\0\1" + b"\0" * 100])
def test_a_damaged_index_is_a_failure(work: Path, content: bytes) -> None:
    made(work / "repo", a="one\n")
    (work / "repo" / ".git" / "index").write_bytes(content)
    if content:
        with pytest.raises(ToolFailed, match="its index is damaged"):
            git.status(repository="repo")


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_repository_is_a_failure_at_most(work: Path, seed: int) -> None:
    made(work / "repo", a="one\n")
    chance = random.Random(seed)
    for path in chance.sample([path for path in (work / "repo" / ".git").rglob("*") if path.is_file()], 8):
        content = bytearray(path.read_bytes())
        path.chmod(0o644)
        for _ in range(3):
            if content:
                content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content)
    for call in (git.status, git.log, git.show, git.diff, git.branches):
        with suppress(ToolFailed):
            call(repository="repo")
