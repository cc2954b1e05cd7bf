"""`pegboard new`."""

from __future__ import annotations

import keyword
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from pegboard import storage
from pegboard.cli.root import TOOL_FAILED, USAGE, PacksOption, app, scanned

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_EXAMPLES: Final = Path(__file__).parents[1] / "examples"
_SHOP, _SCRIPT = "shop", "late-orders"
_USUAL: Final = 0o666
"""Permissions of a new file, less those of the umask."""

_PACK = '''"""Sizes of files and folders."""

import subprocess
from pathlib import Path
from typing import Annotated, TypedDict

from pegboard.sdk import ToolFailed, get_config, hints, log, progress, requires_cli
from pydantic import Field


class File(TypedDict):
    """A file and its size."""

    path: str
    size: int
    """Bytes."""


@hints(read_only=True, idempotent=True, open_world=False, timeout=30)
def largest(*, folder: str = ".", pattern: str = "*", limit: Annotated[int, Field(ge=1)] = 10) -> list[File]:
    """Find the largest files in a folder and its subfolders.

    To leave out folders, list their names as `skip` under `[packs.NAME]` in the configuration.

    Args:
        folder: The folder to search.
        pattern: Only files whose names match, such as "*.log".
        limit: Highest number of files to return.

    Returns:
        The files, the largest first.
    """
    top = _folder(folder)
    skip = set(get_config("skip", [".git"]))
    paths = [path for path in top.rglob(pattern) if path.is_file() and not skip & set(path.relative_to(top).parts)]
    found: list[File] = []
    for done, path in enumerate(paths, 1):
        found.append({"path": str(path), "size": path.stat().st_size})
        progress(done, len(paths), path.name)
    log(f"looked at {len(paths)} files")
    return sorted(found, key=lambda file: -file["size"])[:limit]


@hints(read_only=True, idempotent=True, open_world=False, timeout=30)
@requires_cli("du", version_flag="", install="apt install coreutils")
def usage(*, folder: str = ".") -> int:
    """Measure the disk usage of a folder.

    Args:
        folder: The folder to measure.

    Returns:
        Bytes.
    """
    command = ["du", "-sk", str(_folder(folder).resolve())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolFailed(done.stderr.strip(), code="du_failed")
    return int(done.stdout.split()[0]) * 1024


def _folder(folder: str) -> Path:
    path = Path(folder)
    if not path.is_dir():
        raise ToolFailed(f"The folder {folder} doesn't exist.", code="not_found")
    return path
'''

_TEST = '''"""Tests of the pack NAME."""

from pathlib import Path

import pytest
from pegboard.sdk import ToolFailed, call_tool, check_deps, testing

import NAME as tools


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    # no docstring: in a packs folder, a function with one is a tool
    (tmp_path / "small.txt").write_bytes(b"x")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "large.txt").write_bytes(b"x" * 5000)
    return tmp_path


def test_the_largest_files_come_first(folder: Path) -> None:
    with testing.host() as host:
        found = tools.largest(folder=str(folder))
    assert [(Path(file["path"]).name, file["size"]) for file in found] == [("large.txt", 5000), ("small.txt", 1)]
    assert [event.done for event in host.progressed] == [1, 2]
    assert host.logged == ["looked at 2 files"]


def test_folders_listed_in_the_configuration_are_skipped(folder: Path) -> None:
    with testing.host(config={"NAME": {"skip": ["inner"]}}):
        assert [Path(file["path"]).name for file in tools.largest(folder=str(folder))] == ["small.txt"]


def test_a_missing_folder_fails() -> None:
    with testing.host(), pytest.raises(ToolFailed, match="folder nowhere doesn't exist") as failed:
        tools.largest(folder="nowhere")
    assert failed.value.code == "not_found"


def test_a_folder_is_measured(folder: Path) -> None:
    with testing.host():
        assert [row["status"] for row in check_deps("NAME.usage")] == ["ok"]
        assert call_tool("NAME.usage", folder=str(folder)) >= 5000
'''


