"""Types from a helper module of the pack's folder (`_models.py`), which are updated when the helper changes."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.discovery import read, scan
from pegboard.models import ToolSpec

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a function that writes files (`name="source"`) to a packs folder and returns the folder."""

    def write(**sources: str) -> Path:
        packs = tmp_path / "packs"
        packs.mkdir(exist_ok=True)
        for name, source in sources.items():
            (packs / f"{name}.py").write_text(textwrap.dedent(source))
        return packs

    return write


def only_tool(packs: Path, index: Path | None = None) -> ToolSpec:
    """Scan a folder with one tool and return the tool."""
    (tool,), _ = scan([packs], index=index)
    return tool


def messages(tool: ToolSpec) -> list[str]:
    """Return the problems of a tool."""
    return [problem.message for problem in tool.problems]


MODELS = '''
    """Models."""
    from enum import Enum
    from typing import Annotated, NewType

    from pydantic import BaseModel, Field

    MOST = 20

    class Size(Enum):
        SMALL = "s"
        LARGE = "l"

    class Part(BaseModel):
        """A part."""
        size: Size = Size.SMALL

    class Row(BaseModel):
        """A row.

        Attributes:
            name: What it is called.
        """
        name: str
        parts: list[Part] = []
        next: "Row | None" = None

    Count = Annotated[int, Field(ge=1, le=MOST)]
    Key = NewType("Key", str)
    Default = 7
'''


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    "imports",
    [
        "from ._models import Row, Count, Key, Size",
        "from _models import Row, Count, Key, Size",
        "from ._models import *",
    ],
)
def test_types_of_a_helper_are_read_like_those_of_the_pack(folder: Folder, imports: str) -> None:
    tools = '''
        {imports}
        def run(*, count: Count, key: Key, size: Size = Size.LARGE) -> list[Row]:
            """Run."""
    '''
    apart = only_tool(folder(_models=MODELS, pack=textwrap.dedent(tools).format(imports=imports)))
    assert messages(apart) == []
    together = only_tool(folder(pack=textwrap.dedent(MODELS) + textwrap.dedent(tools).format(imports="")))
    assert messages(together) == []
    assert apart.input_schema == together.input_schema
    assert apart.output_schema == together.output_schema
    assert together.output_schema is not None
    assert together.input_schema["properties"] == {
        "count": {"type": "integer", "minimum": 1, "maximum": 20},
        "key": {"type": "string"},
        "size": {"enum": ["s", "l"], "type": "string", "default": "l"},
    }


def test_a_helper_can_be_imported_as_a_module_and_can_import_another(folder: Folder) -> None:
    packs = folder(
        _base='''
            """Base."""
            from typing import TypedDict
            class RequirementKey(TypedDict):
                """A thing."""
                at: int
        ''',
        _models='"""Models."""\nfrom ._base import RequirementKey as RequirementKey\n',
        pack='''
            from . import _models
            import _base as base
            def run(*, one: _models.RequirementKey, other: base.RequirementKey) -> None:
                """Run."""
        ''',
    )
    tool = only_tool(packs)
    assert messages(tool) == []
    assert tool.input_schema["properties"] == {
        "one": {"$ref": "#/$defs/RequirementKey"},
        "other": {"$ref": "#/$defs/RequirementKey"},
    }


def test_two_classes_with_the_same_name_are_distinguished(folder: Folder) -> None:
    packs = folder(
        _models='''
            """Models."""
            from pydantic import BaseModel
            class Cell(BaseModel):
                """The helper's."""
                text: str
            class Row(BaseModel):
                """A row."""
                cells: list[Cell]
        ''',
        pack='''
            from pydantic import BaseModel
            from ._models import Row
            class Cell(BaseModel):
                """The pack's."""
                number: int
            def run(*, row: Row, cell: Cell) -> None:
                """Run."""
        ''',
    )
    definitions = only_tool(packs).input_schema["$defs"]
    assert isinstance(definitions, dict)
    assert {name: list(_properties(schema)) for name, schema in definitions.items()} == {
        "Cell": ["number"],
        "Cell_2": ["text"],
        "Row": ["cells"],
    }
    assert _properties(definitions["Row"])["cells"] == {"type": "array", "items": {"$ref": "#/$defs/Cell_2"}}


def test_a_class_can_inherit_from_one_of_a_helper(folder: Folder) -> None:
    packs = folder(
        _models='''
            """Models."""
            from pydantic import BaseModel, ConfigDict
            Number = int
            class Strict(BaseModel):
                """Base."""
                model_config = ConfigDict(extra="forbid")
                id: Number
        ''',
        pack='''
            from ._models import Strict
            Number = str
            class Row(Strict):
                """A row."""
                number: Number
            def run(*, row: Row) -> None:
                """Run."""
        ''',
    )
    tool = only_tool(packs)
    assert messages(tool) == []
    assert tool.input_schema["$defs"] == {
        "Row": {
            "type": "object",
            "description": "A row.",
            "properties": {"id": {"type": "integer"}, "number": {"type": "string"}},
            "required": ["id", "number"],
            "additionalProperties": False,
        }
    }


