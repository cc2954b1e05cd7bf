"""The registry: merged sources, lookup by name, allow lists."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pegboard.discovery import scan
from pegboard.models import PackHandler, Problem, ToolSpec
from pegboard.registry import AllowList, Registry


def _spec(name: str, *aliases: str, file: str = "/packs/some.py") -> ToolSpec:
    pack, _, function = name.partition(".")
    handler = PackHandler(pack=pack, function=function, file=file, line=1)
    return ToolSpec(name=name, pack=pack, input_schema={"type": "object"}, handler=handler, aliases=aliases)


class _Source:
    """A source with the tools that a test sets."""

    def __init__(self, *specs: ToolSpec, problems: Sequence[Problem] = ()) -> None:
        self.specs = list(specs)
        self.problems = problems

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        return tuple(self.specs), self.problems


def _scanned(*sources: _Source) -> Registry:
    registry = Registry(sources)
    registry.scan()
    return registry


@pytest.mark.promise("EXE-2")
def test_tools_of_all_sources_are_listed_by_name_and_found_by_name_and_alias() -> None:
    registry = _scanned(_Source(_spec("b.two"), _spec("a.one", "eins")), _Source(_spec("c.three")))
    assert [spec.name for spec in registry.tools()] == ["a.one", "b.two", "c.three"]
    assert registry.get("b.two") == _spec("b.two")
    assert registry.get("eins") == registry.get("a.one")
    assert registry.get("nothing") is None


def test_if_two_tools_have_one_name_the_earlier_source_wins_and_the_other_is_a_problem() -> None:
    registry = _scanned(_Source(_spec("a.one", file="/first.py")), _Source(_spec("a.one", file="/second.py")))
    kept = registry.get("a.one")
    assert kept is not None
    assert kept.location.file == "/first.py"
    [problem] = registry.problems()
    assert problem.file == "/second.py"
    assert "/first.py" in problem.message


def test_a_name_wins_over_an_alias_and_the_alias_is_a_problem() -> None:
    registry = _scanned(_Source(_spec("a.one", "b.two"), _spec("b.two"), _spec("c.three", "drei"), _spec("d", "drei")))
    assert registry.get("b.two") == _spec("b.two")
    assert registry.get("drei") == _spec("c.three", "drei")
    assert {problem.tool for problem in registry.problems()} == {"a.one", "d"}


def test_a_scan_returns_whether_anything_changed() -> None:
    source = _Source(_spec("a.one"))
    registry = Registry([source])
    assert registry.scan()
    assert not registry.scan()
    source.specs.append(_spec("a.two"))
    assert registry.scan()


def test_typos_and_missing_packs_lead_to_the_nearest_names() -> None:
    registry = _scanned(_Source(_spec("fs.read_file"), _spec("fs.list_dir"), _spec("time.now")))
    assert registry.nearest("fs.red_file", registry.tools())[0] == "fs.read_file"
    assert registry.nearest("now", registry.tools()) == ["time.now"]
    assert registry.nearest("zzz", registry.tools()) == []


@pytest.mark.promise("DSC-6")
def test_a_tool_is_stale_when_its_file_was_changed_or_removed(tmp_path: Path) -> None:
    file = tmp_path / "pack.py"
    file.write_text("x = 1")
    os.utime(file, (1_000_000, 1_000_000))
    spec = _spec("pack.tool", file=str(file))
    registry = _scanned(_Source(spec))
    assert not registry.stale(spec)
    file.write_text("x = 2  # longer")
    assert registry.stale(spec)
    file.unlink()
    assert registry.stale(spec)


class _EditedSource(_Source):
    """A source whose file is saved after the source has read it, while the scan is still running."""

    def __init__(self, file: Path, *specs: ToolSpec) -> None:
        super().__init__(*specs)
        self._file = file

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        found = super().scan()
        now = time.time_ns()
        os.utime(self._file, ns=(now, now))
        return found


@pytest.mark.promise("DSC-6")
def test_a_tool_is_stale_if_its_file_was_written_during_the_scan(tmp_path: Path) -> None:
    file = tmp_path / "pack.py"
    file.write_text("x = 1")
    spec = _spec("pack.tool", file=str(file))
    assert _scanned(_EditedSource(file, spec)).stale(spec)
    assert not _scanned(_Source(spec)).stale(spec), "a scan that starts after the write reads the new content"


@pytest.mark.promise("DSC-6")
def test_a_tool_is_stale_if_a_helper_of_its_pack_has_changed_appeared_or_gone(tmp_path: Path) -> None:
    helper, pack = tmp_path / "_types.py", tmp_path / "pack.py"
    types = "from typing import TypedDict\nclass T(TypedDict):\n    "
    helper.write_text(f"{types}a: int\n")
    pack.write_text("from ._types import T\ndef run(*, x: T):\n    'Run.'\n")
    for index in (None, tmp_path / "index", tmp_path / "index"):
        registry = Registry([_Folder(tmp_path, index)])
        registry.scan()
        for change in (helper.unlink, lambda: helper.write_text(f"{types}bcd: int\n"), lambda: _touch(helper)):
            spec = registry.get("pack.run")
            assert spec is not None
            assert not registry.stale(spec)
            change()
            assert registry.stale(spec)
            registry.scan()


class _Folder:
    """A packs folder whose files are older than any scan."""

    def __init__(self, folder: Path, index: Path | None) -> None:
        self._folder = folder
        self._index = index

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        for number, file in enumerate(sorted(self._folder.glob("*.py"))):
            os.utime(file, ns=(number, number))
        return scan([self._folder], index=self._index)


def _touch(file: Path) -> None:
    os.utime(file, ns=(5, 5))


def test_a_file_from_the_future_is_not_stale(tmp_path: Path) -> None:
    file = tmp_path / "pack.py"
    file.write_text("x = 1")
    tomorrow = time.time() + 86_400
    os.utime(file, (tomorrow, tomorrow))
    spec = _spec("pack.tool", file=str(file))
    assert not _scanned(_Source(spec)).stale(spec)


@pytest.mark.promise("EXE-2")
@pytest.mark.parametrize(
    ("patterns", "admitted"),
    [
        (None, ["fs.list_dir", "fs.read_file", "time.now"]),
        ([], []),
        (["fs.*"], ["fs.list_dir", "fs.read_file"]),
        (["time.now", "fs.read_*"], ["fs.read_file", "time.now"]),
        (["uhrzeit"], ["time.now"]),
        (["FS.*"], []),
    ],
)
def test_an_allow_list_admits_what_its_patterns_match(patterns: list[str] | None, admitted: list[str]) -> None:
    allow = AllowList(patterns)
    specs = [_spec("fs.list_dir"), _spec("fs.read_file"), _spec("time.now", "uhrzeit")]
    assert [spec.name for spec in specs if allow.admits(spec)] == admitted


@pytest.mark.promise("EXE-2")
def test_no_alias_gets_a_tool_past_an_allow_list_for_another_tool() -> None:
    registry = _scanned(_Source(_spec("fs.list"), _spec("a.one", "uhr"), _spec("evil.rm", "fs.list", "fs.x", "uhr")))
    admitted = {
        patterns: [spec.name for spec in registry.tools() if AllowList.parse(patterns).admits(spec)]
        for patterns in ("fs.*", "fs.x", "uhr")
    }
    assert admitted == {"fs.*": ["fs.list"], "fs.x": [], "uhr": ["a.one"]}


def test_a_refusal_says_how_to_allow_the_tool_unless_the_configuration_is_the_reason() -> None:
    given, echo = AllowList.parse("fs.*"), _spec("tools.echo")
    fix = "Add it to `allow` under `[tools]`, or to `--tool-allow`."
    assert given.refusal(echo) == f"tools.echo is not on the allow list (fs.*). {fix}"
    unusable = AllowList((), reason="the configuration is damaged.")
    for allow in (unusable, given.within(unusable)):
        assert allow.refusal(echo) == "tools.echo is not allowed because the configuration is damaged."


def test_an_allow_list_is_parsed_from_comma_separated_patterns() -> None:
    assert str(AllowList.parse(" fs.* , time.now")) == "fs.*, time.now"
    assert not AllowList.parse("").admits(_spec("time.now"))


@pytest.mark.promise("SEC-2")
def test_a_list_within_another_allows_only_what_both_allow() -> None:
    outer, inner = AllowList.parse("fs.*, time.now"), AllowList.parse("fs.read, web.*")
    for both in (inner.within(outer), outer.within(inner)):
        names = ("fs.read", "fs.write", "time.now", "web.get")
        assert [name for name in names if both.admits(_spec(name))] == ["fs.read"]
    assert AllowList().within(outer).admits(_spec("time.now"))
    assert not AllowList().within(outer).admits(_spec("web.get"))
    assert str(inner.within(outer)) == "fs.read, web.*, within fs.*, time.now"
    assert str(AllowList().within(outer)) == "every tool, within fs.*, time.now"
    assert outer.within(AllowList((), reason="it is damaged.")).refusal(_spec("fs.read")).endswith("it is damaged.")
