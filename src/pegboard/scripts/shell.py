"""The child process in which scripts run; started as a file, it imports nothing but bashkit.

Each script needs a process because native commands of bashkit, such as `jq`, can't be interrupted, neither by
`cancel()` nor by `timeout`, and because memory can only be limited for a process. Properties of bashkit 0.20 that this
module relies on:

- `await execute` with async callbacks runs `a & b & wait` concurrently; `execute_sync` runs one after the other.
- If a limit is reached, the result contains no output, but `on_output` has received it.
- stdout and stderr are kept up to 1 MiB each, which also limits `on_output`; a flag reports that.
- A `Bash` accepts 1,000 executions and 100,000 commands, hence a new one for each script.
- `xargs -P` runs one after the other and `parallel` nothing, hence the functions below, which write `a & b & wait`.
- `xargs` exits with the code of the last job, hence the function `xargs` of the prelude, which records failed jobs.
- A custom command overrides a built-in one, a function overrides both; `command NAME` skips the function.
- Functions may be nested 16 levels deep, and 64 jobs may run in the background. A 65th job doesn't run, which is only
  reported by a line on stderr, like a limit that is reached in the background, and a loop of `sed` that is stopped.
- A limit that is reached in an `EXIT` trap ends the trap without a message, hence the function `trap` below.
- Arrays have 100,000 entries together; `a+=(…)` drops further ones.
- `add_command` commands write bytes while others read; see `programs`. Outside a plain pipe, as in `$(…)`, `<(…)` and
  the background, their output is cut at 1 MiB without a flag; that of `custom_builtins` is not. So is all that `eval`,
  `source` and `sh` print there, hence a function for each round of `xargs -P`.

Requests and replies are lines of JSON on stdin: `{"run", "names", "env", "commands", "iterations", "output"}` and
`{"reply", "out", "err", "code"}`. Messages on stdout are `{"call", "name", "argv", "stdin"}`, `{"drop"}` for cancelled
calls, `{"out"}`, `{"err"}`, `{"stop"}` with the reason why the script can't continue, and at the end
`{"end", "error", "cut", "short"}`. The request `{"parse"}` runs nothing; the reply is
`{"commands", "functions", "cut", "missing", "refusal"}` or `{"error"}`.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import shlex
import sys
from contextlib import suppress
from itertools import count, islice, product
from json import dumps, loads
from pathlib import Path
from threading import Lock

from bashkit import Bash, BashError, BuiltinContext, BuiltinResult, CommandContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, TypeVar  # Any: a message, whose fields the docstring describes

    Context = TypeVar("Context", BuiltinContext, CommandContext)
    Outcome = TypeVar("Outcome")

    from pegboard.scripts import programs
    from pegboard.scripts.prelude import ERRORS, HEAD, IS_LONG_SEQ, JOB, JOBS, LONG_SEQ, TRAP, prelude
    from pegboard.scripts.unsupported import unsupported
else:
    sys.path.insert(0, str(Path(__file__).parent))
    import programs
    from prelude import ERRORS, HEAD, IS_LONG_SEQ, JOB, JOBS, LONG_SEQ, TRAP, prelude
    from unsupported import unsupported

    del sys.path[0]

_LONGEST_LINE = 2**28
_NO_TIMEOUT = 1e6
"""Seconds: the parent enforces the timeout, as it doesn't count pending approvals."""
_MOST_COMMANDS = 100_000
"""Limit of one `Bash`; bashkit doesn't report it if a trap or a background job reaches it."""
_MOST_ENTRIES = 100_000
"""Limit of all arrays together; bashkit drops further entries that `a+=(…)` adds."""
_MOST_AT_ONCE = 32
_MOST_JOBS = 10_000
"""Jobs of one `xargs -P` or `parallel`."""
_XARGS = {
    "P": "max-procs!", "n": "max-args!", "L": "max-lines!", "I": "replace!", "d": "delimiter!", "0": "null",
    "r": "no-run-if-empty", "t": "verbose", "x": "exit",
}  # fmt: skip
"""Flags of `xargs` with their long names; `!` marks those with a value."""
_PLAIN_XARGS = {**_XARGS, "E": "eof!", "a": "arg-file!"}
"""Flags of `xargs` without `-P`; with `-s`, the name of a function would count."""
_VERBOSE = re.compile(r"^-([0rx]*)t")
_SAFE = frozenset({"echo", "printf", "basename", "dirname"})
"""Commands that don't fail. A job that records a failure counts as five commands, and their number is limited."""
_OPTIONAL_VALUES = frozenset({"replace!", "max-lines!", "eof!"})
"""Flags whose long name has a value only behind `=`."""
_BLANK = " \t\r\v\f"
_PARALLEL = {"j": "jobs!", "k": "keep-order"}
_REPLACED = re.compile(r"\{([1-9]\d?|)\}")
"""Placeholders of `parallel`: all items of a job, or one of them by its number."""
_NOT_REPLACED = re.compile(r"\{\d*(?:/?\.|//?|#|%)\}")
"""Other placeholders that GNU parallel has."""
_NOT_SEPARATED = frozenset({":::+", "::::", "::::+"})
"""Separators of sources that GNU parallel has besides `:::`."""
_LOOPS = re.compile(r"\b(?:while|until|for)\b")
_MISSING = (
    (
        re.compile(r"^bash: fork: retry: Resource temporarily unavailable", re.MULTILINE),
        "some background jobs did not run because more than 64 ran at a time; use xargs -P, or wait in between",
    ),
    (
        re.compile(r"^bash: (?:line \d+: )?(?:resource limit exceeded|execution error): ([^\n]*)", re.MULTILINE),
        "a job in the background reached a limit: {}",
    ),
    (
        re.compile(r"^\s?sed: warning: branch/label loop limit[^\n]*", re.MULTILINE),
        "a loop of sed exceeded its limit",
    ),
    (
        re.compile(
            r"^(jq|yq|awk): (?:error: |fatal: )?([^\n(]* limit (?:exceeded )?\([^\n)]*\)(?: exceeded)?)$", re.MULTILINE
        ),
        "{}: {}",
    ),
)
"""Messages of bashkit on stderr if the result is wrong although the exit code may be 0."""


