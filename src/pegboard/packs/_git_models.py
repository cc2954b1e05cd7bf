"""Results of the tools of the git pack."""

from typing import Literal, NotRequired, TypedDict

State = Literal["unmodified", "modified", "type_changed", "added", "deleted", "renamed", "copied", "unmerged"]


class Changed(TypedDict):
    """A file that differs from the last commit."""

    path: str
    """Relative to the top of the repository, like all paths of this pack."""
    staged: State
    unstaged: State
    old_path: NotRequired[str]
    """Path before it was renamed or copied."""


class RepositoryStatus(TypedDict):
    """State of a repository."""

    top: str
    """Folder of the repository."""
    branch: str | None
    """None if HEAD is detached."""
    commit: str | None
    """None before the first commit."""
    upstream: str | None
    ahead: int
    """Number of commits that the upstream lacks."""
    behind: int
    """Number of commits that the branch lacks."""
    changed: list[Changed]
    untracked: list[str]
    """Untracked files, and folders without tracked files, which end with `/`."""


class Commit(TypedDict):
    """A commit."""

    commit: str
    subject: str
    author: str
    date: str
    """Date of authorship, in ISO 8601."""
    refs: list[str]
    """Branches and tags of this commit."""
    email: str
    body: str
    parents: list[str]


class Commits(TypedDict):
    """Part of the history, the latest commit first."""

    commits: list[Commit]
    truncated: bool
    """Whether there are more commits."""


class FileChange(TypedDict):
    """Change of one file."""

    path: str
    state: State
    added: int | None
    """Number of lines; None for a binary file."""
    removed: int | None
    """Number of lines; None for a binary file."""
    old_path: NotRequired[str]
    """Path before it was renamed or copied."""


class Change(TypedDict):
    """Differences."""

    files: list[FileChange]
    patch: str
    truncated: bool
    """Whether the patch is truncated."""


class CommitDetails(Change):
    """A commit with its changes, compared to its first parent."""

    commit: Commit


class Branch(TypedDict):
    """A branch."""

    name: str
    commit: str
    subject: str
    date: str
    """Date of the commit, in ISO 8601."""
    current: bool
    remote: bool
    upstream: str | None
    tracking: str | None
    """State relative to its upstream: `ahead 1, behind 2`, or `gone`."""


class BlameLine(TypedDict):
    """A line of a file, with the commit that changed it last."""

    line: int
    text: str
    commit: str
    author: str
    date: str
    """Date of authorship, in ISO 8601."""
    subject: str
