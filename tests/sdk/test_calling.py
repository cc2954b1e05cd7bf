"""Calls of the tools of other packs in a plain script."""

from __future__ import annotations

import ast
import asyncio
import copy
import importlib
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any  # proxies return any value

import pytest

from pegboard.sdk import ToolFailed, call_tool, get_pack
from pegboard.sdk.host import Host, install
from pegboard.sdk.source import parse_file

pytestmark = pytest.mark.promise("SDK-15")

Script = Callable[..., None]

SHELF = '''
import asyncio
from pegboard.sdk import ToolFailed, aliases, call_tool, get_config, get_pack, get_secret, log

def count(thing: str, of: int = 1) -> dict[str, object]:
    """Counts things."""
    return {"thing": thing, "of": of}

@aliases("shelf.find", thing=("what", "item"))
def search(*, thing: str) -> str:
    """Finds a thing."""
    return f"found {thing}"

async def later(*, thing: str) -> str:
    """Counts later."""
    await asyncio.sleep(0)
    return f"later {thing}"

async def nested(*, depth: int) -> int:
    """Calls itself."""
    return depth if depth == 0 else call_tool("shelf.sync", depth=depth)

def sync(*, depth: int) -> int:
    """Calls the other one."""
    return 1 + get_pack("shelf").nested(depth=depth - 1)

def several():
    """Gives them one by one."""
    yield from "ab"

async def several_later():
    """Gives them one by one, later."""
    for letter in "ab":
        yield letter

def fail(*, how: str) -> None:
    """Fails."""
    if how == "said":
        raise ToolFailed("Not today.", "closed", {"until": 9})
    raise KeyError(how)

def undocumented(): ...

def _private():
    """Is no tool."""
'''


@pytest.fixture
def shelf(script: Script) -> None:
    """Put the pack `shelf` on the path."""
    script(shelf=SHELF)


@pytest.mark.promise("SDK-2")
@pytest.mark.usefixtures("shelf")
def test_a_call_by_name_returns_the_result_of_the_tool() -> None:
    assert call_tool("shelf.count", thing="saw") == {"thing": "saw", "of": 1}
    assert call_tool("shelf.later", thing="saw") == "later saw"
    assert call_tool("shelf.several") == call_tool("shelf.several_later") == ["a", "b"]


TYPED = '''
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated
from pydantic import Field, StringConstraints
from pegboard.sdk import ToolFailed

@dataclass
class Box:
    day: date
    where: Path

def seen(*, box: Box = None, label: Annotated[str, StringConstraints(to_lower=True)] = Field("a"), **days: date) -> str:
    """Return the arguments as text."""
    return repr((box, label, days))

def result(*, raw: object = None) -> Box:
    """Return a value that JSON doesn't have."""
    return {"box": Box(date(2024, 1, 1), Path("a")), "pair": (1, Decimal("1.10")), 2: raw}

def count(*, least: int = Field(ge=1), most: int = Field(description="At most.")) -> int:
    """Accept two required arguments."""

def handle():
    """Return an object without a JSON form."""
    return object()

def fail(*, data: str = "") -> None:
    """Fail with data that JSON doesn't have."""
    raise ToolFailed("Full.", 507, {"day": date(2024, 1, 1)} if data == "day" else object())
'''

PLAIN = '''
from pathlib import Path
from typing import Annotated, Literal, TypedDict
from pydantic import Field

class Box(TypedDict, total=False):
    size: float

def seen(
    *,
    count: int = 0,
    limit: Annotated[int, Field(ge=1, alias="max")] = 1,
    most: int = Field(1, le=5),
    names: list[str] | None = None,
    mode: Literal["slow"] = None,
    where: Path = Path(),
    box: Box = None,
    **rest: int,
) -> dict:
    """Return the arguments."""
    return dict(locals())
'''


@pytest.mark.promise("SDK-2")
def test_arguments_and_results_pass_as_json_as_they_do_between_workers(script: Script) -> None:
    script(typed=TYPED)
    assert call_tool("typed.seen", box={"day": "2024-01-01", "where": Path("a")}, tomorrow="2024-01-02") == (
        "(Box(day=datetime.date(2024, 1, 1), where=PosixPath('a')), 'a', {'tomorrow': datetime.date(2024, 1, 2)})"
    )
    assert call_tool("typed.seen", label="ABC") == "(None, 'abc', {})"
    box = {"day": "2024-01-01", "where": "a"}
    assert call_tool("typed.result", raw=(1,)) == {"box": box, "pair": [1, "1.10"], "2": [1]}


