"""Tools whose definition, or a value in it, depends on a condition."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable

import pytest

from pegboard.discovery import read
from pegboard.models import Hints, ToolSpec

Tool = Callable[[str], ToolSpec]

TWO = '''
import os, sys
from pegboard.sdk import hints

if {condition}:
    @hints(read_only=True)
    def tidy():
        """Show what could be deleted."""
else:
    @hints(destructive=True)
    def tidy():
        """Delete files."""
'''


@pytest.mark.promise("DSC-2", "SDK-11")
@pytest.mark.parametrize(
    "condition",
    [
        f"sys.platform == {sys.platform!r}",
        "sys.platform != 'other'",
        f"sys.platform in ('other', {sys.platform!r})",
        "sys.platform not in ['other']",
        f"sys.platform.startswith({sys.platform[:3]!r})",
        f"sys.platform.startswith(('other', {sys.platform!r}))",
        f"os.name == {os.name!r}",
        f"not os.name != {os.name!r}",
        f"sys.version_info >= (3, 11) and os.name == {os.name!r}",
        f"os.name == 'other' or sys.platform == {sys.platform!r}",
    ],
)
def test_a_condition_on_the_system_is_evaluated(tool: Tool, condition: str) -> None:
    chosen, other = tool(TWO.format(condition=condition)), tool(TWO.format(condition=f"not ({condition})"))
    assert (chosen.description, chosen.hints) == ("Show what could be deleted.", Hints(read_only=True))
    assert (other.description, other.hints) == ("Delete files.", Hints(destructive=True))
    assert chosen.problems == other.problems == ()


@pytest.mark.promise("DSC-2", "DSC-7", "SDK-11")
@pytest.mark.parametrize(
    "condition", ["os.environ.get('SAFE')", "settings.platform == 'other'", "lib.version_info >= (3, 11)", "SAFE"]
)
def test_of_two_definitions_that_may_apply_the_hints_are_the_most_careful(tool: Tool, condition: str) -> None:
    spec = tool(TWO.format(condition=condition))
    assert spec.hints == Hints(destructive=True)
    (problem,) = spec.problems
    assert problem.line == 7
    assert "also defined in line 11" in problem.message


@pytest.mark.promise("DSC-2", "SDK-11")
def test_a_fallback_after_a_failed_import_may_be_the_tool_that_runs(tool: Tool) -> None:
    spec = tool('''
        from pegboard.sdk import hints

        try:
            import trash
            @hints(read_only=False, destructive=False, idempotent=True, open_world=False, timeout=5, cache_seconds=1)
            def remove(*, file: str):
                """Move a file to the trash."""
        except ImportError:
            @hints(destructive=True, idempotent=False, open_world=True, timeout=5, cache_seconds=2)
            def remove(*, file: str, really: bool = False):
                """Delete a file."""
    ''')
    assert spec.hints == Hints(read_only=False, destructive=True, idempotent=False, open_world=True, timeout=5)
    assert [problem.line for problem in spec.problems] == [7]


@pytest.mark.promise("DSC-2", "SDK-11")
@pytest.mark.parametrize("other", ["from elsewhere import tidy", "tidy = elsewhere", "tidy = make()"])
def test_a_tool_that_a_branch_replaces_by_something_unknown_is_not_read_only(tool: Tool, other: str) -> None:
    spec = tool(f'''
        from pegboard.sdk import hints
        import elsewhere
        if elsewhere.works():
            @hints(read_only=True, destructive=False)
            def tidy():
                """Show what could be deleted."""
        else:
            {other}
    ''')
    assert spec.hints == Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
    assert "also defined elsewhere" in spec.problems[0].message


@pytest.mark.promise("SDK-11")
@pytest.mark.parametrize(
    ("hint", "assumed"),
    [
        ("read_only", Hints(read_only=False)),
        ("destructive", Hints(destructive=True)),
        ("idempotent", Hints(idempotent=False)),
        ("open_world", Hints(open_world=True)),
    ],
)
@pytest.mark.parametrize(
    "assignments",
    [
        "if os.environ.get('X'):\n    VALUE = {0}\nelse:\n    VALUE = {1}",
        "VALUE = {0}\nif os.environ.get('X'):\n    VALUE = {1}",
        "try:\n    VALUE = {0}\nexcept ImportError:\n    VALUE = {1}",
        "with suppress(OSError):\n    VALUE = {0}\n    VALUE = {1}",
    ],
)
def test_a_constant_that_differs_by_branch_is_assumed_to_be_the_careful_value(
    tool: Tool, assignments: str, hint: str, assumed: Hints
) -> None:
    for values in ((True, False), (False, True)):
        source = f"import os\nfrom pegboard.sdk import hints\n{assignments.format(*values)}\n"
        spec = tool(f"{source}@hints({hint}=VALUE)\ndef f():\n    'Do it.'\n")
        assert spec.hints == assumed
        assert "can't be read without running the file" in spec.problems[0].message


@pytest.mark.promise("SDK-11")
def test_a_constant_that_is_equal_in_all_branches_or_depends_on_the_system_is_known(tool: Tool) -> None:
    spec = tool(f'''
        import sys
        from pegboard.sdk import hints
        try:
            import fast
            SAFE = True
        except ImportError:
            SAFE = True
        if sys.platform == {sys.platform!r}:
            LOCAL = False
        else:
            LOCAL = True

        @hints(read_only=SAFE, open_world=LOCAL)
        def f():
            """Do it."""
    ''')
    assert spec.hints == Hints(read_only=True, open_world=False)
    assert spec.problems == ()


def test_no_problem_is_reported_for_a_missing_library_or_a_function_without_fallback() -> None:
    source = '''
        try:
            import fast
        except ImportError:
            fast = None

        try:
            from quick import run
        except ImportError:
            run = None

        if fast:
            def f():
                """Do it."""
        else:
            f = None
    '''
    specs, problems = read(textwrap.dedent(source), "/packs/sample.py")
    assert [spec.name for spec in specs] == ["sample.f"]
    assert problems == ()


@pytest.mark.promise("DSC-2")
@pytest.mark.parametrize("block", ["for _ in (1,):\n ", "while os.name:\n ", "match os.name:\n case _:\n "])
def test_a_function_in_any_block_of_its_module_is_a_tool(names: Callable[[str], list[str]], block: str) -> None:
    assert names(f'import os\n{block} def tidy():\n   """Delete files."""\n') == ["sample.tidy"]
