"""Decorators that say something about a tool.

They are read from the source without running it (see `pegboard.discovery`), so their arguments must be literals.
At run time they note on the function what was said and give it back unchanged.
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
    """Says how a tool behaves; what is left out stays unsaid.

    Args:
        tool: Nothing: write the parentheses.
        read_only: It changes nothing.
        destructive: It may delete or overwrite something.
        idempotent: Calling it twice does no more than calling it once.
        open_world: It talks to things outside this machine.
        timeout: Seconds that one call may take.
        cache_seconds: How long, in seconds, a result may be used again within a session.
        stdin: The parameter that takes a script's standard input.
    """
    if tool is not None:  # a decorator without parentheses; discovery reports it
        return tool  # type: ignore[return-value]
    said = {name: value for name, value in locals().items() if value is not None}

    def note(tool: ToolT) -> ToolT:
        tool.__pegboard_hints__ = said  # type: ignore[attr-defined] # any attribute may be set on a function
        return tool

    return note


def aliases(*names: str, **parameters: str | Sequence[str]) -> Callable[[ToolT], ToolT]:
    """Gives a tool, or its parameters, other names that callers may use as well.

    Args:
        *names: Whole names of the tool; a dot is not needed.
        **parameters: Per parameter its other name, or several.
    """
    if names and callable(names[0]):  # a decorator without parentheses; discovery reports it
        return names[0]
    said = (names, {name: (other,) if isinstance(other, str) else tuple(other) for name, other in parameters.items()})

    def note(tool: ToolT) -> ToolT:
        tool.__pegboard_aliases__ = said  # type: ignore[attr-defined] # any attribute may be set on a function
        return tool

    return note
