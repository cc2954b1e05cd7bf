"""Edits of single rules in a file of the user: the rest of it stays."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import RulesError
from pegboard.gateway.rule_text import HEAD, RuleText, read_rules
from pegboard.models import ToolCall
from pegboard.models.rule import Rule
from pegboard.runtime import Runtime

MINE = """\
# How I like it.

# Notes are mine to lose.
[[rule]]
allow = "notes.*"   # all of them
where = { path = "src/**" }     # but only there

[[ rule ]]  # never
deny = ["shell.*",
        "fs.remove"]
# since that one day

# --- and the rest ---

[[rule]]
ask = 'web.*'
[rule.where]
url = "http:**"
# the end
"""


@pytest.fixture
def runtime(open_runtime: Callable[..., Runtime]) -> Runtime:
    runtime = open_runtime()
    runtime.paths.approvals.parent.mkdir(parents=True, exist_ok=True)
    runtime.paths.approvals.write_text(MINE, encoding="utf-8")
    return runtime


def _text(runtime: Runtime) -> str:
    return runtime.paths.approvals.read_text(encoding="utf-8")


@pytest.mark.promise("ASK-7")
def test_rules_have_a_description(runtime: Runtime) -> None:
    assert [str(rule) for rule in runtime.rules.read().rules] == [
        "allow notes.* where path = src/**",
        "deny shell.*, fs.remove",
        "ask web.* where url = http:**",
    ]
    assert str(Rule(ask=("a.b",), where={"x": ("1", "2"), "y": ("3",)}, scope="mcp")) == (
        "ask a.b where x = 1 or 2, y = 3 in calls of MCP clients"
    )


@pytest.mark.promise("ASK-7", "SEC-2")
@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({"path": "git push * --force"}, "path = git push * --force"),
        ({"path": "a,b=c,d"}, "path = a,b=c,d"),
        ({"body": "x, path = src/**"}, 'body = "x, path = src/**"'),
        ({"body": "x,\tpath\t=\ty"}, r'body = "x,\tpath\t=\ty"'),
        ({"body": "x,\u2800path\u2800=\u2800y"}, 'body = "x,\u2800path\u2800=\u2800y"'),
        ({"body": "a or b"}, 'body = "a or b"'),
        ({"body": "a in calls of models"}, 'body = "a in calls of models"'),
        ({"body": 'a with exactly {"path": "a"}'}, r'body = "a with exactly {\"path\": \"a\"}"'),
        ({"path = src/**, x": "y"}, '"path = src/**, x" = y'),
        ({"body": '"'}, r'body = "\""'),
        ({"body": " a"}, 'body = " a"'),
    ],
)
def test_no_text_in_a_rule_looks_like_another_condition(where: dict[str, str], text: str) -> None:
    rule = Rule.model_validate({"allow": "a.b", "where": where})
    assert str(rule) == f"allow a.b where {text}"
    assert str(Rule(deny=("a.b, c.d",))) == 'deny "a.b, c.d"'


@pytest.mark.promise("ASK-7")
def test_a_new_rule_is_added_at_the_end_and_the_rest_stays(runtime: Runtime) -> None:
    seen = runtime.rules.add(runtime.rules.read(), Rule(deny=("a.b",), where={"path": ("x", "y")}, scope="ask"))
    added = '\n[[rule]]\ndeny = "a.b"\nwhere.path = ["x", "y"]\nscope = "ask"\n'
    assert _text(runtime) == MINE + added == seen.text
    assert seen.rules[-1] == Rule(deny=("a.b",), where={"path": ("x", "y")}, scope="ask")


@pytest.mark.promise("ASK-7")
def test_the_first_rule_creates_the_file_with_a_header(runtime: Runtime) -> None:
    runtime.paths.approvals.unlink()
    runtime.rules.add(runtime.rules.read(), Rule(allow=("notes.*",)))
    assert _text(runtime) == HEAD + '\n[[rule]]\nallow = "notes.*"\n'


@pytest.mark.promise("ASK-7")
@pytest.mark.parametrize(
    ("at", "rule", "before", "after"),
    [
        (
            0,
            Rule(ask=("notes.*",), where={"path": ("src/**",)}),
            'allow = "notes.*"   # all of them',
            'ask = "notes.*"',
        ),
        (
            0,
            Rule(allow=("notes.*",), where={"path": ("a", "b"), "x y": ("1",)}),
            'where = { path = "src/**" }     # but only there',
            'where.path = ["a", "b"]\nwhere."x y" = "1"',
        ),
        (0, Rule(allow=("notes.*",)), 'where = { path = "src/**" }     # but only there\n', ""),
        (
            0,
            Rule(allow=("notes.*",), where={"path": ("src/**",)}, scope="mcp"),
            "# but only there\n",
            '# but only there\nscope = "mcp"\n',
        ),
        (
            1,
            Rule(deny=("shell.*",)),
            'deny = ["shell.*",\n        "fs.remove"]\n# since that one day\n',
            '# since that one day\ndeny = "shell.*"\n',
        ),
        (2, Rule(ask=("web.*",)), '[rule.where]\nurl = "http:**"\n', ""),
    ],
)
def test_a_changed_rule_keeps_its_comments_and_unchanged_lines(
    runtime: Runtime, at: int, rule: Rule, before: str, after: str
) -> None:
    seen = runtime.rules.change(runtime.rules.read(), at, rule)
    assert _text(runtime) == MINE.replace(before, after)
    assert seen.rules[at] == rule


@pytest.mark.promise("ASK-7")
@pytest.mark.parametrize(
    ("at", "gone"),
    [
        (0, MINE[MINE.index("# Notes") : MINE.index("[[ rule")]),
        (1, MINE[MINE.index("[[ rule") : MINE.index("# ---")]),
        (2, MINE[MINE.index("\n[[rule]]\nask") :]),
    ],
)
def test_a_removed_rule_takes_only_its_own_comments_along(runtime: Runtime, at: int, gone: str) -> None:
    seen = runtime.rules.remove(runtime.rules.read(), at)
    assert _text(runtime) == MINE.replace(gone, "")
    assert len(seen.rules) == 2


@pytest.mark.promise("ASK-7")
def test_a_moved_rule_takes_its_comments_along(runtime: Runtime) -> None:
    before = runtime.rules.read()
    seen = runtime.rules.move(before, 0, 1)
    assert seen.rules == (before.rules[1], before.rules[0], before.rules[2])
    assert _text(runtime).startswith("# How I like it.\n\n[[ rule ]]  # never\n")
    assert '# since that one day\n\n# Notes are mine to lose.\n[[rule]]\nallow = "notes.*"   # all' in _text(runtime)
    assert runtime.rules.move(seen, 1, 0).text == MINE


@pytest.mark.promise("ASK-7")
@pytest.mark.parametrize(
    "text",
    ['rule = [{ allow = "a" }]', '[[rule]]\nallow = "a"\n[[rule]]\ndeny = """\n[[rule]]\n"""', "[[rule]", "x = 1"],
)
def test_a_file_of_another_shape_or_with_an_error_is_not_changed(runtime: Runtime, text: str) -> None:
    runtime.paths.approvals.write_text(text, encoding="utf-8")
    with pytest.raises(RulesError):
        runtime.rules.add(runtime.rules.read(), Rule(allow=("a",)))
    assert _text(runtime) == text


@pytest.mark.promise("ASK-7")
def test_a_concurrent_change_is_not_overwritten(runtime: Runtime) -> None:
    seen = runtime.rules.read()
    runtime.paths.approvals.write_text(f"{MINE}# more", encoding="utf-8")
    with pytest.raises(RulesError, match="in the meantime"):
        runtime.rules.remove(seen, 0)
    assert _text(runtime) == f"{MINE}# more"
    assert "# more\n\n[[rule]]" in runtime.rules.add(runtime.rules.read(), Rule(allow=("a",))).text


@pytest.mark.promise("ASK-7")
def test_a_linked_file_stays_a_link_with_its_permissions(runtime: Runtime, tmp_path: Path) -> None:
    real = tmp_path / "mine.toml"
    runtime.paths.approvals.rename(real)
    real.chmod(0o640)
    runtime.paths.approvals.symlink_to(real)
    runtime.rules.remove(runtime.rules.read(), 2)
    assert runtime.paths.approvals.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert len(read_rules(real.read_text(encoding="utf-8"))) == 2


@pytest.mark.promise("ASK-7")
def test_a_failed_write_is_reported(runtime: Runtime) -> None:
    folder = runtime.paths.approvals.parent
    seen = runtime.rules.read()
    with pytest.raises(RulesError, match="can't be added to this file"):
        runtime.rules.add(seen, Rule(allow=("\ud800",)))
    folder.rename(folder.with_name("gone"))
    folder.write_text("")
    with pytest.raises(RulesError, match="can't be"):
        runtime.rules.add(seen, Rule(allow=("a",)))


@pytest.mark.promise("ASK-7")
def test_a_verdict_names_the_rule(write_pack: Callable[[str, str], Path], open_runtime: Callable[..., Runtime]) -> None:
    runtime = open_runtime(write_pack("book.py", 'def write(*, path: str = "a") -> str:\n    """Writes."""'))
    seen = runtime.rules.add(runtime.rules.read(), Rule(allow=("book.*",), where={"path": ("a",)}))
    seen = runtime.rules.add(seen, Rule(ask=("book.*",), where={"path": ("b",)}))
    runtime.rules.add(seen, Rule(deny=("book.*",), where={"path": ("c",)}))

    def named(path: str) -> tuple[str, int | None]:
        verdict = runtime.rules.verdict(ToolCall(name="book.write", args={"path": path}, source="ask"))
        assert verdict is not None
        return verdict.action, verdict.rule

    assert [named(path) for path in "abcd"] == [("allow", 0), ("ask", 1), ("deny", 2), ("ask", None)]


_PATTERNS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=1, max_size=3)
_RULES = st.builds(
    lambda action, tools, where, scope: Rule.model_validate({action: tools, "where": where, "scope": scope}),
    st.sampled_from(["allow", "ask", "deny"]),
    _PATTERNS,
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), _PATTERNS, max_size=2),
    st.sampled_from([None, "ask", "mcp"]),
)


@pytest.mark.slow
@given(rules=st.lists(_RULES, min_size=1, max_size=4), other=_RULES, at=st.integers(0, 3), to=st.integers(0, 3))
def test_any_rule_is_read_as_it_was_written(rules: list[Rule], other: Rule, at: int, to: int) -> None:
    text = MINE
    for rule in rules:
        text = RuleText(text).with_added(rule)
    all_of_them = [*read_rules(MINE), *rules]
    assert read_rules(text) == tuple(all_of_them)
    assert text.startswith(MINE)
    at, to = at % len(all_of_them), to % len(all_of_them)
    changed = read_rules(RuleText(text).with_changed(at, other))
    assert changed == (*all_of_them[:at], other, *all_of_them[at + 1 :])
    assert read_rules(RuleText(text).without(at)) == (*all_of_them[:at], *all_of_them[at + 1 :])
    moved = [*all_of_them]
    moved.insert(to, moved.pop(at))
    assert read_rules(RuleText(text).with_moved(at, to)) == tuple(moved)
