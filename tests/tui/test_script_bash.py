"""The incremental scanner of bash."""

from __future__ import annotations

import pytest
from bashkit import Bash

from pegboard.tui.script.bash import KEYWORDS, NOTHING, SHELL, pieces, scan


def commands(script: str) -> list[str]:
    """Return the words in command position of all lines."""
    found: list[str] = []
    before = NOTHING
    for line in script.split("\n"):
        scanned = scan(line, before)
        found += [word.text for word in scanned.words]
        before = scanned.after
    return found


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("fs.list_dir --path . | jq -r .name", ["fs.list_dir", "jq"]),
        ("x=1 y=$(a.b c) d.e", ["a.b", "d.e"]),
        ('echo "$(a.b "x y")" && c.d || e.f &', ["echo", "a.b", "c.d", "e.f"]),
        ("for x in a.b c.d; do e.f $x; done; wait", ["e.f", "wait"]),
        ("if ! a.b; then c.d; elif e.f; then :; else g.h; fi", ["a.b", "c.d", "e.f", ":", "g.h"]),
        ("while read -r line; do a.b; done < <(c.d)", ["read", "a.b", "c.d"]),
        ("case $x in a.b|c.d) e.f;; *) g.h;; esac; i.j", ["e.f", "g.h", "i.j"]),
        ("case $x in\n  a.b)\n    c.d\n    ;;\nesac\ne.f", ["c.d", "e.f"]),
        ("f() { a.b; }; f", ["a.b", "f"]),
        ("list=(a.b c.d); e.f >out.txt 2>&1 <in.txt", ["e.f"]),
        ("[[ $a == b && -f c.d ]] && e.f", ["e.f"]),
        ("((x = a.b << 2)); c.d $((e.f))", ["c.d"]),
        ("a.b 'c.d\ne.f' g.h\ni.j", ["a.b", "i.j"]),
        ('a.b "c.d\n$(e.f\ng.h)" i.j\nk.l', ["a.b", "e.f", "g.h", "k.l"]),
        ("a.b <<END c.d\ne.f\nEND\ng.h", ["a.b", "g.h"]),
        ("a.b <<-'X' <<Y\n\tX\nc.d\nY\ne.f", ["a.b", "e.f"]),
        ("a.b \\\n  c.d\ne.f", ["a.b", "e.f"]),
        ("a.b |\n  c.d", ["a.b", "c.d"]),
        ("a.b # c.d; e.f\n# g.h", ["a.b"]),
        ("xargs -n 1 a.b; timeout 3 c.d", ["xargs", "-n", "1", "a.b", "timeout", "3", "c.d"]),
        ("x=`a.b c`; d.e", ["a.b", "d.e"]),
        ("$x a.b; 'c'd e.f; ${x:-g} h.i", []),
        ("echo $'it\\'s' && a.b ${x#\"a b\"} c.d", ["echo", "a.b"]),
        ("time a.b; ! c.d", ["a.b", "c.d"]),
    ],
)
def test_only_commands_are_found(script: str, found: list[str]) -> None:
    assert commands(script) == found


def test_function_definitions_are_found() -> None:
    assert scan("f() { :; }", NOTHING).functions == ("f",)
    assert scan("function g {", NOTHING).functions == ("g",)


def test_builtin_commands_are_known() -> None:
    names = set(Bash().execute_sync("compgen -c").stdout.split())
    assert names - KEYWORDS == SHELL


@pytest.mark.parametrize(
    "line", ["", "'", '"$(', "${", "((", "<<", "\\", "case x in", "$'", "`", "a=(", "[[", "x" * 5_000]
)
def test_any_line_is_scanned_in_any_state(line: str) -> None:
    for before in ("", "'", '"', "$(", "case x in\n", "<<E\n", "x=(", "(("):
        opened = NOTHING
        for part in f"{before}{line}\n{line}".split("\n"):
            found = pieces(part, opened)
            assert all(0 <= start <= end <= len(part) for start, end, _ in found)
            opened = scan(part, opened).after


def test_placeholders_are_marked_and_redirections_are_not() -> None:
    line = "fs.read_file <path> <in >out"
    assert [line[start:end] for start, end, kind in pieces(line, NOTHING) if kind == "placeholder"] == ["<path>"]
