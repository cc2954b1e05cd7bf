"""A hostile repository runs nothing and shows nothing from outside the roots."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pegboard.packs import git
from pegboard.sdk import ToolFailed

from .races import race, swapping
from .repositories import Git, made

pytestmark = [
    pytest.mark.promise("SEC-1"),
    pytest.mark.skipif(
        shutil.which("git") is None, reason="the repositories are made with git, which is not installed"
    ),
]


def every_tool(folder: str) -> list[object]:
    """Call every tool of the pack on a repository; return their results and messages."""
    calls: list[Callable[[], object]] = [
        lambda: git.status(repository=folder),
        lambda: git.log(repository=folder),
        lambda: git.log(repository=folder, revision="HEAD@{0}", paths=["secret.txt"]),
        lambda: git.show(repository=folder),
        lambda: git.diff(repository=folder),
        lambda: git.diff(repository=folder, base="HEAD"),
        lambda: git.diff(repository=folder, staged=True),
        lambda: git.branches(repository=folder, remote=True),
        lambda: git.read_file(repository=folder, path="secret.txt"),
        lambda: git.blame(repository=folder, path="secret.txt"),
    ]
    said: list[object] = []
    for call in calls:
        try:
            said.append(call())
        except ToolFailed as failed:
            said.append(failed.message)
    return said


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Path]:
    """Provide a program that leaves a mark; the test fails if the mark exists at the end."""
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\ncat\n")
    program.chmod(0o755)
    yield program
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", [b"evil", b"a=b", b"a.b", b"x y", "ö".encode(), b"\xff\xfe", b'q"q', b"clean"])
def test_no_filter_runs_whatever_its_name(work: Path, trap: Path, name: bytes) -> None:
    made(work / "repo", a="one\n", b="two\n")
    quoted = name.replace(b'"', b'\\"')
    with (work / "repo" / ".git" / "config").open("ab") as config:
        config.write(b'\n[filter "' + quoted + b'"]\n\trequired = true\n')
        for kind in (b"clean", b"smudge", b"process"):
            config.write(b"\t%s = %s\n" % (kind, bytes(trap)))
    (work / "repo" / ".gitattributes").write_bytes(b"* filter=" + name + b" diff=" + name + b"\n")
    (work / "repo" / "a.txt").write_text("changed\n")
    os.utime(work / "repo" / "b.txt", (1e9, 1e9))
    status, *_, patch = every_tool("repo")[0], every_tool("repo")[4]
    assert isinstance(status, dict)
    assert "+changed" in str(patch)


def test_a_git_directory_within_a_clone_counts_as_plain_files(work: Path, trap: Path) -> None:
    origin = made(work / "origin", a="one\n")
    nested = work / "origin" / "inner"
    (nested / "objects").mkdir(parents=True)
    (nested / "refs").mkdir()
    for name in ("objects", "refs"):
        (nested / name / "keep").touch()
    (nested / "HEAD").write_text("ref: refs/heads/main\n")
    config = f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = {trap}\n"
    (nested / "config").write_text(f'{config}[filter "a=b"]\n\tclean = {trap}\n')
    (work / "origin" / ".gitattributes").write_text("* filter=a=b\n")
    origin("add", "--force", ".")
    origin("commit", "--quiet", "--message", "Nest")
    Git(work)("clone", "--quiet", "origin", "clone")
    assert git.status(repository="clone/inner")["top"] == str(work / "clone")
    every_tool("clone/inner")


@pytest.fixture
def outside(tmp_path: Path, work: Path) -> Path:
    """Provide a repository outside the working directory, with a secret."""
    run = made(tmp_path / "outside" / "repo", secret="s3cret\n")
    run("gc", "--quiet")
    (run.folder / "secret.txt").write_text("s3cret\ns3cret\n")
    run("commit", "--quiet", "--all", "--message", "s3cret message")
    return run.folder


def link(name: str) -> Callable[[Path, Path], None]:
    """Replace a part of the git directory by a link to the same part of the outer repository."""

    def replace(folder: Path, outside: Path) -> None:
        inner = folder / ".git" / name
        if inner.is_dir():
            shutil.rmtree(inner)
        else:
            inner.unlink(missing_ok=True)
        inner.symlink_to(outside / ".git" / name)

    return replace


def written(name: str, text: str) -> Callable[[Path, Path], None]:
    """Write a file of the git directory; `{}` is replaced by the outer repository."""

    def write(folder: Path, outside: Path) -> None:
        (folder / ".git" / name).parent.mkdir(exist_ok=True)
        (folder / ".git" / name).write_text(text.format(outside))

    return write


def pointing(folder: Path, outside: Path) -> None:
    """Point the working tree to the git directory outside."""
    shutil.rmtree(folder / ".git")
    (folder / ".git").write_text(f"gitdir: {outside}/.git\n")


def linked(folder: Path, outside: Path) -> None:
    """Link to the git directory outside."""
    shutil.rmtree(folder / ".git")
    (folder / ".git").symlink_to(outside / ".git")


def relative_alternate(folder: Path, outside: Path) -> None:
    """Name the objects outside by a relative path."""
    path = os.path.relpath(outside / ".git" / "objects", folder / ".git" / "objects")
    (folder / ".git" / "objects" / "info" / "alternates").write_text(path + "\n")


def alternate_of_an_alternate(folder: Path, outside: Path) -> None:
    """Name an inner alternate, which names the objects outside."""
    second = made(folder.parent / "second", b="b\n")
    written("objects/info/alternates", "{}/.git/objects\n")(folder, second.folder)
    written("objects/info/alternates", "{}/.git/objects\n")(second.folder, outside)


def linked_objects(folder: Path, outside: Path) -> None:
    """Link to each folder of objects, and to each pack."""
    for source in (outside / ".git" / "objects").glob("??"):
        shutil.rmtree(folder / ".git" / "objects" / source.name, ignore_errors=True)
        (folder / ".git" / "objects" / source.name).symlink_to(source)
    for source in (outside / ".git" / "objects" / "pack").iterdir():
        (folder / ".git" / "objects" / "pack" / source.name).symlink_to(source)


def linked_loose_objects(folder: Path, outside: Path) -> None:
    """Link to each single object file."""
    for source in (outside / ".git" / "objects").glob("??/*"):
        (folder / ".git" / "objects" / source.parent.name).mkdir(exist_ok=True)
        (folder / ".git" / "objects" / source.parent.name / source.name).symlink_to(source)


@pytest.mark.parametrize(
    "escape",
    [
        pointing, linked, relative_alternate, alternate_of_an_alternate, linked_objects, linked_loose_objects,
        link("objects"), link("refs"), link("index"), link("config"), link("logs"), link("HEAD"), link("objects/pack"),
        link("packed-refs"), written("commondir", "{}/.git\n"), written("objects/info/alternates", "{}/.git/objects\n"),
        written("config", "[core]\n\tworktree = {}\n"), written("config", "[include]\n\tpath = {}/.git/config\n"),
        written("config", "[core]\n\texcludesFile = {0}/secret.txt\n\tattributesFile = {0}/secret.txt\n"),
    ],
)  # fmt: skip
def test_nothing_from_outside_the_roots_is_shown(
    work: Path, outside: Path, escape: Callable[[Path, Path], None]
) -> None:
    run = made(work / "repo", a="a\n")
    escape(work / "repo", outside)
    head = Git(outside)("rev-parse", "HEAD")
    if (work / "repo" / ".git").is_dir() and (work / "repo" / ".git" / "refs").is_dir():
        for target in (run.folder / ".git" / "refs" / "heads" / "main", run.folder / ".git" / "refs" / "heads" / "x"):
            with suppress(OSError):
                if not target.parent.resolve().is_relative_to(outside):
                    target.write_text(head + "\n")
    for revision in ("HEAD", head, head[:10], "main", "x"):
        with suppress(ToolFailed):
            assert "s3cret" not in git.read_file(repository="repo", path="secret.txt", revision=revision)
    assert "s3cret" not in str(every_tool("repo"))


def test_links_of_the_working_tree_are_compared_as_links(work: Path, outside: Path) -> None:
    run = made(work / "repo", a="a\n")
    (work / "repo" / "sub").mkdir()
    (work / "repo" / "sub" / "secret.txt").write_text("public\n")
    run("add", ".")
    run("commit", "--quiet", "--message", "Add")
    shutil.rmtree(work / "repo" / "sub")
    (work / "repo" / "sub").symlink_to(outside)
    (work / "repo" / "a.txt").unlink()
    (work / "repo" / "a.txt").symlink_to(outside / "secret.txt")
    found = git.diff(repository="repo")
    assert {(each["path"], each["state"]) for each in found["files"]} == {
        ("a.txt", "type_changed"), ("sub/secret.txt", "deleted"),
    }  # fmt: skip
    assert "s3cret" not in found["patch"]


@pytest.mark.parametrize("name", [".git", ".git/objects", "sub", "sub/secret.txt"])
def test_links_that_are_swapped_meanwhile_reveal_nothing(work: Path, outside: Path, name: str) -> None:
    run = made(work / "repo", secret="public\n")
    (work / "repo" / "sub").mkdir()
    (work / "repo" / "sub" / "secret.txt").write_text("public\n")
    run("add", ".")
    run("commit", "--quiet", "--message", "Add")
    (work / "repo" / "sub" / "secret.txt").write_text("changed\n")
    (outside / "sub").mkdir()
    (outside / "sub" / "secret.txt").write_text("s3cret\n")
    with swapping(work / "repo" / name, outside / name):

        def attempt() -> None:
            for call in (git.diff, git.show):
                with suppress(ToolFailed):
                    assert "s3cret" not in str(call(repository="repo"))

        assert race(attempt)


def test_it_needs_no_git_program(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(work / "repo", a="a\n")
    monkeypatch.setenv("PATH", str(work))
    assert git.status(repository="repo")["branch"] == "main"
