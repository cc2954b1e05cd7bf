"""Tools that misbehave."""

import asyncio
import ctypes
import fcntl
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from pegboard.sdk import ToolFailed, log, progress


def echo(*, value=None):
    """Return the value."""
    return value


def measure(*, value):
    """Return the length of a text."""
    return len(value)


def where():
    """Return the process, its folder and its file mask."""
    mask = os.umask(0o22)
    os.umask(mask)
    return {"pid": os.getpid(), "cwd": os.getcwd(), "umask": mask}


def loop_for_ever():
    """Loop in Python forever."""
    print("looping")
    while True:
        pass


def hang_in_c(*, sign=None):
    """Hang in C code that never releases the interpreter, beside a child that sleeps."""
    child = subprocess.Popen(["sleep", "1000"])
    if sign:
        Path(sign).write_text(json.dumps({"group": os.getpgrp(), "pid": os.getpid(), "child": child.pid}))
    ctypes.PyDLL(None).pause()


def exit_hard(*, code=3):
    """Exit the process."""
    print("last words")
    sys.stdout.flush()
    os._exit(code)


def exit_soft():
    """Raise SystemExit."""
    sys.exit(4)


def interrupt():
    """Raise KeyboardInterrupt."""
    raise KeyboardInterrupt


def segfault():
    """Read at address zero."""
    ctypes.string_at(0)


def rubbish():
    """Print bytes that are not text."""
    os.write(1, bytes(range(256)) * 10)
    os.write(2, b"\xff\xfe\x00\x1b[31m" * 10)
    print("\ud800 alone")
    return "printed"


def read_stdin():
    """Read standard input to its end."""
    return sys.stdin.read()


def leave_child(*, sign=None):
    """Start a child that holds the output open and prints forever, and return immediately."""
    child = subprocess.Popen(["sh", "-c", "while :; do echo noise; sleep 0.01; done"])
    if sign:
        Path(sign).write_text(json.dumps({"group": os.getpgrp(), "child": child.pid}))
    return child.pid


def leave_orphan(*, sign):
    """Start an orphan process that prints forever, and return immediately."""
    subprocess.run(["sh", "-c", "(while :; do echo noise; sleep 0.01; done) &"], check=True)
    Path(sign).write_text(json.dumps({"group": os.getpgrp()}))


def detach(*, sign, then="return"):
    """Start a process that detaches itself in every possible way and sleeps; then return, crash or hang."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 1024)
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            Path(sign).write_text(json.dumps({"group": os.getpgrp(), "pid": os.getpid()}))
            time.sleep(1000)
        os._exit(0)
    os.wait()
    while not (os.path.exists(sign) and Path(sign).read_text().endswith("}")):
        time.sleep(0.001)
    if then == "crash":
        os._exit(3)
    while then == "hang":
        time.sleep(1)


def spawn(*, sign):
    """Start a process by `posix_spawn`, which has no hooks in Python, and return."""
    code = f"import json, os, time; open({sign!r}, 'w').write(json.dumps({{'group': os.getpgrp()}})); time.sleep(1000)"
    os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ, setsid=True)
    while not (os.path.exists(sign) and Path(sign).read_text().endswith("}")):
        time.sleep(0.001)


def hog_in_children(*, megabytes, children=4, shared=False):
    """Fork children that fill memory, separate or shared, and wait for them."""
    block = b"x" * (megabytes * 2**20) if shared else b""
    for _ in range(children):
        if os.fork() == 0:
            os.setsid()
            part = block or bytearray(b"x") * (megabytes * 2**20 // children)
            time.sleep(1.5 if shared else 1000)
            os._exit(len(part) == 0)
    for _ in range(children):
        os.wait()
    return "shared"


def bomb(*, most):
    """Fork processes that fork, each in its own session, up to a number; and wait."""
    born = mmap.mmap(-1, most)
    place = 0
    while place < most:
        if os.fork() == 0:
            os.setsid()
        place = born.find(b"\0")
        if place < 0:
            break
        born[place] = 1
    time.sleep(1000)


def leave_printer(*, go, done):
    """Start a process that waits for one file, prints, and creates another; return immediately."""
    script = f"(while [ ! -e {go} ]; do sleep 0.01; done; echo late; touch {done}) &"
    subprocess.run(["sh", "-c", script], check=True)


def fork_and_return():
    """Fork, and return from both processes."""
    return "child" if os.fork() == 0 else "parent"


def big(*, megabytes=60):
    """Return a long text."""
    return {"text": "x" * (megabytes * 1_000_000), "after": "whole"}


def many(*, count=100_000):
    """Return many rows."""
    return {"total": count, "rows": [{"n": n, "name": f"row {n}"} for n in range(count)]}


def big_under_a_mask():
    """Return a long text after setting a file mask without read permissions."""
    os.umask(0o777)
    return "x" * 2_000_000


def fail_strangely():
    """Fail with data that can't be read."""

    def items():
        yield 1
        raise LookupError("no second item")

    raise ToolFailed("failed", data={"items": items()})