@app.command()
def new(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the pack; its file is NAME.py.")] = None,
    folder: Annotated[
        Path,
        typer.Option("--dir", metavar="DIR", help="Write the files to this folder; the working directory by default."),
    ] = Path(),
    example: Annotated[
        Literal["shop"] | None,
        typer.Option(
            "--example",
            help="Write an example into your folders of packs and scripts instead: the tools of an invented shop, and"
            " a script that uses them.",
        ),
    ] = None,
    packs: PacksOption = None,
) -> None:
    """Create a pack and its test, ready to edit. Both pass as they are; existing files are never overwritten.

    The paths of the two files go to stdout, the next steps to stderr.
    """
    from pegboard.cli.output import narrate
    from pegboard.config.paths import expanded

    folder = expanded(folder)  # the shell doesn't expand `--dir=~/tools`
    if example is not None:
        if name is not None or folder != Path():
            raise typer.BadParameter(
                "--example can't be combined with NAME or --dir because an example has its own name and folder.",
                param_hint="--example",
            )
        _write_example(context)
        return
    if name is None:
        raise typer.BadParameter("The name of the pack is missing. Example: pegboard new weather", param_hint="NAME")
    files = {folder / f"{name}.py": _PACK, folder / f"test_{name}.py": _TEST}
    error = (
        _name_error(name)
        or _conflict(scanned(context, "*"), name)
        or next((f"{file} exists." for file in files if file.exists()), None)
    )
    if error:
        narrate(error)
        raise typer.Exit(USAGE)
    _write({file: text.replace("NAME", name) for file, text in files.items()})
    _print_next_steps(name, folder)


def _write_example(context: typer.Context) -> None:
    from pegboard.cli.output import narrate

    runtime = scanned(context, "*")
    pack, script = runtime.paths.packs / f"{_SHOP}.py", runtime.paths.scripts / f"{_SCRIPT}.sh"
    error = _conflict(runtime, _SHOP) or next((f"{file} exists." for file in (pack, script) if file.exists()), None)
    if error:
        narrate(error)
        raise typer.Exit(USAGE)
    _write({file: (_EXAMPLES / file.name).read_text(encoding="utf-8") for file in (pack, script)}, private=True)
    narrate(
        "\nNext:\n"
        f"  pegboard tools invoke {_SHOP}.list_orders --arg status=late --data\n"
        f"  pegboard script check {_SCRIPT}\n"
        f"  pegboard script run {_SCRIPT}"
    )


def _write(files: dict[Path, str], *, private: bool = False) -> None:
    """Write new files, all or none, readable by the user only if `private`; exit if that fails."""
    from pegboard.cli.output import narrate

    # Packs in a folder of the user get the usual permissions; files in Pegboard's own folders are private.
    os.stat(os.curdir)  # noqa: PTH116 - since Python 3.14, pathlib hides that the user may not enter it
    mode = storage.PRIVATE_FILE if private else _USUAL
    written: list[Path] = []
    for file, text in files.items():
        try:
            storage.make_folder(file.parent)
            storage.write(file, text.encode(), replace=False, mode=mode)
        except OSError as error:
            for one in written:
                one.unlink(missing_ok=True)
            narrate(f"{file} can't be written: {error.strerror or error}.")
            raise typer.Exit(TOOL_FAILED) from None
        written.append(file)
    for file in written:
        print(file)


def _name_error(name: str) -> str | None:
    """Return why a name can't be the name of a pack, or None if it can."""
    if keyword.iskeyword(name):
        return f"{name} can't be the name of a pack: it is a keyword of Python."
    if not (name.isidentifier() and name.isascii()):
        return f"{name} can't be the name of a pack: use letters, digits and `_`, and start with a letter."
    if name.startswith("_"):
        return f"{name} can't be the name of a pack: files that start with `_` are helpers of other packs."
    if name.startswith("test_"):
        return f"{name} can't be the name of a pack: files that start with `test_` are tests."
    if _is_library(name):
        return f"{name} can't be the name of a pack: the pack's test would import the library of this name."
    return None


def _is_library(name: str) -> bool:
    from importlib.machinery import PathFinder

    # The working directory may be on the path, where a pack of this name is not a library.
    installed = [folder for folder in sys.path if folder and Path(folder).resolve() != Path.cwd()]
    if name in sys.stdlib_module_names or name == "pytest":  # pytest may be installed in another environment
        return True
    return PathFinder.find_spec(name, installed) is not None


def _conflict(runtime: Runtime, name: str) -> str | None:
    with_name = [spec for spec in runtime.tools.all() if spec.pack == name]
    if not with_name:
        return None
    return f"The pack {name} exists already: {with_name[0].location.file}"


def _print_next_steps(name: str, folder: Path) -> None:
    from importlib.util import find_spec
    from shlex import quote

    from pegboard.cli.output import narrate

    where = quote(str(folder))
    note = "" if find_spec("pytest") else "  # after: python -m pip install pytest"
    narrate(
        "\nNext:\n"
        f"  pegboard --packs {where}\n"
        f"  pegboard --packs {where} tools invoke {name}.largest --data\n"
        f"  python -m pytest {quote(str(folder / f'test_{name}.py'))}{note}"
    )
