"""Calling the tools of other packs."""

from __future__ import annotations

from pegboard.sdk.host import installed
from pegboard.sdk.names import nearest, question

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from typing import Any  # tools take and return anything


def call_tool(tool: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - see above
    """Calls a tool and gives what it returns.

    It waits for the answer, in an asynchronous tool too; there, `await asyncio.to_thread(call_tool, …)` leaves the
    event loop free meanwhile.

    Args:
        tool: Its qualified name, `pack.tool`.
        **arguments: Its arguments.

    Raises:
        ValueError: There is no such tool.
        TypeError: The arguments don't fit its parameters.
        ToolFailed: It failed in its author's words.
        RuntimeError: It failed otherwise.
    """
    return installed().call(tool, arguments)


def get_pack(name: str) -> Pack | None:
    """Gives a pack, whose attributes are its tools: `get_pack("fs").list_dir(path="src")`.

    Args:
        name: The pack's name.

    Returns:
        The pack; None if there is none of that name.
    """
    return Pack(name) if name in installed().packs() else None


class Pack:
    """Another pack, as `get_pack` gives it."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Tool:
        functions = installed().packs().get(self._name, ())
        if function not in functions:
            close = question(nearest(function, functions))
            raise AttributeError(f"The pack {self._name} has no tool {function}.{close}")
        return Tool(f"{self._name}.{function}")

    def __dir__(self) -> list[str]:
        return sorted(installed().packs().get(self._name, ()))

    def __repr__(self) -> str:
        return f"<pack {self._name}>"


class Tool:
    """A tool of another pack."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, /, *positional: Any, **arguments: Any) -> Any:  # noqa: ANN401 - see above
        """Calls it; see `call_tool`.

        Raises:
            TypeError: An argument was given by position.
        """
        if positional:
            raise TypeError(f"{self._name} takes its arguments by name only.")
        return call_tool(self._name, **arguments)

    def __repr__(self) -> str:
        return f"<tool {self._name}>"
