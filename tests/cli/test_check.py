"""`pegboard check`: calls are kept with their expectations, run, and rerun when a pack changes."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import commands
import pytest
from watched import eventually

import pegboard as pegboard_package

VERSIONED_SERVER = Path(__file__).parents[1] / "fakes" / "versioned_server.py"
Command = Callable[..., commands.Done]
Trust = Callable[[Path], None]

PACK = '''
from pegboard.sdk import ToolFailed, hints

@hints(read_only=True)
def items(*, size: int = 2) -> list[dict[str, int]]:
    """Return items."""
    return [{"id": number, "size": 10 * number} for number in range(size)]

def touch(*, path: str) -> str:
    """Write a file."""
    open(path, "w").close()
    return path

def fail() -> None:
    """Fail."""
    raise ToolFailed("No such shelf.", code="no_shelf")

def sell() -> None:
    """Fail with data."""
    raise ToolFailed("Sold out.", data={"success": False, "left": 0})

def sales() -> dict[str, object]:
    """Return sales."""
    return {"best": {"name": "ink", "count": 3}, "today": 5}

def evil() -> dict[str, str]:
    """Return control characters."""
    return {"[b]key[/b]": "\\x1b[31mred\\x00\\ufffe\\ud800"}
'''


@pytest.fixture
def packs(write_pack: Callable[[str, str], Path]) -> str:
    return str(write_pack("shop.py", PACK))


@pytest.fixture
def check_file(tmp_path: Path, trust: Trust) -> Callable[[str, str], Path]:
    """Return a function that writes a check into the working directory, which it trusts, and returns the file."""

    def write(name: str, text: str) -> Path:
        folder = tmp_path / "checks"
        folder.mkdir(exist_ok=True)
        file = folder / f"{name}.toml"
        file.write_text(text, encoding="utf-8")
        trust(tmp_path)
        return file

    return write


def _reports(done: commands.Done) -> dict[str, Any]:
    return {report["check"]: report for report in json.loads(done.stdout)["checks"]}


def _messages(done: commands.Done, name: str) -> list[str]:
    return [one["message"] for one in _reports(done)[name]["differences"]]


@pytest.mark.promise("BAT-3", "CLI-4")
def test_a_check_is_deleted_by_its_name_even_a_damaged_one(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path]
) -> None:
    check_file("bad", "tool = ")
    made = Path(pegboard("check", "new", "shop.items", "--name", "a/b", "--packs", packs).stdout.strip())
    assert made.exists()
    deleted = pegboard("check", "delete", "a/b", "--json")
    assert (deleted.returncode, json.loads(deleted.stdout)) == (0, {"deleted": "a/b", "file": str(made.resolve())})
    assert pegboard("check", "delete", "bad").stderr.startswith("Deleted ")
    assert json.loads(pegboard("check", "list", "--json").stdout) == []
    again = pegboard("check", "delete", "a/b")
    assert (again.returncode, again.stdout) == (2, "")
    assert "There is no check named `a/b`. `pegboard check list` lists all." in again.stderr


@pytest.mark.promise("BAT-3", "CLI-4")
def test_a_check_whose_file_name_is_decomposed_unicode_is_found_and_deleted_by_its_name(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path]
) -> None:
    file = check_file("e\u0301te\u0301", 'tool = "shop.items"\n')
    assert [one["name"] for one in json.loads(pegboard("check", "list", "--json").stdout)] == ["été"]
    again = pegboard("check", "new", "shop.items", "--name", "été", "--packs", packs)
    assert (again.returncode, "A check named `été` already exists." in again.stderr) == (2, True)
    assert [*file.parent.iterdir()] == [file]
    assert pegboard("check", "delete", "été").returncode == 0
    assert not file.exists()


@pytest.mark.promise("CLI-2")
def test_a_check_that_cannot_be_written_is_a_failure_and_no_wrong_usage(
    pegboard: Command, packs: str, home: Path
) -> None:
    (home / "data").write_text("a file in the place of the folder")
    done = pegboard("check", "new", "shop.items", "--own", "--packs", packs)
    assert (done.returncode, done.stdout) == (1, "")
    assert "can't be written" in done.stderr


@pytest.mark.promise("BAT-3")
def test_a_call_is_kept_and_the_check_fails_once_the_tool_returns_something_else(
    pegboard: Command, packs: str, home: Path
) -> None:
    call = json.loads(pegboard("tools", "invoke", "shop.items", "--packs", packs).stdout)["call"]
    kept = pegboard("check", "keep", call["id"][:12], "--name", "a/b", "--packs", packs)
    file = home / "data" / "checks" / "a%2Fb.toml"
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, f"{file}\n", "")
    passed = pegboard("check", "run", "--packs", packs)
    assert (passed.returncode, passed.stderr) == (0, "1 passed\n")
    records = json.loads(pegboard("history", "--json").stdout)
    assert [record["source"] for record in records] == ["check", "cli"]

    (Path(packs) / "shop.py").write_text(PACK.replace("10 * number", "11 * number"))
    failed = pegboard("check", "run", "--packs", packs)
    assert failed.returncode == 1
    assert "snapshot: Expected item #2.size to be 10, got 11." in failed.stdout
    assert 'If these parts always differ, set `expect.snapshot.ignore`: ["/1/size"]' in failed.stdout
    assert failed.stderr == "1 failed\n"

    updated = pegboard("check", "run", "--update", "--packs", packs)
    assert (updated.returncode, "snapshot stored" in updated.stdout) == (0, True)
    assert pegboard("check", "run", "--packs", packs).returncode == 0


@pytest.mark.promise("BAT-3")
def test_a_failed_call_is_kept_with_its_error(pegboard: Command, packs: str) -> None:
    pegboard("tools", "invoke", "shop.fail", "--packs", packs)
    kept = json.loads(pegboard("check", "keep", "-", "--json", "--packs", packs).stdout)
    assert kept["expect"] == {
        "outcome": "failed",
        "error": {"code": "execution_error", "detail": "no_shelf"},
        "schema": None,
        "exact": None,
        "subset": None,
        "jq": [],
        "snapshot": None,
        "maxSeconds": None,
    }
    assert pegboard("check", "run", "--packs", packs).returncode == 0
    (Path(packs) / "shop.py").write_text(PACK.replace("no_shelf", "gone"))
    assert 'Expected the error detail "no_shelf", got "gone".' in pegboard("check", "run", "--packs", packs).stdout
    for options, name in ((("--name", "sold"), "snapshot"), (("--name", "exactly", "--expect", "exact"), "exact")):
        pegboard("tools", "invoke", "shop.sell", "--packs", packs)
        kept = json.loads(pegboard("check", "keep", "-", *options, "--json", "--packs", packs).stdout)["expect"]
        data = kept[name]["data"] if name == "snapshot" else kept[name]
        assert (kept["error"]["code"], data) == ("execution_error", {"success": False, "left": 0})


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ('outcome = "failed"', "The call succeeded."),
        ('error.detail = "timeout"', "The call succeeded."),
        ('schema = "output"', None),
        ('schema = {type = "array", items = {required = ["name"]}}', "item #1.name is required."),
        ("exact = [{id = 0, size = 0}, {id = 1, size = 10}]", None),
        ("exact = [{id = 0, size = 0}]", "item #2 is unexpected."),
        ("subset = [{}, {size = 10}]", None),
        ("subset = [{}, {size = 10, name = 1}]", "item #2.name is missing."),
        ('jq = ["length == 2", ".[1].id == 1"]', None),
        ('jq = ["length"]', "`length` returned 2 instead of true."),
        ('jq = ["empty"]', "`empty` returned [] instead of true."),
        ('jq = ["length =="]', "`length ==` could not be evaluated: jq:"),
        ('jq = ["import \\"a\\" as $a; true"]', "Modules can't be imported."),
        ('jq = ["env == {}"]', None),
        ('snapshot = {ignore = ["/*/size"], data = [{id = 0, size = 5}, {id = 1}]}', None),
        ('snapshot = {ignore = ["/0/size"], data = [{id = 0}, {id = 1}]}', "item #2.size is unexpected."),
        ("snapshot = {}", "No snapshot is stored yet."),
        ("max_seconds = 60", None),
        ("max_seconds = 0.000000001", "; the limit is 1e-09 s."),
    ],
)
def test_each_expectation_is_verified(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path], expect: str, message: str | None
) -> None:
    check_file("one", f'tool = "shop.items"\n[expect]\n{expect}\n')
    done = pegboard("check", "run", "--json", "--packs", packs)
    found = _messages(done, "one")
    assert (done.returncode, bool(found)) == ((0, False) if message is None else (1, True)), found
    assert message is None or message in found[0].replace("Expected ", "")


@pytest.mark.promise("BAT-3")
def test_the_data_of_a_call_that_took_too_long_is_compared_too(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path]
) -> None:
    file = check_file(
        "one", 'tool = "shop.items"\n[expect]\nexact = []\nmax_seconds = 0.000000001\nsnapshot = {data = []}\n'
    )
    before = file.read_text()
    found = _messages(pegboard("check", "run", "--update", "--json", "--packs", packs), "one")
    for message in ("; the limit is 1e-09 s.", "item #1 is unexpected.", "item #2 is unexpected."):
        assert any(message in one for one in found), (message, found)
    assert file.read_text() == before


@pytest.mark.promise("BAT-3")
def test_an_update_that_stores_no_snapshot_says_that_something_else_differs(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path]
) -> None:
    check_file("one", 'tool = "shop.items"\n[expect]\njq = ["false"]\nsnapshot = {}\n')
    done = pegboard("check", "run", "--update", "--packs", packs)
    assert (done.returncode, "No snapshot is stored yet." in done.stdout) == (1, True)
    assert "`pegboard check run --update` stores it if nothing else differs." in done.stdout


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("tool", "schema", "message"),
    [
        ("stock", '"output"', "`count` must be an integer, not the text"),
        ("stocks", '"output"', "item #1.count must be an integer, not the text"),
        ("stock", '{"$ref" = "#/$defs/n", "$defs" = {n = {required = ["size"]}}}', "`size` is required."),
        ("stock", '{"$defs" = {n = {}}, properties = {name = {"$ref" = "#/$defs/n"}}}', None),
        ("stock", '{"$ref" = "#/$defs/n"}', "at `/$ref`, the target of the reference #/$defs/n does not exist."),
    ],
)
def test_references_in_the_expected_schema_are_followed(
    pegboard: Command,
    write_pack: Callable[[str, str], Path],
    check_file: Callable[[str, str], Path],
    tool: str,
    schema: str,
    message: str | None,
) -> None:
    packs = write_pack(
        "store.py",
        "from typing import TypedDict\n"
        "class Stock(TypedDict):\n    name: str\n    count: int\n"
        'def stock() -> Stock:\n    """Return one."""\n    return {"name": "ink", "count": "many"}\n'
        'def stocks() -> list[Stock]:\n    """Return all."""\n    return [stock()]\n',
    )
    check_file("one", f'tool = "store.{tool}"\nexpect.schema = {schema}\n')
    done = pegboard("check", "run", "--json", "--packs", str(packs))
    found = _messages(done, "one")
    assert (done.returncode, bool(found)) == ((0, False) if message is None else (1, True)), found
    assert message is None or message in found[0]


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{type = "strin"}', "`/type` must name JSON types."),
        ('{properties = {id = {minLength = "3"}}}', "`/properties/id/minLength` must be a non-negative integer."),
        ('{properties = {id = {pattern = "("}}}', "`/properties/id/pattern` is not a supported regular expression."),
        ('{items = ["a"]}', "`/prefixItems/0` is not a schema: it must be an object."),
        ('{type = "object", title = "Any text", unknown = 1}', None),
    ],
)
def test_an_expected_schema_with_an_invalid_part_fails_the_check_instead_of_accepting_any_data(
    pegboard: Command, check_file: Callable[[str, str], Path], schema: str, message: str | None
) -> None:
    check_file("one", f'tool = "tools.echo"\narguments.value = {{ id = 1 }}\nexpect.schema = {schema}\n')
    done = pegboard("check", "run", "--json")
    expected = [] if message is None else [f"The schema can't be applied: {message}"]
    assert (done.returncode, _messages(done, "one")) == (int(message is not None), expected)


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(("path", "suggested"), [("size", "/size"), ("items/*", "/items/*")])
def test_an_ignored_part_without_a_slash_is_an_error_instead_of_ignoring_the_whole_data(
    pegboard: Command, check_file: Callable[[str, str], Path], path: str, suggested: str
) -> None:
    check_file(
        "one",
        'tool = "tools.echo"\narguments.value = { id = 1, size = 2 }\n'
        f'[expect.snapshot]\nignore = ["/size", "{path}"]\ndata = {{ id = 5, size = 5 }}\n',
    )
    done = pegboard("check", "run")
    assert done.returncode == 1
    reason = f'`expect.snapshot.ignore` must be JSON Pointers, which begin with a slash: "{suggested}".'
    assert f"one.toml:4: The check `one` is invalid: {reason} Fix the file." in done.stderr


@pytest.mark.promise("BAT-3")
def test_a_call_is_kept_however_many_were_recorded_after_it(pegboard: Command, packs: str, home: Path) -> None:
    pegboard("tools", "invoke", "time.now")
    [first] = json.loads(pegboard("history", "--json").stdout)
    with closing(sqlite3.connect(home / "state" / "history.db")) as database, database:
        names = [name for _, name, *_ in database.execute("PRAGMA table_info(calls)") if name not in ("n", "id", "at")]
        database.execute(
            "WITH RECURSIVE later(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM later WHERE number < 100001)"
            f" INSERT INTO calls (id, at, {', '.join(names)}) SELECT 'later' || number, at + number, {', '.join(names)}"
            " FROM later, calls"
        )
    kept = pegboard("check", "keep", first["id"], "--expect", "outcome", "--name", "old")
    assert (kept.returncode, kept.stderr) == (0, "")


@pytest.mark.promise("BAT-3")
def test_a_kept_image_is_compared_by_its_type_and_size(
    pegboard: Command, write_pack: Callable[[str, str], Path]
) -> None:
    source = 'def shoot():\n    """Return an image."""\n    return {{"mimeType": "image/png", "data": "{}"}}\n'
    packs = str(write_pack("camera.py", source.format("AAAA")))
    pegboard("tools", "invoke", "camera.shoot", "--packs", packs)
    pegboard("check", "keep", "-", "--name", "one", "--packs", packs)
    assert pegboard("check", "run", "--packs", packs).returncode == 0
    write_pack("camera.py", source.format("AAAAAAAA"))
    done = pegboard("check", "run", "--json", "--packs", packs)
    assert done.returncode == 1
    assert 'Expected `data` to be "image/png, 3 B: ' in _messages(done, "one")[0]


@pytest.mark.promise("BAT-3")
def test_an_image_as_an_object_matches_the_output_schema_although_it_is_saved(
    pegboard: Command, write_pack: Callable[[str, str], Path], check_file: Callable[[str, str], Path]
) -> None:
    packs = write_pack(
        "camera.py",
        'def shoot() -> list[dict[str, str]]:\n    """Return an image."""\n'
        '    return [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]\n',
    )
    check_file("one", 'tool = "camera.shoot"\nexpect.schema = "output"\n')
    done = pegboard("check", "run", "--json", "--packs", str(packs))
    assert (done.returncode, _messages(done, "one")) == (0, [])


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("exact = {success = false, left = 0}", None),
        ("exact = {success = false, left = 1}", "`left` to be 1, got 0."),
        ("subset = {success = true}", "`success` to be true, got false."),
        ('schema = {type = "string"}', "must be text, not an object."),
        ('jq = ["false"]', "`false` returned false instead of true."),
        ("snapshot = {data = {success = false, left = 0}}", None),
        ("snapshot = {data = {success = false}}", "`left` is unexpected."),
    ],
)
def test_the_data_of_a_call_that_fails_as_expected_is_verified(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path], expect: str, message: str | None
) -> None:
    check_file("one", f'tool = "shop.sell"\n[expect]\noutcome = "failed"\n{expect}\n')
    done = pegboard("check", "run", "--json", "--packs", packs)
    found = _messages(done, "one")
    assert (done.returncode, bool(found)) == ((0, False) if message is None else (1, True)), found
    assert message is None or message in found[0].replace("Expected ", "")


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("def broken(:", "shop.py:1: The file could not be parsed: "),
        ("import no_such_library", "no_such_library"),
        ("raise OSError('no disk')", "no disk"),
    ],
)
@pytest.mark.parametrize("outcome", ["failed", "ok"])
def test_a_check_that_expects_a_failure_does_not_pass_because_its_pack_is_broken(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path], line: str, reason: str, outcome: str
) -> None:
    check_file("one", f'tool = "shop.sell"\nexpect.outcome = "{outcome}"\n')
    file = Path(packs) / "shop.py"
    file.write_text(f"{line}\n{file.read_text()}")
    done = pegboard("check", "run", "--json", "--packs", packs)
    report = _reports(done)["one"]
    found = report["problem"] or report["differences"][0]
    assert (done.returncode, reason in f"{found.get('file')}:{found.get('line')}: {found['message']}") == (1, True)
    assert report["status"] == "error" or outcome == "ok"


@pytest.mark.promise("BAT-3")
def test_a_check_that_expects_a_failure_does_not_pass_because_its_server_ended_before_the_call(
    pegboard: Command, tmp_path: Path, check_file: Callable[[str, str], Path]
) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "import os\nfrom mcp.server.mcpserver import MCPServer\nserver = MCPServer('store')\n"
        "@server.tool()\ndef end() -> None:\n    os.unlink(__file__)\n    os._exit(1)\nserver.run()\n"
    )
    pegboard("mcp", "add", "store", "--", sys.executable, str(server))
    for name in ("first", "second"):
        check_file(name, 'tool = "store.end"\nexpect.outcome = "failed"\n')
    done = pegboard("check", "run", "--json")
    reports = _reports(done)
    assert {name: report["status"] for name, report in reports.items()} == {"first": "passed", "second": "error"}
    assert (done.returncode, "was not called" in reports["second"]["problem"]["message"]) == (1, True)


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('tool = "shop.items"\n[expect]\noutcome = "well"\n', 3, "`expect.outcome` input should be 'ok' or 'failed'"),
        ('tool = "shop.items"\n\n[expect]\nsnapshots = {}\n', 4, "`expect.snapshots` is an unknown key"),
        ("arguments.x = 1\n", None, "`tool` is required"),
        ('tool = "x"\nname = "y"\n', 2, "has the unknown key `name`"),
        ("tool = \n", 1, "is not TOML"),
        ('tool = "x"\nexpect.schema = "outptu"\n', 2, "`expect.schema` must be `output` or a JSON Schema as a table."),
        ('tool = "x"\nexpect.max_seconds = -1\n', 2, "`expect.max_seconds`"),
        ('tool = "x"\nexpect.max_seconds = "1 s"\n', 2, "`expect.max_seconds` must be a number."),
        ('tool = "x"\nexpect.jq = "length"\n', 2, "`expect.jq` must be a list."),
        ('tool = "x"\narguments = 5\n', 2, "`arguments` must be a table."),
        ('tool = "x"\nexpect = 5\n', 2, "`expect` must be a table."),
        ('tool = "x"\nexpect.outcome = "ok"\nexpect.error = {}\n', 2, '`expect` needs `outcome = "failed"`'),
    ],
)
def test_an_invalid_check_is_a_problem_with_its_line_and_fails_the_run(
    pegboard: Command,
    packs: str,
    check_file: Callable[[str, str], Path],
    text: str,
    line: int | None,
    reason: str,
) -> None:
    file = check_file("bad", text)
    check_file("good", 'tool = "shop.items"\n')
    done = pegboard("check", "run", "--packs", packs)
    assert done.returncode == 1
    assert f"{file}:{line}: " in done.stderr if line else f"{file}: " in done.stderr
    assert reason in done.stderr
    assert done.stderr.endswith("1 passed, 1 could not run\n")


@pytest.mark.promise("BAT-3", "SEC-1")
def test_checks_of_a_folder_run_only_once_the_user_trusts_it(
    pegboard: Command, packs: str, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "checks").mkdir()
    made = tmp_path / "made"
    text = f'tool = "shop.touch"\narguments.path = "{made}"\n'
    (tmp_path / "checks" / "write.toml").write_text(text)
    done = pegboard("check", "run", "--packs", packs)
    assert (done.returncode, made.exists()) == (1, False)
    assert "did not run because this folder is not trusted. Run `pegboard trust`" in done.stdout
    assert "don't run because it is not trusted" in pegboard("check", "list").stderr
    assert not json.loads(pegboard("history", "--json").stdout)

    asked = pegboard("trust", "--yes")
    assert (asked.returncode, "The checks in checks/ can call any tool" in asked.stderr) == (0, True)
    assert pegboard("check", "run", "--packs", packs).returncode == 0
    assert made.exists()
    kept = pegboard("check", "new", "shop.items", "--packs", packs)
    assert kept.stdout == f"{tmp_path / 'checks' / 'shop.items.toml'}\n"

    (tmp_path / "pegboard.toml").write_text("[tools]\ntimeout = 5\n")  # a change without a review
    assert pegboard("check", "run", "write", "--packs", packs).returncode == 1
    (home / "data" / "checks").mkdir(parents=True)
    (home / "data" / "checks" / "own.toml").write_text(text)
    assert pegboard("check", "run", "own", "--packs", packs).returncode == 0


@pytest.mark.promise("BAT-3")
def test_checks_start_only_the_servers_whose_tools_they_need(
    pegboard: Command, packs: str, tmp_path: Path, check_file: Callable[[str, str], Path]
) -> None:
    (tmp_path / "version").write_text("old")
    started = tmp_path / "started"
    pegboard("mcp", "add", "store", "--", sys.executable, str(VERSIONED_SERVER), str(tmp_path / "version"))
    pegboard("mcp", "add", "other", "--", sys.executable, "-c", f"open({str(started)!r}, 'w')")
    source = 'from pegboard.sdk import call_tool\n\ndef count() -> int:\n    """Count."""\n'
    (Path(packs) / "outer.py").write_text(f'{source}    return call_tool("store.stock", item="ink")["result"]\n')
    check_file("own", 'tool = "shop.items"\n')
    check_file("of-server", 'tool = "store.stock"\narguments.item = "ink"\nexpect.exact.result = 3\n')
    check_file("through-pack", 'tool = "outer.count"\nexpect.exact = 3\n')
    for name in ("own", "of-server", "through-pack"):
        done = pegboard("check", "run", name, "--packs", packs)
        assert (done.returncode, done.stderr) == (0, "1 passed\n"), done.stdout
    done = pegboard("check", "run", "--packs", packs)
    assert (done.returncode, done.stderr, started.exists()) == (0, "3 passed\n", False)
    assert pegboard("tools", "invoke", "outer.count", "--data", "--packs", packs).stdout == "3\n"
    helper = "from pegboard.sdk import call_tool\n\ndef call(tool: str, **arguments: str):\n"
    (Path(packs) / "_shop.py").write_text(f"{helper}    return call_tool(tool, **arguments)\n")
    source = (
        'from ._shop import call\n\ndef count() -> int:\n    """Count."""\n    return call("store.stock", item="ink")'
    )
    (Path(packs) / "outer.py").write_text(f'{source}["result"]\n')
    assert pegboard("check", "run", "through-pack", "--packs", packs).returncode == 0
    assert started.exists(), "the helper may call any server"


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("call_tool", '"%s" % name'),
        ("call_tool", '"" + name'),
        ("call_tool", '"{}".format(name)'),
        ("call_tool as ct", "name"),
        ("batch_execute, call_tool", "[name], call_tool"),
    ],
)
def test_a_pack_that_computes_the_name_of_a_tool_may_call_any_server(
    pegboard: Command, packs: str, tmp_path: Path, imported: str, call: str
) -> None:
    started = tmp_path / "started"
    pegboard("mcp", "add", "store", "--", sys.executable, "-c", f"open({str(started)!r}, 'w')")
    function = "batch_execute" if "batch" in imported else imported.rpartition(" ")[2]
    source = f'from pegboard.sdk import {imported}\n\ndef count(*, name: str) -> object:\n    """Count."""\n'
    (Path(packs) / "outer.py").write_text(f"{source}    return {function}({call})\n")
    pegboard("tools", "invoke", "outer.count", "--arg", "name=store.none", "--packs", packs)
    assert started.exists()


@pytest.mark.promise("BAT-3")
def test_jq_works_if_the_files_of_pegboard_are_links_into_the_cache_of_a_package_manager(
    tmp_path: Path, check_file: Callable[[str, str], Path]
) -> None:
    check_file("one", 'tool = "time.now"\nexpect.jq = ["length > 0"]\n')
    installed = Path(pegboard_package.__file__).parent
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(installed, tmp_path / "linked" / "pegboard", ignore=without, copy_function=os.symlink)
    run = subprocess.run(
        [sys.executable, "-m", "pegboard", "check", "run"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "linked")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "1 passed\n"), run.stdout


@pytest.mark.promise("BAT-3")
def test_updating_a_snapshot_keeps_comments_and_all_other_values(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path]
) -> None:
    text = (
        '# The shop.\ntool = "shop.items" # its items\n\n[expect]\njq = ["length == 2"]\n\n'
        '[expect.snapshot]\nignore = ["/*/size"]  # it varies\ndata = []\n'
    )
    file = check_file("one", text)
    assert pegboard("check", "run", "--update", "--packs", packs).returncode == 0
    assert file.read_text().startswith(text.removesuffix("data = []\n"))
    assert pegboard("check", "run", "--packs", packs).returncode == 0
    other = check_file("two", text.replace("length == 2", "length == 3"))
    assert pegboard("check", "run", "two", "--update", "--packs", packs).returncode == 1
    assert other.read_text().endswith("data = []\n"), "a check that fails otherwise isn't updated"


@pytest.mark.promise("BAT-3")
def test_a_filter_with_more_values_than_are_verified_fails_the_check(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path]
) -> None:
    check_file("one", 'tool = "shop.items"\narguments.size = 1500\nexpect.jq = [".[] | .id < 1400"]\n')
    done = pegboard("check", "run", "--json", "--packs", packs)
    assert done.returncode == 1
    assert "returned too many values to verify all of them" in _messages(done, "one")[0]


@pytest.mark.promise("BAT-3")
def test_data_that_is_too_large_for_a_check_is_not_stored(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path]
) -> None:
    text = 'tool = "shop.items"\narguments.size = 50000\n[expect.snapshot]\n'
    file = check_file("one", text)
    done = pegboard("check", "run", "--update", "--json", "--packs", packs)
    assert (done.returncode, file.read_text()) == (1, text)
    assert "a check contains at most 1,000,000" in _reports(done)["one"]["problem"]["message"]


@pytest.mark.promise("BAT-3")
@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_the_snapshot_of_a_check_whose_file_name_is_not_utf8_is_stored(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path]
) -> None:
    file = check_file(os.fsdecode(b"caf\xe9"), 'tool = "shop.items"\n[expect.snapshot]\n')
    done = pegboard("check", "run", "--update", "--packs", packs)
    assert (done.returncode, "size" in file.read_text()) == (0, True), done.stdout


@pytest.mark.promise("BAT-3")
def test_updating_a_snapshot_keeps_the_permissions_of_the_file_and_a_link_to_it(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path]
) -> None:
    link = check_file("one", 'tool = "shop.items"\nexpect.snapshot.data = []\n')
    file = link.rename(link.with_name("shared"))
    file.chmod(0o640)
    link.symlink_to(file)
    assert pegboard("check", "run", "--update", "--packs", packs).returncode == 0
    assert (link.is_symlink(), file.stat().st_mode & 0o777, "size" in file.read_text()) == (True, 0o640, True)


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    "changed", ['tool = "shop.swap"\narguments.size = 3\nexpect.snapshot.data = 1\n', 'tool = "shop.swap"\n', "tool = "]
)
def test_a_snapshot_is_not_stored_in_a_file_that_was_changed_while_the_check_ran(
    pegboard: Command, packs: str, check_file: Callable[[str, str], Path], changed: str
) -> None:
    file = check_file("one", 'tool = "shop.swap"\nexpect.snapshot.data = 1\n')
    edit = f"    'Edit.'\n    open({str(file)!r}, 'w').write({changed!r})\n    return size\n"
    (Path(packs) / "shop.py").write_text(f"def swap(*, size: int = 2) -> int:\n{edit}")
    done = pegboard("check", "run", "--update", "--json", "--packs", packs)
    assert (done.returncode, _reports(done)["one"]["status"]) == (1, "error")
    assert "was changed while the check ran. Run it again." in _reports(done)["one"]["problem"]["message"]
    assert file.read_text() == changed


@pytest.mark.promise("BAT-3")
def test_updating_the_snapshot_of_a_kept_call_keeps_comments_and_unchanged_lines(
    pegboard: Command, packs: str, home: Path
) -> None:
    pegboard("tools", "invoke", "shop.sales", "--packs", packs)
    pegboard("check", "keep", "-", "--name", "one", "--packs", packs)
    file = home / "data" / "checks" / "one.toml"
    lines = file.read_text().splitlines()
    assert "expect.snapshot.data.best.count = 3" in lines
    commented = "".join(f"{line}  # {number}\n" for number, line in enumerate(lines))
    file.write_text(f"# The shop.\n{commented}")
    (Path(packs) / "shop.py").write_text(
        PACK.replace('"count": 3', '"count": [3, 4]').replace('"today": 5', '"new": {"a": None}')
    )
    assert pegboard("check", "run", "--update", "--packs", packs).returncode == 0
    kept = [line for line in file.read_text().splitlines() if "#" in line]
    assert kept[0] == "# The shop."
    assert [line.partition("  # ")[0] for line in kept[1:]] == [
        line.replace("count = 3", "count = [3, 4]") for line in lines if "today" not in line
    ]
    assert pegboard("check", "run", "--packs", packs).returncode == 0


@pytest.mark.promise("BAT-3", "SEC-5")
def test_the_junit_report_is_valid_xml_whatever_a_tool_returns(
    pegboard: Command, packs: str, tmp_path: Path, check_file: Callable[[str, str], Path]
) -> None:
    check_file("evil", 'tool = "shop.evil"\nexpect.exact = {"[b]key[/b]" = "<![CDATA[]]>"}\n')
    check_file("good", 'tool = "shop.items"\n')
    check_file("bad", "tool = 5\n")
    done = pegboard("check", "run", "--junit", "report.xml", "--packs", packs)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    root = ET.parse(tmp_path / "report.xml").getroot()
    assert {name: root.attrib[name] for name in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
    }
    failure = root.find(".//testcase[@name='evil']/failure")
    assert failure is not None
    assert "[b]key[/b]" in failure.attrib["message"]
    assert root.find(".//testcase[@name='good']/*") is None
    unwritable = pegboard("check", "run", "--junit", "nowhere/report.xml", "--packs", packs)
    assert (unwritable.returncode, "can't be written" in unwritable.stderr) == (2, True)
    assert unwritable.stdout == ""  # no check ran
    stdout = pegboard("check", "run", "--junit", "-", "--packs", packs)
    assert (stdout.returncode, "can't be written to stdout" in stdout.stderr, stdout.stdout) == (2, True, "")


@pytest.mark.promise("BAT-3")
def test_a_report_on_an_interrupted_run_contains_the_checks_that_have_not_ended(
    packs: str, tmp_path: Path, check_file: Callable[[str, str], Path]
) -> None:
    source = 'import time\n\ndef linger() -> None:\n    """Linger."""\n    open("begun", "w").close()\n'
    (Path(packs) / "slow.py").write_text(f"{source}    time.sleep(60)\n")
    check_file("a", 'tool = "shop.items"\n')
    check_file("b", 'tool = "slow.linger"\n')
    check_file("c", 'tool = "shop.items"\n')
    command = [sys.executable, "-m", "pegboard", "--packs", packs, "check", "run", "--junit", "report.xml"]
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ, stderr=subprocess.PIPE, text=True) as process:
        eventually((tmp_path / "begun").exists)
        process.terminate()
        errors = process.communicate(timeout=20)[1]
    assert (process.returncode, errors.splitlines()[-1]) == (143, "1 passed, 2 could not run")
    root = ET.parse(tmp_path / "report.xml").getroot()
    problems = {case.attrib["name"]: case.find("error") is not None for case in root.iter("testcase")}
    assert problems == {"a": False, "b": True, "c": True}


@pytest.mark.promise("STO-3")
def test_a_report_never_replaces_a_device_or_a_pipe(pegboard: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = pegboard("check", "run", "--junit", "pipe")
    assert (done.returncode, "can't be written to pipe: Not a regular file." in done.stderr) == (2, True)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.promise("STO-3")
def test_a_report_never_replaces_a_link_to_standard_output(pegboard: Command, tmp_path: Path) -> None:
    (link := tmp_path / "stdout").symlink_to("/dev/fd/1")  # as `/dev/stdout`, which root could replace
    with (tmp_path / "output").open("wb") as output:
        command = [sys.executable, "-m", "pegboard", "check", "run", "--junit", "stdout"]
        done = subprocess.run(command, cwd=tmp_path, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, "can't be written to stdout: Not a regular file." in done.stderr) == (2, True)
    assert link.is_symlink()


@pytest.mark.promise("BAT-3", "STO-2")
def test_a_call_with_a_redacted_secret_is_not_kept(pegboard: Command, packs: str, home: Path) -> None:
    del packs
    env = {"SHOP_API_KEY": "hunter2-hunter2"}
    (home / ".env").write_text("SHOP_API_KEY=hunter2-hunter2\n")
    pegboard("tools", "invoke", "tools.echo", "--args", '{"value": "hunter2-hunter2"}', env=env)
    kept = pegboard("check", "keep", "-", env=env)
    assert (kept.returncode, "contain a redacted secret" in kept.stderr) == (2, True)


@pytest.mark.promise("BAT-3", "CLI-2")
@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (["keep", "0123456789"], 2, "No recorded call has the id `0123456789`."),
        (["keep", "0"], 2, "is too short"),
        (["keep", "-"], 2, "No call is recorded yet."),
        (["run", "nothing*"], 2, "No check matches 'nothing*'."),
        (["run"], 0, "No checks."),
        (["new", "shop.itens"], 3, "shop.items"),
        (["new", "shop.items", "--arg", "size=many"], 2, "integer"),
        (["new", "shop.items", "--arg", "sizes=3"], 2, "unknown argument; did you mean `size`?"),
        (["new", "shop.items", "--name", " "], 2, "Enter a name"),
        (["compat", "nowhere.tool"], 3, "No tool is named"),
        (["compat", "--since", "2026-99-99"], 2, "is not a date"),
        (["compat", "--since", "0001-01-01"], 2, "is not a date"),
        (["compat", "--since", "9999-12-31T23:59:59-05:00"], 2, "is not a date"),
    ],
)
def test_errors_say_what_to_do(pegboard: Command, packs: str, line: list[str], code: int, words: str) -> None:
    done = pegboard("check", *line, "--packs", packs)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.promise("BAT-3")
def test_watching_reruns_the_checks_of_a_changed_pack_but_only_read_only_tools_or_what_a_rule_allows(
    packs: str, tmp_path: Path, home: Path, check_file: Callable[[str, str], Path]
) -> None:
    made = tmp_path / "made"
    check_file("read", 'tool = "shop.items"\nexpect.jq = [".[1].size == 10"]\n')
    check_file("write", f'tool = "shop.touch"\narguments.path = "{made}"\n')
    command = [sys.executable, "-m", "pegboard", "--packs", packs, "check", "watch"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            _wait_for(process, "Waiting for changes")
            (Path(packs) / "shop.py").write_text(PACK.replace("10 * number", "11 * number"))
            seen = _wait_for(process, "1 failed, 1 skipped")
            assert "returned false instead of true" in seen
            assert "shop.touch may change data." in seen
            assert not made.exists()
            (home / "approvals.toml").write_text('[[rule]]\nallow = "shop.touch"\n')
            (Path(packs) / "shop.py").write_text(PACK)
            _wait_for(process, "2 passed")
            assert made.exists()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130


@pytest.mark.promise("BAT-3")
def test_watching_reruns_the_checks_of_a_pack_that_imports_a_changed_module_of_its_project(
    tmp_path: Path, write_pack: Callable[[str, str], Path], check_file: Callable[[str, str], Path]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (module := tmp_path / "prices.py").write_text("PRICE = 10\n")
    source = "from pegboard.sdk import hints\nfrom prices import PRICE\n\n"
    pack = write_pack(
        "store.py", f'{source}@hints(read_only=True)\ndef price() -> int:\n    """Say it."""\n    return PRICE\n'
    )
    check_file("price", 'tool = "store.price"\nexpect.exact = 10\n')
    command = [sys.executable, "-m", "pegboard", "--packs", str(pack), "check", "watch"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            _wait_for(process, "Waiting for changes")
            module.write_text("PRICE = 11\n")
            _wait_for(process, "1 failed")
            module.write_text("PRICE = 10\n")
            _wait_for(process, "1 passed")
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130


def _wait_for(process: subprocess.Popen[bytes], text: str) -> str:
    """Return the output up to a text."""
    assert process.stdout is not None
    seen, end = "", time.monotonic() + 40
    while text not in seen:
        assert time.monotonic() < end, seen
        ready, _, _ = select.select([process.stdout], [], [], 1)
        read = os.read(process.stdout.fileno(), 10_000).decode() if ready else ""
        assert read or not ready, seen
        seen += read
    return seen
