"""Process that works on one whole result: reads a request, answers it, and exits.

It has limits on memory and time, because filters come from users and data from tools.
"""

from __future__ import annotations

import json
import os
import re
import resource
import stat
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from pegboard.results.row_order import matches, order
from pegboard.results.search import find, pattern
from pegboard.results.shorten import shorten
from pegboard.results.stored.offsets import containers, members, segments, skip_space

_MOST_HITS = 10_000
_MOST_RESULTS = 1_000_000
_BIGGEST_IMAGE = 50_000_000

Request = dict[str, object]
ProcessAnswer = tuple[dict[str, object], bytes]


def main() -> None:
    """Answer the request on stdin: a line of JSON, then the data unless the request names a file."""
    request: Request = json.loads(sys.stdin.buffer.readline())
    memory = int(str(request["memory"]))
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    with suppress(OSError, ValueError):  # a lower limit is set, or the system has none
        resource.setrlimit(kind, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        os.nice(5)
    try:
        head, data = _OPERATIONS[str(request["operation"])](request)
    except MemoryError:
        head, data = {"error": "It needs too much memory."}, b""
    except RecursionError:
        head, data = {"error": "The data is nested too deeply."}, b""
    except (OSError, ValueError) as error:
        head, data = {"error": str(error)}, b""
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + data)
    sys.stdout.buffer.flush()
    os._exit(0)  # freeing millions of objects one by one takes longer than the work


def _source(request: Request) -> bytes:
    file = request.get("file")
    if file is None:
        return sys.stdin.buffer.read()
    with open(str(file), "rb") as source:  # noqa: PTH123 - pathlib is too heavy
        return source.read()


def _index(request: Request) -> ProcessAnswer:
    raw = _source(request)
    if raw.lstrip()[:1] == b'"':
        places, characters = segments(raw)
        return {"kind": "text", "counts": [len(places)]}, places.tobytes() + characters.tobytes()
    if raw.lstrip()[:1] not in {b"[", b"{"}:
        return {"error": "The data is a single value."}, b""
    heads, positions = containers(raw)
    counts = [len(starts) for starts in positions]
    return {"kind": "value", "containers": heads, "counts": counts}, b"".join(map(array.tobytes, positions))


def _filter(request: Request) -> ProcessAnswer:
    from pegboard.packs._jq import compile_filter

    try:
        results = list(
            islice(compile_filter(str(request["filter"])).input_text(_source(request).decode()), _MOST_RESULTS + 1)
        )
    except ValueError as error:
        raise ValueError(_first_line(str(error))) from None
    if len(results) > _MOST_RESULTS:
        raise ValueError(f"The filter has more than {_MOST_RESULTS:,} results.")
    data = results[0].encode() if len(results) == 1 else f"[{','.join(results)}]".encode()
    head: dict[str, object] = {"count": len(results), "size": len(data), "truncated": None}
    limit = int(str(request["limit"]))
    if len(data) <= limit:
        return head, data
    keep = str(request["keep"])
    with open(os.open(keep, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:  # noqa: PTH123 - pathlib is too heavy
        out.write(data)
    shown, shown_bytes = shorten(json.loads(data), limit)
    head["truncated"] = {"shown_bytes": shown_bytes, "total_bytes": len(data), "file": keep}
    return head, json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace")


def _first_line(message: str) -> str:
    """Return the reason of jq's message without the quoted filter, which is on the screen."""
    line = message.removeprefix("jq: ").partition("\n")[0].removeprefix("error: ")
    return line.replace(" at <top-level>,", " at").removesuffix(":")


def _arrange(request: Request) -> ProcessAnswer:
    text = _source(request).decode()
    at = _position(text, request["path"])
    wanted = pattern(str(request["wanted"])) if request["wanted"] else None
    column = request["column"]
    rows = _rows(text, at, wanted)
    if column is None:
        numbers = [number for number, _ in rows]
    else:
        values = ((number, row.get(column) if isinstance(row, dict) else None) for number, row in rows)
        numbers = order(values, descending=bool(request["descending"]))
    return {"counts": [len(numbers)]}, array("Q", numbers).tobytes()


def _rows(text: str, at: int, wanted: re.Pattern[str] | None) -> Iterator[tuple[int, object]]:
    for number, (_, _, row, begin, end) in enumerate(members(text, at)):
        if wanted is None or (_may_match(text, wanted, begin, end) and matches(row, wanted)):
            yield number, row


def _may_match(text: str, wanted: re.Pattern[str], begin: int, end: int) -> bool:
    """Return False if a part certainly doesn't match. It is far faster than to look at each value."""
    return wanted.search(text, begin, end) is not None or text.find("\\", begin, end) >= 0


def _search(request: Request) -> ProcessAnswer:
    text = _source(request).decode()
    wanted = pattern(str(request["wanted"]))
    at = skip_space(text, 0)
    hits = list(islice(_hits(text, at, wanted), _MOST_HITS + 1))
    return {"hits": hits[:_MOST_HITS], "more": len(hits) > _MOST_HITS, "is_text": text[at] == '"'}, b""


def _hits(text: str, at: int, wanted: re.Pattern[str]) -> Iterator[Sequence[object]]:
    """Yield the path of each match, or its start and end in a text."""
    if text[at] not in "[{":
        value = json.loads(text)
        if isinstance(value, str):
            yield from ([found.start(), found.end()] for found in wanted.finditer(value))
        return
    for number, (start, key, value, _, end) in enumerate(members(text, at)):
        if not _may_match(text, wanted, start, end):
            continue
        step: object = number if key is None else key
        if key is not None and wanted.search(key):
            yield [step]
            if not isinstance(value, list | dict):
                continue
        yield from ([step, *path] for path in find(value, wanted) if path is not None)


def _position(text: str, path: object) -> int:
    """Return the position of the list or object at a path."""
    at = skip_space(text, 0)
    for step in path if isinstance(path, list) else ():
        for number, (_, key, _, begin, _) in enumerate(members(text, at)):
            if (number if key is None else key) == step:
                at = begin
                break
        else:
            raise ValueError("The list is no longer in the file.")
    return at


def _image(request: Request) -> ProcessAnswer:
    from pegboard.results.stored.picture import thumbnail

    file = request.get("file")
    if file is not None:
        status = os.stat(str(file))  # noqa: PTH116 - pathlib is too heavy
        if not stat.S_ISREG(status.st_mode) or status.st_size > _BIGGEST_IMAGE:
            raise ValueError("The image is not a regular file of at most 50 MB.")
    return thumbnail(_source(request), int(str(request["width"])), int(str(request["height"])))


def _highlight(request: Request) -> ProcessAnswer:
    from pegboard.results.stored.code import token_spans

    return {"lines": token_spans(_source(request).decode("utf-8", "replace"), str(request["name"]))}, b""


_OPERATIONS: dict[str, Callable[[Request], ProcessAnswer]] = {
    "index": _index,
    "filter": _filter,
    "arrange": _arrange,
    "search": _search,
    "image": _image,
    "highlight": _highlight,
}


if __name__ == "__main__":
    main()
