"""A failing tool affects only its own call: no process or change in Python outlives it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any  # arguments and data of tools
from uuid import uuid4

import pytest
from processes import descendants, is_alive, until

from pegboard.executor import Executor
from pegboard.models import Finished, PackHandler, Started, ToolCall, ToolResult, ToolSpec

WILD = Path(__file__).parents[1] / "packs" / "executor_wild.py"
BUILT_IN = Path(__file__).parents[2] / "src" / "pegboard" / "packs"

Run = Callable[..., Awaitable[ToolResult]]

pytestmark = [
    pytest.mark.promise("EXE-4"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc"),
]


@pytest.fixture
async def executor(tmp_path: Path) -> AsyncIterator[Executor]:
    """Return an executor whose workers have little memory."""
    executor = Executor(results=tmp_path / "results", workers=4, memory_limit=300_000_000)
    yield executor
    await executor.close()


@pytest.fixture
def run(executor: Executor) -> Run:
    """Return a function that runs a function of a pack and returns its result."""

    async def run(function: str, file: Path = WILD, *, limit: float = 30, call_id: str = "", **args: Any) -> ToolResult:
        handler = PackHandler(pack=file.stem, function=function, file=str(file), line=1)
        spec = ToolSpec(name=f"{file.stem}.{function}", pack=file.stem, input_schema={}, handler=handler)
        call = ToolCall(id=call_id or uuid4().hex, name=spec.name, args=args, source="cli")
        events = [event async for event in executor.run(spec, call, timeout=limit)]
        assert isinstance(events[-1], Finished)
        assert events[-1].result.meta.worker or not any(isinstance(event, Started) for event in events)
        return events[-1].result

    return run


# --- What a tool starts ---


@pytest.mark.parametrize("then", ["return", "crash", "time out", "cancel", "close"])
async def test_a_process_that_detached_itself_ends_with_its_call(
    run: Run, executor: Executor, tmp_path: Path, then: str
) -> None:
    sign = tmp_path / "sign"
    ends = {"return": "return", "crash": "crash"}
    # a worker that is running already: its start should not count towards the time
    assert (await run("echo")).ok
    call = asyncio.ensure_future(
        run(
            "detach",
            limit=3 if then == "time out" else 60,
            call_id="it",
            sign=str(sign),
            then=ends.get(then, "hang"),
        )
    )
    await until(lambda: sign.exists() and sign.read_text().endswith("}"))
    detached = json.loads(sign.read_text())["pid"]
    if then == "cancel":
        assert await executor.cancel("it")
    if then == "close":
        await executor.close()
    result = await call
    detail = {"return": None, "crash": "crashed", "time out": "timeout"}.get(then, "cancelled")
    assert (result.error and result.error.detail) == detail
    await until(lambda: not is_alive(detached))


async def test_a_process_started_behind_the_back_of_python_ends_with_its_call(run: Run, tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    assert (await run("spawn", sign=str(sign))).ok
    pid = json.loads(sign.read_text())["group"]
    await until(lambda: not is_alive(pid))


async def test_no_process_is_left_once_the_executor_is_closed(run: Run, executor: Executor, tmp_path: Path) -> None:
    before = set(descendants(os.getpid()))
    calls = [asyncio.ensure_future(run("detach", sign=str(tmp_path / str(number)), then="hang")) for number in range(3)]
    await until(lambda: all((tmp_path / str(number)).exists() for number in range(3)))
    assert len(set(descendants(os.getpid())) - before) >= 9  # of each call a keeper, a worker and what detached itself
    await executor.close()
    await asyncio.gather(*calls)
    assert set(descendants(os.getpid())) <= before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_tool_that_kills_the_keeper_of_its_worker_ends_only_its_own_call(
    run: Run, executor: Executor, tmp_path: Path, number: signal.Signals
) -> None:
    pack = tmp_path / "striking.py"
    pack.write_text(
        "import os, pathlib, time\n"
        "def strike(*, number, sign):\n"
        "    pathlib.Path(sign).write_text(str(os.getpid()))\n"
        "    os.kill(os.getppid(), number)\n"
        "    time.sleep(1000)\n"
    )
    sign = tmp_path / "sign"
    result = await run("strike", pack, limit=2, number=int(number), sign=str(sign))
    assert result.error is not None
    assert result.error.detail == ("crashed" if number == signal.SIGKILL else "timeout")
    await executor.close()
    await until(lambda: not is_alive(int(sign.read_text())))


# --- What a tool uses up ---


@pytest.mark.promise("SEC-8")
async def test_the_memory_of_forked_children_counts(run: Run) -> None:
    result = await run("hog_in_children", limit=60, megabytes=500)
    assert result.error is not None
    assert result.error.detail == "out_of_memory"
    assert "the processes that it started exceeded the memory limit" in result.error.message
    assert (await run("echo")).ok


@pytest.mark.promise("SEC-8")
async def test_memory_that_forked_children_share_counts_once(run: Run) -> None:
    assert (await run("hog_in_children", limit=60, megabytes=100, shared=True)).data == "shared"


@pytest.mark.promise("SEC-8")
async def test_a_fork_bomb_is_ended(run: Run) -> None:
    before = set(descendants(os.getpid()))
    result = await run("bomb", limit=60, most=1200)
    assert result.error is not None
    assert (result.error.detail, "more than 512 processes" in result.error.message) == ("too_many_processes", True)
    assert (await run("echo")).ok
    assert len(set(descendants(os.getpid())) - before) < 10


# --- What a tool changes ---

PATCHES = {
    "json.dumps": "json.dumps = lambda *_, **__: 'patched'",
    "json.encoder": "json.encoder.encode_basestring_ascii = json.encoder.c_make_encoder = None",
    "datetime": "import datetime; datetime.datetime = None",
    "pathlib": "pathlib.Path.read_text = pathlib.Path.open = None",
    "re": "import re; re.compile = re.sub = None",
    "socket": "import socket; socket.socket = socket.getaddrinfo = None",
    "ssl": "import ssl; ssl._create_default_https_context = ssl._create_unverified_context",
    "subprocess": "import subprocess; subprocess.Popen = None",
    "os.environ": "os.environ['PATH'] = '/patched'; os.environ['HTTP_PROXY'] = 'http://patched'",
    "sys.path": "sys.path[:] = ['/patched']",
    "sys.modules": "sys.modules['math'] = sys.modules['decimal'] = None",
    "sys.meta_path": "sys.meta_path.insert(0, type('F', (), {'find_spec': lambda *_: 1 / 0})())",
    "builtins": "import builtins; builtins.sorted = builtins.sum = builtins.len = lambda *_: 0",
    "open": "import builtins; builtins.open = None",
    "signals": "import signal; signal.signal(signal.SIGALRM, lambda *_: None); signal.alarm(1)",
    "folder": "os.chdir('/')",
    "umask": "os.umask(0o777)",
    "locale": "import locale; locale.setlocale(locale.LC_ALL, 'C'); locale.str = None",
    "thread": "import threading, time; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
    "limits": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))",
    "decimal": "import decimal; decimal.getcontext().prec = 2; decimal.DefaultContext.prec = 2",
    "random": "import random; random.seed(1); random.random = lambda: 4",
    "warnings": "import warnings; warnings.simplefilter('error')",
    "recursion": "sys.setrecursionlimit(60)",
    "SDK": "import pegboard.sdk; pegboard.sdk.log = pegboard.sdk.get_secret = lambda *_: 'patched'",
    "codecs": "import codecs; codecs.lookup = None",
    "at exit": "import atexit; atexit.register(lambda: open('/nowhere/at/all', 'w'))",
    "hooks": "sys.excepthook = sys.displayhook = sys.unraisablehook = None",
    "audit": "sys.addaudithook(lambda event, _: 1 / 0 if event == 'socket.connect' else None)",
}
HONEST = """
import codecs, datetime, decimal, json, locale, os, pathlib, random, re, signal, socket, ssl, subprocess, sys
import threading, warnings
import pegboard.sdk

