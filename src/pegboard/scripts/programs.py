"""Programs of scripts that replace those of bashkit, which stop early and exit with 0.

In bashkit `seq` ends after 100,000 lines, `yes` after 10,000, a device after 1 MiB, `sleep` after a minute, and `bc`
calculates with floating-point numbers. These programs write as long as their output is read, or end the script.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from itertools import repeat

from bashkit import BuiltinContext, BuiltinResult, CommandContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pegboard.scripts.calculator import CalculationError, calculate
else:
    from calculator import CalculationError, calculate

_CHUNK = 2**16
_MOST_BYTES = 64 * 2**20
_BROKEN_PIPE = 141
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {"": 1, "b": 512, "k": 2**10, "K": 2**10, "kB": 10**3, "KB": 10**3, "M": 2**20, "MB": 10**6, "G": 2**30}
_DEVICE = re.compile(r"/dev/(?:zero|u?random)")
_COMMENT_LINE = re.compile(r"^[ \t]*#.*", re.MULTILINE)
_LENGTH = re.compile(
    r"\b(?:head (?:-[cn] ?|--(?:bytes|lines)[= ]|-)|od\b[^|]* -N ?|xxd\b[^|]* -l ?)(\d{1,9})\b(?![kKMGb])"
)
"""The part of a command that limits how much it reads."""


class EndlessError(Exception):
    """A program wrote more than the limit, so the output is incomplete; the message is a sentence."""


class _UsageError(Exception):
    """A program's arguments are invalid."""


async def seq(context: BuiltinContext) -> BuiltinResult:
    """Print numbers, all at the end: bashkit cuts what a `CommandContext` writes to anything but a pipe at 1 MiB."""
    try:
        lines, separator, _ = _numbers(context.argv)
    except _UsageError as error:
        return BuiltinResult("", f"seq: {error}\n", 1)
    output = bytearray()
    for chunk in _joined(lines, separator):
        output += chunk
        if len(output) > _MOST_BYTES:
            raise _too_long("seq")
    return BuiltinResult(output.decode())


async def is_long_seq(context: BuiltinContext) -> BuiltinResult:
    """Succeed if `seq` with these arguments prints more than the limit."""
    try:
        lines, separator, count = _numbers(context.argv)
    except _UsageError:
        return BuiltinResult("", "", 1)
    size = count * (1 + len(separator))
    if size <= _MOST_BYTES:
        size = 0
        for chunk in _joined(lines, separator):
            size += len(chunk)
            if size > _MOST_BYTES:
                break
    return BuiltinResult("", "", 0 if size > _MOST_BYTES else 1)


async def long_seq(context: CommandContext) -> int:
    """Print more numbers than the limit while they are read; if all of them are read, the script ends."""
    lines, separator, _ = _numbers(context.argv)
    return await _write(context, _joined(lines, separator))