class Shell:
    """Server of requests, one script at a time.

    Args:
        output: The file descriptor for messages.
    """

    def __init__(self, output: int) -> None:
        self._output = output
        self._writing = Lock()
        self._numbers = count(1)
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._left = {"out": 0, "err": 0}
        self._cut: set[str] = set()
        self._trap = ""

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Serve until stdin ends."""
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
        os._exit(0)  # ends threads that still run

    async def _run(self, request: dict[str, Any]) -> None:
        self._left = dict.fromkeys(self._left, request["output"])
        self._cut = set()
        self._trap = ""
        try:
            await self._execute(request)
        except Exception as error:  # noqa: BLE001 - the parent must always get a reply
            self._stop(f"{type(error).__name__}: {error}")

    async def _execute(self, request: dict[str, Any]) -> None:
        script = request["run"]
        if (refusal := unsupported(script)) is not None:
            self._write({"end": 0, "error": refusal, "cut": [], "short": []})
            return
        bash = Bash(
            hostname="pegboard",
            env=request["env"],
            max_commands=request["commands"],
            max_loop_iterations=request["iterations"],
            timeout_seconds=_NO_TIMEOUT,
            custom_builtins={
                JOBS: _jobs, TRAP: self._note_trap, ERRORS: self._read_errors, IS_LONG_SEQ: programs.is_long_seq,
                "bc": programs.bc, "seq": self._guarded(programs.seq), **dict.fromkeys(request["names"], self._call)
            },
        )  # fmt: skip
        for name, program in _PROGRAMS.items():
            if name not in request["names"]:
                bash.add_command(name, self._guarded(program))
        await bash.execute(prelude(script, request["names"]))
        result = await bash.execute(script, self._printed)
        for stream, is_cut in (("out", result.stdout_truncated), ("err", result.stderr_truncated)):
            if is_cut:
                self._cut.add(stream)
        short = [*programs.cuts(script)]
        if self._trap:
            short.append("its EXIT trap was stopped by a limit")
        elif result.error is None and (await bash.execute(":")).error is not None:  # a trap for DEBUG, say
            short.append(f"it ran more than {_MOST_COMMANDS:,} commands")
        if "(" in script and sum(map(len, bash.shell_state().arrays.values())) >= _MOST_ENTRIES:
            short.append(f"its arrays would have more than {_MOST_ENTRIES:,} entries")
        self._write({"end": result.exit_code, "error": result.error, "cut": sorted(self._cut), "short": short})

    def _guarded(self, program: Callable[[Context], Awaitable[Outcome]]) -> Callable[[Context], Awaitable[Outcome]]:
        async def run(context: Context) -> Outcome:
            try:
                return await program(context)
            except programs.EndlessError as error:
                self._stop(str(error))
                raise

        return run

    def _stop(self, reason: str) -> None:
        self._write({"stop": reason})

    async def _note_trap(self, context: BuiltinContext) -> BuiltinResult:
        """Record the `EXIT` trap of the script itself; bashkit reports limits in those of subshells."""
        match context.argv:
            case ["set", "0", options, body]:
                # With `set -e` a command that fails also ends a trap.
                self._trap = body if "e" not in options or _LOOPS.search(body) else ""
            case ["unset", "0", *words] if "EXIT" in words or "0" in words:
                self._trap = ""
            case ["end"] | ["exit", "0"]:
                self._trap = ""
        return BuiltinResult()

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
        self._stop_if_incomplete(err)

    def _stop_if_incomplete(self, errors: str) -> bool:
        """Stop if error messages report a limit; return whether they do."""
        for pattern, reason in _MISSING:
            if errors and (said := pattern.search(errors)) is not None:
                self._stop(reason.format(*said.groups()))
                return True
        return False

    async def _read_errors(self, context: BuiltinContext) -> BuiltinResult:
        """Print stdin to stderr, which the script may discard, and stop if it reports a limit."""
        if self._stop_if_incomplete(context.stdin or ""):
            # No further command may run until the parent ends this process.
            await asyncio.get_running_loop().create_future()
        return BuiltinResult("", context.stdin or "")

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
        # bashkit reports an empty command after an `&` at the end of a line; its name isn't computed at run time.
        if command.name is not None or found.has_dynamic_commands
    ]
    names = dict.fromkeys(name for name, *_ in commands if name and "/" not in name and name not in found.functions)
    return {
        "commands": commands,
        "functions": found.functions,
        "cut": found.truncated,
        "missing": _missing(names),
        "refusal": unsupported(script),
    }


def _missing(names: Iterable[str]) -> list[str]:
    """Return the names that aren't commands of bash; tools are not known here."""
    listed = shlex.join(names)
    checked = Bash(max_commands=_MOST_COMMANDS).execute_sync(
        f'for name in {listed}; do type -t -- "$name" >/dev/null || printf \'%s\\n\' "$name"; done'
    )
    return checked.stdout.splitlines() if listed else []