@pytest.mark.promise("SDK-13")
def test_the_type_of_a_result_without_a_json_form_has_the_name_of_its_pack(script: Script) -> None:
    script(shelf='class Box: ...\ndef put():\n    """Is a tool."""\n    return Box()\n')
    with pytest.raises(RuntimeError, match=r"an object of type shelf\.Box at the top\.$"):
        call_tool("shelf.put")


@pytest.mark.promise("SDK-2", "SDK-13")
def test_values_that_fail_between_workers_fail_in_a_script_too(script: Script) -> None:
    script(typed=TYPED)
    with pytest.raises(TypeError, match=r"^typed\.result was not called because its arguments can't be converted to "):
        call_tool("typed.result", raw=object())
    with pytest.raises(TypeError, match=r"^typed\.seen was not called because its arguments are invalid: box\.day: "):
        call_tool("typed.seen", box={"day": "soon", "where": "a"})
    with pytest.raises(TypeError, match=r"^typed\.count was not called because its arguments are invalid: most: is"):
        call_tool("typed.count", least=1)
    with pytest.raises(RuntimeError, match=r"^typed\.handle failed: The result can't be converted to JSON: an object"):
        call_tool("typed.handle")
    with pytest.raises(ToolFailed, match=r"^Full\.$") as failed:
        call_tool("typed.fail", data="day")
    assert (failed.value.code, failed.value.data) == ("507", {"day": "2024-01-01"})
    with pytest.raises(ToolFailed, match=r"^Full\. \(The result can't be converted to JSON: ") as failed:
        call_tool("typed.fail")
    assert failed.value.data is None


@pytest.mark.promise("SDK-2")
@pytest.mark.usefixtures("shelf")
def test_built_in_packs_can_be_called_too() -> None:
    assert call_tool("tools.echo", value=[1]) == [1]


@pytest.mark.promise("SDK-2")
@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.count", "Pack not found: nowhere"),
        ("shelf.cuont", "Tool not found: shelf.cuont. Did you mean shelf.count?"),
        ("shelf._private", "Tool not found: shelf._private."),
        ("shelf.undocumented", "Tool not found: shelf.undocumented."),
        ("count", "Tool not found: count. Write its full name, pack.tool. Did you mean "),
        ("", "Tool not found: . Write its full name, pack.tool."),
    ],
)
def test_an_unknown_tool_is_an_error_with_a_suggestion(name: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace(".", r"\.").replace("?", r"\?")):
        call_tool(name)


@pytest.mark.promise("SDK-2")
@pytest.mark.usefixtures("shelf")
def test_calls_work_from_a_thread_from_an_event_loop_and_nested() -> None:
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(call_tool("shelf.later", thing="a")))
    thread.start()
    thread.join(30)

    async def within() -> None:
        answers.append(call_tool("shelf.later", thing="b"))
        answers.append(await asyncio.to_thread(call_tool, "shelf.later", thing="c"))

    asyncio.run(within())
    answers.append(call_tool("shelf.nested", depth=5))
    assert answers == ["later a", "later b", "later c", 5]


@pytest.mark.promise("SDK-1", "DSC-5")
@pytest.mark.usefixtures("shelf")
def test_tools_are_attributes_of_a_pack_and_accept_keywords_only() -> None:
    pack = get_pack("shelf")
    assert pack is not None
    assert pack.count(thing="saw", of=2) == {"thing": "saw", "of": 2}
    assert "count" in dir(pack)
    assert "_private" not in dir(pack)
    with pytest.raises(TypeError, match=r"^shelf\.count accepts keyword arguments only\.$"):
        pack.count("saw")
    with pytest.raises(AttributeError, match=r"has no tool cuont\. Did you mean count\?"):
        pack.cuont  # noqa: B018 - the access raises
    assert (repr(pack), repr(pack.count)) == ("<pack shelf>", "<tool shelf.count>")


@pytest.mark.promise("SDK-1")
@pytest.mark.usefixtures("shelf")
def test_an_unknown_pack_is_none() -> None:
    assert get_pack("nowhere") is None


