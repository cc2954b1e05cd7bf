"""Decorators that describe a tool.

Discovery reads them from the source without running it, so their arguments must be literals. At run time they store
their arguments on the function and return it unchanged.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    ToolT = TypeVar("ToolT", bound=Callable[..., object])


def hints(
    tool: object = None,
    /,
    *,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    timeout: float | None = None,
    cache_seconds: float | None = None,
    stdin: str | None = None,
) -> Callable[[ToolT], ToolT]:
    """Declare how a tool behaves. Hints that you leave out are unknown.

    Pegboard and MCP clients use the hints to decide which calls need approval::

        @hints(read_only=True, cache_seconds=60)
        def word_count(*, path: str) -> int: ...

    Args:
        tool: Not an argument: write `@hints(...)` with parentheses.
        read_only: Whether the tool changes nothing.
        destructive: Whether the tool may delete or overwrite data.
        idempotent: Whether a second call with the same arguments has no further effect.
        open_world: Whether the tool accesses systems outside this machine.
        timeout: Time limit of one call, in seconds.
        cache_seconds: How long a result is reused within a session, in seconds.
        stdin: Name of the parameter that receives standard input in scripts.
    """
    if tool is not None:  # `@hints` without parentheses; discovery reports it
        return tool  # type: ignore[return-value]
    del read_only, destructive, idempotent, open_world, timeout, cache_seconds, stdin  # discovery reads the source

    def decorate(tool: ToolT) -> ToolT:
        return tool

    return decorate


def aliases(*names: str, **parameters: str | Sequence[str]) -> Callable[[ToolT], ToolT]:
    """Declare other names for a tool and its parameters.

    Example::

        @aliases("grep", pattern="regex", paths=["path", "files"])
        def search(*, pattern: str, paths: list[str]) -> str: ...

    Args:
        *names: Other names of the tool, complete: they need no pack and no dot.
        **parameters: For each parameter, its other name or a list of them.
    """
    if names and callable(names[0]):  # `@aliases` without parentheses; discovery reports it
        return names[0]
    given = {name: (other,) if isinstance(other, str) else tuple(other) for name, other in parameters.items()}

    def decorate(tool: ToolT) -> ToolT:
        others = getattr(tool, "__pegboard_aliases__", {})  # of another `@aliases`
        merged = {name: (*given.get(name, ()), *others.get(name, ())) for name in {**given, **others}}
        tool.__pegboard_aliases__ = merged  # type: ignore[attr-defined] # functions accept any attribute
        return tool

    return decorate
