"""Read the status, history, differences, branches and blame of git repositories. Requires no git program.

Repositories are not trusted: no program that their configuration names runs (filters, hooks, monitors, converters). A
repository is opened only if its working tree, its git directory and all its objects are inside the roots.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated

from annotated_types import Ge, Le

from pegboard.sdk import ToolFailed, aliases, hints, requires_lib

from ._git_changes import (
    CONFLICTS,
    FOLDER_MODE,
    SUBMODULE_MODE,
    change_of,
    changed_file,
    chosen,
    compared,
    entry_at,
    parts_of,
    read_object,
    shown,
    size_of,
    tree_of,
    unstaged_state,
)
from ._git_history import (
    commit_at,
    decoded_of,
    described,
    head_name,
    is_alias,
    is_wanted,
    message_of,
    moment,
    moment_of,
    names_of_commits,
    recent,
    upstream_of,
    walked,
)
from ._git_models import BlameLine, Branch, Change, Changed, CommitDetails, Commits, RepositoryStatus
from ._git_objects import write_tree
from ._git_repository import repository as opened_repository
from ._git_worktree import GitIndex
from ._roots import decoded

requires_lib("pygit2", min_version="1.21")

_MOST = 50_000_000


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
def status(*, repository: str = ".") -> RepositoryStatus:
    """Return the branch of a repository and its changed, staged and untracked files.

    Args:
        repository: Any folder of the repository, inside the working directory.
    """
    with opened_repository(repository) as found:
        git, index = found.git, GitIndex(found)
        index.copy_attributes()
        head = None if git.head_is_unborn else commit_at(git, "HEAD")
        changes = compared(tree_of(git, head, []), write_tree(git, index.files | index.ours()))
        changed = {delta.new_file.raw_path: changed_file(delta) for delta in changes.deltas}
        for path, now in index.changed().items():
            if path not in index.conflicts:
                unmodified: Changed = {"path": shown(path), "staged": "unmodified", "unstaged": "unmodified"}
                changed.setdefault(path, unmodified)["unstaged"] = unstaged_state(index, path, now)
        for path, sides in index.conflicts.items():
            staged, unstaged = CONFLICTS[frozenset(sides)]
            changed[path] = {"path": shown(path), "staged": staged, "unstaged": unstaged}
        state: RepositoryStatus = {
            "top": found.top.path,
            "branch": None if git.head_is_detached else head_name(git),
            "commit": str(head.id) if head else None,
            "upstream": None,
            "ahead": 0,
            "behind": 0,
            "changed": [changed[path] for path in sorted(changed)],
            "untracked": sorted(shown(path) for path in index.untracked()),
        }
        if state["branch"] is not None and head is not None:
            branch = git.branches.local[state["branch"]]
            state["upstream"], _, state["ahead"], state["behind"] = upstream_of(git, branch)
        return state


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
    """List commits, the latest first.

    Args:
        repository: Any folder of the repository, inside the working directory.
        revision: First commit: a branch, a tag, a commit, `HEAD~3`.
        since_revision: Omit this revision and its ancestors: `main` lists only commits that main lacks.
        paths: Only commits that change one of these files and folders, relative to the top of the repository.
        author: Only commits whose author's name or address contains this text; case is ignored.
        message: Only commits whose message contains this text; case is ignored.
        since: Only commits from this time on: `2025-01-31`, `2025-01-31T12:00`, `yesterday` or `2 weeks ago`.
        until: Only commits up to this time; a day includes its last second.
        max_commits: Maximum number of commits to return.
    """
    begin, end = moment_of(since, is_end=False), moment_of(until, is_end=True)
    with opened_repository(repository) as found:
        git, start = found.git, found.revisions.commit(revision)
        hidden = found.revisions.commit(since_revision) if since_revision else None
        commits = walked(git, start, hidden, [parts_of(path) for path in paths])
        chosen = (commit for commit in recent(commits, begin, end) if is_wanted(commit, author, message))
        names = names_of_commits(git)
        listed = [described(commit, names) for commit in islice(chosen, max_commits + 1)]
        return {"commits": listed[:max_commits], "truncated": len(listed) > max_commits}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(max_bytes="maxBytes")
def show(
    *,
    repository: str = ".",
    revision: str = "HEAD",
    paths: Sequence[str] = (),
    max_bytes: Annotated[int, Ge(0), Le(_MOST)] = 200_000,
) -> CommitDetails:
    """Return a commit with its message, the files it changed, and the patch.

    Args:
        repository: Any folder of the repository, inside the working directory.
        revision: The commit: a branch, a tag, `HEAD~3`.
        paths: Only these files and folders, relative to the top of the repository.
        max_bytes: Maximum length of the patch, in bytes; a longer one is truncated.
    """
    with opened_repository(repository) as found:
        git, commit = found.git, found.revisions.commit(revision)
        GitIndex(found).copy_attributes()
        sides = [tree_of(git, side, paths) for side in (next(iter(commit.parents), None), commit)]
        description = described(commit, names_of_commits(git))
        return {"commit": description, **change_of(compared(sides[0], sides[1]), max_bytes)}


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
    """Compare two revisions, or a revision with the working tree.

    Without a base and a target, return the unstaged changes. A file in conflict is compared with our side of it.

    Args:
        repository: Any folder of the repository, inside the working directory.
        base: Revision to compare with: a branch, a tag, a commit.
        target: Revision to compare, instead of the working tree; requires a base.
        staged: Whether to compare the staged files, instead of the working tree.
        paths: Only these files and folders, relative to the top of the repository.
        context: Number of lines around each change.
        max_bytes: Maximum length of the patch, in bytes; a longer one is truncated.
    """
    if target is not None and (base is None or staged):
        raise ToolFailed("`target` requires `base` and can't be combined with `staged`.", code="invalid_argument")
    with opened_repository(repository) as found:
        git, index = found.git, GitIndex(found)
        index.copy_attributes()
        if target is not None:
            sides = [tree_of(git, found.revisions.commit(revision or ""), paths) for revision in (base, target)]
            return change_of(compared(sides[0], sides[1], context), max_bytes)
        before = index.files | index.ours()
        after = dict(before)
        if not staged:
            for path, now in index.changed().items():
                after.pop(path, None)
                after |= {path: now} if now else {}
        if base is None and not staged:
            old = write_tree(git, chosen(before, paths))
        else:
            head = None if base is None and git.head_is_unborn else found.revisions.commit(base or "HEAD")
            old = tree_of(git, head, paths)
        conflicts = frozenset(index.conflicts) if base is None else frozenset[bytes]()
        return change_of(compared(old, write_tree(git, chosen(after, paths)), context), max_bytes, conflicts)


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
def branches(*, repository: str = ".", remote: bool = False) -> list[Branch]:
    """List the branches, the one with the latest commit first.

    Args:
        repository: Any folder of the repository, inside the working directory.
        remote: Whether to include the branches of remotes, as last fetched.
    """
    with opened_repository(repository) as found:
        git = found.git
        kinds = {"refs/heads/": False, **({"refs/remotes/": True} if remote else {})}
        listed: list[tuple[int, str, Branch]] = []
        for name in sorted(git.references):
            prefix = next((prefix for prefix in kinds if name.startswith(prefix)), None)
            if prefix is None or (kinds[prefix] and is_alias(git, name)):
                continue
            commit = commit_at(git, name)
            short = name.removeprefix(prefix)
            branch: Branch = {
                "name": short, "commit": str(commit.id), "subject": message_of(commit)[0],
                "date": moment(commit.committer), "current": False, "remote": kinds[prefix],
                "upstream": None, "tracking": None,
            }  # fmt: skip
            if not branch["remote"]:
                branch["current"] = not git.head_is_detached and short == head_name(git)
                upstream, is_gone, ahead, behind = upstream_of(git, git.branches.local[short])
                both = [f"{word} {count}" for word, count in (("ahead", ahead), ("behind", behind)) if count]
                branch["upstream"], branch["tracking"] = upstream, "gone" if is_gone else ", ".join(both) or None
            listed.append((-commit.commit_time, name, branch))
        return [branch for *_, branch in sorted(listed, key=lambda row: row[:2])]


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
@aliases(max_bytes="maxBytes")
def read_file(
    *,
    path: str,
    repository: str = ".",
    revision: str = "HEAD",
    max_bytes: Annotated[int, Ge(0), Le(_MOST)] = 204800,
) -> str:
    """Read a text file from a commit.

    Args:
        path: File, relative to the top of the repository.
        repository: Any folder of the repository, inside the working directory.
        revision: The commit: a branch, a tag, `HEAD~3`.
        max_bytes: Maximum size of the file, in bytes.
    """
    with opened_repository(repository) as found:
        git, commit = found.git, found.revisions.commit(revision)
        entry = entry_at(git, commit, parts_of(path))
        if entry is None:
            raise ToolFailed(f"{path} is not in {revision}.", code="not_found")
        mode, oid = entry
        if mode in {FOLDER_MODE, SUBMODULE_MODE}:
            raise ToolFailed(f"{path} is a folder or a submodule, not a file.", code="not_a_file")
        size = size_of(git, oid)
        if size > max_bytes:
            message = f"{path} has {size} bytes; the limit (max_bytes) is {max_bytes}."
            raise ToolFailed(message, code="too_large")
        return decoded(read_object(git, oid), path)


@hints(read_only=True, destructive=False, idempotent=True, open_world=False, timeout=30)
def blame(
    *,
    path: str,
    repository: str = ".",
    revision: str = "HEAD",
    first: Annotated[int, Ge(1)] = 1,
    last: Annotated[int, Ge(1)] | None = None,
) -> list[BlameLine]:
    """Return the commit that last changed each line of a file.

    Args:
        path: File, relative to the top of the repository.
        repository: Any folder of the repository, inside the working directory.
        revision: The commit whose version of the file is used.
        first: First line to return.
        last: Last line to return. If unset, the last line of the file.
    """
    with opened_repository(repository) as found:
        git, commit = found.git, found.revisions.commit(revision)
        entry = entry_at(git, commit, parts := parts_of(path))
        if entry is None or entry[0] in {FOLDER_MODE, SUBMODULE_MODE}:
            raise ToolFailed(f"{path} was not blamed because {revision} contains no such file.", code="not_found")
        if not (content := read_object(git, entry[1])):
            return []
        lines = content.decode("utf-8", "replace").removesuffix("\n").split("\n")
        final = len(lines) if last is None else min(last, len(lines))
        if first > final:
            message = f"{path} was not blamed because it has only {len(lines)} lines."
            raise ToolFailed(message, code="invalid_argument")
        name = b"/".join(parts).decode("utf-8", "surrogateescape")
        blamed: list[BlameLine] = []
        for hunk in git.blame(name, newest_commit=commit.id, min_line=first, max_line=final):
            origin = commit_at(git, hunk.final_commit_id)
            start = hunk.final_start_line_number
            blamed += [
                {
                    "line": number, "text": lines[number - 1], "commit": str(origin.id),
                    "author": decoded_of(origin, origin.author.raw_name), "date": moment(origin.author),
                    "subject": message_of(origin)[0],
                }
                for number in range(max(start, first), min(start + hunk.lines_in_hunk, final + 1))
            ]  # fmt: skip
        return blamed