@pytest.mark.promise("SDK-14")
@pytest.mark.usefixtures("shelf")
def test_parameters_have_aliases_but_only_one_name_per_call() -> None:
    assert call_tool("shelf.search", what="saw") == call_tool("shelf.search", item="saw") == "found saw"
    with pytest.raises(TypeError, match=r"^shelf\.search got thing twice"):
        call_tool("shelf.search", thing="saw", what="axe")


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("arguments", [{}, {"thing": "saw", "colour": "red"}])
def test_invalid_arguments_are_an_error_before_the_tool_runs(arguments: dict[str, str]) -> None:
    with pytest.raises(TypeError, match=r"^shelf\.search: "):
        call_tool("shelf.search", **arguments)


@pytest.mark.promise("SDK-13")
@pytest.mark.usefixtures("shelf")
def test_a_failed_call_raises_the_failure_of_the_tool_or_names_its_exception() -> None:
    with pytest.raises(ToolFailed) as said:
        call_tool("shelf.fail", how="said")
    assert (str(said.value), said.value.code, said.value.data) == ("Not today.", "closed", {"until": 9})
    with pytest.raises(RuntimeError, match=r"^shelf\.fail failed: KeyError: 'key'$") as raised:
        call_tool("shelf.fail", how="key")
    assert isinstance(raised.value.__cause__, KeyError)


@pytest.mark.promise("SDK-13")
def test_the_only_exception_of_a_task_group_is_raised_instead_of_the_group(script: Script) -> None:
    script(
        tasks="""
        import asyncio
        from pegboard.sdk import ToolFailed

        async def fail(*, author: bool) -> None:
            \"\"\"Fail in a task.\"\"\"
            async def task() -> None:
                if author:
                    raise ToolFailed("no such dataset", "not_found", {"known": (1,)})
                raise KeyError("two")

            async with asyncio.TaskGroup() as group:
                group.create_task(task())
    """
    )
    with pytest.raises(ToolFailed) as said:
        call_tool("tasks.fail", author=True)
    assert (str(said.value), said.value.code, said.value.data) == ("no such dataset", "not_found", {"known": [1]})
    with pytest.raises(RuntimeError, match=r"^tasks\.fail failed: KeyError: 'two'$") as raised:
        call_tool("tasks.fail", author=False)
    assert isinstance(raised.value.__cause__, KeyError)


@pytest.mark.promise("SDK-13")
def test_a_tool_or_pack_that_exits_fails_its_call_only(script: Script) -> None:
    script(
        leaving="import sys\ndef leave() -> None:\n    'Leave.'\n    sys.exit(3)\n",
        gone="import sys\ndef leave() -> None:\n    'Leave.'\nsys.exit('no display')\n",
    )
    with pytest.raises(RuntimeError, match=r"^leaving\.leave failed: SystemExit: 3$"):
        call_tool("leaving.leave")
    with pytest.raises(RuntimeError, match=r"^The pack gone could not be loaded: SystemExit: no display$"):
        call_tool("gone.leave")


def test_a_pack_shadows_no_library_and_finds_helpers_in_its_folder(script: Script) -> None:
    script(
        json='''
        """Not the library."""
        import json, textwrap
        import _words
        from . import _more
        from ._more import MORE
        pack = "letters"

        def write(*, value: object) -> str:
            """Writes it."""
            return textwrap.indent(json.dumps(value), _words.INDENT + _more.MORE + MORE)
        ''',
        _words="import _more\nINDENT = _more.MORE",
        _more="MORE = '>'",
    )
    import json

    assert call_tool("letters.write", value=1) == ">>>1"
    assert json.dumps(1) == "1"
    assert get_pack("_words") is None


