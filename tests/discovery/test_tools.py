"""Selection of functions as tools, their signatures and their decorators."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.discovery import read, scan
from pegboard.models import Hints, PackHandler, Problem, ToolSpec
from pegboard.sdk.local_packs import LocalPacks

Tool = Callable[[str], ToolSpec]
Names = Callable[[str], list[str]]


def problems_of(source: str) -> tuple[Problem, ...]:
    return read(textwrap.dedent(source), "/packs/sample.py")[1]


@pytest.mark.promise("DSC-2")
def test_tools_are_the_public_documented_functions_of_the_module(names: Names) -> None:
    found = names('''
        from os.path import join

        def plain():
            """A tool."""

        async def waiting():
            """A tool too."""

        def undocumented(): pass

        def empty():
            """ """

        def formatted():
            f"""Not a docstring."""

        def _private():
            """Not public."""

        class Box:
            """Not a function."""
            def method(self):
                """Not a module's."""

        def outer():
            """A tool that holds one that isn't."""
            def inner():
                """Nested."""

    ''')
    assert found == ["sample.plain", "sample.waiting", "sample.outer"]


@pytest.mark.promise("DSC-7")
@pytest.mark.parametrize(
    ("statement", "messages"),
    [
        (
            "from pegboard import hints",
            ["`hints` can't be imported from `pegboard`. Write `from pegboard.sdk import hints`."],
        ),
        ("from pegboard.sdk import hint as h", ["`hint` can't be imported from `pegboard.sdk`. Did you mean hints?"]),
        ("from pegboard.sdk import quit", ["`quit` can't be imported from `pegboard.sdk`."]),
        (
            "from pegboard import tool",
            ["`tool` can't be imported from `pegboard`. Packs use `pegboard.sdk`; tools are plain functions."],
        ),
        ("from pegboard import storage, config", []),
        ("from pegboard.sdk import call_tool, testing", []),
        ("from pegboard.sdk import *", []),
        ("from .pegboard import hints", []),
        ("from pegboard import sdk, __version__", []),
    ],
)
def test_an_import_that_pegboard_does_not_have_is_a_problem(statement: str, messages: list[str]) -> None:
    problems = problems_of(f'{statement}\n\ndef run() -> None:\n    """Run."""\n')
    assert [f"{problem.message} {problem.fix}".strip() for problem in problems] == messages
    assert all((problem.severity, problem.line) == ("error", 1) for problem in problems)


@pytest.mark.promise("DSC-2")
def test_overload_stubs_are_not_tools() -> None:
    source = '''
        import typing
        from typing import overload as variant

        @variant
        def many(*, a: int) -> int:
            """A stub."""
        @typing.overload
        def many(*, a: str) -> str:
            """A stub."""
        def many(*, a):
            """The one that runs."""
        @variant
        def only_a_stub(*, a: int):
            """A stub."""
    '''
    specs, problems = read(textwrap.dedent(source), "/packs/sample.py")
    assert [(spec.name, spec.description) for spec in specs] == [("sample.many", "The one that runs.")]
    assert problems == ()


@pytest.mark.promise("DSC-2")
@pytest.mark.parametrize(
    "listing",
    [
        '__all__ = ["a", "_b"]',
        '__all__ = ("a", "_b")',
        '__all__: list[str] = ["a", "_b"]',
        '__all__ = ["a"]\n__all__ += ["_b"]',
        '__all__ = ["a"]\n__all__ += ("_b",)',
        '__all__ = ["a"]\n__all__.extend(["_b"])',
        '__all__ = ["a"]\n__all__.append("_b")',
        '__all__ = ["a"] + ["_b"]',
        'import other\n__all__ = ["a", "_b"] + other.__all__',
        '__all__ = ["c"]\n__all__ = ["a", "_b"]',
    ],
)
def test_all_decides_where_it_is_present(names: Names, listing: str) -> None:
    functions = "".join(f'def {name}():\n    """Does it."""\n' for name in ("a", "_b", "c"))
    assert names(f"{functions}\n{listing}") == ["sample.a", "sample._b"]


@pytest.mark.promise("DSC-2")
def test_an_undocumented_function_in_all_is_a_tool_with_a_problem() -> None:
    specs, problems = read('__all__ = ["f"]\ndef f(*, a): pass\n', "/packs/sample.py")
    assert [spec.name for spec in specs] == ["sample.f"]
    assert specs[0].problems == problems
    assert "no docstring" in problems[0].message
    assert problems[0].line == 2


@pytest.mark.promise("DSC-2")
@pytest.mark.parametrize(
    "statement",
    [
        "for f in [1]: pass",
        "for i, (f, *g) in {}: pass",
        "with opened() as f: pass",
        "f, g = 1, 2",
        "[g, *f] = 1, 2",
        "match 3:\n    case f: pass",
        "match x:\n    case {'a': [1, *f]} | {**f}: pass",
    ],
)
def test_a_function_whose_name_is_bound_again_is_not_offered(names: Names, statement: str) -> None:
    functions = 'def f():\n    """Do it."""\ndef other():\n    """Do it."""\n'
    assert names(f"{functions}{statement}\n") == ["sample.other"]
    assert names(f"{statement}\n{functions}") == ["sample.f", "sample.other"]


def test_a_name_bound_by_an_unpacked_value_is_defined() -> None:
    assert problems_of("__all__ = ['f', 'rate']\nlimit, rate = load()\ndef f():\n    'Do it.'\n") == ()


def test_a_dynamic_all_is_a_problem_and_is_ignored() -> None:
    specs, problems = read('__all__ = list(globals())\ndef f():\n    """Do it."""\n', "/packs/sample.py")
    assert [spec.name for spec in specs] == ["sample.f"]
    assert [(problem.line, problem.severity) for problem in problems] == [(1, "warning")]


@pytest.mark.parametrize(
    "change",
    [
        "__all__.remove('g')",
        "__all__.insert(0, 'g')",
        "__all__.extend(['g'], 1)",
        "__all__[1:] = []",
        "__all__[0] += 'g'",
        "del __all__[0]",
        "__all__, other = ['f'], 1",
    ],
)
def test_a_change_of_all_that_cannot_be_read_is_a_problem(change: str) -> None:
    functions = 'def f():\n    """Do it."""\ndef g():\n    """Do it."""\n'
    specs, problems = read(f"{functions}__all__ = ['f', 'g']\n{change}\n", "/packs/sample.py")
    assert [spec.name for spec in specs] == ["sample.f", "sample.g"]
    assert [(problem.line, problem.severity) for problem in problems] == [(6, "warning")]
    assert problems[0].message.startswith("`__all__` can't be read without running the file")


@pytest.mark.parametrize("use", ["__all__.sort()", "print(__all__)", "names = sorted(__all__)"])
def test_other_uses_of_all_change_nothing(names: Names, use: str) -> None:
    functions = 'def f():\n    """Do it."""\ndef g():\n    """Do it."""\n'
    assert names(f"{functions}__all__ = ['g']\n{use}\n") == ["sample.g"]
    assert problems_of(f"{functions}__all__ = ['g']\n{use}\n") == ()


def test_a_name_in_all_that_the_file_does_not_define_is_a_problem() -> None:
    problems = problems_of('__all__ = ["gone"]')
    assert "`gone`" in problems[0].message


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ("from other import f", "is imported"),
        ("from . import f", "is imported"),
        ("f = make(1)", "is computed"),
        ("f = lambda: 1", "is computed"),
        ("def g():\n    'G.'\nf = g", "is computed"),
        ("f = 3", None),
        ("from other import F as f, F", "is imported"),
    ],
)
def test_a_hint_says_why_a_name_in_all_is_not_a_tool(definition: str, reason: str | None) -> None:
    problems = problems_of(f'__all__ = ["f", "Other"]\n{definition}\nfrom other import Other\n')
    assert [(problem.severity, problem.line) for problem in problems] == ([("hint", 1)] if reason else [])
    assert all(problem.message == f"`__all__` names `f`, which {reason}, so it is not a tool." for problem in problems)


@pytest.mark.promise("DSC-2")
def test_a_pack_is_named_by_its_file_or_by_itself() -> None:
    tool = 'def f():\n    """Do it."""\n'
    assert read(tool, "/packs/files-2.py")[0][0].name == "files-2.f"
    assert read(f'pack = "fs"\n{tool}', "/packs/sample.py")[0][0].name == "fs.f"
    assert read(f'pack: str = "fs"\n{tool}', "/packs/sample.py")[0][0].name == "fs.f"
    assert read(f"from struct import pack\n{tool}", "/packs/sample.py")[0][0].name == "sample.f"


@pytest.mark.parametrize(
    ("source", "file", "name"),
    [('pack = "a.b"\n', "/packs/sample.py", "sample"), ("", "/packs/a b.c.py", "a_b_c")],
)
def test_an_invalid_pack_name_is_a_problem(source: str, file: str, name: str) -> None:
    specs, problems = read(f'{source}def f():\n    """Do it."""\n', file)
    assert specs[0].pack == name
    assert "not a valid pack name" in problems[0].message


@pytest.mark.promise("DSC-2", "DSC-7")
def test_of_two_functions_with_one_name_the_last_is_the_tool_and_the_problem_names_both() -> None:
    specs, problems = read(
        'def f(*, a: int):\n    """First."""\n\ndef f(*, b: str):\n    """Second."""\n', "/packs/sample.py"
    )
    assert [spec.description for spec in specs] == ["Second."]
    assert "line 1," in problems[0].message
    assert "line 4" in problems[0].message


def test_the_branch_that_applies_is_used_without_a_problem() -> None:
    source = '''
        import sys
        from typing import TYPE_CHECKING

        try:
            import fast
            def f(*, a: int):
                """Add."""
                return fast.add(a)
        except ImportError:
            fast = None
            def f(*, a: int):
                """Add."""
                return a + 1

        if sys.version_info >= (3, 0):
            def g():
                """New."""
        else:
            def h():
                """Old."""

        if TYPE_CHECKING:
            def k(): ...
        else:
            def k():
                """Runs."""

        if __name__ == "__main__":
            def main():
                """Start."""
    '''
    specs, problems = read(textwrap.dedent(source), "/packs/sample.py")
    assert [(spec.function, spec.description) for spec in specs] == [("f", "Add."), ("g", "New."), ("k", "Runs.")]
    assert problems == ()


def test_a_reassigned_name_is_not_a_tool(names: Names) -> None:
    found = names('''
        from functools import cache

        def replaced():
            """Gone."""
        replaced = None

        def deleted():
            """Gone."""
        del deleted

        def wrapped():
            """Still it."""
        wrapped = cache(wrapped)
    ''')
    assert found == ["sample.wrapped"]


@pytest.mark.promise("DSC-3")
def test_a_tool_has_its_address_signature_and_schema(tool: Tool) -> None:
    spec = tool('''
        @decorated
        async def fetch(*, url: str, tries: int = 3, **headers: str) -> dict[str, int]:
            """Fetch it."""
    ''')
    assert spec.handler == PackHandler(pack="sample", function="fetch", file="/packs/sample.py", line=3, is_async=True)
    assert spec.signature == "sample.fetch(*, url: str, tries: int = 3, **headers: str) -> dict[str, int]"
    assert spec.input_schema == {
        "type": "object",
        "properties": {"url": {"type": "string"}, "tries": {"type": "integer", "default": 3}},
        "required": ["url"],
        "additionalProperties": {"type": "string"},
    }
    assert spec.output_schema == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert spec.problems == ()


@pytest.mark.parametrize(
    ("signature", "shown"),
    [
        ("() -> None", "() -> None"),
        ("(a, b=1)", "(*, a, b=1)"),
        ("(*, a: 'int | None' = None)", "(*, a: 'int | None' = None)"),
        ("(*, a: dict[str,\n    list[int]] = {})", "(*, a: dict[str, list[int]] = {})"),
        ("(*, a: str = '\\x1b[2J')", "(*, a: str = '\\x1b[2J')"),
        ("(*, a: list[int] = [x for x in y])", "(*, a: list[int] = [x for x in y])"),
        ("(*, p: t.Optional[X | None] = Path('.'))", "(*, p: t.Optional[X | None] = Path('.'))"),
        (f"(*, a='{58 * 'x'}', b='{59 * 'x'}')", f"(*, a='{58 * 'x'}', b='{58 * 'x'}…)"),
    ],
)
def test_a_signature_is_one_line(tool: Tool, signature: str, shown: str) -> None:
    assert tool(f'def f{signature}:\n    """Do it."""\n').signature == f"sample.f{shown}"


@pytest.mark.promise("DSC-5")
def test_a_signature_without_a_star_is_a_problem_with_the_fix(tool: Tool) -> None:
    spec = tool('def copy(source: str, to="there"):\n    """Copy."""\n')
    (problem,) = spec.problems
    assert problem.severity == "warning"
    assert problem.fix == "Write `def copy(*, source, to='there')`."
    assert (problem.file, problem.line, problem.pack, problem.tool) == ("/packs/sample.py", 1, "sample", "sample.copy")
    assert spec.input_schema["required"] == ["source"]


@pytest.mark.promise("DSC-5")
def test_parameters_that_keywords_cannot_fill_are_a_problem(tool: Tool) -> None:
    spec = tool('def f(a, /, *rest, b: int):\n    """Do it."""\n')
    assert [problem.severity for problem in spec.problems] == ["error", "warning"]
    assert "`a`" in spec.problems[0].message
    assert "`*rest`" in spec.problems[1].message
    assert "`/`" in spec.problems[0].fix


def test_keywords_of_any_name_are_additional_properties(tool: Tool) -> None:
    assert tool('def f(**more):\n    """Do it."""\n').input_schema["additionalProperties"] is True
    assert tool('def f(**more: list[int]):\n    """Do it."""\n').input_schema["additionalProperties"] == {
        "type": "array",
        "items": {"type": "integer"},
    }
    unpacked = tool('''
        from typing import NotRequired, TypedDict, Unpack
        class Options(TypedDict):
            size: int
            name: NotRequired[str]
        def f(**options: Unpack[Options]):
            """Do it."""
    ''').input_schema
    assert unpacked["properties"] == {"size": {"type": "integer"}, "name": {"type": "string"}}
    assert unpacked["required"] == ["size"]
    assert unpacked["additionalProperties"] is False


@pytest.mark.promise("DSC-3")
def test_further_keywords_have_the_descriptions_of_the_docstring(tool: Tool) -> None:
    docstring = '"""Do it.\n\n    Args:\n        **more: Any others.\n        size: How large.\n    """'
    described = tool(f"def f(**more: int):\n    {docstring}\n").input_schema["additionalProperties"]
    assert described == {"type": "integer", "description": "Any others."}
    assert tool(f"def f(**more):\n    {docstring}\n").input_schema["additionalProperties"] == {
        "description": "Any others."
    }
    head = "from typing import TypedDict, Unpack\nclass Sizes(TypedDict):\n    size: int\n"
    unpacked = tool(f"{head}def f(**more: Unpack[Sizes]):\n    {docstring}\n").input_schema["properties"]
    assert unpacked == {"size": {"type": "integer", "description": "How large."}}


@pytest.mark.promise("SDK-11")
def test_hints_are_read_from_the_source(tool: Tool) -> None:
    spec = tool('''
        import pegboard.sdk as sdk
        LONG = 60 * 5

        @sdk.hints(read_only=True, destructive=False, timeout=LONG, stdin="text")
        @sdk.hints(cache_seconds=0.5)
        def f(*, text: str):
            """Do it."""
    ''')
    assert spec.hints == Hints(read_only=True, destructive=False, timeout=300, stdin="text", cache_seconds=0.5)
    assert spec.annotations == {"readOnlyHint": True, "destructiveHint": False}
    assert spec.problems == ()


@pytest.mark.promise("SDK-11", "SDK-14")
def test_a_decorator_that_several_functions_share_by_a_name_is_read(tool: Tool) -> None:
    spec = tool('''
        from pegboard.sdk import aliases, hints
        erases = hints(destructive=True, timeout=20)
        known = aliases("wipe", name="item")

        @known
        @erases
        def f(*, name: str):
            """Do it."""
    ''')
    assert spec.hints == Hints(destructive=True, timeout=20)
    assert (spec.aliases, spec.parameter_aliases) == (("wipe",), {"item": "name"})
    assert spec.problems == ()


@pytest.mark.promise("SDK-11", "SEC-2")
def test_a_shared_decorator_that_depends_on_a_condition_has_the_most_careful_hints(tool: Tool) -> None:
    spec = tool('''
        import os
        from pegboard.sdk import hints
        if os.environ.get("SAFE"):
            kind = hints(destructive=True)
        else:
            kind = hints(read_only=True)

        @kind
        def f():
            """Do it."""
    ''')
    assert (spec.hints.read_only, spec.hints.destructive) == (False, True)
    [problem] = spec.problems
    assert (problem.line, "most careful" in problem.message) == (9, True)


@pytest.mark.promise("SDK-11", "SDK-14")
@pytest.mark.parametrize("decorated", ["@declare(destructive=True)", "@removes", "@again.declare(destructive=True)"])
def test_hints_under_another_name_are_read(tmp_path: Path, decorated: str) -> None:
    (tmp_path / "_again.py").write_text("from pegboard.sdk import hints\ndeclare = hints\n")
    (tmp_path / "pack.py").write_text(
        f"from . import _again as again\nfrom ._again import hints as declare\nerases = declare(destructive=True)\n"
        f'removes = erases\n{decorated}\ndef f():\n    """Do it."""\n'
    )
    [spec], problems = scan([tmp_path])
    assert (spec.hints, problems) == (Hints(destructive=True), ())


@pytest.mark.promise("SDK-11", "SEC-2")
@pytest.mark.parametrize("decorated", ["@erases", "@Erases()", "@common.erases", "@part()"])
def test_a_decorator_that_applies_hints_by_itself_has_the_most_careful_ones(tmp_path: Path, decorated: str) -> None:
    (tmp_path / "_common.py").write_text(
        "from functools import partial\nfrom pegboard.sdk import hints\npart = partial(hints, destructive=True)\n"
        "def erases(function):\n    return hints(destructive=True)(function)\n"
        "class Erases:\n    def __call__(self, function):\n        return hints(destructive=True)(function)\n"
    )
    (tmp_path / "pack.py").write_text(
        "from . import _common as common\nfrom ._common import Erases, erases, part\n"
        f'{decorated}\ndef f():\n    """Do it."""\n'
    )
    [spec], _ = scan([tmp_path])
    assert (spec.hints.read_only, spec.hints.destructive) == (False, True)
    [problem] = spec.problems
    assert (problem.line, "most careful" in problem.message) == (3, True)
    assert problem.fix == "Write `@hints(...)` above the function itself."


@pytest.mark.promise("SDK-11", "SEC-2")
@pytest.mark.parametrize("decorator", ["erases", "forgets", "Erases()", "local", "alias"])
def test_hints_that_a_decorator_applies_through_another_function_are_not_missed(tmp_path: Path, decorator: str) -> None:
    (tmp_path / "_common.py").write_text(
        "from pegboard.sdk import hints\ndef mark(function):\n    return hints(destructive=True)(function)\n"
    )
    (tmp_path / "pack.py").write_text(
        "from ._common import mark\ndef erases(function):\n    return mark(function)\n"
        "def forgets(function):\n    return erases(function)\n"
        "class Erases:\n    def __call__(self, function):\n        return forgets(function)\n"
        "def local(function):\n    from pegboard.sdk import hints as declare\n"
        "    return declare(destructive=True)(function)\n"
        f'alias = forgets\n@{decorator}\ndef f():\n    """Do it."""\n'
    )
    [spec], _ = scan([tmp_path])
    assert (spec.hints.read_only, spec.hints.destructive) == (False, True)
    [problem] = spec.problems
    assert "most careful" in problem.message


@pytest.mark.promise("SDK-11")
def test_the_hints_of_a_tool_that_a_decorator_calls_are_not_those_of_the_decorated_one(tool: Tool) -> None:
    spec = tool('''
        from pegboard.sdk import hints
        @hints(destructive=True)
        def _log(text):
            print(text)
        def _logged(function):
            _log(function.__name__)
            return function

        @_logged
        def f():
            """Do it."""
    ''')
    assert (spec.hints, spec.problems) == (Hints(), ())


@pytest.mark.promise("SDK-14")
def test_a_decorator_that_adds_names_by_itself_is_a_problem(tool: Tool) -> None:
    spec = tool('''
        from pegboard.sdk import aliases
        def _known(function):
            return aliases("wipe")(function)

        @_known
        def f():
            """Do it."""
    ''')
    [problem] = spec.problems
    assert (spec.aliases, problem.line, "`@aliases`" in problem.message) == ((), 6, True)


@pytest.mark.promise("SDK-11", "SEC-2")
def test_hints_in_the_less_likely_branch_of_a_decorator_are_not_missed(tool: Tool) -> None:
    spec = tool('''
        import os
        from pegboard.sdk import hints
        def _plain(function):
            return function
        if os.environ.get("SAFE"):
            kind = _plain
        else:
            kind = hints(destructive=True)

        @kind
        def f():
            """Do it."""
    ''')
    assert (spec.hints.read_only, spec.hints.destructive) == (False, True)
    [problem] = spec.problems
    assert "most careful" in problem.message


@pytest.mark.promise("SDK-11")
@pytest.mark.parametrize(("body", "is_destructive"), [("pass", None), ("made = hints(read_only=True)", True)])
def test_a_decorator_can_be_a_class_within_a_class(tool: Tool, body: str, is_destructive: bool | None) -> None:
    source = f"from pegboard.sdk import hints\nclass Outer:\n  class Inner:\n    {body}\n"
    spec = tool(f'{source}@Outer.Inner\ndef f():\n    """Do it."""\n')
    assert spec.hints.destructive is is_destructive


@pytest.mark.promise("SDK-11")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("readonly=True", "has no parameter `readonly`"),
        ("read_only=1", "must be True or False"),
        ("timeout=0", "positive"),
        ("timeout='long'", "number of seconds"),
        ("timeout=how_long()", "can't be read without running the file"),
        ("stdin='b'", "must name a parameter"),
        ("**more", r"has no parameter `\*\*`"),
    ],
)
def test_an_invalid_hint_is_a_problem_and_is_ignored(tool: Tool, said: str, message: str) -> None:
    spec = tool(f'from pegboard.sdk import hints\n@hints({said})\ndef f(*, a: str):\n    """Do it."""\n')
    assert spec.hints == Hints()
    (problem,) = spec.problems
    assert problem.line == 2
    assert re.search(message, problem.message), problem.message


def test_hints_of_other_libraries_are_ignored(tool: Tool) -> None:
    assert tool('from other import hints\n@hints(read_only=True)\ndef f():\n    """Do it."""\n').hints == Hints()


@pytest.mark.promise("SDK-11")
@pytest.mark.parametrize(
    ("decorators", "hints"),
    [
        ("@mcp.tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))", (True, None, None, False)),
        ("@mcp.tool(annotations=ToolAnnotations(title='T', destructive_hint=True))", (None, True, None, None)),
        ("@mcp.tool(annotations={**MORE, 'idempotentHint': True, 'x': 1})", (None, None, True, None)),
        ("@tool('f', 'Do it.', {}, annotations=READING)", (True, None, None, None)),
        ("@mcp.tool(annotations={'readOnlyHint': load(), 'destructiveHint': load()})", (False, True, None, None)),
        ("@mcp.tool(annotations={'readOnlyHint': 'yes', 'destructiveHint': None})", (None, None, None, None)),
        ("@mcp.tool(annotations=load())", (None, None, None, None)),
        ("@page(annotations=READING)", (None, None, None, None)),
        ("@hints(read_only=False)\n@mcp.tool(annotations=READING)", (False, None, None, None)),
    ],
)
def test_annotations_in_the_decorator_of_an_mcp_server_are_hints(
    tool: Tool, decorators: str, hints: tuple[bool | None, ...]
) -> None:
    spec = tool(f'''
