"""Imports of a pack that is part of a project: modules beside it, of its package, and of the project."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Project = Callable[[dict[str, str]], Path]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a function that writes files (path → source) and returns their folder."""

    def write(files: dict[str, str]) -> Path:
        for name, source in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(source))
        return tmp_path

    return write


@pytest.mark.promise("DSC-1")
@pytest.mark.parametrize(
    "source",
    [
        "from common import get\ndef ask(): return get()\n",
        "from .common import get\ndef ask(): return get()\n",
        "from . import common\ndef ask(): return common.get()\n",
        "def ask():\n    import common as it\n    return it.get()\n",
        "import shapes.round\ndef ask(): return shapes.round.get()\n",
        "import shapes.round as it\ndef ask(): return it.get()\n",
        "from shapes import round\ndef ask(): return round.get()\n",
        "from .shapes.round import get\ndef ask(): return get()\n",
        "from package import get\ndef ask(): return get()\n",
        "from package.part import get\ndef ask(): return get()\n",
    ],
)
async def test_a_pack_imports_modules_beside_it(harness: Any, project: Project, source: str) -> None:
    get = "def get(): return 'beside'\n"
    folder = project(
        {
            "pack.py": source,
            "common.py": get,
            "shapes/round.py": "from common import get\n",
            "package/__init__.py": "from .part import get\n",
            "package/part.py": get,
        }
    )
    result = await harness.run("ask", folder / "pack.py")
    assert result.error is None
    assert result.data == "beside"


@pytest.mark.parametrize(
    "statement",
    [
        "from .client import Client",
        "from app.client import Client",
        "from . import Client",
        "from app import Client",
        "from app.sub import Client",
        "from .sub.deep import Client",
    ],
)
async def test_a_pack_in_a_package_imports_the_package_once(harness: Any, project: Project, statement: str) -> None:
    folder = project(
        {
            "app/__init__.py": "from .client import Client\nfrom .tools import ask\n",
            "app/client.py": "class Client: pass\n",
            "app/sub/__init__.py": "from .deep import Client\n",
            "app/sub/deep.py": "from ..client import Client\n",
            "app/tools.py": f"{statement}\ndef ask():\n    import app.client\n    return Client is app.client.Client\n",
        }
    )
    result = await harness.run("ask", folder / "app/tools.py")
    assert result.error is None
    assert result.data is True


async def test_a_package_is_not_run_for_a_pack_that_imports_nothing_from_it(harness: Any, project: Project) -> None:
    folder = project({"app/__init__.py": "raise OSError('run')\n", "app/tools.py": "def ask(): return 'alone'\n"})
    assert (await harness.run("ask", folder / "app/tools.py")).data == "alone"


@pytest.mark.parametrize("place", ["core", "src/core"])
async def test_a_pack_imports_modules_of_its_project(harness: Any, project: Project, place: str) -> None:
    folder = project(
        {
            "pyproject.toml": "",
            f"{place}/db.py": "NAME = 'project'\n",
            "agent/tools/pack.py": "from core.db import NAME\ndef ask(): return NAME\n",
        }
    )
    result = await harness.run("ask", folder / "agent/tools/pack.py")
    assert result.error is None
    assert result.data == "project"


@pytest.mark.promise("DSC-1")
@pytest.mark.parametrize(
    "statement",
    ["from app.models import NAME\n", "from app import models\nNAME = models.NAME\n", "import app.models\n"],
)
async def test_a_package_imports_its_own_modules_by_its_name(harness: Any, project: Project, statement: str) -> None:
    folder = project(
        {
            "pyproject.toml": "",
            "src/app/__init__.py": statement,
            "src/app/models.py": "NAME = 'models'\n",
            "src/app/tools/__init__.py": "",
            "src/app/tools/pack.py": "import app.models\ndef ask(): return app.models.NAME\n",
        }
    )
    result = await harness.run("ask", folder / "src/app/tools/pack.py")
    assert (result.error, result.data) == (None, "models")