def fail_with_object():
    """Fail with data that has no JSON form."""
    raise ToolFailed("failed", 404, data=object())


def no_json():
    """Return an object that has no JSON form."""
    return {"results": [1, {"lock": threading.Lock()}]}


def cycle():
    """Return a list that contains itself."""
    value = [1]
    value.append(value)
    return {"value": value}


def deep(*, levels=100_000):
    """Return deeply nested lists."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no")


def raise_unspeakable():
    """Raise an exception that can't be converted to text."""
    raise Unspeakable


def raise_long():
    """Raise an exception with a long text."""
    raise ValueError("long " * 1_000_000)


def raise_group():
    """Raise an exception group."""
    raise ExceptionGroup("several", [ValueError("one"), KeyError("two")])


async def fail_in_task(*, author: bool):
    """Raise an exception in a task of a task group, in another one."""

    async def lookup():
        if author:
            raise ToolFailed("no such dataset", code="not_found", data={"known": [1]})
        return {}["two"]

    async def lookups():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(lookup())

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(lookups())


def recurse():
    """Recurse without end."""
    return recurse()


def raise_surrogate():
    """Raise an exception whose text has no UTF-8 form."""
    log("\udc80 said")
    raise ValueError("a\udc80b")


def _inner(number):
    raise ValueError(f"{number} is not to my taste")


def raise_deeper(*, number=3):
    """Raise in an inner function."""
    return _inner(number)


async def raise_async():
    """Raise in a coroutine."""
    await wait()
    _inner(3)


def fail(*, message="no such dataset", code="not_found", data=None):
    """Fail with `ToolFailed`."""
    raise ToolFailed(message, code, data)


def hog():
    """Allocate without end."""
    held = []
    while True:
        held.append(bytearray(10_000_000))


_HELD = []


def hog_globally():
    """Allocate without end, in small pieces, and keep all of them."""
    while True:
        _HELD.append([None] * 1000)


def hog_linked():
    """Allocate without end, in the smallest pieces."""
    global _HELD
    while True:
        _HELD = (_HELD,)


def hog_shared(*, megabytes):
    """Fill shared memory, and keep it."""
    print("filling")
    shared = mmap.mmap(-1, megabytes * 2**20)
    for start in range(0, len(shared), mmap.PAGESIZE):
        shared[start] = 1
    time.sleep(1000)


def make_a_mess(*, folder):
    """Change all global state of the process."""
    os.chdir(folder)
    os.umask(0o777)
    os.environ.clear()
    os.environ["HOME"] = "/nowhere"
    sys.path.insert(0, folder)
    sys.stdout = open(os.devnull, "w")
    sys.stderr = None
    sys.setrecursionlimit(200)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(1)
    return "made"


def find_a_mess():
    """Return the global state that another tool could have changed."""
    print("seen")
    return {
        "home": os.environ.get("HOME"),
        "path": bool(os.environ.get("PATH")),
        "sys.path": sys.path[0],
        "sigterm": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
        "alarm": signal.alarm(0),
        "recursion": sys.getrecursionlimit(),
        "pid": os.getpid(),
    }


