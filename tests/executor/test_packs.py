"""Import of packs: once, again after a change, and isolated from other modules."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any  # fixtures

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a file to the test's folder and returns its path."""

    def write(name: str, source: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        return file

    return write


Write = Callable[[str, str], Path]


async def test_a_module_is_loaded_once_per_worker(harness: Any, write: Write) -> None:
    pack = write("counter.py", "calls = []\ndef count():\n    calls.append(1)\n    return len(calls)\n")
    assert [(await harness.run("count", pack)).data for _ in range(3)] == [1, 2, 3]


async def test_a_changed_file_is_loaded_again_even_within_a_second(harness: Any, write: Write) -> None:
    for version in "abcdef":
        pack = write("version.py", f"def version():\n    return {version!r}\n")
        assert (await harness.run("version", pack)).data == version
        assert not (pack.parent / "__pycache__").exists()


async def test_a_replaced_file_is_loaded_despite_its_old_time(harness: Any, write: Write) -> None:
    pack = write("version.py", "def version():\n    return 1\n")
    assert (await harness.run("version", pack)).data == 1
    status = pack.stat()
    other = write("other", "def version():\n    return 2\n")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(pack)
    assert (await harness.run("version", pack)).data == 2


async def test_a_rewritten_file_is_loaded_despite_its_old_time_and_size(harness: Any, write: Write) -> None:
    pack = write("version.py", "def version():\n    return 1\n")
    assert (await harness.run("version", pack)).data == 1
    status = pack.stat()
    write("version.py", "def version():\n    return 2\n")
    os.utime(pack, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (await harness.run("version", pack)).data == 2


@pytest.mark.promise("DSC-1")
@pytest.mark.parametrize(
    "statement",
    [
        "import _part; get = _part.get",
        "from _part import get",
        "from ._part import get",
        "from . import _part; get = _part.get",
    ],
)
async def test_a_pack_imports_helpers_of_its_folder(harness: Any, write: Write, statement: str) -> None:
    write("_part.py", "def get():\n    return 'part'\n")
    pack = write("whole.py", f"{statement}\ndef ask():\n    return get()\n")
    assert (await harness.run("ask", pack)).data == "part"


@pytest.mark.promise("DSC-1")
async def test_a_helper_may_be_imported_inside_a_function_and_by_a_helper(harness: Any, write: Write) -> None:
    write("_deep.py", "value = 'deep'\n")
    write("_part.py", "from _deep import value\n")
    pack = write(
        "whole.py", "def ask():\n    import _part\n    from ._part import value\n    return _part.value + value\n"
    )
    assert (await harness.run("ask", pack)).data == "deepdeep"


@pytest.mark.promise("DSC-1")
async def test_a_changed_helper_is_reloaded_with_its_users(open_harness: Callable[..., Any], write: Write) -> None:
    harness = open_harness(workers=2)
    write("_deep.py", "value = 1\n")
    write("_part.py", "from _deep import value\n")
    pack = write(
        "whole.py",
        "from _part import value\ncalls = []\ndef ask():\n    calls.append(1)\n    return [value, len(calls)]\n",
    )
    other = write("other.py", "calls = []\ndef ask():\n    calls.append(1)\n    return len(calls)\n")
    assert (await harness.run("ask", pack)).data == [1, 1]
    assert (await harness.run("ask", pack)).data == [1, 2]
    assert (await harness.run("ask", other)).data == 1
    write("_deep.py", "value = 2\n")
    assert (await harness.run("ask", pack)).data == [2, 1]
    assert (await harness.run("ask", other)).data == 2


@pytest.mark.promise("DSC-1")
async def test_helpers_with_the_same_name_in_two_folders_are_separate(harness: Any, write: Write) -> None:
    packs = {}
    for folder in ("one", "two"):
        write(f"{folder}/_part.py", f"NAME = {folder!r}\n")
        packs[folder] = write(
            f"{folder}/pack.py",
            "import _part\ndef ask():\n    import _part as again\n    return [_part.NAME, again.NAME]\n",
        )
    for folder in ("one", "two", "one"):
        assert (await harness.run("ask", packs[folder])).data == [folder, folder]


@pytest.mark.promise("DSC-1")
@pytest.mark.parametrize("name", ["json", "time", "re", "asyncio", "pydantic", "pegboard"])
async def test_a_pack_named_like_a_library_shadows_nothing(harness: Any, write: Write, name: str) -> None:
    pack = write(
        f"{name}.py",
        f"import {name}\ndef ask():\n    return {name}.__file__ or 'built in'\n"
        if name != "time"
        else "import time\ndef ask():\n    return time.time()\n",
    )
    neighbour = write("neighbour.py", f"import {name}, json, pathlib\ndef ask():\n    return {name}.__name__\n")
    data = (await harness.run("ask", pack)).data
    assert data != str(pack)
    assert (await harness.run("ask", neighbour)).data == name


async def test_dataclasses_type_hints_and_pickles_find_their_module(harness: Any, write: Write) -> None:
    pack = write(
        "typed.py",
        """
        from __future__ import annotations
        import pickle, typing
        from dataclasses import dataclass, field

        @dataclass
        class Point:
            x: int
            others: list[Point] = field(default_factory=list)

        def ask() -> Point:
            assert typing.get_type_hints(Point)["others"] == list[Point]
            return pickle.loads(pickle.dumps(Point(1, [Point(2)])))
        """,
    )
    assert (await harness.run("ask", pack)).data == {"x": 1, "others": [{"x": 2, "others": []}]}


@pytest.mark.promise("EXE-3")
@pytest.mark.parametrize(
    ("source", "detail", "words"),
    [
        ("def ask(:\n", "import_failed", "SyntaxError: "),
        ("raise ValueError('at the top')\n", "import_failed", "ValueError: at the top"),
        ("import sys; sys.exit(3)\n", "import_failed", "SystemExit: 3"),
        ("raise KeyboardInterrupt\n", "import_failed", "KeyboardInterrupt"),
        ("import os; os._exit(3)\n", "crashed", "exit code 3"),
        ("while True: pass\n", "timeout", "0.5 s"),
        ("import nobody_has_this.part\n", "dependency_missing", "-m pip install nobody_has_this"),
        ("import sklearn_missing as x, sys\n", "dependency_missing", sys.executable),
        ("import _gone\n", "import_failed", "No module named '_gone'"),
        ("from ._gone import x\n", "import_failed", "_gone"),
        ("from json import gone\n", "import_failed", "ImportError: cannot import name 'gone'"),
        ("x = '\0'\n", "import_failed", "null bytes"),
        ("# -*- coding: utf-8 -*-\nx = '\udce9'\n", "import_failed", "SyntaxError: "),
    ],
)  # fmt: skip
async def test_a_pack_that_fails_to_load_fails_its_call_with_the_reason(
    harness: Any, write: Write, source: str, detail: str, words: str
) -> None:
    pack = write("broken.py", "")
    pack.write_bytes(source.encode("utf-8", "surrogateescape"))
    result = await harness.run("ask", pack, limit=0.5 if detail == "timeout" else 30)
    assert (result.error.code, result.error.detail) == ("execution_error", detail)
    assert words in result.error.message
    write("broken.py", "def ask():\n    return 'repaired'\n")
    assert (await harness.run("ask", pack)).data == "repaired"


@pytest.mark.promise("EXE-3")
@pytest.mark.parametrize(
    ("top", "words"),
    [
        ("def main(): raise ValueError('no key.')\nmain()\n", "ValueError: no key. broken.py raised this in line 2 "),
        ("import os\n\nkey = os.environ['NO_SUCH_KEY']\n", "`get_secret`. broken.py raised this in line 3 "),
    ],
)
async def test_the_message_of_a_failed_import_says_that_the_tool_was_not_called(
    harness: Any, write: Write, top: str, words: str
) -> None:
    message = (await harness.run("ask", write("broken.py", top))).error.message
    assert f"{words}while it was loaded, so the tool was not called" in message
    assert message.endswith('below `if __name__ == "__main__":`') != ("get_secret" in message)


async def test_a_library_is_installed_by_the_name_it_is_distributed_under(harness: Any, write: Write) -> None:
    pack = write("vision.py", "import cv2\n")
    result = await harness.run("ask", pack)
    assert "-m pip install opencv-python" in result.error.message


async def test_the_traceback_of_a_failing_import_shows_the_pack_and_its_helpers_only(
    harness: Any, write: Write
) -> None:
    write("_part.py", "raise OSError('helper')\n")
    pack = write("whole.py", "import _part\n")
    trace = (await harness.run("ask", pack)).meta.traceback
    assert [line.split('"')[1] for line in trace.splitlines() if "File" in line] == [
        str(pack),
        str(pack.parent / "_part.py"),
    ]


async def test_a_removed_function_or_file_is_reported(harness: Any, write: Write) -> None:
    pack = write("here.py", "thing = 3\n")
    for function in ("ask", "thing"):
        result = await harness.run(function, pack)
        assert result.error.code == "tool_not_found"
        assert f"{pack} no longer defines the function {function}" in result.error.message
    result = await harness.run("ask", pack.with_name("gone.py"))
    assert (result.error.code, result.error.detail) == ("execution_error", "import_failed")


async def test_the_setup_of_a_pack_applies_only_to_its_own_calls(harness: Any, write: Write) -> None:
    ask = "def ask():\n    return [os.environ.get('MINE'), sys.path[0] == '/mine', os.getcwd() == '/']\n"
    other = write("other.py", f"import os, sys\n{ask}")
    setup = "os.environ['MINE'] = 'yes'\nsys.path.insert(0, '/mine')\n"
    pack = write("pack.py", f"import os, sys\n{setup}{ask}\ndef spoil():\n    os.environ['MINE'] = 'spoilt'\n")
    for _ in range(2):
        assert (await harness.run("ask", other)).data == [None, False, False]
        assert (await harness.run("ask", pack)).data == ["yes", True, False]
        assert (await harness.run("spoil", pack)).ok


async def test_a_pack_named_with_dots_and_dashes_is_loaded(harness: Any, write: Write) -> None:
    pack = write("my-pack.v2.py", "def ask():\n    return __file__\n")
    assert (await harness.run("ask", pack)).data == str(pack)


async def test_a_worker_that_has_loaded_the_pack_is_preferred(open_harness: Callable[..., Any], write: Write) -> None:
    import asyncio

    harness = open_harness(workers=2)
    one, two = (
        write(f"{name}.py", "import os, time\ndef ask():\n    time.sleep(0.1)\n    return os.getpid()\n")
        for name in ("one", "two")
    )
    first, second = await asyncio.gather(harness.run("ask", one), harness.run("ask", two))
    for _ in range(3):
        assert (await harness.run("ask", one)).data == first.data
        assert (await harness.run("ask", two)).data == second.data


@pytest.mark.promise("SDK-13")
@pytest.mark.parametrize(
    "source",
    [
        "import os\ndef ask():\n    return os.environ['SERVICE_URL']\n",
        "import os\nURL = os.environ['SERVICE_URL']\ndef ask():\n    return URL\n",
    ],
)
async def test_a_variable_that_a_tool_does_not_get_is_reported_with_the_setting_that_passes_it(
    harness: Any, write: Write, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setenv("SERVICE_URL", "https://example.org")
    message = (await harness.run("ask", write("main.py", source))).error.message
    assert "KeyError: 'SERVICE_URL'. Tools get only common variables of your environment. " in message
    assert "Add 'SERVICE_URL' to `environment` under `[tools]`" in message
    other = await harness.run("ask", write("main.py", "def ask():\n    return {}['SERVICE_URL']\n"))
    assert other.error.message == "KeyError: 'SERVICE_URL'"


@pytest.mark.promise("SDK-13")
async def test_a_tool_that_asks_on_standard_input_fails_with_what_to_do_instead(harness: Any, write: Write) -> None:
    message = (await harness.run("ask", write("main.py", "def ask():\n    return input('Name? ')\n"))).error.message
    assert message == ("EOFError: EOF when reading a line. Tools have no standard input. Declare a parameter instead")
