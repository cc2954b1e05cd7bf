"""Requirements of tools, read from the source."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from pegboard.discovery import read, scan
from pegboard.models import Problem, Requirement, ToolSpec

NEEDY = '''
from pegboard.sdk import get_secret, requires_cli, requires_lib, requires_secret

requires_secret("NEEDY_KEY", hint="https://example.org/account")
FLAG = "-V"

@requires_cli("rg", version_flag=FLAG, min_version="13", install="apt install ripgrep")
@requires_lib("yaml")
def first():
    """Needs a program and a library."""
    return get_secret("NEEDY_KEY"), _more()

async def second():
    """Needs what the pack needs."""

def _more():
    return get_secret("MORE_KEY")
'''


def tools(source: str, problems: int = 0) -> tuple[ToolSpec, ...]:
    found, wrong = read(textwrap.dedent(source), "/packs/sample.py")
    assert len(wrong) == problems, wrong
    return found


def problems(source: str) -> tuple[Problem, ...]:
    return read(textwrap.dedent(source), "/packs/sample.py")[1]


PACKS = Requirement(kind="secret", name="NEEDY_KEY", install="https://example.org/account")
READ = Requirement(kind="secret", name="MORE_KEY", optional=True)


@pytest.mark.promise("SDK-8")
def test_a_tool_has_its_own_requirements_and_those_of_its_pack() -> None:
    first, second = tools(NEEDY)
    assert first.requirements == (
        PACKS,
        Requirement(kind="cli", name="rg", version_flag="-V", min_version="13", install="apt install ripgrep"),
        Requirement(kind="lib", name="yaml"),
        READ,
    )
    assert second.requirements == (PACKS, READ)


@pytest.mark.promise("SDK-10")
@pytest.mark.parametrize(
    ("calls", "needed"),
    [
        ('get_secret("KEY", extra=True)', 0),
        ('get_secret(name="KEY", extra=True)', 0),
        ('get_secret("KEY", extra=False)', 1),
        ('get_secret("KEY", extra=bool(1))', 1),
        ('get_secret("KEY", extra=True) or get_secret("KEY")', 1),
    ],
)
def test_an_extra_secret_is_not_a_requirement(calls: str, needed: int) -> None:
    source = f'from pegboard.sdk import get_secret\ndef run():\n    """Run."""\n    {calls}\n'
    (tool,), problems = read(source, "/packs/sample.py")
    assert len(tool.requirements) == needed
    assert [problem for problem in problems if "granted" in problem.message] == []


@pytest.mark.promise("SDK-10")
def test_a_secret_that_is_read_and_not_required_is_optional() -> None:
    [tool] = tools('from pegboard.sdk import api_headers\ndef f():\n    """F."""\n    api_headers("KEY")\n')
    assert tool.requirements == (Requirement(kind="secret", name="KEY", optional=True),)
    assert str(tool.requirements[0]) == "secret KEY (optional)"


@pytest.mark.parametrize(
    ("others", "needing"),
    [
        ("", {"sample.second"}),
        ('_client = lazy_client(dict, secret_name="KEY")', {"sample.first", "sample.second", "sample.third"}),
        ('def _helper():\n    return get_secret("KEY")', {"sample.first", "sample.second", "sample.third"}),
        ('@requires_secret("KEY")\ndef fourth():\n    """Requires it."""', {"sample.second", "sample.fourth"}),
        ('_client = lazy_client(dict, secret_name="KEY")\n@requires_secret("KEY")\ndef fourth():\n    """F."""',
         {"sample.second", "sample.fourth"}),
    ],
)  # fmt: skip
def test_a_secret_belongs_to_the_tools_that_may_read_it(others: str, needing: set[str]) -> None:
    found = tools(f'''
from pegboard.sdk import *

def first():
    """Has nothing to do with it."""

def second():
    """Reads it."""
    return api_headers("KEY")

def third():
    """Has nothing to do with it."""

{others}
''')
    assert {tool.name for tool in found if tool.requirements} == needing
    assert {need.optional for tool in found for need in tool.requirements if tool.name != "sample.fourth"} == {True}
    assert {need.optional for tool in found for need in tool.requirements if tool.name == "sample.fourth"} <= {False}


@pytest.mark.promise("DSC-7")
@pytest.mark.parametrize(
    ("source", "line", "tool", "fix"),
    [
        ('@requires_cli(name())\ndef f():\n    """F."""', 2, "sample.f", "literals"),
        ('def f():\n    """F."""\n    get_secret(name())', 4, "sample.f", "as a literal"),
        ('requires_lib(name())\ndef f():\n    """F."""', 2, None, "literals"),
        ('def f():\n    """F."""\ndef _g():\n    get_secret(name())', 5, None, "secrets"),
    ],
)
def test_a_dynamic_requirement_is_a_problem_of_its_tool_or_pack(
    source: str, line: int, tool: str | None, fix: str
) -> None:
    [problem] = problems(f"from pegboard.sdk import *\n{source}\n")
    assert (problem.file, problem.line, problem.pack, problem.tool) == ("/packs/sample.py", line, "sample", tool)
    assert problem.severity == "warning"
    assert fix in problem.fix


@pytest.mark.promise("DSC-7")
@pytest.mark.parametrize(
    ("decorator", "message", "fix"),
    [
        (
            'requires_lib("httpx>=0.28,<1")',
            "`httpx>=0.28,<1` is not the name of a library.",
            'Write `requires_lib("httpx", min_version="0.28")`.',
        ),
        (
            'requires_lib("httpx[http2]")',
            "`httpx[http2]` is not the name of a library.",
            'Write `requires_lib("httpx")`.',
        ),
        (
            'requires_lib("yaml", ">=6.0")',
            '`min_version=">=6.0"` is not a version.',
            'Write only the lowest version, such as `min_version="6.0"`.',
        ),
        (
            'requires_cli("rg", min_version="latest")',
            '`min_version="latest"` is not a version.',
            'Write only the lowest version, such as `min_version="1"`.',
        ),
    ],
)
def test_a_requirement_that_is_written_as_for_pip_is_a_problem(decorator: str, message: str, fix: str) -> None:
    source = f'from pegboard.sdk import *\n@{decorator}\ndef f():\n    """F."""\n'
    [problem] = problems(source)
    assert (problem.message, problem.fix, problem.line, problem.tool) == (message, fix, 2, "sample.f")
    assert tools(source, problems=1)[0].requirements == ()


def test_decorators_of_other_libraries_are_ignored() -> None:
    assert (
        tools('from pegboards import requires_cli\n@requires_cli("rg")\ndef f():\n    """F."""\n')[0].requirements == ()
    )
    assert tools('# pegboard\n@requires_cli("rg")\ndef f():\n    """F."""\n')[0].requirements == ()


ELSEWHERE = """
from pegboard.sdk import requires_cli, requires_secret
imported = requires_cli("rg")
"""
HERE = """
import os
from pegboard.sdk import requires_lib
from . import _common
from ._common import imported, requires_secret