_PROGRAMS: dict[str, Callable[[CommandContext], Awaitable[int]]] = {
    LONG_SEQ: programs.long_seq, "yes": programs.yes, "sleep": programs.sleep, HEAD: programs.head_of_device,
}  # fmt: skip


# --- Concurrent jobs ---


class _UsageError(Exception):
    """The arguments of `xargs` or `parallel` are invalid."""


async def _jobs(context: BuiltinContext) -> BuiltinResult:
    """Return what the functions `xargs` and `parallel` need: with `-P`, a script for the jobs of each round."""
    kind, *words = context.argv
    if kind == "plain":
        return BuiltinResult(_recorded(words))
    try:
        jobs, most = _wanted(kind, words, context.stdin or "")
    except (_UsageError, ValueError) as error:
        return BuiltinResult(_rounds([f"echo {shlex.quote(f'{kind}: {error}')} >&2; return 2"]))
    failed = "__failed=123" if kind == "xargs" else "__failed=$((__failed + 1))"
    rounds = []
    left = iter(jobs)
    while batch := list(islice(left, most)):
        lines = [f"{{ {job}; }} </dev/null & __job{number}=$!" for number, job in enumerate(batch)]
        lines += [f"wait $__job{number} || {failed}" for number in range(len(batch))]
        rounds.append("\n".join(lines))
    return BuiltinResult(_rounds(rounds))


def _rounds(scripts: list[str]) -> str:
    """Return the assignment of the scripts of all rounds; each becomes a function, as `eval` cuts output at 1 MiB."""
    return f"__rounds=({shlex.join(scripts)})"


def _recorded(words: list[str]) -> str:
    """Return an assignment of the words of `xargs` without `-P`; its jobs record failures, unless a flag is unknown."""
    try:
        flags, command = _flags(words, _PLAIN_XARGS)
    except _UsageError:
        return f"__words=({shlex.join(words)})"
    given, job = words[: len(words) - len(command)], JOB
    command = command or ["echo"]
    if "verbose" in flags:  # bashkit would show the name of the function
        given = [_VERBOSE.sub(r"-\1", word) for word in given if word != "--verbose"]
        given, job = [word for word in given if word != "-"], f"{JOB}_verbose"
    elif command[0] in _SAFE:
        return f"__words=({shlex.join(words)})"
    return f"__words=({shlex.join([*given, job, *command])})"