def test_a_pack_finds_modules_of_its_folder_package_and_project(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, source in {
        "pyproject.toml": "",
        "script_core/part.py": "PART = 'project'\n",
        "script_app/__init__.py": "from .client import get\n",
        "script_app/client.py": "from script_core.part import PART\ndef get(): return PART\n",
        "script_app/inner/__init__.py": "",
        "script_app/inner/script_asking.py": """
            from ..client import get
            from script_app import get as same
            def ask():
                \"\"\"Ask.\"\"\"
                return get() + same()
        """,
        "packs/script_beside.py": "def get(): return 'beside'\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(textwrap.dedent(source))
    monkeypatch.setattr(sys, "path", [*sys.path])
    script(flat='from script_beside import get\ndef ask():\n    """Ask."""\n    return get()\n')
    assert call_tool("flat.ask") == "beside"
    monkeypatch.setenv("PEGBOARD_PACKS", str(tmp_path / "script_app" / "inner"))
    install(Host())
    assert call_tool("script_asking.ask") == "projectproject"


def test_a_pack_that_fails_to_load_is_an_error_with_the_reason(script: Script) -> None:
    script(bad='import no_such_library\ndef f():\n    """Is a tool."""\n', worse="def f(:")
    with pytest.raises(RuntimeError, match=r"^The pack bad could not be loaded: ModuleNotFoundError: No module named"):
        call_tool("bad.f")
    assert get_pack("worse") is None


def test_a_pack_in_a_file_tools_is_called_like_its_folder(script: Script, tmp_path: Path) -> None:
    script(tools='def f():\n    """A."""\n    return "mine"\n')
    assert call_tool("packs.f") == "mine"


def test_the_first_of_two_packs_with_the_same_name_is_used(script: Script) -> None:
    script(
        another='pack = "same"\ndef f():\n    """A."""\n    return "a"\n',
        other='pack = "same"\ndef f():\n    """B."""\n',
        same='def f():\n    """C."""\n',
    )
    assert call_tool("same.f") == "a"


def test_a_call_by_name_parses_only_files_that_may_be_the_pack(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(
        one='def f():\n    """One."""\n    return 1\n', two='pack = "three"\ndef f():\n    """Two."""\n    return 2\n'
    )
    parsed: list[str] = []

    def parse(file: str) -> ast.Module | None:
        if Path(file).is_relative_to(tmp_path):  # tests that use the SDK are packs, too
            parsed.append(Path(file).name)
        return parse_file(file)

    monkeypatch.setattr("pegboard.sdk.local_packs.parse_file", parse)
    assert call_tool("one.f") == 1
    assert parsed == ["one.py"]
    assert call_tool("three.f") == 2
    assert parsed == ["one.py", "two.py"]


@pytest.mark.parametrize(
    ("imports", "is_pack"),
    [
        ("from pegboard.sdk import hints", True),
        ("from pegboard.sdk import ToolFailed", True),
        ("from pegboard import sdk", True),
        ("import pegboard.sdk", True),
        ("import json", False),
    ],
)
def test_a_module_that_uses_the_sdk_is_a_pack_once_it_is_imported(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: str, is_pack: bool
) -> None:
    script()
    (tmp_path / "imported_pack.py").write_text(f'{imports}\ndef f():\n    """Is a tool."""\n    return "f"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "imported_pack", raising=False)
    assert get_pack("imported_pack") is None
    importlib.import_module("imported_pack")
    try:
        assert (get_pack("imported_pack") is not None) is is_pack
    finally:
        del sys.modules["imported_pack"]


def test_all_selects_the_tools(script: Script) -> None:
    script(some='__all__ = ["_f"]\n__all__ += ("g",)\ndef _f(): ...\ndef g(): ...\ndef h():\n    """Not listed."""\n')
    pack = get_pack("some")
    assert sorted(dir(pack)) == ["_f", "g"]


def test_a_changed_pack_is_reloaded(script: Script, tmp_path: Path) -> None:
    script(live='def f():\n    """A."""\n')
    assert dir(get_pack("live")) == ["f"]
    (tmp_path / "packs" / "live.py").write_text('def ff():\n    """B, longer."""\n')
    assert dir(get_pack("live")) == ["ff"]


def test_packs_are_reloaded_when_a_helper_that_they_use_changes(
    script: Script, write_pack: Callable[[str, str], Path]
) -> None:
    use = "from {} import value\ndef f() -> object:\n    'Read it.'\n    return value.found\n"
    script(
        _base="found = [1]\n",
        _middle="import _base as value\n",
        near=use.format("_middle"),
        other=use.format("._middle"),
        apart="found = []\ndef f() -> int:\n    'Count.'\n    found.append(1)\n    return len(found)\n",
    )
    assert (call_tool("near.f"), call_tool("other.f"), call_tool("apart.f")) == ([1], [1], 1)
    write_pack("_base.py", "wrong = True\n")
    with pytest.raises(RuntimeError, match="has no attribute 'found'"):
        call_tool("near.f")
    write_pack("_base.py", "found = [1, 2, 3]\n")
    assert (call_tool("other.f"), call_tool("near.f"), call_tool("apart.f")) == ([1, 2, 3], [1, 2, 3], 2)
    write_pack("_base.py", "found = 'for a new pack'\n")
    write_pack("new.py", use.format("_middle"))
    assert call_tool("new.f") == "for a new pack"
    write_pack("_middle.py", "raise KeyError('broken')\n")
    with pytest.raises(RuntimeError, match="could not be loaded: KeyError: 'broken'"):
        call_tool("near.f")
    write_pack("_middle.py", "class value:\n    found = 'repaired'\n")
    assert (call_tool("near.f"), call_tool("other.f")) == ("repaired", "repaired")


def test_a_function_that_a_decorator_put_into_an_object_is_called(script: Script) -> None:
    decorated = "from pydantic_ai import Tool\n@Tool\ndef f(*, a: int) -> int:\n    'Double.'\n    return 2 * a\n"
    script(framework=decorated)
    assert call_tool("framework.f", a=3) == 6


@pytest.mark.promise("SDK-2", "SDK-13")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": "3"}, "count: Input should be a valid integer"),
        ({"count": True}, "count: Input should be a valid integer"),
        ({"limit": 0}, "limit: Input should be greater than or equal to 1"),
        ({"most": 9}, "most: Input should be less than or equal to 5"),
        ({"names": "ab"}, "names: Input should be a valid array"),
        ({"names": ["a", 1]}, "names #2: Input should be a valid string"),
        ({"mode": "fast"}, "mode: Input should be 'slow'"),
        ({"where": 1}, "where: Input should be a valid string"),
        ({"box": {"size": "1"}}, "box.size: Input should be a valid number"),
        ({"further": "1"}, "further: Input should be a valid integer"),
        ({"count": "3", "names": 1}, "count: Input should be a valid integer; names: Input should be a valid array"),
    ],
)
def test_values_of_other_types_are_an_error_before_the_tool_runs_in_a_script(
    script: Script, arguments: dict[str, object], message: str
) -> None:
    script(plain=PLAIN)
    with pytest.raises(TypeError) as caught:
        call_tool("plain.seen", **arguments)
    assert str(caught.value) == f"plain.seen was not called because its arguments are invalid: {message}"


@pytest.mark.promise("SDK-2")
def test_values_of_the_annotated_types_arrive_unchanged_in_a_script(script: Script) -> None:
    script(plain=PLAIN)
    every = {"count": 3.0, "limit": 2, "most": 5, "names": ("a",), "mode": None, "where": Path("a"), "box": {"size": 1}}
    assert call_tool("plain.seen", **every, further=1) == {
        **every,
        "count": 3,
        "names": ["a"],
        "where": "a",
        "rest": {"further": 1},
    }


def test_a_decorator_that_hides_the_signature_changes_no_call(script: Script) -> None:
    decorated = (
        "from datetime import date\nfrom pegboard.sdk import aliases\n"
        "def timed(f):\n    return lambda *args, **keywords: f(*args, **keywords)\n"
        "@timed\n@aliases(day=('when',))\ndef f(*, day: date) -> str:\n    'Return a day.'\n    return repr(day)\n"
    )
    script(bare=decorated)
    assert (
        call_tool("bare.f", day="2024-02-29") == call_tool("bare.f", when="2024-02-29") == "datetime.date(2024, 2, 29)"
    )
    with pytest.raises(TypeError, match="missing a required"):
        call_tool("bare.f", bay="2024-02-29")


def test_a_decorator_may_fill_in_a_parameter(script: Script) -> None:
    filled = (
        "import functools\ndef with_db(f):\n    @functools.wraps(f)\n    def call(*args, **keywords):\n"
        "        return f(*args, db={'a': 1}, **keywords)\n    return call\n"
        "@with_db\ndef f(*, key: str, db) -> int:\n    'Return a value.'\n    return db[key]\n"
    )
    script(base=filled)
    assert call_tool("base.f", key="a") == 1
    with pytest.raises(TypeError, match=r"base\.f: .* missing 1 required keyword-only argument: 'key'"):
        call_tool("base.f")
    with pytest.raises(TypeError, match="missing a required"):
        call_tool("base.f", kee="a")


def test_a_function_that_pydantic_validates_is_called_by_its_parameters(script: Script) -> None:
    script(
        checked="from pydantic import Field, validate_call\n"
        "@validate_call\ndef f(*, text: str = Field(alias='q')) -> str:\n    'Repeat a text.'\n    return 2 * text\n"
    )
    assert call_tool("checked.f", text="a") == "aa"


@pytest.mark.promise("SDK-1", "SDK-2", "SDK-9")
def test_a_script_without_pegboard_finds_its_own_pack_and_those_on_the_path(
    tmp_path: Path, write_pack: Callable[[str, str], Path], home: Path
) -> None:
    write_pack("near.py", 'def here() -> str:\n    """Is near."""\n    return "near"\n')
    data = home / "data" / "packs"
    data.mkdir(parents=True)
    (data / "own.py").write_text('def here() -> str:\n    """Is ours."""\n    return "own"\n')
    main = tmp_path / "main.py"
    main.write_text(
        "import sys\n"
        "from pegboard.sdk import call_tool, check_deps, get_pack, requires_lib\n"
        '@requires_lib("json")\ndef start() -> str:\n    """Is a tool of this script."""\n    return "main"\n'
        'print(call_tool("near.here"), call_tool("own.here"), call_tool("main.start"), get_pack("far"))\n'
        'print([(row["tool"], row["status"]) for row in check_deps("main")])\n'
        'print("_pegboard_packs_1.near" in sys.modules)\n'
    )
    done = subprocess.run(
        [sys.executable, str(main)],
        env={"PATH": "/usr/bin", "PEGBOARD_PACKS": str(tmp_path / "packs"), "PEGBOARD_DATA_DIR": str(home / "data")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("near own main None\n[('main.start', 'ok')]\nTrue\n", "")


@pytest.mark.promise("SDK-1")
@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda proxy: pickle.loads(pickle.dumps(proxy))])
def test_packs_and_tools_can_be_copied_and_pickled(copied: Callable[[Any], Any]) -> None:
    pack = get_pack("shelf")
    assert pack is not None
    assert copied(pack) == pack
    assert copied(pack).count(thing="saw") == {"thing": "saw", "of": 1}
    assert copied(pack.count) == pack.count
    assert len({pack, copied(pack)}) == 1
    assert not hasattr(pack, "__fspath__")
    assert not hasattr(pack, "nothing")


@pytest.mark.promise("SDK-1", "SDK-14")
@pytest.mark.usefixtures("shelf")
def test_a_tool_is_found_by_its_aliases() -> None:
    pack = get_pack("shelf")
    assert pack is not None
    assert pack.find(thing="saw") == call_tool("shelf.find", what="saw") == "found saw"


@pytest.mark.promise("SDK-2", "SDK-14")
def test_a_tool_can_be_called_by_an_alias_without_a_dot(script: Script) -> None:
    script(
        names="""
        from pegboard.sdk import aliases

        @aliases("findThings")
        def search(*, name: str, tool: str, self: str) -> str:
            \"\"\"Find.\"\"\"
            return name + tool + self
    """
    )
    pack = get_pack(name="names")
    assert pack is not None
    assert call_tool("findThings", name="a", tool="b", self="c") == "abc"
    assert call_tool("names.search", name="a", tool="b", self="c") == "abc"
    assert pack.findThings(name="a", tool="b", self="c") == "abc"


def test_all_decorators_that_declare_aliases_count(script: Script) -> None:
    script(
        stacked="""
        from pegboard.sdk import aliases

        def hidden(tool):
            return lambda **arguments: tool(**arguments)

        @aliases("outermost", z="y")
        @hidden
        @aliases("outer", z="x", a="b")
        @aliases("inner", z=("w", "v"))
        def f(*, z: str, a: int = 0) -> str:
            \"\"\"Do.\"\"\"
            return f"{z}{a}"
    """
    )
    for number, name in enumerate(("z", "y", "x", "w", "v")):
        assert call_tool("stacked.f", **{name: "1", "b": number}) == f"1{number}"
    for tool in ("outermost", "outer", "inner"):
        assert call_tool(tool, v="1") == "10"


@pytest.mark.promise("SDK-1", "SDK-2")
def test_new_and_changed_packs_are_found_by_every_function(
    script: Script, write_pack: Callable[[str, str], Path]
) -> None:
    script(one="def first() -> int:\n    'Be first.'\n    return 1\n")
    pack = get_pack("one")
    assert pack is not None
    assert (pack.first(), get_pack("two")) == (1, None)
    write_pack("two.py", "def other() -> int:\n    'Be other.'\n    return 22\n")
    write_pack("one.py", "def second() -> int:\n    'Be second.'\n    return 2\n")
    two = get_pack("two")
    assert two is not None
    assert two.other() == call_tool("two.other") == 22
    assert pack.second() == call_tool("one.second") == 2
    assert not hasattr(pack, "first")
