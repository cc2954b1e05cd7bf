"""The child process in which scripts run; started as a file of its own, and loads nothing but bashkit.

A script has a process, as `jq` and what else is native in bashkit can't be interrupted: not by `cancel()`, nor by
`timeout`; and as memory can only be limited for a process. Facts of bashkit 0.20 that this rests on:

- `await execute` with async callbacks runs `a & b & wait` at once; `execute_sync` one after the other.
- What was printed is lost from the result where a limit is hit, but `on_output` has told it before.
- stdout and stderr are kept up to 1 MiB each, and `on_output` falls silent there too; a flag says so.
- A `Bash` takes 1,000 executions and 100,000 commands, hence a new one for each script.
- `xargs -P` runs one after the other and `parallel` nothing, hence the functions below, which write `a & b & wait`.
- A custom command goes before a built-in one, a function before both; `command NAME` leaves out the function.
- Functions may be 16 deep, 64 jobs may run in the background; both is bashkit's own, and said when it is hit.

Requests and replies come as lines of JSON on stdin: `{"run", "names", "env", "commands", "iterations", "output"}` and
`{"reply", "out", "err", "code"}`. On stdout go `{"call", "name", "argv", "stdin"}`, `{"drop"}` where nobody waits for a
call any more, `{"out"}`, `{"err"}`, and at the end `{"end", "error", "cut"}`. The request `{"parse"}` runs nothing and
is answered by `{"commands", "functions", "cut"}` or `{"error"}`.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shlex
import sys
from contextlib import suppress
from itertools import count, islice, product
from json import dumps, loads
from threading import Lock

from bashkit import Bash, BashError, BuiltinContext, BuiltinResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # a message, whose fields the docstring describes

_LONGEST_LINE = 2**28
_FOR_EVER = 1e6
"""Seconds: the parent has the clock, as it stands still while the user is asked about a call."""
_MOST_AT_ONCE = 32
_MOST_JOBS = 10_000
"""Jobs of one `xargs -P` or `parallel`."""
_XARGS = {
    "P": "max-procs!", "n": "max-args!", "L": "max-lines!", "I": "replace!", "d": "delimiter!", "0": "null",
    "r": "no-run-if-empty", "t": "verbose", "x": "exit",
}  # fmt: skip
"""The flags of `xargs`, each with its long name, those with a value with a `!`."""
_PARALLEL = {"j": "jobs!", "k": "keep-order"}
_JOBS = "_pegboard_jobs"
_FUNCTIONS = f"""
xargs() {{
    case " $* " in
        *" -P"*|*" --max-procs"*) eval "$({_JOBS} xargs "$@")" </dev/null ;;
        *) command xargs "$@" ;;
    esac
}}
parallel() {{ eval "$({_JOBS} parallel "$@")" </dev/null; }}
"""


class Shell:
    """Runs one script after the other.

    Args:
        output: The descriptor to write to.
    """

    def __init__(self, output: int) -> None:
        self._output = output
        self._writing = Lock()
        self._numbers = count(1)
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._left = {"out": 0, "err": 0}
        self._cut: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Serves until the requests end."""
        running = None
        while line := await reader.readline():
            message = loads(line)
            if "reply" in message:
                waiting = self._replies.pop(message["reply"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            elif "parse" in message:
                self._write(_parsed(message["parse"]))
            else:
                running = asyncio.create_task(self._run(message))
        del running
        os._exit(0)  # whatever still runs

    async def _run(self, request: dict[str, Any]) -> None:
        self._left = dict.fromkeys(self._left, request["output"])
        self._cut = set()
        bash = Bash(
            hostname="pegboard",
            env=request["env"],
            max_commands=request["commands"],
            max_loop_iterations=request["iterations"],
            timeout_seconds=_FOR_EVER,
            custom_builtins={_JOBS: _jobs, **dict.fromkeys(request["names"], self._call)},
        )
        await bash.execute(_FUNCTIONS)
        result = await bash.execute(request["run"], self._printed)
        for stream, is_cut in (("out", result.stdout_truncated), ("err", result.stderr_truncated)):
            if is_cut:
                self._cut.add(stream)
        self._write({"end": result.exit_code, "error": result.error, "cut": sorted(self._cut)})

    def _printed(self, out: str, err: str) -> None:
        for stream, text in (("out", out), ("err", err)):
            if not text:
                continue
            data = text.encode("utf-8", "replace")
            kept = data[: self._left[stream]]
            self._left[stream] -= len(kept)
            if len(kept) < len(data):
                self._cut.add(stream)
            if kept:
                self._write({stream: kept.decode("utf-8", "ignore")})

    async def _call(self, context: BuiltinContext) -> BuiltinResult:
        number = next(self._numbers)
        waiting = self._replies[number] = asyncio.get_running_loop().create_future()
        self._write({"call": number, "name": context.name, "argv": context.argv, "stdin": context.stdin})
        try:
            reply = await waiting
        except asyncio.CancelledError:
            self._write({"drop": number})
            raise
        finally:
            self._replies.pop(number, None)
        return BuiltinResult(reply["out"], reply["err"], reply["code"])

    def _write(self, message: dict[str, Any]) -> None:
        data = memoryview(dumps(message).encode() + b"\n")
        with self._writing:
            while data:
                data = data[os.write(self._output, data) :]


def _parsed(script: str) -> dict[str, Any]:
    try:
        found = Bash().analyze(script)
    except BashError as error:
        return {"error": str(error)}
    commands = [
        (command.name, command.args, command.is_assignment_only)
        for command in found.commands
        # it finds an empty command behind an `&` at the end of a line, whose name isn't one to be computed
        if command.name is not None or found.has_dynamic_commands
    ]
    return {"commands": commands, "functions": found.functions, "cut": found.truncated}


# --- Jobs at once ---


class _UsageError(Exception):
    """The words of `xargs` or `parallel` can't be understood."""


async def _jobs(context: BuiltinContext) -> BuiltinResult:
    """Writes what `xargs -P` or `parallel` would do as a script, in which the jobs of one round run at once.

    A round is a text of its own, as how much a text may hold that is run is limited.
    """
    kind, *words = context.argv
    try:
        jobs, most = _wanted(kind, words, context.stdin or "")
    except (_UsageError, ValueError) as error:
        return BuiltinResult(f"echo {shlex.quote(f'{kind}: {error}')} >&2; (exit 2)\n")
    failed = "__failed=123" if kind == "xargs" else "__failed=$((__failed + 1))"
    rounds = []
    left = iter(jobs)
    while batch := list(islice(left, most)):
        lines = [f"{{ {job}; }} </dev/null & __job{number}=$!" for number, job in enumerate(batch)]
        lines += [f"wait $__job{number} || {failed}" for number in range(len(batch))]
        rounds.append("eval " + shlex.quote("\n".join(lines)))
    return BuiltinResult("\n".join(["__failed=0", *rounds, "(exit $__failed)"]) + "\n")


def _wanted(kind: str, words: list[str], text: str) -> tuple[list[str], int]:
    """Gives the jobs, and how many of them run at once."""
    jobs, most = (_xargs if kind == "xargs" else _parallel)(words, text)
    if len(jobs) > _MOST_JOBS:
        raise _UsageError(f"it does at most {_MOST_JOBS:,} jobs.")
    return jobs, most


def _xargs(words: list[str], text: str) -> tuple[list[str], int]:
    flags, command = _flags(words, _XARGS)
    if "null" in flags or "delimiter" in flags:
        delimiter = flags.get("delimiter", "\0").encode().decode("unicode_escape")
        items = text.removesuffix(delimiter).split(delimiter) if text else []
    elif "replace" in flags or "max-lines" in flags:
        items = [line.strip() for line in text.splitlines() if line.strip()]
    else:
        items = shlex.split(text)
    command = command or ["echo"]
    if "replace" in flags:
        mark = flags["replace"] or "{}"
        jobs = [shlex.join(word.replace(mark, item) for word in command) for item in items]
    else:
        size = _number("-n", flags.get("max-args", flags.get("max-lines", str(max(len(items), 1)))), 1)
        batches = [items[start : start + size] for start in range(0, len(items), size)]
        if "max-lines" in flags:
            batches = [shlex.split(" ".join(batch)) for batch in batches]
        jobs = [shlex.join([*command, *batch]) for batch in batches]
    return jobs, _at_once("-P", flags.get("max-procs", "1"))


def _parallel(words: list[str], text: str) -> tuple[list[str], int]:
    flags, command = _flags(words, _PARALLEL)
    sources: list[list[str]] = []
    while ":::" in command:
        at = len(command) - 1 - command[::-1].index(":::")
        sources.insert(0, command[at + 1 :])
        command = command[:at]
    if not sources:
        sources = [[line for line in text.splitlines() if line]]
    line = " ".join(command)
    jobs = []
    for items in islice(product(*sources), _MOST_JOBS + 1):
        quoted = shlex.join(items)
        job = line.replace("{}", quoted) if "{}" in line else f"{line} {quoted}"
        for number, item in enumerate(items, 1):
            job = job.replace(f"{{{number}}}", shlex.quote(item))
        jobs.append(job)
    return jobs, _at_once("-j", flags.get("jobs", "8"))


def _flags(words: list[str], known: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Gives the flags by their long names, and the command that stands behind them."""
    names = {**known, **{long.rstrip("!"): long for long in known.values()}}
    flags: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return flags, [word, *rest]
        name, equals, value = word[2:].partition("=") if word.startswith("--") else (word[1:2], "", word[2:])
        long = names.get(name)
        if long is None:
            raise _UsageError(f"{word} is not understood.")
        if long.endswith("!") and not value and not equals:
            value = next(rest, "")
        flags[long.rstrip("!")] = value
    return flags, []


def _at_once(flag: str, most: str) -> int:
    return min(_number(flag, most, 0) or _MOST_AT_ONCE, _MOST_AT_ONCE)


def _number(flag: str, text: str, least: int) -> int:
    if not (text.isdecimal() and int(text) >= least):
        raise _UsageError(f"{flag} must be a number, at least {least}, not {text!r}.")
    return int(text)


def main() -> None:
    """Serves until stdin ends; its command line is the memory limit in bytes."""
    memory = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    with suppress(OSError, ValueError):  # a lower limit stands already, or the system has none
        resource.setrlimit(kind, (memory, memory))
    output = os.dup(1)
    os.dup2(2, 1)

    async def serve() -> None:
        reader = asyncio.StreamReader(limit=_LONGEST_LINE)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        await Shell(output).serve(reader)

    asyncio.run(serve())


if __name__ == "__main__":
    main()