@pytest.mark.promise("DSC-1")
@pytest.mark.parametrize("statement", ["from app.models import NAME\n", "from app import NAME\n"])
async def test_a_module_named_like_its_package_does_not_hide_it(harness: Any, project: Project, statement: str) -> None:
    folder = project(
        {
            "app/__init__.py": "from .models import NAME\n",
            "app/models.py": "NAME = 'package'\n",
            "app/app.py": "NAME = 'module'\n",
            "app/pack.py": f"{statement}def ask(): return NAME\n",
        }
    )
    result = await harness.run("ask", folder / "app/pack.py")
    assert (result.error, result.data) == (None, "package")


@pytest.mark.promise("DSC-1")
@pytest.mark.parametrize(
    "expression",
    [
        "import_module('app.data.words').WORDS",
        "import_module('app.data').words.WORDS",
        "import_module('plain.words').WORDS",
        "files('app.data').joinpath('words.txt').read_text()",
        "files('app').joinpath('data', 'words.txt').read_text()",
        "get_data('app.data', 'words.txt').decode()",
    ],
)
async def test_a_pack_names_a_module_of_its_project_as_text(harness: Any, project: Project, expression: str) -> None:
    folder = project(
        {
            "pyproject.toml": "",
            "src/app/__init__.py": "",
            "src/app/data/__init__.py": "from app.data import words\n",
            "src/app/data/words.py": "WORDS = 'a b'\n",
            "src/app/data/words.txt": "a b",
            "src/plain/words.py": "WORDS = 'a b'\n",
            "src/app/tools.py": "from importlib import import_module\nfrom importlib.resources import files\n"
            f"from pkgutil import get_data\ndef ask(): return {expression}\n",
        }
    )
    result = await harness.run("ask", folder / "src/app/tools.py")
    assert (result.error, result.data) == (None, "a b")


async def test_a_module_named_as_text_is_loaded_once_and_reloaded_after_a_change(
    harness: Any, project: Project
) -> None:
    tools = """\
        from importlib import import_module
        from app import state
        it = import_module("app.state")
        def ask(): return [it is state, import_module("app.state") is state, it.VALUE, it.__name__ == it.__spec__.name]
        """
    files = {"pyproject.toml": "", "app/__init__.py": "", "app/state.py": "VALUE = 1\n", "app/tools.py": tools}
    folder = project(files)
    assert (await harness.run("ask", folder / "app/tools.py")).data == [True, True, 1, True]
    (folder / "app/state.py").write_text("VALUE = 'changed'\n")
    assert (await harness.run("ask", folder / "app/tools.py")).data == [True, True, "changed", True]


async def test_a_library_finds_no_modules_of_a_project(harness: Any, project: Project) -> None:
    folder = project(
        {
            "pyproject.toml": "",
            "extra_of_library.py": "",
            "pack.py": "import json, sys\n"
            "exec('def probe():\\n import extra_of_library', vars(json))\n"
            "def ask():\n    try:\n        json.probe()\n"
            "    except ModuleNotFoundError:\n        return 'missing'\n",
        }
    )
    assert (await harness.run("ask", folder / "pack.py")).data == "missing"


async def test_a_module_above_the_pack_is_not_imported_if_others_can_write_there(
    harness: Any, project: Project
) -> None:
    folder = project(
        {
            "pyproject.toml": "",
            "absent_library.py": "raise OSError('run')\n",
            "tools/pack.py": "import absent_library\ndef ask(): ...\n",
        }
    )
    folder.chmod(0o777)
    result = await harness.run("ask", folder / "tools/pack.py")
    assert result.error.detail == "dependency_missing"


