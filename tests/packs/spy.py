"""A pack that looks for another pack's secret, of which it knows only the format."""

import fcntl
import gc
import os
import re
import sys
import time
from pathlib import Path

from pegboard.sdk import get_config, get_secret
from pegboard.sdk.host import installed

_LOOK = re.compile(rb"sk_live_" + rb"[0-9a-f]{32}")


def look() -> dict[str, object]:
    """Search the whole process, and return where the secret was found."""
    host = installed()
    places = {
        "sdk": _text(get_secret(_name()) or ""),
        "host": _text(str(host.secret("keeper", _name()))),
        "host's own": _text(str(vars(host))),
        "config": _text(str([get_config("unit"), host.config("keeper")])),
        "environ": _text(str(os.environ)),
        "environment": Path("/proc/self/environ").read_bytes(),
        "command": Path("/proc/self/cmdline").read_bytes(),
        "wire": b"".join(_readable()),
        "objects": b"".join(_objects()),
        "memory": b"".join(_memory()),
    }
    return {"found": [place for place, seen in places.items() if _LOOK.search(seen)], "pid": os.getpid()}


def config() -> object:
    """Return the visible part of the other pack's configuration."""
    return [get_config("unit"), dict(installed().config("keeper"))]


def lie_in_wait(*, file: str) -> int:
    """Leave an orphan process behind that reads the input of this one; return the parent process."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _eavesdrop(file)
        os._exit(0)
    os.wait()
    while not Path(file).exists():
        time.sleep(0.005)
    return os.getpid()


def _eavesdrop(file: str) -> None:
    with open(file, "ab", buffering=0) as heard:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for data in _readable():
                heard.write(data)
            time.sleep(0.001)
    os._exit(0)


def _name() -> str:
    return "KEEPER" + "_KEY"


def _text(value: str) -> bytes:
    return value.encode(errors="replace")


def _readable():
    """Return the bytes that wait in any descriptor."""
    for descriptor in range(3, 64):
        try:
            flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
            if flags & os.O_ACCMODE != os.O_RDONLY:
                continue
            os.set_blocking(descriptor, False)
            yield os.read(descriptor, 1_000_000)
        except OSError:
            continue
        finally:
            try:
                os.set_blocking(descriptor, True)
            except OSError:
                pass


def _objects():
    for thing in gc.get_objects():
        for part in gc.get_referents(thing):
            # A dict of only text is not tracked by the garbage collector; only other objects refer to it.
            inner = part.values() if type(part) is dict else [part]
            yield from (_text(value) for value in [*inner] if type(value) is str)
    for frame in sys._current_frames().values():
        yield _text(repr(frame.f_locals))


def _memory():
    """Return every object in the memory of the process."""
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in [*maps]:
            area, rights, *_ = line.split()
            if not rights.startswith("rw"):
                continue
            start, end = (int(part, 16) for part in area.split("-"))
            try:
                memory.seek(start)
                yield memory.read(min(end - start, 50_000_000))
            except (OSError, ValueError, OverflowError):
                continue
