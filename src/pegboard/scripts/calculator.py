"""The `bc` of scripts: exact decimal arithmetic, an error instead of a wrong number.

bashkit's own `bc` calculates with floating-point numbers and prints the largest integer on overflow. The rules for the
number of decimals are those of POSIX `bc`. Programs (`if`, `while`, `define`) and other bases are not supported.
"""

from __future__ import annotations

import re
from collections import deque
from decimal import Context, Decimal, localcontext
from math import isqrt
from operator import eq, ge, gt, le, lt, ne

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*|\.\d+)|([a-z_][A-Za-z0-9_]*)|(==|!=|<=|>=|(?!\+\+|--|.=)[-+*/%^]|[()<>=])|(\S))")
_COMMENT = re.compile(r"/\*.*?\*/|#[^\n]*", re.DOTALL)
_MOST_DIGITS = 20_000
_MOST_DECIMALS = 1_000
_DEEPEST = 200
_COMPARISONS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "==": eq, "!=": ne, "<": lt, ">": gt, "<=": le, ">=": ge,
}  # fmt: skip


class CalculationError(Exception):
    """An expression has no value, or isn't supported; the message says why."""


class Number:
    """A decimal number with its number of decimals, which bc's rules need.

    Args:
        digits: The number without its decimal point.
        scale: Number of decimals.

    Raises:
        CalculationError: It has too many digits.
    """

    __slots__ = ("digits", "scale")

    def __init__(self, digits: int, scale: int) -> None:
        if digits.bit_length() > _MOST_DIGITS * 3.33:
            raise CalculationError(f"overflow: a number has more than {_MOST_DIGITS:,} digits")
        self.digits = digits
        self.scale = scale

    @property
    def decimal(self) -> Decimal:
        """The number as a `Decimal`."""
        sign, digits, _ = Decimal(self.digits).as_tuple()
        return Decimal((sign, digits, -self.scale))

    def at(self, scale: int) -> int:
        """Return the digits with this many decimals, truncated."""
        if scale >= self.scale:
            return self.digits * _ten_to(scale - self.scale)
        return _cut(self.digits, _ten_to(self.scale - scale))

    def __str__(self) -> str:
        sign = "-" if self.digits < 0 else ""
        digits = str(Decimal(abs(self.digits)))  # `str` of an int has a limit
        if not self.scale:
            return sign + digits
        digits = digits.rjust(self.scale, "0")
        return f"{sign if self.digits else ''}{digits[: -self.scale]}.{digits[-self.scale :]}" if self.digits else "0"


def calculate(text: str, *, library: bool) -> list[str]:
    """Return the lines that `bc` prints.

    Args:
        text: Statements, separated by newlines or semicolons.
        library: Whether to provide the functions of `bc -l`; then numbers have 20 decimals.

    Raises:
        CalculationError: A statement can't be parsed, or has no value.
    """
    names = {"scale": Number(20 if library else 0, 0)}
    printed = []
    for statement in re.split(r"[;\n]", _COMMENT.sub(" ", text.replace("\\\n", ""))):
        if statement.strip() == "quit":
            break
        if statement.strip():
            value = _Statement(statement, names, library=library).value()
            if value is not None:
                printed.append(str(value))
    return printed


