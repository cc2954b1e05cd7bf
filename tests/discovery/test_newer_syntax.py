"""A file that only a newer Python can read is a problem that names this Python."""

from __future__ import annotations

import sys

import pytest

from pegboard.discovery.parser import read_source

TOOL = '''
def hello(*, name: str) -> str:
    """Greet."""
    return name
'''

NEWER = [
    ((3, 12), "type Names = list[str]\n"),
    ((3, 12), "type Pair[T] = tuple[T, T]\n"),
    ((3, 12), "def first[T](items: list[T]) -> T:\n    return items[0]\n"),
    ((3, 12), "class Box[T: (int, str), *Ts]:\n    pass\n"),
    ((3, 12), "class Tree[T: dict[str, list[int]]]:\n    pass\n"),
    ((3, 12), "async def first[T](items: list[T]) -> T:\n    return items[0]\n"),
    ((3, 12), "x = f\"{'\\n'.join([])}\"\n"),
    ((3, 12), "d = {'a': [1]}\nx = f'{d['a']} {d['a'][0]!r:>{d['a'][0]}} {', '.join(f'{n}' for n in d['a'])=}'\n"),
    ((3, 12), 'x = f"\\N{EM DASH} {{}} {"}" != ")"} {\n    1  # It\'s one.\n}"\n'),
    ((3, 12), "type A = int\nx = f'{f'{1}'}'\n"),
    ((3, 12), "def first[\n    T: dict[str, list[int]],\n](items: list[T]) -> T:\n    return items[0]\n"),
    ((3, 12), "type Pair[\n    T,\n] = tuple[T, T]\n"),
    ((3, 13), "def first[T = int](items: list[T]) -> T:\n    return items[0]\n"),
    ((3, 13), "class Box[T: dict[str, int] = dict[str, int], *Ts = *tuple[int]]:\n    pass\n"),
    ((3, 13), "type Pair[T = int] = tuple[T, T]\ntype Names = list[str]\n"),
    ((3, 14), "type Pair[T = int] = tuple[T, T]\nx = t'{1}'\n"),
    ((3, 14), "try:\n    pass\nexcept ValueError, TypeError:\n    pass\n"),
    ((3, 14), "try:\n    pass\nexcept* a.ValueError, TypeError:\n    pass\n"),
    ((3, 14), "x = t'{1} of {2}'\n"),
    ((3, 14), "x = rt'{1}' + TR\"{2}\"\n"),
    ((3, 14), "type A = int\nx = t'{1}'\n"),
    ((3, 15), "lazy import json\n"),
    ((3, 15), "lazy from json import (\n    dumps,\n)\n"),
    ((3, 15), "x = [*row for row in [[1]]]\n"),
    ((3, 15), "lazy import json\nx = {**row for row in [{}]}\ny = sum(*row for row in [[1]])\n"),
]
BROKEN = [
    "def hello(:\n",
    "x = (t'{1}'\n",
    "except A, B:\n    pass\n",
    "def first[T(x):\n    pass\n",
    "type A =\n",
    "x = 1 +\n",
    "print 'x'\n",
    "lazy json\n",
    "x = [*row for]\n",
    "type Pair[T = int\n",
    "x = f'{d['a'}'\n",
    "x = f'{d['a'] b}'\n",
    "x = f'{d['a']'\n",
    "x = f'{d['a']:{'\n",
    "x = f'{d['a']}\n'\n",
    "x = f'it's {d}'\n",
    "x = f'{}'\n",
    "x = f'}'\n",
    "x = f'{d['a']}'\ndef f(:\n",
    "x = " + "f'{" * 5000 + "\n",
    pytest.param("\n" * 60_000 + "def f(:\n", id="blank lines"),
    pytest.param("try:\n    1 +\nexcept A:\n" + "    \n" * 12_000, id="lines of spaces"),
    pytest.param("x = (" + "[*" * 30_000 + "\n", id="brackets"),
]


@pytest.mark.promise("DSC-9")
@pytest.mark.parametrize(("version", "source"), NEWER)
def test_newer_syntax_is_read_or_its_python_is_named(version: tuple[int, int], source: str) -> None:
    read = read_source(source + TOOL, "/packs/new.py")
    if sys.version_info[:2] >= version:
        assert "hello" in {tool["name"].rpartition(".")[2] for tool in read["tools"]}
        return
    [problem] = read["problems"]
    assert f"It needs Python {version[0]}.{version[1]} or later" in problem["fix"]
    assert f"runs on Python {sys.version_info.major}.{sys.version_info.minor}" in problem["fix"]
    assert problem["line"]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 reads it")
def test_the_exceptions_of_python_2_name_no_python() -> None:
    [problem] = read_source("try:\n    pass\nexcept ValueError, e:\n    pass\n" + TOOL, "/packs/old.py")["problems"]
    assert problem["fix"] == ""


@pytest.mark.promise("DSC-9")
@pytest.mark.parametrize("source", BROKEN)
def test_other_syntax_errors_name_no_python(source: str) -> None:
    [problem] = read_source(source + TOOL, "/packs/broken.py")["problems"]
    assert problem["fix"] == ""
