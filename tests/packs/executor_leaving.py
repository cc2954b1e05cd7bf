"""Tools that leave something behind in their process."""

import asyncio
import builtins
import contextvars
import decimal
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_KEPT = []
_NUMBER = contextvars.ContextVar("number", default=0)
_POOL = ThreadPoolExecutor(2)
_BEGUN, _BEGIN = os.pipe()
"""Pipe through which `whole` signals leftover threads that it runs."""


def whole():
    """Use what other tools may have left broken, for a while, and signal the process."""
    os.write(_BEGIN, b".")
    deadline = time.process_time() + 0.15
    while time.process_time() < deadline:
        pass
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    print("whole")
    assert (len("abc"), json.loads("[1]"), Path(os.getcwd()).is_dir()) == (3, [1], True)
    return os.getpid()


def thread_that_exits():
    def exit_later():
        os.read(_BEGUN, 1)
        os._exit(3)

    threading.Thread(target=exit_later, daemon=True).start()
    return os.getpid()


def thread_that_prints(*, go):
    def print_late():
        while not os.path.exists(go):
            time.sleep(0.001)
        while True:
            print("late")
            time.sleep(0.001)

    threading.Thread(target=print_late, daemon=True).start()
    return os.getpid()


def busy_pool():
    _POOL.submit(time.sleep, 1000)
    return os.getpid()


def forked_child_that_kills():
    parent = os.getpid()
    if os.fork() == 0:
        os.close(_BEGIN)
        if os.read(_BEGUN, 1):
            os.kill(parent, signal.SIGKILL)
        os._exit(0)
    return parent


def unburied_child():
    _KEPT.append(subprocess.Popen(["true"]))
    return os.getpid()


async def task():
    async def later():
        await asyncio.sleep(0)
        os._exit(9)

    _KEPT.append(asyncio.create_task(later()))
    return os.getpid()


def descriptors():
    _KEPT.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(400))
    return os.getpid()


def all_descriptors():
    try:
        while True:
            _KEPT.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return os.getpid()


def limit_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    return os.getpid()


def limit_processor():
    seconds = int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    return os.getpid()


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return os.getpid()


def patch_getcwd():
    os.getcwd = lambda: "/nowhere"
    return os.getpid()


def patch_write():
    os.write = lambda *_: 0
    return os.getpid()


def patch_json():
    json.loads = lambda *_: {}
    return os.getpid()


def patch_len():
    builtins.len = lambda _: 0
    return os.getpid()


def patch_environ():
    os.environ._data = None
    return os.getpid()


def forget_modules():
    for name in [name for name in sys.modules if name.startswith("pegboard") or name in {"json", "os"}]:
        del sys.modules[name]
    return os.getpid()


def timer_of_processor_time():
    signal.setitimer(signal.ITIMER_PROF, 0.05)
    return os.getpid()


def timer_of_own_time():
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
    return os.getpid()


def block_signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    return os.getpid()


def trace():
    sys.setprofile(lambda *_: None)
    return os.getpid()


def add_builtin():
    builtins._ = str
    return os.getpid()


async def idle_pool():
    return await asyncio.to_thread(os.getpid)


def own_pool():
    return _POOL.submit(os.getpid).result()


def ended_thread():
    thread = threading.Thread(target=time.sleep, args=(0.001,))
    thread.start()
    return os.getpid()


def ended_child():
    subprocess.run(["true"], check=True)
    return os.getpid()


def lower_priority():
    os.nice(1)
    return os.getpid()


def surroundings():
    """Return settings that other tools may have changed."""
    stdout = sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering
    third = decimal.Decimal(1) / 3
    return os.getpid(), third, _NUMBER.get(), time.strftime("%Z", time.localtime(0)), stdout


def set_precision():
    decimal.getcontext().prec = 3


def set_variable():
    _NUMBER.set(1)
    yield "set"


def set_zone():
    os.environ["TZ"] = "XYZ-9"
    time.tzset()


def set_encoding():
    sys.stdout.reconfigure(encoding="ascii", errors="strict", line_buffering=False)


def what_is_blocked():
    return sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
