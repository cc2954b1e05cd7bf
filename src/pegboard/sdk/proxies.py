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
    """Return a pack, whose attributes are its tools: `get_pack("fs").list_dir(path="src")`.

    Args:
        name: The pack's name.

    Returns:
        The pack; None if there is no pack with this name.
    """
    host = installed()
    host.refresh()
    return Pack(name) if name in host.packs() else None


class Pack:
    """Another pack, as `get_pack` returns it."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Tool:
        # copying and pickling ask for names such as these, of objects without attributes, too
        if function == "_name" or (function.startswith("__") and function.endswith("__")):
            raise AttributeError(function)
        tool = _found(self._name, function)
        if tool is None:
            installed().refresh()
            tool = _found(self._name, function)
        if tool is None:
            close = question(nearest(function, installed().packs().get(self._name, ())))
            raise AttributeError(f"The pack {self._name} has no tool {function}.{close}")
        return Tool(tool)

    def __dir__(self) -> list[str]:
        return sorted(installed().packs().get(self._name, ()))

    def __reduce__(self) -> tuple[type[Pack], tuple[str]]:
        return Pack, (self._name,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pack) and self._name == other._name

    def __hash__(self) -> int:
        return hash((Pack, self._name))

    def __repr__(self) -> str:
        return f"<pack {self._name}>"


def _found(pack: str, function: str) -> str | None:
    """Return the qualified name of a pack's tool, by its name or another one."""
    host = installed()
    if function in host.packs().get(pack, ()):
        return f"{pack}.{function}"
    aliases = host.aliases()
    for alias in (f"{pack}.{function}", function):
        if aliases.get(alias, "").partition(".")[0] == pack:
            return aliases[alias]
    return None


class Tool:
    """A tool of another pack."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, /, *positional: Any, **arguments: Any) -> Any:  # noqa: ANN401 - see above
        """Call it; see `call_tool`.

        Raises:
            TypeError: An argument was given by position.
        """
        if positional:
            raise TypeError(f"{self._name} takes its arguments by name only.")
        return call_tool(self._name, **arguments)

    def __reduce__(self) -> tuple[type[Tool], tuple[str]]:
        return Tool, (self._name,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and self._name == other._name

    def __hash__(self) -> int:
        return hash((Tool, self._name))

    def __repr__(self) -> str:
        return f"<tool {self._name}>"
