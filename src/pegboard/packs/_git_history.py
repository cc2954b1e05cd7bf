"""Commits of a git repository."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from heapq import heappop, heappush

import pygit2
from pygit2.enums import ReferenceType

from pegboard.sdk import ToolFailed

from ._git_changes import entry_at
from ._git_models import Commit

_OLDER = 100
"""Number of consecutive commits that are too old, after which a search for newer ones ends."""
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800, "month": 2629800, "year": 31557600}
_AGO = re.compile(r"(\d+|an?|last)[ .]+(second|minute|hour|day|week|month|year)s?(?:[ .]+ago)?")


def commit_at(git: pygit2.Repository, name: str | pygit2.Oid) -> pygit2.Commit:
    """Return the commit that a reference or an id names."""
    found = git.lookup_reference(name) if isinstance(name, str) else git[name]
    return found.peel(pygit2.Commit)


def is_alias(git: pygit2.Repository, name: str) -> bool:
    """Return whether a reference only names another one, which may not exist."""
    return git.lookup_reference(name).type == ReferenceType.SYMBOLIC


def head_name(git: pygit2.Repository) -> str:
    return str(git.lookup_reference("HEAD").target).removeprefix("refs/heads/")


def upstream_of(git: pygit2.Repository, branch: pygit2.Branch) -> tuple[str | None, bool, int, int]:
    """Return the upstream of a branch, whether it is deleted, and how many commits the branch is ahead and behind."""
    try:
        name = branch.upstream_name
    except (KeyError, ValueError, pygit2.GitError):
        return None, False, 0, 0
    short = name.removeprefix("refs/heads/").removeprefix("refs/remotes/")
    if name not in git.references:
        return short, True, 0, 0
    sides = [each.peel(pygit2.Commit).id for each in (branch, git.references[name])]
    return short, False, *git.ahead_behind(*sides)


def walked(
    git: pygit2.Repository, start: pygit2.Commit, hidden: pygit2.Commit | None, paths: Sequence[Sequence[bytes]]
) -> Iterator[pygit2.Commit]:
    """Yield commits, the latest first; with paths, those that change them, simplified like `git log` does."""
    included = None
    if hidden is not None:
        walker = git.walk(start.id)
        walker.hide(hidden.id)
        included = {commit.id for commit in walker}
    # By date, then by the order in which they were reached, as git does.
    waiting: list[tuple[int, int, pygit2.Commit]] = []
    reached = {start.id}

    def reach(commit: pygit2.Commit) -> None:
        if included is None or commit.id in included:
            heappush(waiting, (-commit.commit_time, len(reached), commit))

    reach(start)
    while waiting:
        *_, commit = heappop(waiting)
        here = [entry_at(git, commit, path) for path in paths]
        parents = commit.parents
        equal = [each for each in parents if paths and [entry_at(git, each, path) for path in paths] == here][:1]
        for parent in equal or parents:
            if parent.id not in reached:
                reached.add(parent.id)
                reach(parent)
        if not equal and (parents or not paths or any(here)):
            yield commit


def recent(commits: Iterator[pygit2.Commit], begin: float | None, end: float | None) -> Iterator[pygit2.Commit]:
    older = 0
    for commit in commits:
        older = older + 1 if begin is not None and commit.commit_time < begin else 0
        if older > _OLDER:
            return
        if not older and (end is None or commit.commit_time <= end):
            yield commit


def is_wanted(commit: pygit2.Commit, author: str | None, message: str | None) -> bool:
    if author is not None:
        name, email = (decoded_of(commit, text) for text in (commit.author.raw_name, commit.author.raw_email))
        if author.casefold() not in f"{name} <{email}>".casefold():
            return False
    return message is None or message.casefold() in decoded_of(commit, commit.raw_message).casefold()


def decoded_of(commit: pygit2.Commit, raw: bytes) -> str:
    """Return text of a commit, such as its message or its author, in the encoding that the commit names."""
    try:
        return raw.decode(commit.message_encoding or "utf-8", "replace")
    except LookupError:
        return raw.decode("utf-8", "replace")


def message_of(commit: pygit2.Commit) -> tuple[str, str]:
    """Return the subject and the body of a commit."""
    message = decoded_of(commit, commit.raw_message).lstrip("\n")
    subject, _, body = re.sub(r"\n[ \t]*(?=\n)", "\n", message).partition("\n\n")
    return " ".join(subject.strip("\n").split("\n")), body.strip("\n")


def described(commit: pygit2.Commit, names: Mapping[pygit2.Oid, list[str]]) -> Commit:
    subject, body = message_of(commit)
    return {
        "commit": str(commit.id), "subject": subject, "author": decoded_of(commit, commit.author.raw_name),
        "date": moment(commit.author), "refs": names.get(commit.id, []),
        "email": decoded_of(commit, commit.author.raw_email), "body": body,
        "parents": [str(parent) for parent in commit.parent_ids],
    }  # fmt: skip


def names_of_commits(git: pygit2.Repository) -> dict[pygit2.Oid, list[str]]:
    """Return the branches and tags that point at each commit, the current branch first."""
    current = "HEAD" if git.head_is_detached else f"refs/heads/{head_name(git)}"
    kinds = {"refs/tags/": "tag: ", "refs/heads/": "", "refs/remotes/": "", "refs/stash": "refs/stash"}
    names: dict[pygit2.Oid, list[str]] = {}
    references = [name for prefix in kinds for name in sorted(git.references) if name.startswith(prefix)]
    for name in sorted((["HEAD"] if git.head_is_detached else []) + references, key=lambda name: name != current):
        try:
            target = git.lookup_reference(name).peel(pygit2.Commit).id
        except (KeyError, ValueError, pygit2.GitError):  # a tag of something else, or a broken reference
            continue
        prefix = next((prefix for prefix in kinds if name.startswith(prefix)), "")
        names.setdefault(target, []).append(kinds.get(prefix, "") + name.removeprefix(prefix))
    return names


def moment(signature: pygit2.Signature) -> str:
    try:
        zone = timezone(timedelta(minutes=signature.offset))
        return datetime.fromtimestamp(signature.time, zone).isoformat()
    except (ValueError, OverflowError, OSError):  # a damaged commit
        return datetime.fromtimestamp(0, UTC).isoformat()


def moment_of(text: str | None, *, is_end: bool) -> float | None:
    """Parse a point in time.

    Raises:
        ToolFailed: The text can't be parsed.
    """
    if text is None:
        return None
    now = datetime.now().astimezone()
    plain = text.strip().lower()
    if found := _AGO.fullmatch(plain):
        count = int(found[1]) if found[1].isdigit() else 1
        return now.timestamp() - count * _UNITS[found[2]]
    days = {"today": 0, "yesterday": 1}
    try:
        if plain == "now":
            return now.timestamp()
        if plain.isdigit() and len(plain) > 8:
            return float(plain)
        if plain in days:
            day = now.date() - timedelta(days=days[plain])
            plain = day.isoformat()
        moment = datetime.fromisoformat(plain.upper())
        if len(plain) <= len("2025-01-31") and is_end:
            moment += timedelta(days=1, microseconds=-1)
        return moment.timestamp()
    except (ValueError, OverflowError, OSError):
        message = f"{text!r} is not a time. Write `2025-01-31`, `2025-01-31T12:00`, `yesterday` or `2 weeks ago`."
        raise ToolFailed(message, code="invalid_argument") from None
