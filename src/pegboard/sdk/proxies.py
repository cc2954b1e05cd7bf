"""Calls of the tools of other packs."""

from __future__ import annotations

from pegboard.sdk.host import installed
from pegboard.sdk.names import nearest, suggestion

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from typing import Any  # tools accept and return any value


def call_tool(tool: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - see above
    """Call a tool of any pack and return its result. Arguments and result pass as JSON, also in a plain script.

    The call blocks. In an asynchronous tool, use `await asyncio.to_thread(call_tool, …)` to keep the event loop free::

        files = call_tool("fs.list_dir", path="src")

    Args:
        tool: Qualified name, `pack.tool`.
        **arguments: Arguments of the tool.

    Raises:
        ValueError: The tool does not exist.
        TypeError: The arguments don't match its parameters, or have no JSON form.
        ToolFailed: The tool raised `ToolFailed`.
        RuntimeError: The tool raised another exception.
    """
    return installed().call(tool, arguments)


def get_pack(name: str) -> PackProxy | None:
    """Return another pack, with its tools as attributes: `get_pack("fs").list_dir(path="src")`.

    Args:
        name: Name of the pack.

    Returns:
        The pack, or None if it does not exist.
    """
    host = installed()
    host.refresh()
    return PackProxy(name) if name in host.packs() else None


class PackProxy:
    """The pack that `get_pack` returns."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> ToolProxy:
        # copying and pickling look up such names, even before `_name` is set
        if function == "_name" or (function.startswith("__") and function.endswith("__")):
            raise AttributeError(function)
        tool = _found(self._name, function)
        if tool is None:
            installed().refresh()
            tool = _found(self._name, function)
        if tool is None:
            close = suggestion(nearest(function, installed().packs().get(self._name, ())))
            raise AttributeError(f"The pack {self._name} has no tool {function}.{close}")
        return ToolProxy(tool)

    def __dir__(self) -> list[str]:
        return sorted(installed().packs().get(self._name, ()))

    def __reduce__(self) -> tuple[type[PackProxy], tuple[str]]:
        return PackProxy, (self._name,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackProxy) and self._name == other._name

    def __hash__(self) -> int:
        return hash((PackProxy, self._name))

    def __repr__(self) -> str:
        return f"<pack {self._name}>"


def _found(pack: str, function: str) -> str | None:
    """Return the qualified name of a pack's tool by its name or alias, or None."""
    host = installed()
    if function in host.packs().get(pack, ()):
        return f"{pack}.{function}"
    aliases = host.aliases()
    for alias in (f"{pack}.{function}", function):
        if aliases.get(alias, "").partition(".")[0] == pack:
            return aliases[alias]
    return None


class ToolProxy:
    """A tool of another pack."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, /, *positional: Any, **arguments: Any) -> Any:  # noqa: ANN401 - see above
        """Call the tool; see `call_tool`.

        Raises:
            TypeError: An argument is positional.
        """
        if positional:
            raise TypeError(f"{self._name} accepts keyword arguments only.")
        return call_tool(self._name, **arguments)

    def __reduce__(self) -> tuple[type[ToolProxy], tuple[str]]:
        return ToolProxy, (self._name,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolProxy) and self._name == other._name

    def __hash__(self) -> int:
        return hash((ToolProxy, self._name))

    def __repr__(self) -> str:
        return f"<tool {self._name}>"
