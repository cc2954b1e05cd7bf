"""The catalogue: packs, rows, search."""

from __future__ import annotations

import time

import pytest
from hypothesis import given as given_that
from hypothesis import strategies as st
from stage import READ_ONLY, TOOLS, tool

from pegboard.built_in import BUILT_IN_PACKS
from pegboard.models import PackHandler, Problem, ToolSpec
from pegboard.tui.state.catalogue import Catalogue, PackEntry, ToolEntry
from pegboard.tui.state.fuzzy import match_positions


def catalogue(*specs: ToolSpec, problems: tuple[Problem, ...] = ()) -> Catalogue:
    return Catalogue.of(specs, problems, lambda _: "ready")


def names(found: object) -> list[str]:
    return [entry.name for entry in found]  # type: ignore[attr-defined]  # a list of rows or hits of entries


def test_tools_are_grouped_by_pack_and_packs_are_sorted_by_name() -> None:
    rows = catalogue(*reversed(TOOLS)).rows(frozenset())
    assert [row.name for row in rows if isinstance(row, PackEntry)] == ["fs", "shell", "time"]
    assert isinstance(rows[1], ToolEntry)
    assert rows[1].spec.pack == "fs"


def test_a_folded_pack_hides_its_tools() -> None:
    rows = catalogue(*TOOLS).rows(frozenset({"fs"}))
    assert [row.name for row in rows] == ["fs", "shell", "shell.pwd", "time", "time.now"]


def test_a_file_with_problems_and_without_tools_is_a_broken_pack() -> None:
    problem = Problem(message="bad", file="/packs/broken.py", line=3)
    rows = catalogue(*TOOLS, problems=(problem,)).rows(frozenset())
    assert isinstance(rows[0], PackEntry)
    assert (rows[0].name, rows[0].broken, rows[0].entries) == ("broken", True, ())


def test_a_problem_of_a_file_belongs_to_the_pack_in_that_file() -> None:
    problem = Problem(message="odd", file="/packs/fs.py", severity="warning")
    packs = catalogue(*TOOLS, problems=(problem,)).packs
    assert [(pack.name, pack.problems) for pack in packs if pack.problems] == [("fs", (problem,))]


def test_a_problem_of_the_configuration_is_not_a_pack() -> None:
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


def test_the_whole_name_ranks_before_its_beginning_and_a_substring_last() -> None:
    found = catalogue(tool("a.reread"), tool("a.reader"), tool("a.read"), tool("a.re_add")).search("read")
    assert names(found) == ["a.read", "a.reader", "a.reread", "a.re_add"]


def test_beginnings_of_words_rank_before_scattered_letters() -> None:
    found = catalogue(tool("crm.drop_customer"), tool("crm.create_customer"), tool("x.across_cute")).search("crcu")
    assert names(found) == ["crm.create_customer", "crm.drop_customer", "x.across_cute"]
    assert [*match_positions("crcu", "crm.create_customer")] == [4, 5, 11, 12], "create and customer are highlighted"


def test_packs_of_the_user_precede_built_in_ones() -> None:
    handler = PackHandler(pack="fs", function="list_dir", file=str(BUILT_IN_PACKS / "fs.py"), line=1)
    built_in = tool("fs.list_dir").model_copy(update={"handler": handler})
    packs = catalogue(built_in, tool("zoo.feed")).packs
    assert [pack.name for pack in packs] == ["zoo", "fs"]


def test_words_of_the_description_are_found_after_names() -> None:
    found = catalogue(*TOOLS, tool("x.file_it")).search("file")
    assert names(found.by_name) == ["x.file_it", "fs.read_file"]
    assert names(found.by_text) == ["fs.list_dir", "fs.remove"]


def test_aliases_of_a_tool_are_found() -> None:
    spec = tool("fs.read_file").model_copy(update={"aliases": ("openDocument",)})
    assert names(catalogue(spec).search("opendoc")) == ["fs.read_file"]


def test_letters_that_no_name_contains_find_nothing() -> None:
    assert not list(catalogue(*TOOLS).search("zzz"))


_NAMES = st.lists(st.text("abc_.", min_size=1, max_size=8), min_size=1, max_size=30, unique=True)


@given_that(_NAMES, st.text("abc ", min_size=1, max_size=5))
def test_searching_within_the_hits_of_a_prefix_finds_the_same(raw: list[str], query: str) -> None:
    tools = catalogue(*(tool(f"p.{name}", description=name[::-1]) for name in raw))
    hits = None
    for length in range(1, len(query) + 1):
        if query[:length].strip():
            hits = tools.search(query[:length], hits)
    assert hits is None or hits == tools.search(query)


@given_that(st.text("abcd._", min_size=1, max_size=20), st.text("abcd", min_size=1, max_size=4))
def test_the_highlighted_letters_are_those_of_the_query(name: str, query: str) -> None:
    positions = match_positions(query, name)
    found = bool(list(catalogue(tool(f"p.{name}")).search(query).by_name))
    assert "".join(name[position] for position in positions) in {query, ""}
    assert list(positions) == sorted(set(positions))
    assert not positions or found


def test_an_adversarial_name_is_matched_quickly() -> None:
    tools = catalogue(*(tool(f"p.{'a_' * 200}{number}b") for number in range(50)))
    before = time.process_time()
    tools.search("a" * 60 + "c")
    match_positions("a" * 60 + "c", "a_" * 200)
    # a search that tries every way would take longer than the universe has
    assert time.process_time() - before < 5


def test_a_hostile_name_is_safe_to_display() -> None:
    entry = catalogue(tool("p.\x1b[31mred\u202e", hints=READ_ONLY)).entries[0]
    assert entry.name.isprintable()
