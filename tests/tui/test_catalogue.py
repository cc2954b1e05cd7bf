"""The list of tools without a screen: packs, rows, search."""

from __future__ import annotations

import time

import pytest
from hypothesis import given as given_that
from hypothesis import strategies as st
from stage import READ_ONLY, TOOLS, tool

from pegboard.models import Problem, ToolSpec
from pegboard.tui.state.catalogue import Catalogue, PackEntry, ToolEntry, match_positions


def catalogue(*specs: ToolSpec, problems: tuple[Problem, ...] = ()) -> Catalogue:
    return Catalogue.of(specs, problems, lambda _: "ready")


def names(found: object) -> list[str]:
    return [entry.name for entry in found]  # type: ignore[attr-defined]  # a list of rows or hits of entries


def test_tools_stand_under_their_packs_which_stand_by_name() -> None:
    rows = catalogue(*reversed(TOOLS)).rows(frozenset())
    assert [row.name for row in rows if isinstance(row, PackEntry)] == ["fs", "shell", "time"]
    assert isinstance(rows[1], ToolEntry)
    assert rows[1].spec.pack == "fs"


def test_a_folded_pack_hides_its_tools() -> None:
    rows = catalogue(*TOOLS).rows(frozenset({"fs"}))
    assert [row.name for row in rows] == ["fs", "shell", "shell.pwd", "time", "time.now"]


def test_a_file_that_gave_no_tool_is_a_pack_that_is_broken() -> None:
    problem = Problem(message="bad", file="/packs/broken.py", line=3)
    rows = catalogue(*TOOLS, problems=(problem,)).rows(frozenset())
    assert isinstance(rows[0], PackEntry)
    assert (rows[0].name, rows[0].broken, rows[0].entries) == ("broken", True, ())


def test_a_problem_of_a_file_belongs_to_the_pack_that_the_file_is_whatever_its_name() -> None:
    problem = Problem(message="odd", file="/packs/fs.py", severity="warning")
    packs = catalogue(*TOOLS, problems=(problem,)).packs
    assert [(pack.name, pack.problems) for pack in packs if pack.problems] == [("fs", (problem,))]


def test_a_problem_of_the_config_is_no_pack() -> None:
    assert len(catalogue(*TOOLS, problems=(Problem(message="odd", file="/config.toml"),)).packs) == 3


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("read", "fs.read_file"),
        ("rf", "fs.read_file"),
        ("fsread", "fs.read_file"),
        ("READ", "fs.read_file"),
        ("now", "time.now"),
        ("fs", "fs.remove"),
        ("list dir", "fs.list_dir"),
    ],
)
def test_the_best_match_comes_first(query: str, best: str) -> None:
    assert names(catalogue(*TOOLS).search(query))[0] == best


def test_the_whole_name_beats_its_beginning_and_that_beats_a_piece() -> None:
    found = catalogue(tool("a.reread"), tool("a.reader"), tool("a.read"), tool("a.re_add")).search("read")
    assert names(found) == ["a.read", "a.reader", "a.reread", "a.re_add"]


def test_words_of_the_description_are_found_after_names() -> None:
    found = catalogue(*TOOLS, tool("x.file_it")).search("file")
    assert names(found.by_name) == ["x.file_it", "fs.read_file"]
    assert names(found.by_text) == ["fs.list_dir", "fs.remove"]


def test_other_names_of_a_tool_are_found() -> None:
    spec = tool("fs.read_file").model_copy(update={"aliases": ("openDocument",)})
    assert names(catalogue(spec).search("opendoc")) == ["fs.read_file"]


def test_nothing_is_found_by_letters_that_nothing_has() -> None:
    assert not list(catalogue(*TOOLS).search("zzz"))


_NAMES = st.lists(st.text("abc_.", min_size=1, max_size=8), min_size=1, max_size=30, unique=True)


@given_that(_NAMES, st.text("abc ", min_size=1, max_size=5))
def test_searching_within_what_a_beginning_found_finds_the_same(raw: list[str], query: str) -> None:
    tools = catalogue(*(tool(f"p.{name}", description=name[::-1]) for name in raw))
    hits = None
    for length in range(1, len(query) + 1):
        if query[:length].strip():
            hits = tools.search(query[:length], hits)
    assert hits is None or hits == tools.search(query)


@given_that(st.text("abcd._", min_size=1, max_size=20), st.text("abcd", min_size=1, max_size=4))
def test_the_marked_letters_are_the_querys(name: str, query: str) -> None:
    positions = match_positions(query, name)
    found = bool(list(catalogue(tool(f"p.{name}")).search(query).by_name))
    assert "".join(name[position] for position in positions) in {query, ""}
    assert list(positions) == sorted(set(positions))
    assert not positions or found


def test_a_name_made_to_be_slow_is_not_slow() -> None:
    tools = catalogue(*(tool(f"p.{'a_' * 200}{number}b") for number in range(50)))
    before = time.process_time()
    tools.search("a" * 60 + "c")
    match_positions("a" * 60 + "c", "a_" * 200)
    # a search that tries every way would take longer than the universe has
    assert time.process_time() - before < 5


def test_a_hostile_name_is_made_safe_to_show() -> None:
    entry = catalogue(tool("p.\x1b[31mred\u202e", hints=READ_ONLY)).entries[0]
    assert entry.name.isprintable()
