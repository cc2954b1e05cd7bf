"""The text pack finds, replaces, compares and counts, in bounded time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pegboard.packs import text
from pegboard.sdk import ToolFailed

EVIL = r"(a|a)+\d?(a|aa)+$"
ENDLESS = "a" * 60 + "b"


def test_every_match_is_a_row_with_its_position_and_groups() -> None:
    found = text.find(pattern=r"(?P<key>\w+)=(\w+)?", text="a=1\n\n  bü=")
    assert found == {
        "truncated": False,
        "matches": [
            {"line": 1, "column": 1, "match": "a=1", "groups": ["a", "1"], "named": {"key": "a"}},
            {"line": 3, "column": 3, "match": "bü=", "groups": ["bü", None], "named": {"key": "bü"}},
        ],
    }


def test_matches_may_be_empty_span_lines_and_follow_each_other() -> None:
    found = text.find(pattern=r"(?s)b.c|^", text="a\nb\nc\nd", flags=["multiline"])["matches"]
    assert [(match["line"], match["column"], match["match"]) for match in found] == [
        (1, 1, ""),
        (2, 1, "b\nc"),
        (4, 1, ""),
    ]
    assert text.find(pattern="x", text="xxx", max_matches=2)["truncated"] is True


def test_flags_are_applied() -> None:
    assert text.find(pattern="A . B # hi", text="a\nb", flags=["ignore_case", "dot_all"])["matches"] == []
    assert (
        len(text.find(pattern="A . B # hi", text="a\nb", flags=["ignore_case", "dot_all", "verbose"])["matches"]) == 1
    )
    assert text.find(pattern=r"\w", text="ü", flags=["ascii"])["matches"] == []


def test_matches_are_replaced_and_counted() -> None:
    assert text.replace(pattern=r"(\w)(\w)", replacement=r"\2\1", text="ab cd") == {"text": "ba dc", "replacements": 2}
    assert text.replace(pattern="a", replacement="b", text="aaa", limit=2) == {"text": "bba", "replacements": 2}
    assert text.replace(pattern="x", replacement="y", text="") == {"text": "", "replacements": 0}


def test_a_file_is_read_and_never_changed(work: Path) -> None:
    assert text.replace(pattern="l+", replacement="L", file="a.txt") == {"text": "heLo", "replacements": 1}
    assert (work / "a.txt").read_text() == "hello"
    assert text.count(file="a.txt")["characters"] == 5
    with pytest.raises(ToolFailed, match="is outside"):
        text.find(pattern="secret", file="to_secret")


def test_an_endless_pattern_is_stopped() -> None:
    with pytest.raises(ToolFailed, match=r"took longer than 0\.2 s") as failed:
        text.find(pattern=EVIL, text=ENDLESS, seconds=0.2)
    assert failed.value.code == "too_slow"
    with pytest.raises(ToolFailed, match="took longer"):
        text.replace(pattern=EVIL, text=ENDLESS, replacement="", seconds=0.2)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"pattern": "(", "text": ""}, "invalid_pattern"),
        ({"pattern": "a"}, "invalid_argument"),
        ({"pattern": "a", "text": "", "file": "a.txt"}, "invalid_argument"),
        ({"pattern": "a", "file": "nothing"}, "not_found"),
    ],
)
def test_invalid_arguments_are_rejected(work: Path, arguments: dict[str, str], code: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        text.find(**arguments)  # type: ignore[arg-type] # all of them are texts
    assert failed.value.code == code


@pytest.mark.parametrize("replacement", [r"\3", r"\g<nope>", r"\g<", "\\"])
def test_an_invalid_replacement_is_reported(replacement: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        text.replace(pattern="(a)", replacement=replacement, text="a")
    assert failed.value.code == "invalid_replacement"


def test_patch_accepts_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = shutil.which("patch")
    if patch is None:
        pytest.skip("there is no patch on this machine")
    monkeypatch.chdir(tmp_path)
    for before, after in (("a\nb\n", "a\n"), ("a\nb", "a\nc"), ("a\nb", "a\nb\n"), ("", "x"), ("x\n", "")):
        (tmp_path / "old.txt").write_text(before)
        told = text.diff(before_file="old.txt", after=after)
        (tmp_path / "difference").write_text(told["diff"])
        done = subprocess.run([patch, "old.txt", "difference"], capture_output=True, text=True, timeout=60, check=False)
        assert "fuzz" not in done.stdout
        assert done.returncode == 0, done.stdout
        left = tmp_path / "old.txt"
        assert (left.read_text() if left.exists() else "") == after


def test_a_difference_is_a_unified_diff_with_counts() -> None:
    assert text.diff(before="a\nb\nc\n", after="a\nB\nc\nd\n", context=0) == {
        "same": False,
        "added": 2,
        "removed": 1,
        "diff": "--- before\n+++ after\n@@ -2 +2 @@\n-b\n+B\n@@ -3,0 +4 @@\n+d\n",
    }
    assert text.diff(before="", after="") == {"same": True, "added": 0, "removed": 0, "diff": ""}
    assert text.diff(before="-- a\n", after="")["removed"] == 1


def test_files_are_compared_by_their_names(work: Path) -> None:
    told = text.diff(before_file="a.txt", after_file="sub/b.txt")
    assert told["diff"].splitlines()[:2] == ["--- a.txt", "+++ sub/b.txt"]
    with pytest.raises(ToolFailed, match="either `after` or `after_file`"):
        text.diff(before="a")


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ("", (0, 0, 0, 0, 0)),
        ("one two\nthree", (2, 3, 13, 13, 7)),
        ("ü\r\n", (1, 1, 3, 4, 1)),
        ("\n\n", (2, 0, 2, 2, 0)),
    ],
)
def test_lines_words_characters_and_bytes_are_counted(given: str, counts: tuple[int, ...]) -> None:
    assert tuple(text.count(text=given).values()) == counts
