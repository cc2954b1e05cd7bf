"""`pegboard check compat`: schemas compared with earlier ones and with recorded calls."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import pygit2
import pytest

from pegboard.checks.schema_changes import schema_changes

Command = Callable[..., commands.Done]

VERSIONED_SERVER = Path(__file__).parents[1] / "fakes" / "versioned_server.py"

BEFORE = '''
from ._kinds import Kind

def search(*, query: str, limit: int = 5, kind: Kind = "a") -> list[str]:
    """Search."""
    return [query] * limit

def other(*, x: int) -> int:
    """Do something else."""
    return x
'''
AFTER = BEFORE.replace("limit: int = 5", "limit: int").replace("Search.", "Search the shop.")
KINDS = 'from typing import Literal\nKind = Literal["a", "b"]\n'


@pytest.fixture
def packs(write_pack: Callable[[str, str], Path]) -> Path:
    write_pack("_kinds.py", KINDS)
    return write_pack("shop.py", BEFORE)


def _compat(pegboard: Command, packs: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    done = pegboard("--packs", str(packs), "check", "compat", "--json", *options)
    return done.returncode, {one["tool"]: one for one in json.loads(done.stdout or "[]")}, done.stderr


def _commit(folder: Path, *others: str) -> pygit2.Repository:
    """Commit the packs and other parts of a folder to its repository, which is created when needed."""
    repository = pygit2.init_repository(str(folder))
    repository.index.add_all(["packs", *others])
    author = pygit2.Signature("Ada", "ada@example.org")
    parents = [] if repository.head_is_unborn else [repository.head.target]
    repository.create_commit("HEAD", author, author, "Add", repository.index.write_tree(), parents)
    repository.index.write()
    return repository


def _breaking(found: dict[str, Any]) -> list[str]:
    return [change["message"] for change in found["changes"] if change["breaking"]]


@pytest.mark.promise("BAT-4")
def test_a_new_required_parameter_is_breaking_and_names_the_recorded_calls(pegboard: Command, packs: Path) -> None:
    for number in range(3):
        pegboard("--packs", str(packs), "tools", "invoke", "shop.search", "--arg", f"query={number}")
    pegboard("--packs", str(packs), "tools", "invoke", "shop.search", "--args", '{"query": "x", "limit": 1}')
    pegboard("--packs", str(packs), "tools", "invoke", "shop.search", "--args", '{"limit": 1}')  # never was valid
    assert _compat(pegboard, packs)[0] == 0
    (packs / "shop.py").write_text(AFTER)
    code, found, _ = _compat(pegboard, packs)
    one = found["shop.search"]
    assert (code, one["status"], one["broken"], one["calls"]) == (1, "breaking", 3, 4)
    assert _breaking(one) == ["`limit` is now required"]
    records = json.loads(pegboard("history", "--json").stdout)
    assert {call["id"] for call in one["brokenCalls"]} == {
        record["id"] for record in records if record["args"].keys() == {"query"}
    }
    assert found["shop.other"]["status"] == "compatible"
    text = pegboard("--packs", str(packs), "check", "compat").stdout
    assert "shop.search: 3 of 4 recorded calls no longer validate: `limit` is now required" in text
    assert "shop.other" not in text

    assert _compat(pegboard, packs, "--accept")[0] == 0
    assert _compat(pegboard, packs)[0] == 0


@pytest.mark.promise("BAT-4")
def test_the_baseline_stays_before_a_breaking_change_whatever_changes_later(pegboard: Command, packs: Path) -> None:
    _compat(pegboard, packs)
    (packs / "shop.py").write_text(AFTER)
    assert _compat(pegboard, packs)[0] == 1
    (packs / "shop.py").write_text(AFTER.replace("query: str", "query: str, more: bool = False"))
    code, found, _ = _compat(pegboard, packs)
    assert (code, _breaking(found["shop.search"])) == (1, ["`limit` is now required"])
    (packs / "shop.py").write_text(BEFORE)
    assert _compat(pegboard, packs)[0] == 0


@pytest.mark.promise("BAT-4", "SDK-14")
def test_a_new_name_with_the_earlier_one_as_alias_is_compatible_and_keeps_what_callers_rely_on(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    _commit(tmp_path)
    pegboard("--packs", str(packs), "tools", "invoke", "shop.search", "--arg", "query=x")
    _compat(pegboard, packs)
    imported = "from pegboard.sdk import aliases\n" + BEFORE.replace("query: str", "text: str")
    renamed = imported.replace("[query]", "[text]").replace(
        "def search", '@aliases("shop.search", text="query")\ndef find'
    )
    (packs / "shop.py").write_text(renamed)
    for options in ((), ("--since", "HEAD")):
        code, found, _ = _compat(pegboard, packs, *options)
        assert (code, [*found]) == (0, ["shop.find", "shop.other"])
        assert (found["shop.find"]["status"], found["shop.find"]["calls"]) == ("compatible", 1)
        assert found["shop.find"]["changes"] == []
    (packs / "shop.py").write_text(renamed.replace("limit: int = 5", "limit: int"))
    for options in ((), ("--since", "HEAD")):
        code, found, _ = _compat(pegboard, packs, *options)
        assert (code, _breaking(found["shop.find"])) == (1, ["`limit` is now required"])
        assert found["shop.find"]["broken"] == 1
    (packs / "shop.py").write_text(renamed.replace('"shop.search", text="query"', '"shop.seek"'))
    code, found, _ = _compat(pegboard, packs)
    assert (code, found["shop.search"]["status"]) == (1, "removed")
    assert _breaking(found["shop.find"]) == [
        "the name `shop.search` was removed",
        "`query`, another name of `text`, was removed",
    ]
    _commit(tmp_path)
    (packs / "shop.py").write_text(imported.replace("def search", "def find"))
    code, found, _ = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, _breaking(found["shop.find"])) == (1, ["the name `shop.seek` was removed"])


@pytest.mark.promise("BAT-4")
def test_a_removed_tool_is_breaking_but_not_one_whose_file_cannot_be_parsed(pegboard: Command, packs: Path) -> None:
    _compat(pegboard, packs)
    (packs / "shop.py").write_text("def broken(:\n")
    assert _compat(pegboard, packs)[0] == 0
    (packs / "shop.py").write_text(BEFORE.partition("def other")[0])
    code, found, _ = _compat(pegboard, packs)
    assert (code, found["shop.other"]["status"]) == (1, "removed")
    (packs / "shop.py").unlink()
    assert {one["status"] for one in _compat(pegboard, packs)[1].values()} == {"removed"}
    assert _compat(pegboard, packs, "--accept")[0] == 0
    assert _compat(pegboard, packs)[:2] == (0, {})


@pytest.mark.promise("BAT-4")
def test_a_comparison_of_a_pack_names_its_removed_tools_and_one_of_a_tool_names_none(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    (packs / "added.py").write_text('def now() -> int:\n    """Now."""\n    return 1\n')
    _commit(tmp_path)
    _compat(pegboard, packs)
    (packs / "shop.py").write_text(BEFORE.partition("def other")[0])
    for options in ((), ("--since", "HEAD"), ("--since", "2999-01-01")):
        code, found, _ = _compat(pegboard, packs, "shop", *options)
        assert (code, found["shop.other"]["status"]) == (1, "removed"), options
        code, found, _ = _compat(pegboard, packs, "shop.search", *options)
        assert (code, [*found]) == (0, ["shop.search"]), options
        code, found, _ = _compat(pegboard, packs, "added", *options)
        assert (code, [*found]) == (0, ["added.now"]), options
    assert _compat(pegboard, packs, "added", "--accept")[0] == 0
    assert _compat(pegboard, packs)[0] == 1
    assert _compat(pegboard, packs, "shop", "--accept")[0] == 0
    assert _compat(pegboard, packs)[0] == 0


@pytest.mark.promise("BAT-4")
def test_since_a_revision_compares_with_the_pack_of_that_commit_without_running_it(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    (packs / "shop.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{BEFORE}")
    _commit(tmp_path)
    (packs / "_kinds.py").write_text(KINDS.replace('"b"', '"c"'))
    (packs / "shop.py").write_text(AFTER.partition("def other")[0])
    (packs / "added.py").write_text('def now() -> int:\n    """Now."""\n    return 1\n')
    code, found, _ = _compat(pegboard, packs, "--since", "HEAD")
    assert code == 1
    assert _breaking(found["shop.search"]) == ["`limit` is now required", '`kind` can no longer be "b"']
    assert (found["shop.other"]["status"], found["added.now"]["status"]) == ("removed", "new")
    assert not (tmp_path / "ran").exists()
    (elsewhere := tmp_path.with_name(f"{tmp_path.name}-elsewhere")).mkdir()
    (elsewhere / "far.py").write_text('def off() -> int:\n    """Now."""\n    return 1\n')
    code, found, errors = _compat(pegboard, packs, "--packs", str(elsewhere), "--since", "HEAD")
    assert (code, "far.off" in found) == (1, False)
    assert "Not compared, because not in a git repository: 1 tool (far.off)." in errors
    code, _, errors = _compat(pegboard, packs, "--since", "nowhere")
    assert (code, "The revision nowhere is unknown." in errors) == (2, True)


@pytest.mark.promise("BAT-4")
def test_an_unknown_revision_names_the_folder_and_how_to_fetch_the_commit(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    (packs / "shop.py").write_text(BEFORE)
    _commit(tmp_path)
    code, _, errors = _compat(pegboard, packs, "--since", "HEAD~1")
    assert (code, f"{packs} can't be read at HEAD~1." in errors, "`git fetch`" in errors) == (2, True, True)
    # As git marks a clone whose earlier commits were not fetched.
    (tmp_path / ".git" / "shallow").write_text("0" * 40 + "\n")
    code, _, errors = _compat(pegboard, packs, "--since", "HEAD~1")
    assert (code, "is shallow" in errors, "`fetch-depth: 0`" in errors) == (2, True, True)


@pytest.mark.promise("BAT-4")
def test_since_a_revision_types_of_other_modules_of_the_project_are_those_of_the_commit(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (core := tmp_path / "core").mkdir()
    (core / "kinds.py").write_text("from core.more import Kind\n")
    (core / "more.py").write_text(KINDS)
    (packs / "near.py").write_text(KINDS)
    source = BEFORE.partition("def other")[0]
    (packs / "shop.py").write_text(source.replace("from ._kinds import", "from core.kinds import"))
    (packs / "store.py").write_text(source.replace("from ._kinds import", "from near import"))
    _commit(tmp_path, "core")
    code, found, _ = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, [one["changes"] for one in found.values()]) == (0, [[], []])
    for file in (core / "more.py", packs / "near.py"):
        file.write_text(KINDS.replace('"b"', '"c"'))
    code, found, _ = _compat(pegboard, packs, "--since", "HEAD")
    assert code == 1
    assert {name: _breaking(one) for name, one in found.items()} == {
        "shop.search": ['`kind` can no longer be "b"'],
        "store.search": ['`kind` can no longer be "b"'],
    }


@pytest.mark.promise("BAT-4")
def test_since_a_revision_a_removed_pack_is_breaking_even_if_it_was_the_only_one(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    (packs / "added.py").write_text('def now() -> int:\n    """Now."""\n    return 1\n')
    (packs / "broken.py").write_text("def broken(:\n")
    _commit(tmp_path)
    (packs / "broken.py").unlink()
    (packs / "shop.py").rename(packs / "store.py")
    code, found, _ = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, {name: one["status"] for name, one in found.items()}) == (
        1,
        {
            "added.now": "compatible",
            "store.search": "new",
            "store.other": "new",
            "shop.search": "removed",
            "shop.other": "removed",
        },
    )
    assert "shop.search" not in _compat(pegboard, packs, "added", "--since", "HEAD")[1]
    assert "added.now" not in _compat(pegboard, packs / "shop.py", "--since", "HEAD")[1]
    (packs / "store.py").write_text("def broken(:\n")
    (packs / "added.py").write_text("def broken(:\n")
    code, found, _ = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, set(found)) == (1, {"shop.search", "shop.other"}), "nothing is known of tools in unreadable files"
    shutil.rmtree(packs)
    code, found, _ = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, {name: one["status"] for name, one in found.items()}) == (
        1,
        {"added.now": "removed", "shop.search": "removed", "shop.other": "removed"},
    )
    assert _compat(pegboard, tmp_path / "typo", "--since", "HEAD")[0] == 2


@pytest.mark.promise("BAT-4")
def test_since_a_revision_a_pack_that_cannot_be_parsed_now_is_a_failure(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    broken = packs / "other.py"
    broken.write_text(BEFORE)
    _commit(tmp_path)
    assert _compat(pegboard, packs, "--since", "HEAD")[0] == 0
    broken.write_text("def broken(:\n")
    code, found, errors = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, set(found)) == (1, {"shop.search", "shop.other"})
    assert f"Not compared, because its tools can't be read: {broken}." in errors


@pytest.mark.promise("BAT-4")
def test_since_a_revision_the_only_pack_that_cannot_be_parsed_now_is_the_failure(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    _commit(tmp_path)
    (packs / "shop.py").write_text("def broken(:\n")
    code, found, errors = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, found) == (1, {})
    assert f"Not compared, because its tools can't be read: {packs / 'shop.py'}." in errors
    assert "--packs" not in errors


@pytest.mark.promise("BAT-4")
@pytest.mark.parametrize("is_worktree", [False, True])
def test_since_a_revision_works_in_a_folder_of_a_repository_or_worktree_whose_files_are_elsewhere(
    home: Path, packs: Path, tmp_path: Path, is_worktree: bool
) -> None:
    del home
    repository = _commit(tmp_path)
    if is_worktree:
        elsewhere = tmp_path.with_name(f"{tmp_path.name}-worktree")
        repository.add_worktree("other", str(elsewhere))
        packs = elsewhere / "packs"
    (packs / "shop.py").write_text(AFTER)
    done = commands.pegboard("--packs", ".", "check", "compat", "--since", "HEAD", cwd=packs)
    assert (done.returncode, "breaking  shop.search: `limit` is now required" in done.stdout) == (1, True), done.stderr


@pytest.mark.promise("BAT-4")
def test_an_empty_folder_named_like_a_git_directory_counts_as_missing(pegboard: Command, packs: Path) -> None:
    (packs / ".git").mkdir()
    code, _, errors = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, f"because {packs} is not in a git repository." in errors) == (2, True)


@pytest.mark.promise("BAT-4")
@pytest.mark.parametrize("revision", ["HEAD", "nowhere"])
def test_a_revision_without_anything_to_compare_is_wrong_usage(
    pegboard: Command, packs: Path, tmp_path: Path, revision: str
) -> None:
    code, _, errors = _compat(pegboard, packs, "--since", revision)
    assert (code, f"Nothing was compared with {revision} because {packs} is not in a git repository." in errors) == (
        2,
        True,
    )
    (tmp_path / "none").mkdir()
    code, _, errors = _compat(pegboard, tmp_path / "none", "--since", revision)
    assert (code, "because no tool is in a pack of yours." in errors) == (2, True)


@pytest.mark.promise("BAT-4")
def test_since_a_date_compares_with_the_schemas_that_were_in_effect(pegboard: Command, packs: Path, home: Path) -> None:
    _compat(pegboard, packs)
    for file in (home / "state" / "schemas").glob("shop-*.json"):
        content = json.loads(file.read_text())
        for one in content["tools"].values():
            one["versions"][0]["at"] = "2026-01-02T00:00:00Z"
        file.write_text(json.dumps(content))
    (packs / "shop.py").write_text(AFTER)
    _compat(pegboard, packs, "--accept")
    assert _breaking(_compat(pegboard, packs, "--since", "2026-01-03")[1]["shop.search"]) == ["`limit` is now required"]
    assert _compat(pegboard, packs, "--since", "2026-01-01")[1]["shop.search"]["status"] == "new"
    assert _compat(pegboard, packs, "--since", "2999-01-01")[0] == 0
    (packs / "shop.py").write_text(AFTER.partition("def other")[0])
    code, found, _ = _compat(pegboard, packs, "--since", "2026-01-03")
    assert (code, found["shop.other"]["status"]) == (1, "removed")
    assert "shop.other" not in _compat(pegboard, packs, "--since", "2026-01-01")[1]
    assert "shop.other" not in _compat(pegboard, packs, "shop.search", "--since", "2026-01-03")[1]


@pytest.mark.promise("BAT-4")
def test_damaged_schemas_count_as_unknown(pegboard: Command, packs: Path, home: Path) -> None:
    _compat(pegboard, packs)
    for file in (home / "state" / "schemas").glob("*.json"):
        file.write_text('{"version": 9')
    (packs / "shop.py").write_text(AFTER)
    done = pegboard("--packs", str(packs), "check", "compat")
    assert (done.returncode, "No earlier schema of 2 tools is known." in done.stderr) == (0, True)


@pytest.mark.promise("BAT-4")
def test_a_server_whose_schema_changes_between_two_starts_breaks_recorded_calls(
    pegboard: Command, tmp_path: Path, home: Path
) -> None:
    version = tmp_path / "version"
    version.write_text("old")
    pegboard("mcp", "add", "shop", "--", sys.executable, str(VERSIONED_SERVER), str(version))
    for query in ("red", "green"):
        assert pegboard("tools", "invoke", "shop.search", "--arg", f"query={query}").returncode == 0
    pegboard("tools", "invoke", "shop.search", "--arg", "query=blue", "--arg", "limit=1")
    done = pegboard("check", "compat", "shop", "--json")
    assert (done.returncode, {one["status"] for one in json.loads(done.stdout)}) == (0, {"compatible"}), done.stderr

    version.write_text("new")
    done = pegboard("check", "compat", "shop", "--json")
    found = {one["tool"]: one for one in json.loads(done.stdout)}
    search = found["shop.search"]
    assert (done.returncode, search["status"], search["calls"], search["broken"]) == (1, "breaking", 3, 2)
    assert _breaking(search) == ["`limit` is now required"]
    records = json.loads(pegboard("history", "--json").stdout)
    assert {call["id"] for call in search["brokenCalls"]} == {
        record["id"] for record in records if record["args"].keys() == {"query"}
    }
    assert found["shop.stock"]["status"] == "compatible"
    done = pegboard("check", "compat", "shop.search")
    assert "2 of 3 recorded calls no longer validate: `limit` is now required" in done.stdout
    assert all(f"call {call['id']} of " in done.stdout for call in search["brokenCalls"])
    assert "1 with breaking changes" in done.stderr

    assert pegboard("check", "compat", "shop", "--accept").returncode == 0
    assert pegboard("check", "compat", "shop").returncode == 0


@pytest.mark.promise("BAT-4")
def test_recorded_calls_are_validated_even_if_no_change_is_found_between_different_schemas(
    pegboard: Command, tmp_path: Path
) -> None:
    server = tmp_path / "server.py"
    text = (VERSIONED_SERVER.with_name("plain_server.py")).read_text()
    simple = '{"type": "object", "properties": {"path": {"type": "string"}}}'
    assert simple in text
    limited = {"minimum": 3, "exclusiveMinimum": False}  # in this draft, the second one changes the first one
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {"path": limited}}
    server.write_text(text.replace(simple, repr(schema)))
    pegboard("mcp", "add", "shop", "--", sys.executable, str(server))
    assert pegboard("tools", "invoke", "shop.say", "--arg", "path=3").returncode == 0
    limited["exclusiveMinimum"] = True
    server.write_text(text.replace(simple, repr(schema)))
    (found,) = json.loads(pegboard("check", "compat", "shop.say", "--json").stdout)
    assert (found["status"], found["calls"], found["broken"], found["changes"]) == ("breaking", 1, 1, [])


@pytest.mark.promise("BAT-4")
def test_a_server_that_cannot_start_fails_the_comparison_unless_it_is_disabled(
    pegboard: Command, packs: Path, home: Path
) -> None:
    _compat(pegboard, packs)
    entry = f"[mcp.servers.gone]\ncommand = {sys.executable!r}\nargs = ['nowhere.py']\n"
    (home / "config.toml").write_text(entry)
    for options in ([], ["--since", "2999-01-01"], ["--accept"]):
        code, found, errors = _compat(pegboard, packs, *options)
        assert (code, found["shop.search"]["status"]) == (1, "compatible")
        assert "Not compared, because it can't be used now: gone." in errors
    assert _compat(pegboard, packs, "shop")[0] == 0, "its tools are those of a pack"
    (home / "config.toml").write_text(f"{entry}enabled = false\n")
    assert _compat(pegboard, packs)[0] == 0


@pytest.mark.promise("BAT-4")
def test_servers_of_a_folder_that_is_not_trusted_fail_the_comparison(
    pegboard: Command, packs: Path, tmp_path: Path, trust: Callable[[Path], None]
) -> None:
    (tmp_path / "version").write_text("old")
    arguments = json.dumps([str(VERSIONED_SERVER), str(tmp_path / "version")])
    (tmp_path / "pegboard.toml").write_text(f"[mcp.servers.store]\ncommand = {sys.executable!r}\nargs = {arguments}\n")
    code, found, errors = _compat(pegboard, packs)
    assert (code, {one.partition(".")[0] for one in found}) == (1, {"shop"})
    assert "Not compared, because this folder is not trusted: store." in errors
    assert _compat(pegboard, packs, "shop")[0] == 0
    trust(tmp_path)
    code, found, _ = _compat(pegboard, packs)
    assert (code, {one.partition(".")[0] for one in found}) == (0, {"shop", "store"})


@pytest.mark.promise("BAT-4")
def test_all_tools_of_a_server_are_removed_if_it_has_none_left(pegboard: Command, tmp_path: Path) -> None:
    version = tmp_path / "version"
    version.write_text("old")
    pegboard("mcp", "add", "store", "--", sys.executable, str(VERSIONED_SERVER), str(version))
    assert pegboard("check", "compat").returncode == 0
    version.write_text("none")
    done = pegboard("check", "compat", "--json")
    removed = {one["tool"]: one["status"] for one in json.loads(done.stdout)}
    assert (done.returncode, removed) == (1, {"store.search": "removed", "store.stock": "removed"})
    assert pegboard("check", "compat", "--accept").returncode == 0
    assert pegboard("check", "compat").returncode == 0


@pytest.mark.promise("BAT-4")
def test_since_a_revision_servers_are_neither_started_nor_compared(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    _commit(tmp_path)
    version = tmp_path / "version"
    version.write_text("old")
    pegboard("mcp", "add", "store", "--", sys.executable, str(VERSIONED_SERVER), str(version))
    pegboard("mcp", "add", "gone", "--", sys.executable, "nowhere.py")
    code, found, errors = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, {one.partition(".")[0] for one in found}) == (0, {"shop"})
    assert errors.startswith("Not compared, because a revision has no schemas of MCP servers: gone, store.\n")
    code, _, errors = _compat(pegboard, packs, "store", "--since", "HEAD")
    assert (code, "Nothing was compared with HEAD because a revision has no schemas of MCP servers." in errors) == (
        2,
        True,
    )


@pytest.mark.promise("BAT-4")
def test_a_server_of_one_run_is_named_as_not_compared(pegboard: Command, tmp_path: Path) -> None:
    (tmp_path / "version").write_text("old")
    done = pegboard("check", "compat", "--mcp", f"store={sys.executable} {VERSIONED_SERVER} {tmp_path / 'version'}")
    assert (done.returncode, done.stderr) == (
        0,
        "Not compared, because servers of --mcp have no earlier schemas: store.\nNo tool to compare.\n",
    )


_TEXT: dict[str, Any] = {"type": "string"}
_NULL: dict[str, Any] = {"type": "null"}
_INT: dict[str, Any] = {"type": "integer"}
_NUMBER: dict[str, Any] = {"type": "number"}
_TUPLES: dict[str, Any] = {"$schema": "http://json-schema.org/draft-07/schema#"}
_NAMED: dict[str, Any] = {"$defs": {"t": _TEXT}}
_TREE: dict[str, Any] = {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}}


def _object(kind: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"const": kind}}}


@pytest.mark.promise("BAT-4")
@pytest.mark.parametrize(
    ("old", "new", "input_breaks", "output_breaks"),
    [
        (_TEXT, {"type": ["string", "null"]}, False, True),
        ({"type": "number"}, {"type": "integer"}, True, False),
        ({"type": "integer"}, {"type": "number"}, False, True),
        (_TEXT, {"type": "integer"}, True, True),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, True, False),
        ({"enum": ["a"]}, {"const": "a"}, False, False),
        ({"enum": ["a"]}, {}, False, True),
        ({"minimum": 1}, {"minimum": 2}, True, False),
        ({"maxLength": 5}, {"maxLength": 9}, False, True),
        ({"maxItems": 5}, {}, False, True),
        (_TEXT, {**_TEXT, "pattern": "^a"}, True, False),
        ({"pattern": "^b"}, {"pattern": "^a"}, True, True),
        ({"properties": {"a": {}}}, {"properties": {"a": {}, "b": {}}}, False, False),
        ({"properties": {"a": {}}}, {"properties": {}, "additionalProperties": False}, True, True),
        ({"properties": {"a": {}, "b": {}}}, {"properties": {"a": {}}}, False, True),
        ({"required": ["a"]}, {}, False, True),
        ({"properties": {"a": {}}}, {"properties": {"a": {"default": 1}}, "required": ["a"]}, False, False),
        ({"additionalProperties": _TEXT}, {"additionalProperties": {"type": "integer"}}, True, True),
        ({"items": _TEXT}, {"items": {"type": ["string", "integer"]}}, False, True),
        ({"anyOf": [_TEXT, _NULL]}, _TEXT, True, False),
        ({"anyOf": [_TEXT, _NULL]}, {"anyOf": [_NULL, {"$ref": "#/$defs/t"}], **_NAMED}, False, False),
        ({"allOf": [{"minimum": 1}]}, {"allOf": [{"minimum": 1}, {"maximum": 5}]}, True, False),
        ({"not": {"type": "string"}}, {"not": {"type": "integer"}}, True, True),
        (_TREE, _TREE, False, False),
        ({"title": "a", **_TEXT}, {"description": "b", **_TEXT}, False, False),
        ({"properties": {"title": _TEXT}}, {"properties": {"title": {"type": "integer"}}}, True, True),
        ({"properties": {"a": True}}, {"properties": {"a": False}}, True, False),
        ({"minimum": "many"}, {"$ref": "#/nowhere"}, False, False),
        ({"enum": ["a", "b"]}, _TEXT, False, True),
        (_TEXT, {"const": "a"}, True, False),
        ({"enum": ["a", 1]}, _TEXT, True, True),
        (_TEXT, {"enum": ["a", 1.0]}, True, True),
        ({"enum": [1, 2.0]}, {"type": "integer"}, False, True),
        (_TEXT, {**_TEXT, "format": "path"}, False, False),
        ({"exclusiveMinimum": 0}, {"minimum": 0}, False, True),
        ({"minimum": 0}, {"exclusiveMinimum": 0}, True, False),
        ({"maximum": 9.5}, {"exclusiveMaximum": 10}, False, True),
        ({"exclusiveMinimum": 0}, {"minimum": 1}, True, False),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}, False, False),
        ({"type": "integer", "maximum": 9}, {"type": "integer", "exclusiveMaximum": 10}, False, False),
        ({"type": "integer", "maximum": 9}, {"type": "integer", "exclusiveMaximum": 9}, True, False),
        ({"minimum": 5}, {"minimum": 5, "exclusiveMinimum": 1}, False, False),
        ({"minItems": 0}, {}, False, False),
        ({"minContains": 0}, {}, True, False),
        ({"maxItems": 0}, {}, False, True),
        (_TEXT, {**_TEXT, "minLength": 0}, False, False),
        ({"multipleOf": 4}, {"multipleOf": 2}, False, True),
        ({"multipleOf": 2}, {"multipleOf": 4}, True, False),
        ({"multipleOf": 2}, {"multipleOf": 3}, True, True),
        ({**_TEXT, "format": "password"}, _TEXT, False, False),
        ({**_TEXT, "format": "path"}, {**_TEXT, "format": "date"}, True, False),
        (_TEXT, {**_TEXT, "format": "uuid"}, True, False),
        ({**_TEXT, "format": "date"}, {**_TEXT, "format": "uuid"}, True, True),
        ({"anyOf": [_TEXT], "oneOf": [_TEXT, _INT]}, {"anyOf": [_TEXT], "oneOf": [_TEXT]}, True, False),
        ({"anyOf": [_NUMBER, _INT]}, {"oneOf": [_NUMBER, _INT]}, True, False),
        ({"oneOf": [_NUMBER, _INT]}, {"anyOf": [_NUMBER, _INT]}, False, True),
        ({"anyOf": [_TEXT, _INT]}, {"oneOf": [_TEXT, _INT]}, False, False),
        ({"anyOf": [_object("a"), _object("b")]}, {"oneOf": [_object("a"), _object("b")]}, False, False),
        ({"anyOf": [{"type": "object"}, _object("b")]}, {"oneOf": [{"type": "object"}, _object("b")]}, True, False),
        ({"oneOf": [_NUMBER, _TEXT]}, {"oneOf": [_NUMBER, _TEXT, _INT]}, True, True),
        ({"oneOf": [_NUMBER, _INT]}, {"oneOf": [_NUMBER, _INT, _TEXT]}, True, True),
        ({"oneOf": [_NUMBER, _INT]}, {"oneOf": [{**_INT, "title": "a"}, _NUMBER]}, False, False),
        ({"anyOf": [{"enum": [1, 2]}, _TEXT]}, {"anyOf": [{"enum": [1, 2], "maximum": 1}, _TEXT]}, True, False),
        ({**_TEXT, "maxLength": 9}, {"anyOf": [_TEXT, _NULL], "maxLength": 3}, True, True),
        ({**_TUPLES, "items": [_TEXT]}, {**_TUPLES, "items": [_INT]}, True, True),
        ({**_TUPLES, "items": [_TEXT]}, {**_TUPLES, "items": [_TEXT], "additionalItems": False}, True, False),
        ({"properties": {"a": _INT}, "additionalProperties": _TEXT}, {"additionalProperties": _TEXT}, True, True),
        ({"additionalProperties": _TEXT}, {"properties": {"a": _INT}, "additionalProperties": _TEXT}, True, True),
        ({"properties": {"a": _INT}}, {"additionalProperties": {}}, False, True),
    ],
)  # fmt: skip
def test_arguments_may_accept_more_and_results_less(
    old: dict[str, Any], new: dict[str, Any], input_breaks: bool, output_breaks: bool
) -> None:
    assert any(change.breaking for change in schema_changes("input", old, new)) is input_breaks
    assert any(change.breaking for change in schema_changes("output", old, new)) is output_breaks


_OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": _TEXT}, "required": ["a"]}
_OWN: dict[str, Any] = {"$defs": {"A": _OBJECT}}
_CYCLE: dict[str, Any] = {"allOf": [{"$ref": "#"}], "type": "object"}


@pytest.mark.promise("BAT-4")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": ["string", "null"]}, {"anyOf": [_TEXT, _NULL]}),
        ({"type": ["string", "null"], "maxLength": 3}, {"anyOf": [_NULL, {**_TEXT, "maxLength": 3}]}),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, {**_TEXT, "enum": ["a", "b"]}),
        ({"oneOf": [{"const": "a"}, {"const": 1}, _NULL]}, {"oneOf": [{"enum": [1]}, _NULL, {"enum": ["a"]}]}),
        ({"allOf": [{"$ref": "#/$defs/A"}], "title": "An object", **_OWN}, {"$ref": "#/$defs/A", **_OWN}),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, {"type": "integer", "minimum": 1}),
        (_CYCLE, {**_CYCLE, "title": "A cycle"}),
    ],
)
def test_two_ways_to_write_the_same_schema_are_compatible(one: dict[str, Any], other: dict[str, Any]) -> None:
    for side in ("input", "output"):
        assert schema_changes(side, one, other) == ()
        assert schema_changes(side, other, one) == ()


@pytest.mark.promise("BAT-4")
@pytest.mark.parametrize(
    ("old", "new", "breaking"),
    [
        ({"type": ["string", "null"]}, {"anyOf": [_TEXT, {"type": "integer"}]}, ["`x` is now integer instead of null"]),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, {"enum": ["a", "c"]}, ['`x` can no longer be "b"']),
        ({"allOf": [{"type": "integer"}]}, _TEXT, ["`x` is now string instead of integer"]),
        (
            {"allOf": [_TEXT, {"enum": ["a"]}]},
            {"allOf": [{"type": ["null", "string"]}, {"enum": ["b", None, 1]}]},
            ['`x` can no longer be "a"'],
        ),
        ({"allOf": [_TEXT, {"enum": ["a"]}]}, {"type": "null", "enum": ["a"]}, ['`x` can no longer be "a"']),
    ],
)
def test_a_breaking_change_is_found_whichever_way_a_schema_is_written(
    old: dict[str, Any], new: dict[str, Any], breaking: list[str]
) -> None:
    changes = schema_changes("input", {"properties": {"x": old}}, {"properties": {"x": new}})
    assert [change.message for change in changes if change.breaking] == breaking


def _repeated(kind: str) -> dict[str, Any]:
    """Return a schema with 40 definitions, of which each names the next one twice."""
    parts = {f"A{number}": {"allOf": [{"$ref": f"#/$defs/A{number + 1}"}] * 2} for number in range(40)}
    return {"properties": {"x": {"$ref": "#/$defs/A0"}}, "$defs": {**parts, "A40": {"type": kind}}}


@pytest.mark.promise("BAT-4", "SEC-8")
@pytest.mark.timeout(60)
def test_schemas_that_name_a_part_very_often_are_compared() -> None:
    assert any(change.breaking for change in schema_changes("input", _repeated("string"), _repeated("integer")))
    assert schema_changes("input", _repeated("string"), _repeated("string")) == ()


def _kind(kind: str, **properties: Any) -> dict[str, Any]:
    """Return a schema of objects of one kind, of which other properties are optional."""
    return {"type": "object", "properties": {"kind": {"const": kind}, **properties}, "required": ["kind"]}


def _defined(part: Any, **properties: Any) -> dict[str, Any]:
    """Return a schema whose part refers to an object with these properties, which are required."""
    defined = {"type": "object", "properties": properties, "required": [*properties]}
    return {"properties": {"x": part}, "$defs": {"A": defined}}


@pytest.mark.promise("BAT-4")
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize("wrap", [lambda ref: ref, lambda ref: {"type": "array", "items": ref}])
def test_a_change_of_what_an_alternative_refers_to_is_found(keyword: str, wrap: Callable[[Any], Any]) -> None:
    part = {keyword: [wrap({"$ref": "#/$defs/A"}), _NULL]}
    old = _defined(part, a=_TEXT)
    assert schema_changes("input", old, _defined(part, a=_TEXT)) == ()
    changes = schema_changes("input", old, _defined(part, a=_TEXT, b=_TEXT))
    assert [change.message.partition("b` ")[2] for change in changes if change.breaking] == ["is now required"]
    changes = schema_changes("output", old, _defined(part, a={"type": "integer"}))
    assert [change.message.partition("a` ")[2] for change in changes if change.breaking] == [
        "is now integer instead of string"
    ]


@pytest.mark.promise("BAT-4")
def test_a_change_of_a_recursive_alternative_is_found_once_at_its_shortest_path() -> None:
    part = {"anyOf": [{"$ref": "#/$defs/A"}, _NULL]}
    old, new = _defined(part, a=part, v=_TEXT), _defined(part, a=part, v={"type": "integer"})
    assert [(change.path, change.message) for change in schema_changes("input", old, new)] == [
        ("/x/v", "`x.v` is now integer instead of string")
    ]


@pytest.mark.promise("BAT-4")
@pytest.mark.parametrize(
    ("old", "new", "breaking", "compatible"),
    [
        ({**_TEXT, "default": "a"}, {"anyOf": [_TEXT, _NULL], "default": "a"}, [], ["`x` can now be null"]),
        (
            {"anyOf": [_TEXT, _NULL], "default": None},
            {**_TEXT, "default": ""},
            ["`x` can no longer be null"],
            ["the default of `x` changed"],
        ),
        (
            {"anyOf": [{**_TEXT, "minLength": 3}, _NULL]},
            {"anyOf": [_TEXT, {"type": "array"}, _NULL]},
            [],
            ["`x` can now be array", "`minLength` of `x` changed from 3 to none"],
        ),
        (
            {"anyOf": [{"type": "integer"}, _NULL]},
            {"anyOf": [_TEXT, {"type": "number"}, _NULL]},
            [],
            ["`x` can now be string", "`x` can now be number"],
        ),
        (
            {"oneOf": [_kind("a"), _kind("b")]},
            {"oneOf": [_kind("b", more=_TEXT), _kind("a", more=_TEXT), _kind("c")]},
            [],
            ["`x` can now be object", "`x.more` was added"],
        ),
        ({"anyOf": [{"type": "integer"}, _TEXT]}, {"type": "integer"}, ["`x` can no longer be string"], []),
    ],
)
def test_alternatives_are_compared_with_those_that_are_like_them(
    old: dict[str, Any], new: dict[str, Any], breaking: list[str], compatible: list[str]
) -> None:
    changes = schema_changes("input", {"properties": {"x": old}}, {"properties": {"x": new}})
    assert [change.message for change in changes if change.breaking] == breaking
    assert [change.message for change in changes if not change.breaking] == compatible


@pytest.mark.promise("BAT-4")
def test_since_a_revision_a_changed_class_of_an_optional_parameter_and_result_is_breaking(
    pegboard: Command, packs: Path, tmp_path: Path
) -> None:
    source = (
        "from typing import TypedDict\nclass Order(TypedDict):\n    id: int\n"
        'def send(*, orders: list[Order] | None = None) -> Order | None:\n    """Send."""\n'
    )
    (packs / "shop.py").write_text(source)
    _commit(tmp_path)
    (packs / "shop.py").write_text(source.replace("id: int", "id: str"))
    code, found, _ = _compat(pegboard, packs, "--since", "HEAD")
    assert (code, _breaking(found["shop.send"])) == (
        1,
        ['`orders."*".id` is now string instead of integer', "`id` is now string instead of integer"],
    )


@pytest.mark.promise("BAT-4")
def test_an_output_schema_may_be_added_but_not_removed() -> None:
    assert not schema_changes("output", None, _TEXT)[0].breaking
    assert schema_changes("output", _TEXT, None)[0].breaking
    assert schema_changes("output", None, None) == ()


@pytest.mark.promise("BAT-4")
def test_without_a_tool_no_baseline_is_announced(pegboard: Command) -> None:
    done = pegboard("check", "compat", "--accept")
    assert (done.returncode, done.stderr) == (0, "No tool to compare.\n")


@pytest.mark.promise("BAT-4")
def test_schemas_that_cannot_be_stored_fail_with_the_reason_and_what_to_do(
    pegboard: Command, packs: Path, home: Path
) -> None:
    (home / "state").mkdir(parents=True, exist_ok=True)
    (home / "state" / "schemas").write_text("not a folder")
    done = pegboard("--packs", str(packs), "check", "compat", "--accept")
    assert done.returncode == 2
    assert "can't be stored" in done.stderr
    assert "then repeat the command." in done.stderr
    assert "baseline now" not in done.stderr