def test_an_unresolved_type_in_a_helper_is_reported_with_file_and_line(folder: Folder) -> None:
    packs = folder(
        _models='from typing import TypedDict\nclass Row(TypedDict):\n    """A row."""\n\n    at: Elsewhere\n',
        pack='from ._models import Row\ndef run(*, row: Row) -> None:\n    """Run."""\n',
    )
    (problem,) = only_tool(packs).problems
    assert "`Elsewhere` can't be resolved in this file (line 5 of _models.py)" in problem.message
    assert (problem.file, problem.line) == (str(packs / "pack.py"), 2)


@pytest.mark.parametrize(
    "helper",
    [None, "class Row(\n", "Other = 1\n", "from ._models import Row\n", "from ._models import Row as Rov\nRow = Rov\n"],
    ids=["not there", "unparsable", "without the name", "its own import", "a circle"],
)
def test_a_name_missing_in_a_helper_leaves_the_field_without_a_type(folder: Folder, helper: str | None) -> None:
    helpers = {"_models": helper} if helper else {}
    tool = only_tool(
        folder(**helpers, pack='from ._models import Row\ndef run(*, row: Row) -> None:\n    """Run."""\n')
    )
    assert tool.input_schema["properties"] == {"row": {}}
    assert len(tool.problems) == 1


ROW = '"""Models."""\nfrom typing import TypedDict\nclass Row(TypedDict):\n    """A row."""\n    at: int\n'


def test_imports_that_lead_out_of_the_package_are_not_read(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "_outside.py").write_text(ROW)
    packs = folder(pack='from .._outside import Row\ndef run(*, row: Row) -> None:\n    """Run."""\n')
    assert only_tool(packs).input_schema["properties"] == {"row": {}}


@pytest.mark.promise("DSC-4")
@pytest.mark.parametrize(
    ("files", "statement"),
    [
        (["tools/plain.py"], "from .plain import Row"),
        (["tools/plain.py"], "from plain import Row"),
        (["tools/_sub/_deep.py"], "from ._sub._deep import Row"),
        (["tools/sub/deep.py"], "from sub.deep import Row"),
        (["tools/sub/__init__.py"], "from sub import Row"),
        (["tools/plain.py", "tools/sub/deep.py=from plain import Row\n"], "from .sub.deep import Row"),
        (["tools/plain.py", "tools/sub/deep.py=from ..plain import Row\n"], "from .sub.deep import Row"),
        (["tools/__init__.py", "tools/models.py"], "from tools.models import Row"),
        (["tools/__init__.py"], "from . import Row"),
        (["tools/__init__.py=from .models import Row\n", "tools/models.py"], "from tools import Row"),
        (["tools/__init__.py=from tools.models import Row\n", "tools/models.py"], "from tools import Row"),
        (["tools/__init__.py=", "tools/tools.py=", "tools/models.py"], "from tools.models import Row"),
        (["tools/__init__.py=", "__init__.py=", "core.py"], "from ..core import Row"),
        (["pyproject.toml=", "core/models.py"], "from core.models import Row"),
        (["pyproject.toml=", "src/core/models.py"], "from core.models import Row"),
    ],
)
def test_types_of_other_modules_of_the_project_are_read(tmp_path: Path, files: list[str], statement: str) -> None:
    (tmp_path / "home" / "tools").mkdir(parents=True)
    for file, _, source in (each.partition("=") for each in files):
        place = tmp_path / "home" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source or (ROW if file + "=" not in files else ""))
    pack = tmp_path / "home" / "tools" / "pack.py"
    pack.write_text(f'{statement}\ndef run(*, row: Row) -> None:\n    """Run."""\n')
    tools, _ = scan([pack])
    assert [tool.input_schema["properties"] for tool in tools] == [{"row": {"$ref": "#/$defs/Row"}}]
    assert tools[0].problems == ()


