"""Decorators that declare the requirements of a tool: programs, libraries and secrets.

Apply them to a function, any number of times. As a statement at the top level of the module, they apply to the whole
pack::

    requires_secret("SEARCH_KEY", hint="https://example.org/account")

    @requires_cli("rg", min_version="13", install="apt install ripgrep")
    def search(*, pattern: str) -> list[str]: ...

Pegboard shows missing requirements before a tool runs. It reads the decorators from the source without running it, so
their arguments must be literals.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, TypeVar

    Kind = Literal["cli", "lib", "secret"]
    ToolT = TypeVar("ToolT", bound=Callable[..., object])


class DeclaredRequirement:
    """A requirement of a tool, as a decorator declares it.

    Args:
        kind: `cli` for a program, `lib` for a library, `secret` for a secret.
        name: Name on the PATH, import name, or name of the secret.
        version_flag: Argument that makes a program print its version.
        min_version: Lowest version that works.
        install: Installation hint of the author.
    """

    __slots__ = ("install", "kind", "min_version", "name", "version_flag")

    def __init__(
        self,
        kind: Kind,
        name: str,
        *,
        version_flag: str = "--version",
        min_version: str | int | None = None,
        install: str | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.version_flag = version_flag
        self.min_version = None if min_version is None else str(min_version)
        self.install = install

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeclaredRequirement) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"DeclaredRequirement({fields})"

    def _key(self) -> tuple[str | None, ...]:
        return self.kind, self.name, self.version_flag, self.min_version, self.install


def requires_cli(
    name: str, version_flag: str = "--version", min_version: str | int | None = None, install: str | None = None
) -> Callable[[ToolT], ToolT]:
    """Declare that a tool, or the whole pack, requires a program.

    Args:
        name: Name of the program on the PATH, without a folder.
        version_flag: Argument that makes the program print its version, such as `-V` or `version --client`. Pegboard
            runs the program with it without approval, and therefore only with arguments that look like version flags.
            Pass an empty string to check only that the program exists.
        min_version: Lowest version that works, as text or an integer. Not a float: `1.10` would equal `1.1`.
        install: How to install it: a command or a sentence.
    """
    return _decorator(
        name,
        DeclaredRequirement("cli", name, version_flag=version_flag, min_version=min_version, install=install),
    )


def requires_lib(
    name: str, min_version: str | int | None = None, install: str | None = None
) -> Callable[[ToolT], ToolT]:
    """Declare that a tool, or the whole pack, requires a Python library.

    Args:
        name: Import name (`yaml`, `google.cloud.storage`) or distribution name (`pyyaml`).
        min_version: Lowest version that works, as text or an integer. Not a float: `1.10` would equal `1.1`.
        install: How to install it: a command or a sentence.
    """
    return _decorator(name, DeclaredRequirement("lib", name, min_version=min_version, install=install))


def requires_secret(name: str, hint: str | None = None) -> Callable[[ToolT], ToolT]:
    """Declare that a tool, or the whole pack, requires a secret, and grant it to the pack.

    Args:
        name: Name of the secret, written like an environment variable: `SEARCH_KEY`.
        hint: Where users get the secret: a URL or a sentence.
    """
    return _decorator(name, DeclaredRequirement("secret", name, install=hint))


def requirements_of(tool: object) -> tuple[DeclaredRequirement, ...]:
    """Return the requirements declared on a function, topmost first."""
    declared: tuple[DeclaredRequirement, ...] = getattr(tool, "__pegboard_requirements__", ())
    return declared


def _decorator(name: object, requirement: DeclaredRequirement) -> Callable[[ToolT], ToolT]:
    if callable(name):  # a decorator without parentheses; discovery reports it
        return name

    def decorate(tool: ToolT) -> ToolT:
        # functions accept any attribute; the lowest decorator runs first
        tool.__pegboard_requirements__ = (requirement, *requirements_of(tool))  # type: ignore[attr-defined]
        return tool

    return decorate