def look():
    mask = os.umask(0o22)
    os.umask(mask)
    return {
        "pid": None, "json": json.dumps({"a": ["é"]}), "now": datetime.datetime(2020, 1, 2).isoformat(),
        "text": pathlib.Path(__file__).read_text()[:8], "re": re.sub("a", "b", "aa"), "socket": socket.socket.__name__,
        "https": ssl._create_default_https_context.__name__, "popen": subprocess.Popen.__name__,
        "environment": sorted(os.environ.items()), "path": sys.path, "finders": [str(type(f)) for f in sys.meta_path],
        "builtins": [sorted([2, 1]), sum([1, 2]), len("abc")], "open": open(__file__).read(8),
        "alarm": str(signal.getsignal(signal.SIGALRM)), "folder": os.getcwd(), "mask": mask,
        "locale": locale.str(1.5), "threads": threading.active_count(),
        "decimal": str(decimal.Decimal(1) / 3), "random": random.random.__name__, "warnings": len(warnings.filters),
        "recursion": sys.getrecursionlimit(), "sdk": [pegboard.sdk.log.__name__, pegboard.sdk.get_secret.__name__],
        "codec": codecs.lookup("utf-8").name, "hooks": [sys.excepthook.__name__, sys.displayhook.__name__],
    }
"""


@pytest.mark.parametrize("patch", PATCHES)
async def test_what_one_pack_changes_in_python_affects_no_other(run: Run, tmp_path: Path, patch: str) -> None:
    hostile, honest = tmp_path / "hostile.py", tmp_path / "honest.py"
    hostile.write_text(f"import json, json.encoder, os, pathlib, sys\ndef patch():\n    {PATCHES[patch]}\n")
    honest.write_text(HONEST)
    expected = await run("look", honest)
    assert expected.ok, expected.error
    await run("patch", hostile)
    for pack in (honest, tmp_path / "another.py"):
        pack.write_text(HONEST)
        seen = await run("look", pack)
        assert seen.ok, seen.error
        assert seen.data == expected.data
    assert (await run("echo", BUILT_IN / "tools.py", value=[1, "a"])).data == [1, "a"]


async def test_packs_that_are_not_built_in_share_no_process_and_built_in_ones_do(run: Run, tmp_path: Path) -> None:
    packs = [tmp_path / f"pack{number}.py" for number in range(3)]
    for pack in packs:
        pack.write_text("def idle(): pass\n")
    workers = [(await run("idle", pack)).meta.worker for pack in packs * 2]
    assert workers[:3] == workers[3:]
    assert len(set(workers)) == 3
    built_in = [(await run(f, BUILT_IN / p)).meta.worker for p, f in (("time.py", "now"), ("shell.py", "pwd"))]
    assert built_in[0] == built_in[1]
    assert built_in[0] not in workers


async def test_idle_workers_are_stopped_for_packs_that_need_a_process(
    run: Run, executor: Executor, tmp_path: Path
) -> None:
    before = len(descendants(os.getpid()))
    for number in range(12):
        pack = tmp_path / f"pack{number}.py"
        pack.write_text("def idle(): pass\n")
        assert (await run("idle", pack)).ok
    # four workers with their keepers, and perhaps one that is about to end
    await until(lambda: len(descendants(os.getpid())) - before <= 2 * 4)
