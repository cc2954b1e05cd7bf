"""Shared fixtures: a separate Pegboard in a temporary folder, and the schemas that measure forms.

The modules of `corpus` and `fakes`, such as `typist`, are imported by their names.
"""

from __future__ import annotations

import asyncio
import compileall
import gc
import itertools
import os
import runpy
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite  # nothing public compiles a test without running it
from hypothesis import settings

import pegboard
from pegboard.config import Paths, review_folder, trust_folder
from pegboard.runtime import Runtime

CORPUS = Path(__file__).parent / "corpus"
sys.path[:0] = [str(CORPUS), str(Path(__file__).parent / "fakes")]

os.environ["COLORTERM"] = "truecolor"  # the colors of the app depend on those of the terminal

# Tests start hundreds of interpreters; each would compile Pegboard again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import commands  # noqa: E402 - only now it can be found
from rows import Row, rows_of  # noqa: E402 - as above

# The same examples at every run, a part of them without `--every-case`; `--hypothesis-profile=search` looks for others.
# No deadline: the machine may be busy.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("few", settings.get_profile("same"), max_examples=40)
settings.register_profile("search", deadline=None)
settings.load_profile("same")

# What a shell runs in the background takes no ctrl+c, nor does what that starts; our tests send it to what they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Pegboard freezes what lives until its end. Here hundreds of apps end in one process; frozen ones would never be freed.
_freeze = gc.freeze
gc.freeze = lambda: None

DATA = Path(__file__).parents[2] / "shared" / "data"
TESTS = Path(__file__).parent
_SLOW: dict[str, Any] = runpy.run_path(str(TESTS / "slow_tests.py"))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return more workers than there are cores: slow tests often wait for a screen or a process, the others rarely."""
    return (os.cpu_count() or 1) + (1 if config.option.markexpr == "not slow" else 4)


def _is_slow(path: Path) -> bool:
    """Return whether all tests of a file are slow."""
    file = path.relative_to(TESTS)
    return str(file) in _SLOW["FILES"] or (file.parts[0] in _SLOW["FOLDERS"] and str(file) not in _SLOW["QUICK"])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Don't import slow files, which takes several seconds in each worker, if their tests aren't wanted."""
    if config.option.markexpr == "not slow" and collection_path.suffix == ".py" and _is_slow(collection_path):
        return True
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs every case."""
    parser.addoption("--every-case", action="store_true", help="run every case of the slow tests, too")


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples of each property, unless every case is wanted."""
    if not _runs_every_case(config) and not config.getoption("--hypothesis-profile"):
        settings.load_profile("few")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of slow files."""
    if _is_slow(item.path):
        item.add_marker("slow")


def _runs_every_case(config: pytest.Config) -> bool:
    """Return whether the run takes every case: `--every-case`, or the name of a file or test."""
    return config.option.every_case or [Path(arg).resolve() for arg in config.args] != [TESTS]


def _first_and_last(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests without the cases of slow tests between their first and their last."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for of_test in cases.values():
        case = of_test[0]
        if case.get_closest_marker("slow") and str(case.path.relative_to(TESTS)) not in _SLOW["EVERY_CASE"]:
            left_out.update(of_test[1:-1])
    return [item for item in items if item not in left_out]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Leave out cases, unless the tests are named or every case is wanted, and order the others.

    The slow tests come first, an equal part of them where each worker begins, so that none is left for the end.
    """
    if not _runs_every_case(config):
        kept = _first_and_last(items)
        config.hook.pytest_deselected(items=[*set(items) - set(kept)])
        items[:] = kept
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = [item for item in items if item.get_closest_marker("slow")]
    first = [item for item in slow if item.nodeid.partition("/")[2] in _SLOW["FIRST"]]
    slow = [item for item in slow if item not in first]
    others = [item for item in items if not item.get_closest_marker("slow")]
    items[:] = [
        item
        for worker in range(workers)
        for item in (*first[worker::workers], *_share(slow, worker, workers), *_share(others, worker, workers))
    ]