@pytest.mark.parametrize("changed", ["core/db.py", "core/__init__.py", "app/client.py", "app/__init__.py"])
async def test_a_changed_module_is_reloaded_with_the_pack(harness: Any, project: Project, changed: str) -> None:
    files = {
        "pyproject.toml": "",
        "core/__init__.py": "VALUE = 1\n",
        "core/db.py": "VALUE = 1\n",
        "app/__init__.py": "VALUE = 1\n",
        "app/client.py": "from core.db import VALUE\nimport core\nVALUE = VALUE + core.VALUE\n",
        "app/tools.py": "from .client import VALUE\nfrom . import VALUE as own\ndef ask(): return VALUE + own\n",
    }
    folder = project(files)
    assert (await harness.run("ask", folder / "app/tools.py")).data == 3
    project({changed: f"{files[changed]}VALUE += 10\n"})
    assert (await harness.run("ask", folder / "app/tools.py")).data == 13


async def test_a_project_that_python_itself_finds_is_reloaded_too(harness: Any, project: Project) -> None:
    start = "import sys\nsys.path.insert(0, __file__.rpartition('/tools')[0])\n"
    folder = project(
        {
            "pyproject.toml": "",
            "core.py": "VALUE = 1\n",
            "tools/pack.py": f"{start}from core import VALUE\ndef ask(): return VALUE\n",
        }
    )
    assert (await harness.run("ask", folder / "tools/pack.py")).data == 1
    project({"core.py": "VALUE = 2\n"})
    assert (await harness.run("ask", folder / "tools/pack.py")).data == 2


async def test_a_project_and_a_library_share_the_folder_of_their_packages(harness: Any, project: Project) -> None:
    start = "import sys\nsys.path.insert(0, __file__.rpartition('/src')[0] + '/installed')\n"
    folder = project(
        {
            "pyproject.toml": "",
            "installed/company/base/__init__.py": "NAME = 'library'\n",
            "src/company/orders/__init__.py": "",
            "src/company/orders/helper.py": "NAME = 'project'\n",
            "src/company/orders/pack.py": f"{start}from company import base\nfrom company.base import NAME\n"
            "from company.orders import helper\nimport company.orders.helper as same\n"
            "def ask(): return [base.NAME, NAME, helper.NAME, same is helper]\n",
        }
    )
    result = await harness.run("ask", folder / "src/company/orders/pack.py")
    assert (result.error, result.data) == (None, ["library", "library", "project", True])


async def test_modules_with_the_same_name_in_two_projects_are_separate(harness: Any, project: Project) -> None:
    source = "from core import NAME\ndef ask():\n    import core\n    return [NAME, core.NAME]\n"
    folder = project(
        {f"{name}/pyproject.toml": "" for name in ("one", "two")}
        | {f"{name}/core.py": f"NAME = {name!r}\n" for name in ("one", "two")}
        | {f"{name}/tools/pack.py": source for name in ("one", "two")}
    )
    for name in ("one", "two", "one"):
        assert (await harness.run("ask", folder / name / "tools/pack.py")).data == [name, name]


@pytest.mark.promise("DSC-1")
@pytest.mark.parametrize("name", ["json", "pydantic", "pegboard"])
async def test_a_module_named_like_a_library_shadows_nothing(harness: Any, project: Project, name: str) -> None:
    folder = project(
        {
            "pyproject.toml": "",
            f"{name}/__init__.py": "",
            "tools/pack.py": f"import {name}\ndef ask(): return {name}.__name__\n",
            f"tools/{name}.py": "",
        }
    )
    assert (await harness.run("ask", folder / "tools/pack.py")).data == name


@pytest.mark.promise("EXE-3")
async def test_a_pack_with_the_name_of_a_missing_library_lacks_it(harness: Any, project: Project) -> None:
    folder = project({"absent_library.py": "import absent_library\ndef ask(): ...\n"})
    result = await harness.run("ask", folder / "absent_library.py")
    assert result.error.detail == "dependency_missing"
    assert "pip install absent_library" in result.error.message


@pytest.mark.promise("EXE-3")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("from .missing import x\n", "No module named 'missing' in the folder, the package or the project of the pack"),
        ("from common.missing import x\n", "No module named 'common.missing'"),
        ("def ask():\n    from . import common\n    import common.missing\n", "No module named 'common.missing'"),
        ("from _missing import x\n", "No module named '_missing'"),
        ("from ..missing import x\n", "Only folders with an `__init__.py` belong to a package"),
    ],
)
async def test_a_missing_module_of_a_project_is_not_to_be_installed(
    harness: Any, project: Project, source: str, message: str
) -> None:
    folder = project({"main.py": source, "common.py": ""})
    result = await harness.run("ask", folder / "main.py")
    assert message in result.error.message
    assert "pip install" not in result.error.message
    assert "_packs_" not in result.error.message
    assert result.error.detail != "dependency_missing"