async def yes(context: CommandContext) -> int:
    """Print a line repeatedly."""
    line = (" ".join(context.argv) or "y").encode() + b"\n"
    return await _write(context, repeat(line * (_CHUNK // len(line) + 1)))


async def head_of_device(context: CommandContext) -> int:
    """Print the first bytes of a device: `head -c 100 /dev/zero`."""
    words = " ".join(context.argv)
    asked = re.fullmatch(r"(?:-c ?|--bytes[= ])(\d{1,12})([bkKMG]B?|) (/dev/\w+)", words)
    if asked is None or not _DEVICE.fullmatch(asked[3]) or asked[2] not in _SIZES:
        await context.stderr.write(b"head: of a device, scripts can only print bytes: head -c 100 /dev/urandom\n")
        return 1
    left = int(asked[1]) * _SIZES[asked[2]]
    chunks = (min(_CHUNK, left - start) for start in range(0, left, _CHUNK))
    return await _write(context, map(bytes if asked[3] == "/dev/zero" else secrets.token_bytes, chunks))


async def sleep(context: CommandContext) -> int:
    """Wait for the sum of the durations."""
    found = [re.fullmatch(r"(\d+\.?\d*|\.\d+|inf|infinity)([smhd]?)", word) for word in context.argv]
    if not found or None in found:
        await context.stderr.write(b"sleep: a time interval is a number, with s, m, h or d behind it\n")
        return 1
    await asyncio.sleep(min(sum(float(each[1]) * _UNITS[each[2]] for each in found if each), 10**8))
    return 0


async def bc(context: BuiltinContext) -> BuiltinResult:
    """Calculate the statements on stdin."""
    words = [word for word in context.argv if word not in ("-l", "-q", "--mathlib", "--quiet")]
    text = " ".join(words) if context.stdin is None else context.stdin
    try:
        lines = calculate(text, library="-l" in context.argv or "--mathlib" in context.argv)
    except (CalculationError, ArithmeticError, RecursionError) as error:
        return BuiltinResult("", f"bc: {str(error) or type(error).__name__}\n", 1)
    return BuiltinResult("".join(f"{line}\n" for line in lines))


def cuts(script: str) -> Iterator[str]:
    """Yield a message for each use of a device that may read more than bashkit provides.

    Args:
        script: The script.
    """
    for part in re.split(r"\n|;|&&|\|\|", _COMMENT_LINE.sub("", script)):
        device = _DEVICE.search(part)
        if device is None or re.search(r"\bdd\b|\bhead (?:-c ?|--bytes[= ])\w+ /dev/", part):
            continue
        least = _LENGTH.search(part)
        most = 2**20 if device[0] == "/dev/zero" else 2**13 if "<" in part and "|" not in part else 1_000
        if least is None or int(least[1]) > most:
            yield f"{device[0]} ends too early for this command; use head -c N {device[0]}"
            return


async def _write(context: CommandContext, chunks: Iterator[bytes]) -> int:
    written = 0
    try:
        for chunk in chunks:
            await context.stdout.write(chunk)
            written += len(chunk)
            if written > _MOST_BYTES:
                raise _too_long(context.name.rpartition("_")[2])
    except BrokenPipeError:
        return _BROKEN_PIPE
    except RuntimeError as error:  # the output file is full
        await context.stderr.write(f"{context.name}: {error}\n".encode())
        return 1
    return 0


def _too_long(name: str) -> EndlessError:
    return EndlessError(f"{name} printed more than {_MOST_BYTES // 2**20} MiB")


def _joined(lines: Iterator[str], separator: str) -> Iterator[bytes]:
    """Yield the lines in larger pieces, with the separator between them and a newline at the end."""
    waiting: list[str] = []
    size = 0
    before = ""
    for line in lines:
        waiting.append(line)
        size += len(line) + len(separator)
        if size > _CHUNK:
            yield (before + separator.join(waiting)).encode()
            before, size = separator, 0
            waiting.clear()
    if waiting:
        yield (before + separator.join(waiting) + "\n").encode()
    elif before:
        yield b"\n"


def _numbers(words: Sequence[str]) -> tuple[Iterator[str], str, int]:
    """Return the numbers that the arguments of `seq` ask for, their separator, and how many there are."""
    separator, is_wide, form, given = "\n", False, "", []
    rest = iter(words)
    for word in rest:
        if word in ("-w", "--equal-width"):
            is_wide = True
        elif word.startswith(("-s", "--separator=", "-f", "--format=")):
            value = word.partition("=")[2] if word.startswith("--") else word[2:] or next(rest, "")
            separator, form = (value, form) if word.lstrip("-").startswith("s") else (separator, value)
        elif word != "--":
            given.append(_number(word))
    if not 1 <= len(given) <= 3:
        raise _UsageError("expected one to three numbers")
    first, step = given[0] if len(given) > 1 else Decimal(1), given[1] if len(given) > 2 else Decimal(1)
    last = given[-1]
    if not step:
        raise _UsageError("the increment must not be zero")
    decimals = max(0, *(-int(number.as_tuple().exponent) for number in (first, step)))
    count = max(0, int((last - first) // step) + 1) if (last - first) / step >= 0 else 0
    if form:
        if not re.fullmatch(r"(?:[^%]|%%)*%[-+ 0]*\d{0,3}(?:\.\d{1,3})?[efg](?:[^%]|%%)*", form):
            raise _UsageError(f"the format {form!r} is not supported")
        return (form % float(first + step * number) for number in range(count)), separator, count
    scale = 10**decimals
    start, stride = int(first * scale), int(step * scale)
    plain = (
        map(str, range(start, start + stride * count, stride))
        if not decimals
        else (f"{Decimal(start + stride * number).scaleb(-decimals):.{decimals}f}" for number in range(count))
    )
    if not is_wide or not count:
        return plain, separator, count
    ends = (first, first + step * (count - 1))
    width = max(len(f"{end:.{decimals}f}") for end in ends)
    return (line.zfill(width) for line in plain), separator, count


def _number(word: str) -> Decimal:
    try:
        number = Decimal(word)
    except InvalidOperation:
        raise _UsageError(f"{word!r} is not a number") from None
    if not number.is_finite() or abs(number) >= 10**20 or (number and number.adjusted() < -12):
        raise _UsageError(f"{word!r} is too large or too small")
    return number
