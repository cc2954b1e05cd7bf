"""The child process in which scripts run; started as a file of its own, and loads nothing but bashkit.

A script has a process, as `jq` and what else is native in bashkit can't be interrupted: not by `cancel()`, nor by
`timeout`; and as memory can only be limited for a process. Facts of bashkit 0.20 that this rests on:

- `await execute` with async callbacks runs `a & b & wait` concurrently; `execute_sync` one after the other.
- When a limit is reached, the result has lost the output, but `on_output` has received it before.
- stdout and stderr are kept up to 1 MiB each, and `on_output` receives no more than that either; a flag says so.
- A `Bash` accepts 1,000 executions and 100,000 commands, hence a new one for each script.
- `xargs -P` runs one after the other and `parallel` nothing, hence the functions below, which write `a & b & wait`.
- A custom command goes before a built-in one, a function before both; `command NAME` leaves out the function.
- Functions may be 16 deep, 64 jobs may run in the background. A 65th job doesn't run, which only a line on stderr
  says; likewise a limit that is reached in the background, and a loop of `sed` that is stopped.
- A limit that is reached in an `EXIT` trap ends the trap without a message, hence the function `trap` below.
- Arrays have 100,000 entries together; `a+=(…)` drops what is more.
- `add_command` commands write bytes while others read; see `programs`.

Requests and replies come as lines of JSON on stdin: `{"run", "names", "env", "commands", "iterations", "output"}` and
`{"reply", "out", "err", "code"}`. On stdout go `{"call", "name", "argv", "stdin"}`, `{"drop"}` where nobody waits for a
call any more, `{"out"}`, `{"err"}`, `{"stop"}` with the reason why the script can't go on, and at the end
`{"end", "error", "cut", "short"}`. The request `{"parse"}` runs nothing; the reply is
`{"commands", "functions", "cut", "missing"}` or `{"error"}`.
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
    from typing import Any  # a message, whose fields the docstring describes

    from pegboard.scripts import programs
else:
    sys.path.insert(0, str(Path(__file__).parent))
    import programs

    del sys.path[0]

_LONGEST_LINE = 2**28
_FOR_EVER = 1e6
"""Seconds: the parent has the clock, as it stands still while the user is asked about a call."""
_MOST_COMMANDS = 100_000
"""Of one `Bash`; bashkit reports it nowhere if a trap or a job in the background reaches it."""
_MOST_ENTRIES = 100_000
"""Of all arrays together; bashkit drops what `a+=(…)` adds beyond that."""
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
_TRAP = "_pegboard_trap"
_HEAD = "_pegboard_head"
_FUNCTIONS = f"""
xargs() {{
    case " $* " in
        *" -P"*|*" --max-procs"*) eval "$({_JOBS} xargs "$@")" </dev/null ;;
        *) command xargs "$@" ;;
    esac
}}
parallel() {{ eval "$({_JOBS} parallel "$@")" </dev/null; }}
"""
_TRAPS = f"""
trap() {{
    case "$#,$1" in
        [01],* | *,-*) {_TRAP} unset "$BASH_SUBSHELL" "$@"; command trap "$@"; return ;;
    esac
    case " $* " in
        *" EXIT "*|*" 0 "*)
            {_TRAP} set "$BASH_SUBSHELL" "$-" "$1"
            command trap "$1
{_TRAP} end" "${{@:2}}" ;;
        *) command trap "$@" ;;
    esac
}}
exit() {{
    local code=${{1-$?}}
    {_TRAP} exit "$BASH_SUBSHELL"
    command exit "$code"
}}
"""
"""For scripts with an `EXIT` trap: they note whether it came to its end."""
_HEADS = f"""
head() {{
    case " $* " in
        *" /dev/zero "*|*" /dev/urandom "*|*" /dev/random "*) {_HEAD} "$@" ;;
        *) command head "$@" ;;
    esac
}}
"""
_SETS_TRAP = re.compile(r"\btrap\b[^\n]*(?:\bEXIT|\b0)\b|\btrap\b.*\bEXIT\b", re.DOTALL)
_LOOPS = re.compile(r"\b(?:while|until|for)\b")
_MISSING = (
    (
        re.compile(r"^bash: fork: retry: Resource temporarily unavailable", re.MULTILINE),
        "more than 64 jobs were in the background, and some of them did not run; use xargs -P, or wait in between",
    ),
    (
        re.compile(r"^bash: (?:line \d+: )?(?:resource limit exceeded|execution error): ([^\n]*)", re.MULTILINE),
        "a job in the background reached a limit: {}",
    ),
    (
        re.compile(r"^\s?sed: warning: branch/label loop limit[^\n]*", re.MULTILINE),
        "a loop of sed went round too often",
    ),
)
"""What bashkit says on stderr where the result is wrong, although the exit code is 0."""


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
        self._trap = ""

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
        self._trap = ""
        try:
            await self._execute(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent must not wait for the end of time
            self._stop(f"{type(error).__name__}: {error}")

    async def _execute(self, request: dict[str, Any]) -> None:
        script = request["run"]
        bash = Bash(
            hostname="pegboard",
            env=request["env"],
            max_commands=request["commands"],
            max_loop_iterations=request["iterations"],
            timeout_seconds=_FOR_EVER,
            custom_builtins={
                _JOBS: _jobs, _TRAP: self._note_trap, "bc": programs.bc, **dict.fromkeys(request["names"], self._call)
            },
        )  # fmt: skip
        for name, program in _PROGRAMS.items():
            if name not in request["names"]:
                bash.add_command(name, self._guarded(program))
        functions = _FUNCTIONS
        if _SETS_TRAP.search(script):
            functions += _TRAPS
        if "/dev/" in script:
            functions += _HEADS
        await bash.execute(functions)
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

    def _guarded(
        self, program: Callable[[CommandContext], Awaitable[int]]
    ) -> Callable[[CommandContext], Awaitable[int]]:
        async def run(context: CommandContext) -> int:
            try:
                return await program(context)
            except programs.EndlessError as error:
                self._stop(str(error))
                raise

        return run

    def _stop(self, reason: str) -> None:
        self._write({"stop": reason})

    async def _note_trap(self, context: BuiltinContext) -> BuiltinResult:
        """Note the `EXIT` trap of the script itself; limits in those of subshells are reported by bashkit."""
        match context.argv:
            case ["set", "0", options, body]:
                # with `set -e` a command that fails ends a trap, too
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
        for pattern, reason in _MISSING:
            if err and (said := pattern.search(err)) is not None:
                self._stop(reason.format(*said.groups()))

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
    names = dict.fromkeys(name for name, *_ in commands if name and "/" not in name and name not in found.functions)
    return {"commands": commands, "functions": found.functions, "cut": found.truncated, "missing": _missing(names)}


def _missing(names: Iterable[str]) -> list[str]:
    """Return the names that aren't commands of bash; tools are not known here."""
    listed = shlex.join(names)
    checked = Bash(max_commands=_MOST_COMMANDS).execute_sync(
        f'for name in {listed}; do type -t -- "$name" >/dev/null || printf \'%s\\n\' "$name"; done'
    )
    return checked.stdout.splitlines() if listed else []


_PROGRAMS: dict[str, Callable[[CommandContext], Awaitable[int]]] = {
    "seq": programs.seq, "yes": programs.yes, "sleep": programs.sleep, _HEAD: programs.head_of_device,
}  # fmt: skip


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
