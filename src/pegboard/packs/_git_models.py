"""What the tools of the git pack return."""

from typing import Literal, NotRequired, TypedDict

State = Literal["unmodified", "modified", "type_changed", "added", "deleted", "renamed", "copied", "unmerged"]


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
