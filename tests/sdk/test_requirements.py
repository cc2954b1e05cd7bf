"""Requirements: declared by decorators, stored on the function, and read from the source."""

from __future__ import annotations

import ast
import textwrap
from typing import Any  # decorators of every kind

import pytest

from pegboard.sdk import aliases, hints, requires_cli, requires_lib, requires_secret
from pegboard.sdk.requirements import DeclaredRequirement, requirements_of
from pegboard.sdk.source import DeclaredRequirements, read_requirements

pytestmark = pytest.mark.promise("SDK-8")


def reading(source: str) -> DeclaredRequirements:
    return read_requirements(ast.parse(textwrap.dedent(source)))


def test_decorators_stack_and_leave_the_function_as_it_is() -> None:
    def search(*, pattern: str) -> str:
        return pattern

    said = requires_cli("rg", min_version="13", install="apt install ripgrep")(
        requires_lib("yaml")(requires_secret("KEY", hint="ask")(search))
    )
    assert said is search
    assert said(pattern="x") == "x"
    assert requirements_of(said) == (
        DeclaredRequirement("cli", "rg", min_version="13", install="apt install ripgrep"),
        DeclaredRequirement("lib", "yaml"),
        DeclaredRequirement("secret", "KEY", install="ask"),
    )


def test_requirements_in_the_source_equal_those_of_the_running_function() -> None:
    source = """
    from pegboard.sdk import requires_cli, requires_lib, requires_secret

    @requires_cli("rg", "-V", min_version="13", install="apt install ripgrep")
    @requires_lib("yaml", "6")
    @requires_secret("KEY", "ask")
    async def search(*, pattern):
        '''Search.'''
    """
    namespace: dict[str, object] = {}
    exec(textwrap.dedent(source), namespace)
    assert reading(source).functions == {"search": requirements_of(namespace["search"])}
    assert len(requirements_of(namespace["search"])) == 3


@pytest.mark.parametrize(
    "source",
    [
        'from pegboard.sdk import requires_cli as needs\n@needs("rg")\ndef f(): ...',
        'import pegboard.sdk\n@pegboard.sdk.requires_cli("rg")\ndef f(): ...',
        'import pegboard.sdk as sdk\n@sdk.requires_cli(name="rg")\ndef f(): ...',
        'from pegboard import sdk\n@sdk.requires_cli("rg")\ndef f(): ...',
        'from pegboard.sdk import *\n@requires_cli("rg")\ndef f(): ...',
        'from pegboard.sdk import requires_cli\nPROGRAM = "rg"\n@requires_cli(PROGRAM)\ndef f(): ...',
        'from pegboard.sdk import requires_cli\nneeds_rg = requires_cli("rg")\n@needs_rg\ndef f(): ...',
        'if 1:\n    from pegboard.sdk import requires_cli\nif 2:\n    @requires_cli("rg")\n    def f(): ...',
    ],
)
def test_every_style_of_import_is_supported(source: str) -> None:
    found = reading(source)
    assert (found.functions, found.unreadable) == ({"f": (DeclaredRequirement("cli", "rg"),)}, ())


def test_a_statement_at_the_top_level_applies_to_every_tool() -> None:
    found = reading("""
    from pegboard.sdk import requires_cli, requires_lib
    requires_cli("git")
    requires_lib("yaml")

    @requires_cli("git")
    @requires_cli("rg")
    def f(): ...
    """)
    git, rg, yaml = (
        DeclaredRequirement("cli", "git"),
        DeclaredRequirement("cli", "rg"),
        DeclaredRequirement("lib", "yaml"),
    )
    assert found.pack == (git, yaml)
    assert found.of("f") == (git, yaml, rg)
    assert found.of("another") == (git, yaml)


def test_decorators_of_other_libraries_are_ignored() -> None:
    found = reading("""
    from elsewhere import requires_cli, get_secret
    @requires_cli("rg")
    def f(): get_secret("KEY")
    """)
    assert (found.functions, dict(found.secrets)) == ({}, {})


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("@requires_cli(f'r{1}')", 4),
        ("@requires_cli('rg', min_version=13.10)", 4),
        ("@requires_cli('rg', min_version=True)", 4),
        ("@requires_cli(3)", 4),
        ("@requires_cli", 4),
        ("@requires_secret", 4),
        ("@requires_cli('rg', **more)", 4),
        ("@requires_cli(*names)", 4),
        ("@requires_cli('rg', version='13')", 4),
        ("@requires_cli('rg', '-V', '13', 'x', 'y')", 4),
        ("@requires_cli('')", 4),
        ("@requires_lib()", 4),
        ("@requires_secret(KEY)", 4),
    ],
)
def test_dynamic_arguments_are_reported_with_their_line(written: str, line: int) -> None:
    found = reading(f"""
    from pegboard.sdk import requires_cli, requires_lib, requires_secret
    more, names, KEY = read(), read(), read()
    {written}
    def f(): ...
    """)
    assert found.functions == {}
    assert [(item.line, item.function) for item in found.unreadable] == [(line, "f")]
    assert found.unreadable[0].message
    assert found.unreadable[0].fix


@pytest.mark.promise("SDK-10")
def test_a_file_is_granted_the_secrets_that_it_names() -> None:
    found = reading("""
    from pegboard.sdk import api_headers, get_secret, lazy_client, requires_secret
    import pegboard.sdk as sdk
    CONSTANT = "F"
    requires_secret("A")
    client = lazy_client(build, secret_name="B")
    other = lazy_client(build, "C")
    plain = lazy_client(build)

    @requires_secret("D", hint="x")
    def f():
        def inner():
            return get_secret("E") or get_secret(name=CONSTANT)
        return {**api_headers("G", "X-Key"), **sdk.api_headers(secret_name="H")}

    class Client:
        key = get_secret("A")
    """)
    assert dict(sorted(found.secrets.items())) == {"A": 5, "B": 6, "C": 7, "D": 10, "E": 13, "F": 13, "G": 14, "H": 14}
    assert found.unreadable == ()


@pytest.mark.promise("SDK-10")
def test_a_dynamic_secret_name_is_reported_and_not_granted() -> None:
    found = reading("""
    from pegboard.sdk import get_secret
    NAME = "A"
    NAME = "B"
    def f(*, name):
        return get_secret(name) or get_secret(NAME)
    """)
    assert dict(found.secrets) == {}
    assert [(item.line, item.function) for item in found.unreadable] == [(6, "f")]


def test_the_sdk_itself_can_be_read() -> None:
    tree = ast.parse("x: int\nx += 1\nfrom . import y\nimport pegboard\n(a.b)('c')\npegboard('d')\n@e\ndef f(): ...")
    assert read_requirements(tree) == DeclaredRequirements()


def test_a_version_may_be_an_integer() -> None:
    found = reading("""
    from pegboard.sdk import requires_cli
    @requires_cli(name="git", min_version=2)
    def f(): ...
    """)
    assert found.functions["f"] == (DeclaredRequirement("cli", "git", min_version="2"),)
    assert requirements_of(requires_cli(name="git", min_version=2)(lambda: None)) == found.functions["f"]


@pytest.mark.parametrize("decorator", [requires_cli, requires_lib, requires_secret, hints, aliases])
def test_a_decorator_without_parentheses_leaves_the_function_as_it_is(decorator: Any) -> None:
    def tool() -> int:
        return 3

    assert decorator(tool) is tool