def _wanted(kind: str, words: list[str], text: str) -> tuple[list[str], int]:
    """Return the jobs, and how many of them run concurrently."""
    jobs, most = (_xargs if kind == "xargs" else _parallel)(words, text)
    if len(jobs) > _MOST_JOBS:
        raise _UsageError(f"at most {_MOST_JOBS:,} jobs are supported.")
    return jobs, most


def _xargs(words: list[str], text: str) -> tuple[list[str], int]:
    flags, command = _flags(words, _XARGS)
    if "null" in flags or "delimiter" in flags:
        delimiter = flags.get("delimiter", "\0").encode().decode("unicode_escape")
        items = text.removesuffix(delimiter).split(delimiter) if text else []
    elif "replace" in flags:
        items = [_unquoted(line) for line in _lines(text)]
    elif "max-lines" in flags:
        items = _lines(text)
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
        if not batches and "no-run-if-empty" not in flags:
            batches = [[]]
        jobs = [shlex.join([*command, *batch]) for batch in batches]
    return jobs, _concurrency("-P", flags.get("max-procs", "1"))


def _lines(text: str) -> list[str]:
    """Return the lines that aren't blank, without the white space before them."""
    return [line for line in (line.lstrip(_BLANK) for line in text.split("\n")) if line]


def _unquoted(line: str) -> str:
    """Return a line without its quotes and backslashes, and with its white space."""
    reader = shlex.shlex(line, posix=True)
    reader.whitespace = reader.commenters = ""
    reader.whitespace_split = True
    return "".join(reader)


def _parallel(words: list[str], text: str) -> tuple[list[str], int]:
    flags, command = _flags(words, _PARALLEL)
    unsupported = [word for word in command if word in _NOT_SEPARATED]
    sources: list[list[str]] = []
    while ":::" in command:
        at = len(command) - 1 - command[::-1].index(":::")
        sources.insert(0, command[at + 1 :])
        command = command[:at]
    if not sources:
        sources = [[line for line in text.split("\n") if line]]
    line = " ".join(command)
    unsupported += _NOT_REPLACED.findall(line)
    if unsupported:
        raise _UsageError(f"{unsupported[0]} is not supported.")
    if not _REPLACED.search(line):
        line += " {}"
    jobs = [_filled(line, items) for items in islice(product(*sources), _MOST_JOBS + 1)]
    return jobs, _concurrency("-j", flags.get("jobs", "8"))


def _filled(line: str, items: tuple[str, ...]) -> str:
    """Return a command with the items of a job in place of the placeholders."""

    def item(found: re.Match[str]) -> str:
        number = int(found[1] or 0)
        if number > len(items):
            raise _UsageError(f"{found[0]} has no items: separate the items of each source with :::.")
        return shlex.quote(items[number - 1]) if number else shlex.join(items)

    return _REPLACED.sub(item, line)


def _flags(words: list[str], known: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the flags by their long names, and the command after them."""
    names = {**known, **{long.rstrip("!"): long for long in known.values()}}
    flags: dict[str, str] = {}
    left = [*words]
    while left and left[0].startswith("-"):
        word = left.pop(0)
        if word == "--":
            break
        is_long = word.startswith("--")
        name, equals, value = word[2:].partition("=") if is_long else (word[1:2], "", word[2:])
        long = names.get(name)
        if long is None:
            raise _UsageError(f"{word} is not supported.")
        if long.endswith("!"):
            if not value and not equals and left and not (is_long and long in _OPTIONAL_VALUES):
                value = left.pop(0)
        elif value and not is_long:
            left.insert(0, f"-{value}")
        flags[long.rstrip("!")] = value
    return flags, left


def _concurrency(flag: str, most: str) -> int:
    return min(_number(flag, most, 0) or _MOST_AT_ONCE, _MOST_AT_ONCE)


def _number(flag: str, text: str, least: int) -> int:
    if not (text.isdecimal() and int(text) >= least):
        raise _UsageError(f"{flag} must be a number, at least {least}, not {text!r}.")
    return int(text)


def main() -> None:
    """Serve until stdin ends; the command line contains the memory limit in bytes."""
    memory = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    with suppress(OSError, ValueError):  # a lower limit is already set, or the system has none
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
