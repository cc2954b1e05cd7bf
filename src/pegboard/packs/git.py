"""Looking at git repositories: status, history, differences, branches, who wrote what. Nothing is ever changed.

A repository may name programs in its own configuration that git would run: filters, a file system monitor, text
converters, a pager, a way to fetch. None of them is run here.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, NotRequired, TypedDict

from annotated_types import Ge, Le

from pegboard.sdk import ToolFailed, aliases, hints, requires_cli

from ._programs import Printed, printed
from ._roots import decoded, is_inside, resolve_folder, roots

requires_cli("git", min_version="2.26", install="apt install git, or brew install git")

_MOST = 50_000_000
"""Bytes of git's output that are looked at, where a tool has no limit of its own."""
_CALM = (
    "--no-pager", "--no-optional-locks", "--literal-pathspecs",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false",
    "-c", "log.showSignature=false", "-c", "blame.ignoreRevsFile=",
)  # fmt: skip
_MANNERS = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_NOTHING: Mapping[str, str] = MappingProxyType({})
_PLAIN_DIFF = (
    "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short", "--ignore-submodules=dirty",
    "--find-renames", "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
_FIELDS = ("%H", "%P", "%an", "%ae", "%aI", "%s", "%b", "%D")
_DRIVER = re.compile(r"(filter\..+)\.(?:clean|smudge|process|required)", re.DOTALL | re.IGNORECASE)
_BLAMED = re.compile(r"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?")

State = Literal["unmodified", "modified", "type_changed", "added", "deleted", "renamed", "copied", "unmerged"]
_STATES: dict[str, State] = {
    ".": "unmodified", "M": "modified", "T": "type_changed", "A": "added", "D": "deleted", "R": "renamed",
    "C": "copied", "U": "unmerged",
}  # fmt: skip


class Changed(TypedDict):
    """A file that is not as it was committed."""

    path: str
    """From the top of the repository, as all paths that this pack gives."""
    staged: State
    unstaged: State
    old_path: NotRequired[str]
    """What it was called before it was renamed or copied."""


class Status(TypedDict):
    """What is going on in a repository."""

    top: str
    """The folder that the repository is in."""
    branch: str | None
    """None if HEAD is detached."""
    commit: str | None
    """None before the first commit."""
    upstream: str | None
    ahead: int
    """How many commits the branch has that the upstream has not."""
    behind: int
    """How many commits the upstream has that the branch has not."""
    changed: list[Changed]
    untracked: list[str]
    """Files, and folders with nothing else in them, which end with `/`."""


class Commit(TypedDict):
    """A commit."""

    commit: str
    parents: list[str]
    author: str
    email: str
    date: str
    """When it was written, as ISO 8601."""
    subject: str
    body: str
    refs: list[str]
    """The branches and tags that point at it."""


class Commits(TypedDict):
    """A part of the history, the latest first."""

    commits: list[Commit]
    truncated: bool
    """Whether there are more."""


class FileChange(TypedDict):
    """What happened to a file."""

    path: str
    state: State
    added: int | None
    """Lines; None if it is binary."""
    removed: int | None
    """Lines; None if it is binary."""
    old_path: NotRequired[str]
    """What it was called before it was renamed or copied."""


class Change(TypedDict):
    """What is different."""

    files: list[FileChange]
    patch: str
    truncated: bool
    """Whether the patch is cut."""


class Shown(Change):
    """A commit with what it changed, compared to its first parent."""

    commit: Commit


class Branch(TypedDict):
    """A branch."""

    name: str
    commit: str
    subject: str
    date: str
    """When the commit was made, as ISO 8601."""
    current: bool
    remote: bool
    upstream: str | None
    tracking: str | None
    """How it stands to its upstream: `ahead 1, behind 2`, or `gone`."""


class Line(TypedDict):
    """A line of a file, and where it comes from."""

    line: int
    text: str
    commit: str
    author: str
    date: str
    """When it was written, as ISO 8601."""
    subject: str


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
def status(*, repository: str = ".") -> Status:
    """Tells the branch of a repository, and what is changed, staged and untracked.

    Args:
        repository: Any folder of it, inside the working directory.
    """
    where = _opened(repository)
    options = [
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=normal",
        "--ahead-behind",
        "--ignore-submodules=dirty",
    ]
    told: Status = {
        "top": where.top, "branch": None, "commit": None, "upstream": None, "ahead": 0, "behind": 0,
        "changed": [], "untracked": [],
    }  # fmt: skip
    entries = iter(_texts(where.run("status", *options, "--find-renames").output))
    for entry in entries:
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            _read_header(told, *rest.partition(" ")[::2])
        elif kind == "?":
            told["untracked"].append(rest)
        else:
            told["changed"].append(_changed(kind, rest, entries))
    return told


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(max_commits="maxCommits")
def log(
    *,
    repository: str = ".",
    revision: str = "HEAD",
    since_revision: str | None = None,
    paths: Sequence[str] = (),
    author: str | None = None,
    message: str | None = None,
    since: str | None = None,
    until: str | None = None,
    max_commits: Annotated[int, Ge(1), Le(10_000)] = 30,
) -> Commits:
    """Lists commits, the latest first.

    Args:
        repository: Any folder of it, inside the working directory.
        revision: Where to begin: a branch, a tag, a commit, `HEAD~3`.
        since_revision: Only what came after this: with `main`, what the revision has and main has not.
        paths: Only commits that touch one of these, from the top of the repository.
        author: Only where the author's name or address has this in it.
        message: Only where the message has this in it; upper and lower case don't matter.
        since: Only later ones, such as `2025-01-31` or `2 weeks ago`.
        until: Only earlier ones.
        max_commits: How many to give at most.
    """
    where = _opened(repository)
    chosen = [where.commit(revision), *([f"^{where.commit(since_revision)}"] if since_revision else [])]
    texts = {"--author": author, "--grep": message, "--since": since, "--until": until}
    options = [f"{option}={text}" for option, text in texts.items() if text is not None]
    found = where.commits(*options, "--fixed-strings", "-i", f"--max-count={max_commits + 1}", *chosen, "--", *paths)
    return {"commits": found[:max_commits], "truncated": len(found) > max_commits}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(max_bytes="maxBytes")
def show(
    *,
    repository: str = ".",
    revision: str = "HEAD",
    paths: Sequence[str] = (),
    max_bytes: Annotated[int, Ge(0), Le(_MOST)] = 200_000,
) -> Shown:
    """Shows a commit: its message, the files it changed, and the patch.

    Args:
        repository: Any folder of it, inside the working directory.
        revision: The commit: a branch, a tag, `HEAD~3`.
        paths: Only these files and folders, from the top of the repository.
        max_bytes: How long the patch may be before it is cut, in bytes.
    """
    where = _opened(repository)
    commit = where.commit(revision)
    [described] = where.commits("--max-count=1", commit, "--")
    first = described["parents"][0] if described["parents"] else where.empty_tree()
    return {"commit": described, **where.change([first, commit], paths, max_bytes)}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(max_bytes="maxBytes")
def diff(
    *,
    repository: str = ".",
    base: str | None = None,
    target: str | None = None,
    staged: bool = False,
    paths: Sequence[str] = (),
    context: Annotated[int, Ge(0), Le(1000)] = 3,
    max_bytes: Annotated[int, Ge(0), Le(_MOST)] = 200_000,
) -> Change:
    """Compares two revisions, or a revision with the working tree.

    Without a base and a target it shows what is not staged yet.

    Args:
        repository: Any folder of it, inside the working directory.
        base: What to compare with: a branch, a tag, a commit.
        target: What to compare, instead of the working tree; it needs a base.
        staged: Whether to compare what is staged, instead of the working tree.
        paths: Only these files and folders, from the top of the repository.
        context: How many lines to show around each change.
        max_bytes: How long the patch may be before it is cut, in bytes.
    """
    if target is not None and (base is None or staged):
        raise ToolFailed("A target needs a base, and can't be staged.", code="invalid_argument")
    where = _opened(repository)
    sides = [where.commit(revision) for revision in (base, target) if revision is not None]
    return where.change([*(["--cached"] if staged else []), *sides], paths, max_bytes, context)


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
def branches(*, repository: str = ".", remote: bool = False) -> list[Branch]:
    """Lists the branches, the latest commit first.

    Args:
        repository: Any folder of it, inside the working directory.
        remote: Whether to list those of remotes, as last fetched, too.
    """
    fields = (
        "HEAD", "refname", "refname:short", "objectname", "contents:subject", "committerdate:iso-strict",
        "upstream:short", "upstream:track,nobracket",
    )  # fmt: skip
    pattern = "".join(f"%({field})%00" for field in fields)
    kinds = ["refs/heads", *(["refs/remotes"] if remote else [])]
    told = _opened(repository).run("for-each-ref", "--sort=-committerdate", f"--format={pattern}", *kinds)
    found: list[Branch] = []
    for head, full, name, commit, subject, date, upstream, tracking in _rows(told, len(fields)):
        found.append(
            {
                "name": name, "commit": commit, "subject": subject, "date": date, "current": head.strip() == "*",
                "remote": full.startswith("refs/remotes/"), "upstream": upstream or None, "tracking": tracking or None,
            }
        )  # fmt: skip
    return found


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(max_bytes="maxBytes")
def read_file(
    *,
    path: str,
    repository: str = ".",
    revision: str = "HEAD",
    max_bytes: Annotated[int, Ge(0), Le(_MOST)] = 204800,
) -> str:
    """Reads a text file as it was in a commit.

    Args:
        path: The file, from the top of the repository.
        repository: Any folder of it, inside the working directory.
        revision: The commit: a branch, a tag, `HEAD~3`.
        max_bytes: The largest file to read, in bytes.
    """
    where = _opened(repository)
    name = f"{where.commit(revision)}:{path}"
    kind = where.run("cat-file", "-t", name, code="not_found", refused=f"{path} is not in {revision}.")
    if kind.output.strip() != b"blob":
        raise ToolFailed(f"{path} is a folder or a submodule, not a file.", code="not_a_file")
    content = where.run("cat-file", "blob", name, most=max_bytes)
    if content.cut:
        message = f"{path} has more than {max_bytes} bytes; the limit (max_bytes) is {max_bytes}."
        raise ToolFailed(message, code="too_large")
    return decoded(content.output, path)


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
def blame(
    *,
    path: str,
    repository: str = ".",
    revision: str = "HEAD",
    first: Annotated[int, Ge(1)] = 1,
    last: Annotated[int, Ge(1)] | None = None,
) -> list[Line]:
    """Tells for each line of a file which commit it comes from.

    Args:
        path: The file, from the top of the repository.
        repository: Any folder of it, inside the working directory.
        revision: The commit to look at.
        first: The first line to tell of.
        last: The last line; without it, to the end.
    """
    where = _opened(repository)
    options = ["--line-porcelain", "--no-textconv", "--encoding=UTF-8", f"-L{first},{last or ''}"]
    told = where.run("blame", *options, where.commit(revision), "--", path)
    return list(_blamed(told.output.decode("utf-8", "replace")))


class _Repository(NamedTuple):
    """A repository that can be looked at.

    The options that switch off what its own configuration would run come with it.
    """

    top: str
    off: tuple[str, ...]

    def run(
        self,
        command: str,
        *arguments: str,
        most: int = _MOST,
        environ: Mapping[str, str] = _NOTHING,
        code: str = "git_failed",
        refused: str | None = None,
    ) -> Printed:
        """Runs a git command at the top of the repository.

        Raises:
            ToolFailed: It failed; `refused` says so in place of git's own words.
        """
        told = _run([*self.off, command, *arguments], self.top, most, environ)
        if told.status and not told.cut:
            raise ToolFailed(refused or _words(told), code=code)
        return told

    def commit(self, revision: str) -> str:
        """Gives the id of a commit.

        Raises:
            ToolFailed: There is none.
        """
        missing = f"There is no commit {revision}."
        if revision.startswith("-") or not revision:
            raise ToolFailed(missing, code="unknown_revision")
        told = self.run(
            "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", code="unknown_revision", refused=missing
        )
        return told.output.decode().strip()

    def empty_tree(self) -> str:
        """Gives the id of the tree with nothing in it, with which a first commit is compared."""
        return self.run("hash-object", "-t", "tree", "/dev/null").output.decode().strip()

    def commits(self, *arguments: str) -> list[Commit]:
        """Gives the commits that `git log` lists."""
        options = [f"--format={'%x00'.join(_FIELDS)}", "-z", "--no-color", "--encoding=UTF-8", "--decorate=short"]
        return [_commit(row) for row in _rows(self.run("log", *options, *arguments), len(_FIELDS))]

    def change(self, sides: Sequence[str], paths: Sequence[str], max_bytes: int, context: int = 3) -> Change:
        """Gives what `git diff` tells of two sides."""
        rest = (*_PLAIN_DIFF, *sides, "--", *paths)
        with self._copy_of_index() as environ:
            listed = self.run("diff", "--raw", "--numstat", "-z", *rest, environ=environ)
            patch = self.run("diff", f"--unified={context}", *rest, most=max_bytes, environ=environ)
        text = patch.output
        if patch.cut:
            text = text[: text.rfind(b"\n") + 1]
        files = list(_file_changes(_texts(listed.output)))
        return {"files": files, "patch": text.decode("utf-8", "replace"), "truncated": patch.cut}

    @contextmanager
    def _copy_of_index(self) -> Iterator[Mapping[str, str]]:
        """Lets git work with a copy of its index: to compare with the working tree, it would write to the index."""
        index = self.run("rev-parse", "--git-path", "index").output.removesuffix(b"\n")
        with TemporaryDirectory() as folder:
            copy = Path(folder, "index")
            with suppress(FileNotFoundError):  # nothing was ever added
                # with its time, by which git tells what may have changed since
                shutil.copy2(Path(self.top, os.fsdecode(index)), copy)
            yield {"GIT_INDEX_FILE": str(copy)}


def _opened(repository: str) -> _Repository:
    """Finds the repository that a folder is in.

    Raises:
        ToolFailed: There is none, or it reaches out of the roots.
    """
    place = resolve_folder(repository)
    told = _run(
        ["rev-parse", "--show-toplevel"], place.path, _MOST, {"GIT_CEILING_DIRECTORIES": str(Path(place.root).parent)}
    )
    if told.status:
        raise ToolFailed(_no_repository(repository, place.root, told), code="not_a_repository")
    top = os.path.realpath(os.fsdecode(told.output.removesuffix(b"\n")))
    if not any(is_inside(top, root) for root in roots()):
        raise ToolFailed(f"The repository's files are in {top}, outside of {' and '.join(roots())}.", code="outside")
    listed = _run(["config", "--list", "--name-only", "-z"], top, _MOST)
    if listed.status:
        raise ToolFailed(_words(listed), code="git_failed")
    # Filters are run to compare files. The user's own ones may be named by the repository too: none is run. One with an
    # empty process has no other command either.
    drivers = {found[1] for name in _texts(listed.output) if (found := _DRIVER.fullmatch(name))}
    off = [("-c", f"{driver}.process=", "-c", f"{driver}.required=false") for driver in sorted(drivers)]
    return _Repository(top, tuple(chain.from_iterable(off)))


def _no_repository(repository: str, root: str, told: Printed) -> str:
    if "not a git repository" in told.complaint:
        return f"{repository} is in no git repository at or below {root}."
    return _words(told)


def _run(arguments: Sequence[str], folder: str, most: int, environ: Mapping[str, str] = _NOTHING) -> Printed:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return printed(["git", *_CALM, *arguments], folder, most, {**ours, **_MANNERS, **environ})


def _words(told: Printed) -> str:
    lines = [line for line in told.complaint.splitlines() if line.strip()]
    said = "\n".join(lines).removeprefix("fatal: ").removeprefix("error: ")
    return f"git: {said or f'it failed with exit code {told.status}'}"


def _texts(output: bytes) -> list[str]:
    """Gives what NUL characters end."""
    return output.decode("utf-8", "backslashreplace").split("\0")[:-1]


def _read_header(told: Status, name: str, value: str) -> None:
    match name:
        case "branch.head":
            told["branch"] = None if value == "(detached)" else value
        case "branch.oid":
            told["commit"] = None if value == "(initial)" else value
        case "branch.upstream":
            told["upstream"] = value
        case "branch.ab":
            ahead, behind = value.split()
            told["ahead"], told["behind"] = int(ahead), -int(behind)


def _changed(kind: str, rest: str, following: Iterator[str]) -> Changed:
    """Reads an entry of `git status`: 1 is a changed file, 2 a renamed one, u one that is in conflict."""
    fields = rest.split(" ", {"1": 7, "2": 8, "u": 9}[kind])
    changed: Changed = {"path": fields[-1], "staged": _STATES[fields[0][0]], "unstaged": _STATES[fields[0][1]]}
    if kind == "2":
        changed["old_path"] = next(following)
    return changed


def _rows(told: Printed, columns: int) -> Iterator[tuple[str, ...]]:
    """Gives what NUL characters end, several a row."""
    texts = iter(_texts(told.output))
    return zip(*[texts] * columns, strict=True)


def _commit(row: Sequence[str]) -> Commit:
    commit, parents, author, email, date, subject, body, refs = row
    return {
        "commit": commit, "parents": parents.split(), "author": author, "email": email, "date": date,
        "subject": subject, "body": body.strip("\n"),
        "refs": [ref.removeprefix("HEAD -> ") for ref in refs.split(", ") if ref],
    }  # fmt: skip


def _file_changes(texts: Sequence[str]) -> Iterator[FileChange]:
    """Reads what `git diff --raw --numstat -z` tells: first what happened to each file, then its lines."""
    states: dict[str, State] = {}
    rest = iter(texts)
    for text in rest:
        if text.startswith(":"):
            letter = text.rpartition(" ")[2][0]
            path = next(rest)
            states[next(rest) if letter in "RC" else path] = _STATES.get(letter, "modified")
            continue
        added, removed, path = text.split("\t", 2)
        old_path = None
        if not path:
            old_path, path = next(rest), next(rest)
        change: FileChange = {
            "path": path,
            "state": states.get(path, "modified"),
            "added": None if added == "-" else int(added),
            "removed": None if removed == "-" else int(removed),
        }
        if old_path is not None:
            change["old_path"] = old_path
        yield change


def _moment(seconds: str, zone: str) -> str:
    offset = timedelta(hours=int(zone[:3]), minutes=int(zone[0] + zone[3:]))
    return datetime.fromtimestamp(int(seconds), timezone(offset)).isoformat()


def _blamed(text: str) -> Iterator[Line]:
    """Reads what `git blame --line-porcelain` tells: facts about a line, and behind a tab the line itself."""
    facts: dict[str, str] = {}
    commit, number = "", 0
    for line in text.split("\n"):
        if line.startswith("\t"):
            yield {
                "line": number, "text": line[1:], "commit": commit, "author": facts["author"],
                "date": _moment(facts["author-time"], facts["author-tz"]), "subject": facts["summary"],
            }  # fmt: skip
        elif found := _BLAMED.fullmatch(line):
            commit, number = found[1], int(found[2])
        else:
            name, _, value = line.partition(" ")
            facts[name] = value