renamed = requires_lib

def _wrapped(function):
    return requires_lib("yaml")(function)

if os.environ.get("A"):
    chosen = requires_lib("a")
else:
    chosen = requires_lib("b")
"""


@pytest.mark.promise("SDK-8")
@pytest.mark.parametrize(
    "decorator", ["imported", "_common.imported", "renamed('rg')", "_wrapped", "chosen", 'requires_secret("KEY")']
)
def test_a_requirement_that_is_written_elsewhere_is_a_problem(tmp_path: Path, decorator: str) -> None:
    (tmp_path / "_common.py").write_text(ELSEWHERE)
    (tmp_path / "pack.py").write_text(f'{HERE}\n@{decorator}\ndef f():\n    """Do it."""\n')
    [tool], _ = scan([tmp_path])
    [problem] = tool.problems
    assert tool.requirements == ()
    assert problem.message == "A decorator of `f` declares a requirement in a place where it isn't read."
    assert problem.fix.startswith("Write `@requires_")


@pytest.mark.promise("DSC-6")
def test_requirements_survive_the_index(tmp_path: Path) -> None:
    (tmp_path / "needy.py").write_text(NEEDY)
    first, _ = scan([tmp_path], index=tmp_path / "index")
    second, _ = scan([tmp_path], index=tmp_path / "index")
    assert first[0].requirements
    assert [tool.requirements for tool in second] == [tool.requirements for tool in first]
    assert first[0].model_dump_json() == second[0].model_dump_json()
