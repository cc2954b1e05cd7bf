"""Decorators that say what a tool needs from the machine it runs on.

Each stands above a function, as often as it takes, or alone as a statement of the module, and then holds for the whole
pack::

    requires_secret("SEARCH_KEY", hint="https://example.org/account")

    @requires_cli("rg", min_version="13", install="apt install ripgrep")
    def search(*, pattern: str) -> list[str]: ...

They are read from the source without running it, so their arguments must be literals.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, TypeVar

    Kind = Literal["cli", "lib", "secret"]
    ToolT = TypeVar("ToolT", bound=Callable[..., object])


class Requirement:
    """One thing that a tool needs; two that say the same are equal.

    Args:
        kind: A program, a library or a secret.
        name: What it is called: on the PATH, in an import, in the environment.
        version_flag: What a program is asked for its version with.
        min_version: The least version that will do.
        install: How to get it, in the author's words.
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
        return isinstance(other, Requirement) and self._said() == other._said()

    def __hash__(self) -> int:
        return hash(self._said())

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Requirement({said})"

    def _said(self) -> tuple[str | None, ...]:
        return self.kind, self.name, self.version_flag, self.min_version, self.install


def requires_cli(
    name: str, version_flag: str = "--version", min_version: str | int | None = None, install: str | None = None
) -> Callable[[ToolT], ToolT]:
    """Declare that a tool, or the pack, requires a program.

    Args:
        name: What it is called on the PATH; no path.
        version_flag: What makes it print its version, `-V` or `version --client`, say. It is run without asking
            anybody, so anything that doesn't look like such a flag is not run. Empty: it is enough that it is there.
        min_version: The lowest version that works, as text (a version is no decimal number), or as an integer.
        install: How to get it: a command, or a sentence.
    """
    return _noting(
        name,
        Requirement("cli", name, version_flag=version_flag, min_version=min_version, install=install),
    )


def requires_lib(
    name: str, min_version: str | int | None = None, install: str | None = None
) -> Callable[[ToolT], ToolT]:
    """Says that a tool, or the pack, requires a library.

    Args:
        name: What is imported (`yaml`, `google.cloud.storage`), or the name it is installed by.
        min_version: The least version that will do.
        install: How to get it: a command, or a sentence.
    """
    return _noting(name, Requirement("lib", name, min_version=min_version, install=install))


def requires_secret(name: str, hint: str | None = None) -> Callable[[ToolT], ToolT]:
    """Says that a tool, or the pack, needs a secret; the pack may then read it with `get_secret`.

    Args:
        name: What it is called, as an environment variable is: `SEARCH_KEY`.
        hint: Where to get one.
    """
    return _noting(name, Requirement("secret", name, install=hint))


def noted(tool: object) -> tuple[Requirement, ...]:
    """Gives what was said above a function, topmost first."""
    said: tuple[Requirement, ...] = getattr(tool, "__pegboard_requirements__", ())
    return said


def _noting(name: object, requirement: Requirement) -> Callable[[ToolT], ToolT]:
    if callable(name):  # a decorator without parentheses; discovery reports it
        return name

    def note(tool: ToolT) -> ToolT:
        # any attribute may be set on a function; decorators run from the lowest up
        tool.__pegboard_requirements__ = (requirement, *noted(tool))  # type: ignore[attr-defined]
        return tool

    return note