@pytest.mark.promise("DSC-4")
def test_types_of_a_project_are_read_if_a_library_shares_the_folder_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, library = tmp_path / "src" / "company" / "orders", tmp_path / "installed" / "company" / "base"
    for package in (own, library):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    (own / "models.py").write_text(ROW)
    (library / "models.py").write_text(ROW)
    (own / "pack.py").write_text(
        "from company.base.models import Row as Other\nfrom company.orders.models import Row\n"
        'def run(*, row: Row, other: Other) -> None:\n    """Run."""\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    tools, _ = read((own / "pack.py").read_bytes(), str(own / "pack.py"))
    assert tools[0].input_schema["properties"] == {"row": {"$ref": "#/$defs/Row"}, "other": {}}
    assert "company" not in sys.modules


def test_a_type_of_a_library_is_not_that_of_a_module_with_its_name(folder: Folder) -> None:
    row = 'class BaseModel:\n    """Beside."""\n    at: int\n'
    source = (
        "from pydantic import BaseModel\nclass Row(BaseModel):\n"
        '    """A row."""\n    id: int\ndef run(*, row: Row) -> None:\n    """Run."""\n'
    )
    tool = only_tool(folder(pydantic=row, pack=source))
    assert _properties(tool.input_schema["$defs"]["Row"]) == {"id": {"type": "integer"}}  # type: ignore[index, call-overload]


@pytest.mark.promise("DSC-6")
@pytest.mark.parametrize("statement", ["from row_types import Row", "from .row_types import Row"])
def test_a_module_of_the_project_may_be_written_after_the_pack(folder: Folder, tmp_path: Path, statement: str) -> None:
    index = tmp_path / "index"
    packs = folder(pack=f'{statement}\ndef run(*, row: Row) -> None:\n    """Run."""\n')
    assert kind(packs, index) == {}
    (packs / "row_types.py").write_text(ONE)
    assert kind(packs, index) == {"type": "integer"}
    (packs / "row_types.py").write_text(TWO)
    assert kind(packs, index) == {"type": "string"}


PACK = 'from ._models import Row\ndef run(*, row: Row) -> None:\n    """Run."""\n'
ONE = "from typing import NewType\nRow = NewType('Row', int)\n"
TWO = "from typing import NewType\nRow = NewType('Row', str)\n"


def kind(packs: Path, index: Path) -> object:
    """Return the schema of the tool's parameter."""
    properties = only_tool(packs, index).input_schema["properties"]
    assert isinstance(properties, dict)
    return properties["row"]


@pytest.mark.promise("DSC-6")
@pytest.mark.parametrize("fresh", [True, False], ids=["just written", "long there"])
def test_an_added_changed_or_removed_helper_is_noticed_if_the_pack_is_unchanged(
    folder: Folder, tmp_path: Path, fresh: bool
) -> None:
    index = tmp_path / "index"
    packs = folder(pack=PACK)
    helper = packs / "_models.py"

    def age() -> None:
        if not fresh:
            for file in packs.glob("*.py"):
                os.utime(file, (1_700_000_000, 1_700_000_000))

    age()
    assert kind(packs, index) == {}
    helper.write_text(ONE)
    age()
    assert kind(packs, index) == {"type": "integer"}
    helper.write_text(TWO)
    age()
    assert kind(packs, index) == {"type": "string"}
    assert kind(packs, index) == {"type": "string"}
    helper.unlink()
    assert kind(packs, index) == {}


@pytest.mark.promise("SDK-11", "DSC-6")
def test_hints_of_a_decorator_in_a_helper_are_read_and_follow_the_helper(folder: Folder, tmp_path: Path) -> None:
    index = tmp_path / "index"
    pack = 'from ._kinds import kind\n@kind\ndef run():\n    """Run."""\n'
    helper = "from pegboard.sdk import hints\nLONG = 60\nkind = hints({}, timeout=LONG)\n"
    tool = only_tool(folder(pack=pack, _kinds=helper.format("destructive=True")), index)
    assert (tool.hints.destructive, tool.hints.timeout, messages(tool)) == (True, 60, [])
    tool = only_tool(folder(_kinds=helper.format("read_only=True")), index)
    assert (tool.hints.destructive, tool.hints.read_only) == (None, True)


@pytest.mark.promise("DSC-6")
def test_a_change_of_a_helpers_helper_is_noticed_too(folder: Folder, tmp_path: Path) -> None:
    index = tmp_path / "index"
    packs = folder(pack=PACK, _models='"""Models."""\nfrom ._deep import Row\n', _deep=ONE)
    assert kind(packs, index) == {"type": "integer"}
    (packs / "_deep.py").write_text(TWO)
    assert kind(packs, index) == {"type": "string"}


@pytest.mark.promise("DSC-6")
def test_changed_helpers_are_noticed_by_child_processes(folder: Folder, tmp_path: Path) -> None:
    index = tmp_path / "index"
    packs = folder(pack=PACK, _models=ONE)
    filler = "# " + "x" * 96 + "\n"
    (packs / "large.py").write_text('def walk():\n    """Walk."""\n' + filler * 3_000)  # more than is read in process

    def schemas() -> list[object]:
        tools, _ = scan([packs], index=index)
        return [tool.input_schema["properties"] for tool in tools if tool.name == "pack.run"]

    assert schemas() == [{"row": {"type": "integer"}}]
    (packs / "_models.py").write_text(TWO)
    assert schemas() == [{"row": {"type": "string"}}]


def _properties(schema: object) -> dict[str, object]:
    assert isinstance(schema, dict)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return properties