def close_descriptors():
    """Close all descriptors, including the worker's own."""
    os.closerange(0, 100)
    return "closed"


def redirect_stdout():
    """Redirect standard output to another file."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return "redirected"


def close_stdout():
    """Close standard output, as an object and as a descriptor."""
    sys.stdout.close()
    return "closed"


def forge_answers():
    """Write into every open descriptor."""
    for descriptor in range(3, 300):
        try:
            os.write(descriptor, b"not an answer\n")
        except OSError:
            pass
    time.sleep(1000)


def forge(*, lines):
    """Write lines into the channel of the results."""
    for descriptor in range(3, 300):
        try:
            if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                os.write(descriptor, "".join(f"{line}\n" for line in lines).encode())
        except OSError:
            pass
    return "honest"


def run_own_loop():
    """Run a separate event loop."""

    async def inner():
        await asyncio.sleep(0)
        return "inner"

    return asyncio.run(inner())


async def wait(*, seconds=0.0, value=None):
    """Wait asynchronously."""
    await asyncio.sleep(seconds)
    return value


async def which_loop():
    """Return the event loop that it runs on."""
    return id(asyncio.get_running_loop())


async def exit_in_async():
    """Raise SystemExit in a coroutine."""
    sys.exit(5)


def coroutine():
    """Return a coroutine from a function that is not asynchronous."""
    return wait(value="awaited")


def generate():
    """Yield."""
    yield from range(3)


async def generate_async():
    """Yield asynchronously."""
    for number in range(3):
        yield number


def flood(*, megabytes=200):
    """Print much."""
    line = b"y" * 99 + b"\n"
    for _ in range(megabytes):
        rest = line * 10_000
        while rest:
            rest = rest[os.write(1, rest) :]
    return "done"


def speak():
    """Use every way of printing and logging."""
    print("to stdout")
    print("to stderr", file=sys.stderr)
    log("a line for the log")
    progress(1, 3, "one")
    progress(3, 3, "three")
    sys.stdout.write("no newline")
    return "said"


def report_quickly(*, sign):
    """Report several steps without a pause, and wait for a file."""
    for done in range(1, 6):
        progress(done, 5)
    while not Path(sign).exists():
        time.sleep(0.01)
    return "said"


def report_no_number():
    """Report progress that is not a number or has no end."""
    progress(1, 4, "one")
    for done, total in ((float("nan"), 4), (2, float("inf")), (float("inf"), float("inf")), (3, float("nan"))):
        time.sleep(0.03)
        progress(done, total)
    return "said"


def log_at_length(*, characters):
    """Log one long line."""
    log("y" * characters)
    return "said"


def log_then_print():
    """Log and then print."""
    log("logged")
    print("printed")


def speak_from_threads():
    """Print from many threads concurrently."""

    def say(number):
        for _ in range(50):
            log(f"thread {number} " + "z" * 5000)
            progress(number, 8)

    threads = [threading.Thread(target=say, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return "said"


async def speak_async():
    """Print from a coroutine."""
    log("before")
    await asyncio.sleep(0)
    progress(1)
    return "said"


def speak_then_wait(*, sign):
    """Print, and then wait until a file exists."""
    print("waiting")
    log("logged")
    progress(1, 2)
    while not os.path.exists(sign):
        time.sleep(0.005)
    return "waited"


def show_environment():
    """Return the environment."""
    return dict(os.environ)


def limits():
    """Return the limits of the process."""
    import resource

    return {
        "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "argv": len(sys.argv),
        "group": os.getpgrp() == os.getpid(),
    }


def print_natively():
    """Print through the C library's own buffer."""
    libc = ctypes.CDLL(None)
    libc.printf(b"from C")
    return "printed"


def need_library():
    """Import a library that is not installed."""
    import yaml_that_nobody_has

    return yaml_that_nobody_has


def need_part_of_namespace():
    """Import a library that is one of many parts of a package, none of which is installed."""
    import azure.storage.blob

    return azure.storage.blob
