"""The ripgrep pack finds matches with their positions, and never leaves the working directory."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from pegboard.packs import ripgrep
from pegboard.sdk import ToolFailed, testing

from .races import race, swapping

pytestmark = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed here")


@pytest.fixture
def tree(work: Path) -> Path:
    """Files to search: one in a subfolder, one ignored, one hidden, one binary."""
    (work / "a.txt").write_text("hello\nworld\nHello again, grün hello\n")
    (work / "sub" / "b.txt").write_text("say hello\n")
    (work / ".hidden.txt").write_text("hello\n")
    (work / "ignored.txt").write_text("hello\n")
    (work / ".ignore").write_text("ignored.txt\n")
    (work / "binary").write_bytes(b"\0\0hello\n")
    return work


def lines(found: ripgrep.Matches) -> list[tuple[str, int, int]]:
    return [(match["path"], match["line"], match["column"]) for match in found["matches"]]


def test_every_matching_line_is_a_row_with_its_position(tree: Path) -> None:
    found = ripgrep.search(pattern="hello")
    assert found["truncated"] is False
    assert found["matches"] == [
        {"path": "a.txt", "line": 1, "column": 1, "text": "hello"},
        {"path": "a.txt", "line": 3, "column": 1, "text": "Hello again, grün hello"},
        {"path": "sub/b.txt", "line": 1, "column": 5, "text": "say hello"},
    ]


def test_case_is_matched_as_configured(tree: Path) -> None:
    assert lines(ripgrep.search(pattern="Hello")) == [("a.txt", 3, 1)]
    assert lines(ripgrep.search(pattern="hello", path="a.txt", case="sensitive")) == [("a.txt", 1, 1), ("a.txt", 3, 19)]
    assert len(lines(ripgrep.search(pattern="HELLO", path="a.txt", case="ignore"))) == 2


def test_a_pattern_may_be_text_whole_words_or_several_lines(tree: Path) -> None:
    (tree / "a.txt").write_text("f(x)\nfoo foobar\n--help\n")
    assert lines(ripgrep.search(pattern="f(x)", fixed=True)) == [("a.txt", 1, 1)]
    assert lines(ripgrep.search(pattern="bar", word=True)) == []
    assert lines(ripgrep.search(pattern="--help")) == [("a.txt", 3, 1)]
    [match] = ripgrep.search(pattern=r"\(x\)\nfoo", multiline=True, context=1)["matches"]
    assert match == {
        "path": "a.txt", "line": 1, "column": 2, "text": "f(x)\nfoo foobar", "before": [], "after": ["--help"],
    }  # fmt: skip


def test_each_match_has_its_context_even_if_matches_are_adjacent(tree: Path) -> None:
    (tree / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    found = ripgrep.search(pattern="two|three", path="a.txt", context=2)["matches"]
    assert [(match["before"], match["after"]) for match in found] == [
        (["one"], ["three", "four"]),
        (["one", "two"], ["four", "five"]),
    ]


def test_globs_hidden_and_ignored_files_are_chosen(tree: Path) -> None:
    def found(**choice: object) -> set[str]:
        with testing.host():
            return {match["path"] for match in ripgrep.search(pattern="hello", **choice)["matches"]}  # type: ignore[arg-type] # any choice

    assert found(globs=["sub/**"]) == {"sub/b.txt"}
    assert found(globs=["!a.txt"]) == {"sub/b.txt"}
    assert found(hidden=True) == {"a.txt", "sub/b.txt", ".hidden.txt"}
    assert found(ignored=True) == {"a.txt", "sub/b.txt", "ignored.txt"}


def test_a_limited_result_is_marked_as_truncated(tree: Path) -> None:
    (tree / "a.txt").write_text("hello\n" * 1000)
    found = ripgrep.search(pattern="hello", max_matches=3)
    assert (len(found["matches"]), found["truncated"]) == (3, True)
    assert ripgrep.search(pattern="hello", path="a.txt", max_matches=1000)["truncated"] is False


def test_a_long_line_is_shortened_around_the_match(tree: Path) -> None:
    (tree / "a.txt").write_text("x" * 100_000 + "hello" + "y" * 100_000)
    [match] = ripgrep.search(pattern="hello", path="a.txt")["matches"]
    assert match["column"] == 100_001
    assert "xhelloy" in match["text"]
    assert len(match["text"]) == 502
    assert match["text"][0] == match["text"][-1] == "…"


def test_paths_start_like_the_searched_path(tree: Path) -> None:
    assert lines(ripgrep.search(pattern="hello", path="sub")) == [("sub/b.txt", 1, 5)]
    assert lines(ripgrep.search(pattern="say", path="sub/b.txt")) == [("sub/b.txt", 1, 1)]
    assert lines(ripgrep.search(pattern="say", path=str(tree))) == [(f"{tree}/sub/b.txt", 1, 1)]
    assert ripgrep.files(path="sub")["paths"][0] == "sub/b.txt"


def test_names_and_lines_that_are_not_utf_8_are_shown(tree: Path) -> None:
    Path(os.fsdecode(b"sub/\xff.txt")).write_bytes(b"hello \xff\n")
    found = ripgrep.search(pattern="hello .", path="sub", globs=["*"])
    assert [match["text"] for match in found["matches"]] == []
    [match] = ripgrep.search(pattern=r"hello (?-u:\xff)", path="sub")["matches"]
    assert (match["path"], match["text"]) == ("sub/\\xff.txt", "hello \ufffd")
    assert "sub/\\xff.txt" in ripgrep.files(path="sub")["paths"]


def test_matches_are_counted_file_by_file(tree: Path) -> None:
    found = ripgrep.count(pattern="hello")
    assert found == {
        "files": [{"path": "a.txt", "matches": 3}, {"path": "sub/b.txt", "matches": 1}],
        "matches": 4,
        "truncated": False,
    }
    assert ripgrep.count(pattern="hello", max_files=1)["truncated"] is True
    assert ripgrep.count(pattern="not there") == {"files": [], "matches": 0, "truncated": False}


def test_files_are_found_by_their_names(tree: Path) -> None:
    assert ripgrep.files(globs=["!binary"])["paths"] == ["a.txt", "sub/b.txt", "sub/deep/c.txt"]
    assert ripgrep.files(globs=["[ab].txt"]) == {"paths": ["a.txt", "sub/b.txt"], "truncated": False}
    assert ripgrep.files(globs=["*.txt"], max_files=1) == {"paths": [".hidden.txt"], "truncated": True}


def test_an_invalid_rule_of_an_ignore_file_fails_no_search(tree: Path) -> None:
    (tree / ".ignore").write_text("[z\nignored.txt\n")
    (tree / "empty").mkdir()
    assert ripgrep.files(path="empty") == {"paths": [], "truncated": False}
    assert ripgrep.search(pattern="hello", path="empty") == {"matches": [], "truncated": False}
    assert lines(ripgrep.search(pattern="say")) == [("sub/b.txt", 1, 1)]


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        ({"pattern": "("}, "invalid_pattern"),
        ({"pattern": r"a\nb"}, "invalid_pattern"),
        ({"pattern": r"\w{1000}{1000}"}, "invalid_pattern"),
        ({"pattern": r"\w{1000}{1000}", "path": "a.txt"}, "invalid_pattern"),
        ({"pattern": "\udc80"}, "invalid_pattern"),
        ({"pattern": "a", "globs": ["[a"]}, "invalid_pattern"),
        ({"pattern": "a\0"}, "invalid_argument"),
        ({"pattern": "a", "path": "nothing"}, "not_found"),
        ({"pattern": "a", "path": "pipe"}, "not_a_file"),
        ({"pattern": "a", "path": "../outside"}, "outside"),
        ({"pattern": "a", "path": "to_secret"}, "outside"),
        ({"pattern": "a", "path": "--files"}, "not_found"),
    ],
)
def test_paths_that_cant_be_searched_are_rejected_with_a_code(tree: Path, choice: dict[str, object], code: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        ripgrep.search(**choice)  # type: ignore[arg-type] # any choice
    assert failed.value.code == code


def test_links_out_of_the_folder_are_not_followed_and_no_configuration_is_read(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "rc").write_text("--follow\n--hidden\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tree / "rc"))
    assert ripgrep.search(pattern="secret", ignored=True)["matches"] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to root")
def test_unreadable_files_are_listed_next_to_the_matches(tree: Path) -> None:
    (tree / "a.txt").chmod(0)
    found = ripgrep.search(pattern="hello")
    assert lines(found) == [("sub/b.txt", 1, 5)]
    assert "a.txt" in found["unread"]


@pytest.mark.promise("PCK-3")
def test_other_folders_may_be_searched_if_configured(tree: Path) -> None:
    outside = tree.parent / "outside"
    with testing.host(config={"ripgrep": {"roots": [str(outside)]}}):
        assert lines(ripgrep.search(pattern="secret")) == [("secret.txt", 1, 1)]
        with pytest.raises(ToolFailed, match="is outside"):
            ripgrep.search(pattern="hello", path=str(tree))
    with testing.host(config={"ripgrep": {"roots": 3}}), pytest.raises(ToolFailed, match="must be a list of folders"):
        ripgrep.search(pattern="hello")


def test_it_works_on_systems_without_paths_of_descriptors(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.packs._programs._DESCRIPTORS", str(tree / "nothing"))
    monkeypatch.setattr("pegboard.packs.ripgrep.descriptor_path", lambda file: f"/dev/fd/{file}")
    assert lines(ripgrep.search(pattern="say")) == [("sub/b.txt", 1, 1)]
    assert ripgrep.files(path="sub")["paths"] == ["sub/b.txt", "sub/deep/c.txt"]


@pytest.mark.promise("PCK-3")
@pytest.mark.parametrize(("name", "path"), [("sub", "."), ("sub", "sub"), ("sub", "sub/b.txt"), ("sub/b.txt", "sub")])
def test_links_that_are_swapped_meanwhile_reveal_nothing_from_outside(tree: Path, name: str, path: str) -> None:
    (tree / "sub" / "b.txt").write_text("needle public\n")
    outside = tree.parent / "outside" / name
    outside.parent.mkdir(exist_ok=True)
    if name == "sub":
        outside.mkdir()
        (outside / "b.txt").write_text("needle s3cret\n")
        (outside / "s3cret.txt").write_text("needle s3cret\nneedle\n")
    else:
        outside.write_text("needle s3cret\nneedle\n")

    def attempt() -> None:
        for call in (
            lambda: ripgrep.search(pattern="needle", path=path, ignored=True),
            lambda: ripgrep.count(pattern="s3cret", path=path),
            lambda: ripgrep.files(path=path),
        ):
            with suppress(ToolFailed):
                assert "s3cret" not in str(call())

    with swapping(tree / name, outside):
        assert race(attempt)
