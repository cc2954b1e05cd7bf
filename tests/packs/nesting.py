"""Tools that call other tools."""

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

from pegboard.sdk import ToolFailed, batch_execute, call_tool, get_pack, hints


@hints(read_only=True)
def echo(*, value: object = None) -> object:
    """Return the argument."""
    return value


def pid() -> int:
    """Return the id of the process."""
    return os.getpid()


def write(*, text: str) -> str:
    """Write without a hint that it changes data."""
    return text


def fail(*, how: str) -> None:
    """Fail in one of several ways."""
    if how == "said":
        raise ToolFailed("No such dataset.", "not_found", {"id": 7})
    raise LookupError("lost")


def big(*, items: int) -> list[int]:
    """Return a long list."""
    return list(range(items))


@hints(read_only=True)
def through(*, tool: str, arguments: dict[str, object]) -> object:
    """Call another tool, and return its result or error."""
    try:
        return {"data": call_tool(tool, **arguments)}
    except ToolFailed as failed:
        return {"failed": failed.message, "code": failed.code, "data": failed.data}
    except Exception as error:
        return {"type": type(error).__name__, "message": str(error)}


async def through_async(*, value: object) -> object:
    """Call another tool twice: with the event loop waiting, and with it free."""
    return [call_tool("nesting.echo", value=value), await asyncio.to_thread(call_tool, "nesting.echo", value=value)]


def through_pack(*, pack: str, value: object) -> object:
    """Call another tool as an attribute of its pack."""
    found = get_pack(pack)
    return None if found is None else [dir(found), found.echo(value=value)]


def both_pids() -> list[int]:
    """Return the ids of its own process and of the process of a tool that it calls."""
    return [os.getpid(), call_tool("nesting.pid")]


def down(*, levels: int) -> int:
    """Recurse to the given depth, and return the depth reached."""
    return 0 if levels == 0 else 1 + call_tool("nesting.down", levels=levels - 1)


def many(*, count: int) -> str:
    """Call another tool from many threads concurrently."""
    return batch_execute(range(count), lambda number: call_tool("nesting.echo", value=number), max_workers=16)


def waves(*, count: int, width: int) -> list[object]:
    """Call from several threads, again and again, each with its own value."""
    wrong: list[object] = []

    def ask(name: int) -> None:
        for number in range(count):
            value = [name, number]
            if call_tool("nesting.echo", value=value) != value:
                wrong.append(value)

    threads = [threading.Thread(target=ask, args=(name,)) for name in range(width)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def hang(*, file: str) -> None:
    """Write the id of the process to a file, and never end."""
    Path(file).write_text(str(os.getpid()))
    time.sleep(1000)


def hang_within(*, file: str) -> None:
    """Call a tool that never ends."""
    call_tool("nesting.hang", file=file)


def leave(*, file: str) -> str:
    """Return while a thread still waits for another tool."""
    threading.Thread(target=call_tool, args=("nesting.hang",), kwargs={"file": file}, daemon=True).start()
    while not Path(file).exists() or not Path(file).read_text():
        time.sleep(0.005)
    return "left"


def interrupted(*, file: str) -> list[object]:
    """Stop waiting for a tool, and call another."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGUSR1, stop)

    def interrupt() -> None:
        while not Path(file).exists() or not Path(file).read_text():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGUSR1)

    thread = threading.Thread(target=interrupt)
    thread.start()
    seen: list[object] = []
    try:
        call_tool("nesting.hang", file=file)
    except TimeoutError:
        seen.append("interrupted")
    thread.join()
    return [*seen, call_tool("nesting.echo", value="after")]


def forked() -> str:
    """Call a tool in a forked child, and return the outcome."""
    read, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            call_tool("nesting.pid")
        except RuntimeError as error:
            os.write(write_end, str(error).encode())
        os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    return os.read(read, 1000).decode()


def not_json() -> str:
    """Pass a value without a JSON form to another tool."""
    try:
        call_tool("nesting.echo", value=threading)
    except TypeError as error:
        return str(error)
    return "fine"