def _share(items: list[pytest.Item], worker: int, workers: int) -> list[pytest.Item]:
    """Return the part of the tests where a worker begins: neighbours, whose fixtures and imports it needs once."""
    return items[worker * len(items) // workers : (worker + 1) * len(items) // workers]


def _collect_garbage() -> None:
    """Free what ended, and exclude the rest from later collections: modules, and the tests themselves."""
    gc.collect()
    _freeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start one server of commands for all workers."""
    if session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput"):
        commands.share_server()


def _compile_share(config: pytest.Config) -> None:
    """Compile what a worker imports first of this program and its tests, which else each worker does for itself."""
    worker, workers = int(os.environ["PYTEST_XDIST_WORKER"][2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for file in sorted(Path(pegboard.__file__).parent.rglob("*.py"))[worker::workers]:
        compileall.compile_file(file, quiet=1)
    for file in sorted(TESTS.rglob("test_*.py"))[worker::workers]:
        compiled = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if not compiled.exists():
            rewrite.try_makedirs(compiled.parent)
            stat, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, stat, compiled)


@pytest.fixture
def freezing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let Pegboard freeze what lives until its end, as it does outside of tests."""
    monkeypatch.setattr(gc, "freeze", _freeze)
    yield
    gc.unfreeze()
    _collect_garbage()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect no garbage while tests are imported: nearly all of their objects live until the end."""
    if hasattr(session.config, "workerinput"):
        _compile_share(session.config)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Begin with a small heap for the garbage collector, which else takes a fifth of the time."""
    gc.set_threshold(10_000)
    _collect_garbage()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Collect the garbage of each test after it, so that no later test pays for it."""
    ran = yield
    _collect_garbage()
    return ran


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why tests were repeated; pytest prints only their names."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"repeated: {report.nodeid}")
        terminalreporter.line(report.longreprtext)


@pytest.fixture(scope="session")
def built_in_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index of the built-in packs; reading them takes longer than most tests."""
    folder = tmp_path_factory.mktemp("index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("PEGBOARD_PACKS", "")
        for name in ("CONFIG", "DATA_DIR", "STATE_DIR", "CACHE_DIR"):
            patch.setenv(f"PEGBOARD_{name}", str(folder / name))
        runtime = Runtime.from_environment()
        runtime.tools.scan()
        asyncio.run(runtime.close())
    return folder / "CACHE_DIR" / "index"


_homes = itertools.count()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, built_in_index: Path) -> Path:
    """Redirect all of Pegboard's folders to a temporary one, away from the user's own files."""
    # One folder has them all: pytest reads the whole folder of temporary folders for the number of the next one.
    folder = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    shutil.copytree(built_in_index, folder / "cache" / "index", copy_function=os.link)
    for name in [name for name in os.environ if name.startswith("PEGBOARD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    # No test uses the keyring of the user who runs it, or one from another test.
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    monkeypatch.setenv("PEGBOARD_CONFIG", str(folder / "config.toml"))
    monkeypatch.setenv("PEGBOARD_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(folder / "state"))
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(folder / "cache"))
    return folder


@pytest.fixture
def trust(home: Path) -> Callable[[Path], None]:
    """Return a function that trusts a folder with its current `pegboard.toml` and `.env`."""

    def trust(folder: Path) -> None:
        paths = Paths.from_environment()
        trust_folder(paths, review_folder(paths, folder))

    return trust


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the shared real-world data; skip the test if it is missing."""
    if not DATA.is_dir():
        pytest.skip("the shared data folder is not here")
    return DATA


@pytest.fixture(scope="session")
def hard_cases() -> dict[str, Row]:
    """Return the hard cases among the schemas by their ids."""
    return {row.id: row for row in rows_of(CORPUS / "hardcases.jsonl")}


@pytest.fixture(scope="session")
def corpus(data_folder: Path, hard_cases: dict[str, Row], pytestconfig: pytest.Config) -> list[Row]:
    """Return the real schemas and every hard case; skip the test if the real ones are missing.

    A run of all tests takes every ninth real schema unless it takes every case.
    """
    step = 1 if _runs_every_case(pytestconfig) else 9
    return [*rows_of(data_folder / "schemas" / "open.jsonl")[::step], *hard_cases.values()]


@pytest.fixture
def write_pack(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a pack into `tmp_path / "packs"` and returns that folder."""

    def write(name: str, source: str) -> Path:
        folder = tmp_path / "packs"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(textwrap.dedent(source), encoding="utf-8")
        return folder

    return write


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a shell script of the given name to `tmp_path / "bin"` and returns its file."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def write(name: str, source: str) -> Path:
        file = folder / name
        file.write_text("#!/bin/sh\n" + textwrap.dedent(source), encoding="utf-8")
        file.chmod(0o755)
        return file

    return write


@pytest.fixture
async def open_runtime() -> AsyncIterator[Callable[..., Runtime]]:
    """Yield a function that builds scanned runtimes with `Runtime.from_environment`; close them after the test."""
    opened: list[Runtime] = []

    def build(*packs: Path, tool_allow: str | None = None) -> Runtime:
        runtime = Runtime.from_environment(packs=packs, tool_allow=tool_allow)
        opened.append(runtime)
        runtime.tools.scan()
        return runtime

    yield build
    for runtime in opened:
        await runtime.close()


@pytest.fixture
def no_thread() -> Callable[[], AbstractContextManager[None]]:
    """Return a context in which the event loop has no thread for functions that block."""

    @contextmanager
    def busy() -> Iterator[None]:
        free, threads = threading.Event(), ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(threads)
        threads.submit(free.wait, 30)
        try:
            yield
        finally:
            free.set()

    return busy