from servers import ToolAnnotations, load, mcp, page, tool
from pegboard.sdk import hints

READING = ToolAnnotations(readOnlyHint=True)

{decorators}
def f(*, a: int = 1):
    """Do it."""
''')
    found = spec.hints
    assert (found.read_only, found.destructive, found.idempotent, found.open_world) == hints
    assert spec.problems == ()


@pytest.mark.promise("SDK-11", "SEC-2")
def test_annotations_that_may_be_others_when_the_file_runs_mark_no_tool_as_read_only(tool: Tool) -> None:
    head = "from servers import ToolAnnotations, load, mcp\n"
    chosen = "if load():\n    CHOSEN = ToolAnnotations(readOnlyHint=True)\nelse:\n    CHOSEN = ToolAnnotations({})\n"
    for more, written, hints in (
        ("", "{'readOnlyHint': True, 'destructiveHint': False, **load()}", (False, True)),
        ("", "ToolAnnotations(readOnlyHint=True, **load())", (False, None)),
        ("", "load(readOnlyHint=True)", (None, None)),
        (chosen.format("readOnlyHint=False"), "CHOSEN", (False, None)),
        (chosen.format(""), "CHOSEN", (None, None)),
    ):
        spec = tool(f"{head}{more}@mcp.tool(annotations={written})\ndef f(*, a: int = 1):\n    'Do it.'\n")
        assert (spec.hints.read_only, spec.hints.destructive) == hints, written


@pytest.mark.promise("SDK-14")
def test_aliases_are_read_from_the_source(tool: Tool) -> None:
    spec = tool('''
        from pegboard.sdk import aliases as also

        @also("searchDatasets", "ckan.search", max_depth="maxDepth", path=("dir", "folder"))
        def search(*, path: str, max_depth: int = 4):
            """Search."""
    ''')
    assert spec.aliases == ("searchDatasets", "ckan.search")
    assert spec.parameter_aliases == {"maxDepth": "max_depth", "dir": "path", "folder": "path"}
    assert spec.problems == ()


@pytest.mark.promise("SDK-14")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("pth='dir'", "unknown parameter"),
        ("path='size'", "already belongs to"),
        ("path='x', size='x'", "already belongs to"),
        ("path=5", "not a string literal"),
        ("f()", "not a string literal"),
    ],
)
def test_an_invalid_alias_is_a_problem(tool: Tool, said: str, message: str) -> None:
    spec = tool(
        f'from pegboard.sdk import aliases\n@aliases({said})\ndef f(*, path: str, size: int):\n    """Do it."""\n'
    )
    (problem,) = spec.problems
    assert message in problem.message


HINTED = """
    from typing import overload
    from elsewhere import imported

    def tool():
        \"\"\"Be a tool.\"\"\"

    def forgotten(*, a: int): ...

    async def empty():
        \"\"\"  \"\"\"

    def _private(): ...

    @overload
    def stub(*, a: int): ...
    def stub(*, a):
        \"\"\"Be a tool with a stub.\"\"\"

    class RequirementKey:
        def method(self): ...
"""


@pytest.mark.promise("DSC-2")
def test_a_public_function_without_a_docstring_is_a_hint_with_its_line() -> None:
    hints = [problem for problem in problems_of(HINTED) if problem.severity == "hint"]
    assert [(problem.line, problem.file, problem.message) for problem in hints] == [
        (8, "/packs/sample.py", "`forgotten` has no docstring, so it is not a tool."),
        (10, "/packs/sample.py", "`empty` has no docstring, so it is not a tool."),
    ]
    assert "docstring" in hints[0].fix
    assert not [one for one in problems_of(HINTED + "    __all__ = ['tool']\n") if one.severity == "hint"]


@pytest.mark.parametrize("name", ["hints", "aliases", "requires_cli", "requires_lib", "requires_secret"])
def test_a_decorator_without_parentheses_is_a_problem_with_its_line(name: str) -> None:
    source = f"from pegboard.sdk import {name}\n\n@{name}\ndef f(*, a: int):\n    'Do it.'\n"
    [problem] = problems_of(source)
    assert (problem.message, problem.line) == (f"`@{name}` has no arguments.", 3)


SAME = {
    "plain": "def a():\n    'A.'\ndef b(): ...\ndef _c():\n    'C.'\n",
    "all": "__all__ = ['a', '_c']\ndef a(): ...\ndef b():\n    'B.'\ndef _c():\n    'C.'\n",
    "annotated all": "__all__: list[str] = ['a']\ndef a():\n    'A.'\ndef b():\n    'B.'\n",
    "added all": "__all__ = ['a']\n__all__ += ['b']\ndef a():\n    'A.'\ndef b():\n    'B.'\ndef c():\n    'C.'\n",
    "extended all": "__all__ = ['a']\n__all__.extend(['b'])\n__all__.append('c')\n" + "".join(
        f"def {name}():\n    'It.'\n" for name in "abcd"
    ),
    "summed all": "X = ['b']\n__all__ = ['a'] + X\ndef a():\n    'A.'\ndef b():\n    'B.'\ndef c():\n    'C.'\n",
    "computed all": "__all__ = [n for n in dir()]\ndef a():\n    'A.'\ndef b(): ...\n",
    "overload":
        "from typing import overload\n@overload\ndef a():\n    'Stub.'\ndef a():\n    'A.'\n@overload\ndef b(): ...\n",
    "replaced": "def a():\n    'A.'\na = None\ndef b():\n    'B.'\nb = wrap(b)\ndef c():\n    'C.'\ndel c\n",
    "type checking":
        "import typing as t\nif t.TYPE_CHECKING:\n    def a():\n        '.'\nelse:\n    def b():\n        '.'\n",
    "main": "def a():\n    'A.'\nif __name__ == '__main__':\n    def b():\n        'B.'\n",
    "versions":
        "import sys\nif sys.version_info < (3, 0):\n    def a():\n        'A.'\nelse:\n    def b():\n        'B.'\n",
    "a blank docstring": "def a():\n    '  '\ndef b():\n    'B.'\n",
    "a name": "pack = 'other'\ndef a():\n    'A.'\n",
    "a bad name": "pack = 'o.ther'\ndef a():\n    'A.'\n",
    "a conditional name": "if True:\n    pack = 'other'\ndef a():\n    'A.'\n",
    "aliases": "from pegboard.sdk import aliases\n@aliases('other', 'sample.more')\ndef a():\n    'A.'\n",
}  # fmt: skip


@pytest.mark.promise("DSC-2", "SDK-15")
@pytest.mark.parametrize("source", SAME.values(), ids=SAME.keys())
def test_discovery_and_a_plain_script_agree_on_what_a_tool_is(source: str, tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text(source)
    specs, _ = read(source, str(file))
    shelf = LocalPacks([str(file)], {})
    packs, files = shelf.packs(), shelf.sources()
    listed = {f"{pack}.{name}" for pack, names in packs.items() for name in names if files[pack] == str(file)}
    assert {spec.name for spec in specs} == listed
    found = {alias: name for alias, name in shelf.aliases().items() if name in listed}
    assert {alias: spec.name for spec in specs for alias in spec.aliases}.items() <= found.items()


@pytest.mark.promise("DSC-2")
@pytest.mark.parametrize("listed", ["", "__all__ = ['opened', 'f']"])
def test_a_context_manager_is_not_a_tool_and_a_hint_says_so(listed: str) -> None:
    specs, problems = read(
        "import contextlib as c\n@c.contextmanager\ndef opened():\n    'Open.'\n    yield\n"
        f"@c.asynccontextmanager\nasync def _private(): yield\ndef f():\n    'Do.'\n{listed}\n",
        "/packs/sample.py",
    )
    assert [spec.name for spec in specs] == ["sample.f"]
    (problem,) = problems
    assert (problem.severity, problem.line) == ("hint", 3)
    assert problem.message == "`opened` returns a context manager, which has no JSON form, so it is not a tool."


@pytest.mark.promise("DSC-5")
def test_a_function_that_is_chosen_by_its_first_argument_needs_it_by_position() -> None:
    assert problems_of("from functools import singledispatch\n@singledispatch\ndef f(value: object):\n    'Do.'") == ()


@pytest.mark.promise("DSC-2")
@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        (
            "from agents import function_tool as tool\nclass Menu:\n    @tool\n    def specials(self): 'Do.'\n",
            2,
            "`specials` is a method of `Menu`, so it is not a tool: tools are functions of the file.",
        ),
        (
            "import semantic_kernel.functions as k\nclass Menu:\n"
            + "".join(f"    @k.kernel_function(description='Do.')\n    def {name}(self): ...\n" for name in "abcde"),
            2,
            "`a`, `b`, `c` and 2 more are methods of `Menu`, so they are not tools: tools are functions of the file.",
        ),
        (
            "def serve():\n  if s:\n    @s.tool()\n    async def f(): ...\n  @s.tool\n  def g(): ...\n  return s\n",
            1,
            "`f` and `g` are defined in `serve`, so they are not tools: tools are functions of the file.",
        ),
        (
            "from agno.tools import Toolkit\nclass Sums(Toolkit):\n    def add(self, a: int): ...\n",
            2,
            "`Sums` is a class, so it is not a tool: tools are functions of the file.",
        ),
    ],
)
def test_a_hint_names_methods_inner_functions_and_classes_that_a_framework_offers_as_tools(
    source: str, line: int, message: str
) -> None:
    [hint] = [problem for problem in problems_of(source) if "docstring, so" not in problem.message]
    assert (hint.severity, hint.line, hint.message) == ("hint", line, message)
    assert "function" in hint.fix or "top level" in hint.fix
    assert not problems_of(f"{source}__all__ = []\n")
    assert not [one for one in read(source, "/packs/test_sample.py")[1] if one.message == message]


@pytest.mark.promise("DSC-5")
def test_a_positional_parameter_is_a_hint_for_the_tool_of_a_framework_and_a_warning_for_others() -> None:
    [marked] = problems_of("@server.tool()\ndef f(a: int):\n    'Do it.'\n")
    [plain] = problems_of("@functools.cache\ndef f(a: int):\n    'Do it.'\n")
    assert (marked.severity, plain.severity) == ("hint", "warning")
    assert marked.fix == plain.fix == "Write `def f(*, a)`."


def test_other_methods_and_classes_cause_no_hint() -> None:
    assert not problems_of("""
        import functools
        from . import Shape
        class Tool:
            @functools.cache
            def method(self): ...
        class Saw(Tool): ...
        class Box(Shape): ...
    """)


@pytest.mark.promise("DSC-5")
def test_the_fix_of_an_unreadable_type_says_what_follows_for_a_parameter_and_for_a_result() -> None:
    problems = problems_of("from ours import Agent\ndef f(*, a: Agent) -> Agent:\n    'Do.'")
    assert [problem.fix.partition(" Use")[0] for problem in problems] == [
        "Any value is accepted.",
        "Its result has no schema.",
    ]