@pytest.mark.promise("EXE-3")
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("class Box: ...\ndef ask(): return [Box()]\n", "main.Box at [0]"),
        ("from shapes.box import Box\ndef ask(): return {'a': Box()}\n", "shapes.box.Box at .a"),
    ],
)
async def test_the_type_of_a_result_without_a_json_form_has_the_name_of_its_module_as_in_the_project(
    harness: Any, project: Project, source: str, kind: str
) -> None:
    folder = project({"main.py": source, "shapes/box.py": "class Box: ...\n"})
    result = await harness.run("ask", folder / "main.py")
    assert result.error.message == f"The result can't be converted to JSON: an object of type {kind}."


async def test_a_folder_of_data_is_not_a_missing_library(harness: Any, project: Project) -> None:
    folder = project({"main.py": "import absent_library\n", "absent_library/rows.json": "[]\n"})
    assert (await harness.run("ask", folder / "main.py")).error.detail == "dependency_missing"


@pytest.mark.promise("DSC-6")
@pytest.mark.parametrize("name", ["common", "_common"])
async def test_a_module_that_lacked_a_function_can_be_completed(harness: Any, project: Project, name: str) -> None:
    folder = project({"pack.py": f"from {name} import get\ndef ask(): return get()\n", f"{name}.py": "VALUE = 1\n"})
    error = (await harness.run("ask", folder / "pack.py")).error
    assert f"cannot import name 'get' from '{name}'" in error.message
    project({f"{name}.py": "def get(): return 'completed'\n"})
    assert (await harness.run("ask", folder / "pack.py")).data == "completed"


@pytest.mark.promise("DSC-6")
async def test_a_module_that_a_function_imports_can_be_written_after_the_first_call(
    harness: Any, project: Project
) -> None:
    folder = project({"pack.py": "def ask():\n    import absent_module\n    return absent_module.VALUE\n"})
    assert (await harness.run("ask", folder / "pack.py")).error.detail == "dependency_missing"
    project({"absent_module.py": "VALUE = 'written'\n"})
    assert (await harness.run("ask", folder / "pack.py")).data == "written"


async def test_a_missing_init_file_can_be_added(harness: Any, project: Project) -> None:
    folder = project(
        {"app/sub/tools.py": "from ..core import VALUE\ndef ask(): return VALUE\n", "app/core.py": "VALUE = 1\n"}
    )
    assert (await harness.run("ask", folder / "app/sub/tools.py")).error.detail == "import_failed"
    project({"app/__init__.py": "", "app/sub/__init__.py": ""})
    assert (await harness.run("ask", folder / "app/sub/tools.py")).data == 1


@pytest.mark.promise("EXE-4")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
async def test_processes_that_a_tool_starts_import_its_modules(harness: Any, project: Project, method: str) -> None:
    folder = project(
        {
            "pyproject.toml": "",
            "tools/pack.py": """
                import multiprocessing
                from dataclasses import dataclass
                from concurrent.futures import ProcessPoolExecutor
                from shapes.round import area

                @dataclass
                class Circle:
                    radius: int

                def measure(circle):
                    return Circle(area(circle.radius))

                def sizes(method):
                    context = multiprocessing.get_context(method)
                    with ProcessPoolExecutor(1, mp_context=context) as pool:
                        first = pool.submit(measure, Circle(1)).result()
                        return [first.radius, *pool.map(area, [2])]
            """,
            "shapes/round.py": "def area(radius): return 3 * radius**2\n",
        }
    )
    result = await harness.run("sizes", folder / "tools/pack.py", method=method)
    assert result.error is None
    assert result.data == [3, 12]