class _Statement:
    def __init__(self, text: str, names: dict[str, Number], *, library: bool) -> None:
        self._tokens: deque[str] = deque()
        for match in _TOKEN.finditer(text):
            if match[4]:
                raise CalculationError(f"syntax error: {match[4]} is not supported in scripts")
            self._tokens.append(match[1] or match[2] or match[3])
        self._names = names
        self._library = library
        self._depth = 0

    @property
    def _scale(self) -> int:
        return self._names["scale"].digits

    def value(self) -> Number | None:
        """Return the value to print; None for an assignment."""
        name = self._tokens[0]
        if len(self._tokens) > 1 and self._tokens[1] == "=" and name[0].isalpha():
            self._tokens.popleft()
            self._tokens.popleft()
            self._assign(name, self._all())
            return None
        return self._all()

    def _assign(self, name: str, value: Number) -> None:
        if name in ("ibase", "obase"):
            if value.at(0) != 10:
                raise CalculationError(f"{name} is not supported in scripts; use printf '%x' or $((16#ff))")
            return
        if name == "scale":
            value = Number(value.at(0), 0)
            if not 0 <= value.digits <= _MOST_DECIMALS:
                raise CalculationError(f"scale must be between 0 and {_MOST_DECIMALS:,}")
        self._names[name] = value

    def _all(self) -> Number:
        value = self._comparison()
        if self._tokens:
            raise CalculationError(f"syntax error at {self._tokens[0]}")
        return value

    def _take(self, *wanted: str) -> str | None:
        return self._tokens.popleft() if self._tokens and self._tokens[0] in wanted else None

    def _comparison(self) -> Number:
        left = self._sum()
        while (sign := self._take(*_COMPARISONS)) is not None:
            right = self._sum()
            left = Number(int(_COMPARISONS[sign](left.decimal, right.decimal)), 0)
        return left

    def _sum(self) -> Number:
        left = self._product()
        while (sign := self._take("+", "-")) is not None:
            right = self._product()
            scale = max(left.scale, right.scale)
            left = Number(left.at(scale) + (right.at(scale) if sign == "+" else -right.at(scale)), scale)
        return left

    def _product(self) -> Number:
        left = self._power()
        while (sign := self._take("*", "/", "%")) is not None:
            right = self._power()
            if sign == "*":
                exact = Number(left.digits * right.digits, left.scale + right.scale)
                scale = min(exact.scale, max(self._scale, left.scale, right.scale))
                left = Number(exact.at(scale), scale)
            elif right.digits == 0:
                raise CalculationError("divide by zero")
            else:
                quotient = _quotient(left, right, self._scale)
                if sign == "/":
                    left = quotient
                else:
                    scale = max(self._scale + right.scale, left.scale)
                    whole = Number(quotient.digits * right.digits, quotient.scale + right.scale)
                    left = Number(left.at(scale) - whole.at(scale), scale)
        return left

    def _power(self) -> Number:
        base = self._signed()
        if not self._take("^"):
            return base
        self._deepen()
        exponent = self._power()
        self._depth -= 1
        power = exponent.at(0)
        if exponent.at(exponent.scale) != power * 10**exponent.scale:
            raise CalculationError("an exponent must be an integer")
        if abs(power) * max(base.digits.bit_length() - 1, 0) > _MOST_DIGITS * 3.33 or abs(power) > 10**6:
            raise CalculationError(f"overflow: a number has more than {_MOST_DIGITS:,} digits")
        raised = Number(base.digits ** abs(power), base.scale * abs(power))
        if power < 0:
            if raised.digits == 0:
                raise CalculationError("divide by zero")
            return _quotient(Number(1, 0), raised, self._scale)
        scale = min(raised.scale, max(self._scale, base.scale))
        return Number(raised.at(scale), scale)

    def _signed(self) -> Number:
        """Parse a number with its sign, which binds more tightly than `^`."""
        is_negative = self._take("-") is not None
        value = self._atom()
        return Number(-value.digits, value.scale) if is_negative else value

    def _atom(self) -> Number:
        if not self._tokens:
            raise CalculationError("syntax error: an expression ends too early")
        word = self._tokens.popleft()
        if word == "(":
            return self._closed()
        if word[0].isdigit() or word[0] == ".":
            whole, _, decimals = word.partition(".")
            return Number(int(Decimal(whole + decimals)), len(decimals))
        if word[0].isalpha() or word[0] == "_":
            return self._function(word, self._closed()) if self._take("(") else self._names.get(word, Number(0, 0))
        raise CalculationError(f"syntax error at {word}")

    def _closed(self) -> Number:
        self._deepen()
        value = self._comparison()
        self._depth -= 1
        if not self._take(")"):
            raise CalculationError("syntax error: a ) is missing")
        return value

    def _deepen(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CalculationError("an expression is nested too deeply")

    def _function(self, name: str, value: Number) -> Number:
        match name:
            case "sqrt" if value.digits >= 0:
                scale = max(self._scale, value.scale)
                return Number(isqrt(value.at(2 * scale)), scale)
            case "length":
                return Number(max(len(str(Decimal(abs(value.digits)))), value.scale), 0)
            case "scale":
                return Number(value.scale, 0)
            case "e" | "l" | "s" | "c" | "a" if self._library:
                return _transcendental(name, value, self._scale)
            case "sqrt":
                raise CalculationError("square root of a negative number")
        raise CalculationError(
            f"{name}() is not supported in scripts" + (", or needs bc -l" if name in "elsca" else "")
        )


def _quotient(left: Number, right: Number, scale: int) -> Number:
    common = max(left.scale, right.scale)
    return Number(_cut(left.at(common) * _ten_to(scale), right.at(common)), scale)


def _ten_to(power: int) -> int:
    result: int = 10**power  # for a type checker, it may be a fraction
    return result


def _cut(number: int, divisor: int) -> int:
    """Divide, rounding towards zero."""
    quotient = abs(number) // abs(divisor)
    return -quotient if (number < 0) != (divisor < 0) else quotient


def _transcendental(name: str, value: Number, scale: int) -> Number:
    given = value.decimal
    if abs(given) > 10_000 and name != "l":
        raise CalculationError(f"overflow: {name}() takes numbers up to 10,000 in scripts")
    if name == "l" and given <= 0:
        raise CalculationError("logarithm of a number that isn't positive")
    # e(10000) has 4,343 digits before the decimal point.
    with localcontext(Context(prec=scale + 30 + (4_400 if name == "e" and given > 100 else 60))) as context:
        match name:
            case "e":
                result = given.exp()
            case "l":
                result = given.ln()
            case "a":
                result = _arctangent(given)
            case _:
                turned = _arctangent(Decimal(1)) * 2
                quarters = int((given / turned).to_integral_value())
                rest = given - turned * quarters
                result = _wave(rest, (quarters + (name == "c")) % 4)
        digits = int((result.scaleb(scale, context)).to_integral_value("ROUND_DOWN"))
    return Number(digits, scale)


def _wave(rest: Decimal, quarter: int) -> Decimal:
    """Return sin(rest + quarter * pi / 2) by its series."""
    term = Decimal(1) if quarter % 2 else rest
    count, total = (0 if quarter % 2 else 1), Decimal(0)
    while total + term != total or (count <= 1 and term):
        total += term
        term = -term * rest * rest / ((count + 1) * (count + 2))
        count += 2
    return -total if quarter >= 2 else total


def _arctangent(given: Decimal) -> Decimal:
    halvings = 0
    while abs(given) > Decimal("0.1"):
        given = given / (1 + (1 + given * given).sqrt())
        halvings += 1
    power, count, total = given, 1, Decimal(0)
    while total + power / count != total:
        total += power / count
        power = -power * given * given
        count += 2
    return total * (1 << halvings)
