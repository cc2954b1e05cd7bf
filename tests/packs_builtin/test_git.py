"""The git pack reads repositories, changes nothing, and runs no program that a repository names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.packs import git
from pegboard.sdk import ToolFailed, testing

from .repositories import made

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed here")

Git = Callable[..., str]


@pytest.fixture
def run(work: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Run git in the repository `work/repo`, without any configuration of this machine."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (work / "repo").mkdir()

    def run_git(*arguments: str, at: str = "2025-01-02T03:04:05+01:00") -> str:
        environ = {**os.environ, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        who = ["-c", "user.name=Ann Öz", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always"]
        done = subprocess.run(
            ["git", *who, *arguments], cwd=work / "repo", env=environ, capture_output=True, check=True, timeout=60
        )
        return done.stdout.decode().strip()

    run_git("init", "--quiet", "--initial-branch=main")
    return run_git


@pytest.fixture
def repo(work: Path, run: Git) -> Path:
    """Two commits, a branch, a tag; in the working tree staged, changed, renamed and untracked files."""
    folder = work / "repo"
    (folder / "grün.txt").write_text("one\ntwo\n")
    (folder / "old name.txt").write_text("a\nb\nc\nd\n")
    (folder / "gone.txt").write_text("gone\n")
    (folder / "image").write_bytes(b"\0\1\2")
    run("add", ".")
    run("commit", "--quiet", "--message", "Begin\n\nWith a body.\x01")
    run("tag", "v1")
    run("branch", "side")
    (folder / "grün.txt").write_text("one\n2\n")
    run("commit", "--quiet", "--all", "--message", "Count better", at="2025-02-03T00:00:00+00:00")
    (folder / "grün.txt").write_text("one\n2\nthree\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "new").write_text("new\n")
    (folder / "image").write_bytes(b"\0\2")
    run("mv", "old name.txt", "new name.txt")
    run("rm", "--quiet", "gone.txt")
    return folder


def test_the_status_contains_branch_changes_and_untracked_files(repo: Path) -> None:
    told = git.status(repository="repo")
    assert (told["top"], told["branch"], told["upstream"], told["ahead"]) == (str(repo), "main", None, 0)
    assert told["changed"] == [
        {"path": "gone.txt", "staged": "deleted", "unstaged": "unmodified"},
        {"path": "grün.txt", "staged": "unmodified", "unstaged": "modified"},
        {"path": "image", "staged": "unmodified", "unstaged": "modified"},
        {"path": "new name.txt", "staged": "renamed", "unstaged": "unmodified", "old_path": "old name.txt"},
    ]
    assert told["untracked"] == ["sub/"]
    assert git.status(repository="repo/sub")["commit"] == git.log(repository="repo")["commits"][0]["commit"]


def test_the_status_compares_the_branch_with_its_upstream_and_lists_conflicts(repo: Path, run: Git) -> None:
    run("checkout", "--quiet", "--force", "side")
    run("branch", "--set-upstream-to=main")
    (repo / "grün.txt").write_text("one\nzwei\n")
    run("commit", "--quiet", "--all", "--message", "Count in German")
    told = git.status(repository="repo")
    assert (told["branch"], told["upstream"], told["ahead"], told["behind"]) == ("side", "main", 1, 1)
    with pytest.raises(subprocess.CalledProcessError):
        run("merge", "main")
    assert git.status(repository="repo")["changed"][0]["unstaged"] == "unmerged"
    assert [each["path"] for each in git.diff(repository="repo", staged=True)["files"]] == []


def test_only_a_change_of_the_text_changes_a_file_whose_line_ends_are_converted(work: Path, run: Git) -> None:
    file = work / "repo" / "run.bat"
    (work / "repo" / ".gitattributes").write_text("*.bat text eol=crlf\n")
    file.write_bytes(b"one\r\ntwo\r\n")
    run("add", ".")
    run("commit", "--quiet", "--message", "a")
    file.unlink()
    file.write_bytes(b"one\r\ntwo\r\n")
    assert git.status(repository="repo")["changed"] == []
    file.write_bytes(b"one\r\n2\r\n")
    assert git.status(repository="repo")["changed"] == [
        {"path": "run.bat", "staged": "unmodified", "unstaged": "modified"}
    ]


def test_a_repository_without_commits_and_a_detached_head_have_a_status(work: Path, run: Git) -> None:
    assert git.status(repository="repo")["commit"] is None
    (work / "repo" / "a").touch()
    run("add", ".")
    run("commit", "--quiet", "--message", "a")
    run("checkout", "--quiet", "--detach")
    assert git.status(repository="repo")["branch"] is None


def test_the_log_lists_commits_the_latest_first(repo: Path) -> None:
    found = git.log(repository="repo")
    assert found["truncated"] is False
    latest, first = found["commits"]
    assert (latest["subject"], latest["parents"], latest["refs"]) == ("Count better", [first["commit"]], ["main"])
    assert first == {
        "commit": first["commit"], "parents": [], "author": "Ann Öz", "email": "ann@example.org",
        "date": "2025-01-02T03:04:05+01:00", "subject": "Begin", "body": "With a body.\x01",
        "refs": ["tag: v1", "side"],
    }  # fmt: skip


def test_the_log_is_limited_as_asked(repo: Path) -> None:
    def subjects(**choice: object) -> list[str]:
        found = git.log(repository="repo", **choice)  # type: ignore[arg-type] # any choice
        return [commit["subject"] for commit in found["commits"]]

    assert subjects(revision="v1") == ["Begin"]
    assert subjects(since_revision="side") == ["Count better"]
    assert subjects(paths=["image"]) == ["Begin"]
    assert subjects(author="ann@") == ["Count better", "Begin"]
    assert subjects(author="--all") == []
    assert subjects(message="COUNT BET") == ["Count better"]
    assert subjects(until="2025-01-15") == ["Begin"]
    assert git.log(repository="repo", max_commits=1)["truncated"] is True


def test_a_commit_is_shown_with_files_and_patch(repo: Path) -> None:
    shown = git.show(repository="repo")
    assert shown["commit"]["subject"] == "Count better"
    assert shown["files"] == [{"path": "grün.txt", "state": "modified", "added": 1, "removed": 1}]
    assert shown["patch"].startswith("diff --git a/grün.txt b/grün.txt\n")
    assert shown["patch"].endswith("-two\n+2\n")
    first = git.show(repository="repo", revision="v1", paths=["image"])
    assert first["files"] == [{"path": "image", "state": "added", "added": None, "removed": None}]


def test_a_patch_that_is_too_long_is_truncated_at_the_end_of_a_line(repo: Path) -> None:
    shown = git.show(repository="repo", max_bytes=100)
    assert shown["truncated"] is True
    assert len(shown["patch"].encode()) <= 100
    assert shown["patch"].endswith("\n")


def test_working_tree_stage_and_revisions_are_compared(repo: Path) -> None:
    def files(**choice: object) -> list[tuple[str, str]]:
        told = git.diff(repository="repo", **choice)  # type: ignore[arg-type] # any choice
        return [(change["path"], change["state"]) for change in told["files"]]

    assert files() == [("grün.txt", "modified"), ("image", "modified")]
    assert files(staged=True) == [("gone.txt", "deleted"), ("new name.txt", "renamed")]
    assert files(base="v1", target="main") == [("grün.txt", "modified")]
    assert files(base="HEAD", paths=["image"]) == [("image", "modified")]
    assert "@@ -2,0 +3 @@" in git.diff(repository="repo", paths=["grün.txt"], context=0)["patch"]
    with pytest.raises(ToolFailed, match="`target` requires `base`"):
        files(target="main")


def test_branches_are_listed_with_their_latest_commit(repo: Path, run: Git) -> None:
    run("remote", "add", "origin", str(repo))
    run("fetch", "--quiet", "origin")
    run("branch", "--set-upstream-to=origin/main", "side")
    main, side = git.branches(repository="repo")
    assert (main["name"], main["current"], main["subject"], main["upstream"]) == ("main", True, "Count better", None)
    assert (side["name"], side["current"], side["tracking"]) == ("side", False, "behind 1")
    remote = [branch["name"] for branch in git.branches(repository="repo", remote=True) if branch["remote"]]
    assert sorted(remote) == ["origin/main", "origin/side"]


@pytest.mark.parametrize("target", ["main", "gone"])
def test_the_default_branch_of_a_remote_is_listed_once_and_may_be_gone(repo: Path, run: Git, target: str) -> None:
    run("remote", "add", "origin", str(repo))
    run("fetch", "--quiet", "origin")
    run("symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{target}")
    run("update-ref", "refs/remotes/origin/topic/HEAD", "main")
    remote = [branch["name"] for branch in git.branches(repository="repo", remote=True) if branch["remote"]]
    assert sorted(remote) == ["origin/main", "origin/side", "origin/topic/HEAD"]


def test_a_file_is_read_as_it_was(repo: Path) -> None:
    assert git.read_file(repository="repo", path="grün.txt", revision="v1") == "one\ntwo\n"
    assert git.read_file(repository="repo", path="gone.txt") == "gone\n"


@pytest.mark.parametrize(
    ("path", "code"), [("nothing", "not_found"), ("", "not_a_file"), ("image", "not_text"), ("../x", "not_found")]
)
def test_a_file_that_was_not_text_is_rejected(repo: Path, path: str, code: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        git.read_file(repository="repo", path=path)
    assert failed.value.code == code


def test_each_line_has_its_commit(repo: Path) -> None:
    one, two = git.blame(repository="repo", path="grün.txt")
    assert (one["line"], one["text"], one["subject"], one["date"]) == (1, "one", "Begin", "2025-01-02T03:04:05+01:00")
    assert (two["text"], two["subject"], two["author"]) == ("2", "Count better", "Ann Öz")
    assert [line["line"] for line in git.blame(repository="repo", path="grün.txt", first=2, last=2)] == [2]
    with pytest.raises(ToolFailed, match="contains no such file"):
        git.blame(repository="repo", path="nothing")


def test_an_empty_file_has_no_lines(work: Path) -> None:
    made(work / "repo", empty="")
    assert git.blame(repository="repo", path="empty.txt") == []


def test_author_and_message_are_decoded_as_the_commit_says(work: Path) -> None:
    run = made(work / "repo", a="one\n")
    (work / "repo" / "a.txt").write_text("two\n")
    texts = ("Café".encode("latin-1"), "--author=René <rené@example.org>".encode("latin-1"))
    run("-c", "i18n.commitEncoding=iso-8859-1", "commit", "--quiet", "--all", "--message", *texts)
    (commit,) = git.log(repository="repo", author="rené <")["commits"]
    assert (commit["subject"], commit["author"], commit["email"]) == ("Café", "René", "rené@example.org")
    assert git.blame(repository="repo", path="a.txt")[0]["author"] == "René"


@pytest.mark.parametrize("revision", ["--output=stolen", "-p", "", "nothing", "HEAD:grün.txt", "v1..main", "a\nb"])
def test_an_unknown_revision_is_rejected(repo: Path, revision: str) -> None:
    for ask in (git.log, git.show):
        with pytest.raises(ToolFailed) as failed:
            ask(repository="repo", revision=revision)
        assert failed.value.code == "unknown_revision"
    assert not (repo / "stolen").exists()


def test_paths_and_texts_that_look_like_options_are_not_options(repo: Path) -> None:
    assert git.diff(repository="repo", paths=["--output=stolen"])["files"] == []
    assert git.log(repository="repo", paths=["--all", ":(top)*"])["commits"] == []
    with pytest.raises(ToolFailed):
        git.blame(repository="repo", path="--contents=/etc/passwd")
    assert not (repo / "stolen").exists()


@pytest.mark.parametrize(
    ("repository", "code"),
    [("sub", "not_a_repository"), ("nothing", "not_found"), ("..", "outside"), ("-C", "not_found")],
)
def test_a_folder_without_a_repository_is_rejected(repo: Path, repository: str, code: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        git.status(repository=repository)
    assert failed.value.code == code


def test_a_repository_that_reaches_outside_the_roots_is_rejected(
    repo: Path, run: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "sub" / "deeper").mkdir()
    monkeypatch.chdir(repo / "sub")
    with pytest.raises(ToolFailed, match="not in a git repository at or below"):
        git.status()
    with testing.host(config={"git": {"roots": [str(repo)]}}):
        assert git.status(repository="sub/deeper")["branch"] == "main"
    monkeypatch.chdir(repo)
    run("config", "core.worktree", str(repo.parent.parent / "outside"))
    with pytest.raises(ToolFailed, match="outside"):
        git.diff()


HOSTILE = {
    "core.fsmonitor": "{}",
    "core.pager": "{}",
    "core.editor": "{}",
    "core.sshCommand": "{}",
    "core.hooksPath": "{}-hooks",
    "diff.external": "{}",
    "diff.evil.textconv": "{}",
    "diff.evil.command": "{}",
    "filter.evil.clean": "{}",
    "filter.evil.smudge": "{}",
    "filter.evil.required": "true",
    "filter.evil.two.process": "{}",
    "gpg.program": "{}",
    "log.showSignature": "true",
    "diff.submodule": "diff",
    "alias.status": "!{}",
    "remote.origin.url": "ext::{}",
    "remote.origin.promisor": "true",
    "remote.origin.uploadpack": "{}",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "extensions.partialClone": "origin",
    "core.repositoryFormatVersion": "1",
}


def test_nothing_that_the_repository_names_is_run(repo: Path, run: Git, tmp_path: Path) -> None:
    (repo / ".gitattributes").write_text("*.txt diff=evil filter=evil\nimage filter=evil.two\n")
    run("add", ".gitattributes")
    signature = b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n abcd\n -----END PGP SIGNATURE-----\n\n"
    signed = run("cat-file", "commit", "HEAD").encode().replace(b"\n\n", b"\n" + signature, 1)
    (tmp_path / "signed").write_bytes(signed)
    run("update-ref", "HEAD", run("hash-object", "-t", "commit", "-w", str(tmp_path / "signed")))
    trap = tmp_path / "trap"
    hook = tmp_path / "trap-hooks" / "post-index-change"
    hook.parent.mkdir()
    for file in (trap, hook):
        file.write_text(f"#!/bin/sh\ntouch {tmp_path / 'touched'}\ncat\n")
        file.chmod(0o755)
    missing = run("rev-parse", "v1:gone.txt")
    for name, value in HOSTILE.items():
        run("config", name, value.format(trap))
    (repo / "grün.txt").write_text("one\n2\nthree\nfour\n")
    os.utime(repo / "new name.txt", (1e9, 1e9))
    index = (repo / ".git" / "index").read_bytes()

    git.status(repository="repo")
    git.log(repository="repo")
    git.branches(repository="repo")
    git.show(repository="repo")
    patch = git.diff(repository="repo")["patch"]
    git.blame(repository="repo", path="grün.txt")
    assert not (tmp_path / "touched").exists()
    assert "+four" in patch
    assert (repo / ".git" / "index").read_bytes() == index

    (repo / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    with pytest.raises(ToolFailed):
        git.read_file(repository="repo", path="gone.txt", revision="v1")
    with pytest.raises(ToolFailed):
        git.show(repository="repo", revision="v1")
    assert not (tmp_path / "touched").exists()


def test_the_trap_of_the_test_before_works(repo: Path, run: Git, tmp_path: Path) -> None:
    run("config", "core.fsmonitor", f"touch {tmp_path / 'touched'}")
    run("status")
    assert (tmp_path / "touched").exists()


def test_no_program_that_a_submodule_names_is_run(repo: Path, run: Git, tmp_path: Path) -> None:
    run("submodule", "--quiet", "add", str(repo), "inner")
    run("commit", "--quiet", "--message", "Add the inner one")
    (repo / "inner" / "grün.txt").write_text("changed")
    run("-C", "inner", "commit", "--quiet", "--all", "--message", "Change the inner one")
    (repo / "inner" / "grün.txt").write_text("changed again")
    run("config", "diff.submodule", "diff")
    for name in ("core.fsmonitor", "diff.external"):
        run("-C", "inner", "config", name, f"touch {tmp_path / 'touched'}")
    assert "inner" in [each["path"] for each in git.status(repository="repo")["changed"]]
    assert "Subproject commit" in git.diff(repository="repo")["patch"]
    git.diff(repository="repo", staged=True)
    assert not (tmp_path / "touched").exists()
