"""The function that a call of a tool runs."""

from __future__ import annotations

import gc
from types import FunctionType

from pegboard.sdk.failure import ToolFailed

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType
    from typing import Any  # functions of packs accept and return any value

_HAS_VARIABLE_KEYWORDS = 0x08
"""Flag of code with a parameter such as `**kwargs` (`inspect.CO_VARKEYWORDS`)."""


def tool_function(namespace: Mapping[str, object], name: str) -> Callable[..., Any] | None:
    """Return the function of a pack with this name, or None.

    The decorators of some frameworks, such as LangChain, the OpenAI Agents SDK and Click, replace a function by an
    object that can't be called with its arguments. The function is then the one that the object keeps.

    Args:
        namespace: Globals of the pack.
        name: Name of the function.
    """
    found = namespace.get(name)
    if type(found).__module__.partition(".")[0] == "claude_agent_sdk" and hasattr(found, "handler"):
        return _with_dictionary(found.handler, name)
    described = namespace.get("TOOL_SPEC")  # of a module of Strands
    if isinstance(described, dict) and described.get("name") == name and "inputSchema" in described and callable(found):
        return _with_dictionary(lambda arguments: found({"toolUseId": name, "name": name, "input": arguments}), name)
    if not callable(found):
        return _kept(namespace, name)
    called = type(found).__call__
    if not isinstance(called, FunctionType):  # that of a function, or of something written in C
        return _with_keywords(found) if hasattr(found, "registry") and hasattr(found, "dispatch") else found
    kept = _kept(namespace, name)
    if any(base.__module__.endswith("click.core") for base in type(found).__mro__):  # it parses a command line
        return kept
    chosen = found if kept is None or _takes(called, kept) else kept
    return _failing(chosen) if type(found).__module__.partition(".")[0] == "strands" else chosen


def _with_keywords(function: Any) -> Callable[..., Any]:  # noqa: ANN401 - `singledispatch` has no public type
    """Return a function of `functools.singledispatch`, which chooses by its first positional argument, for keywords."""
    code = getattr(getattr(function, "__wrapped__", None), "__code__", None)
    if code is None or not code.co_argcount:
        chosen: Callable[..., Any] = function
        return chosen

    def call(**arguments: Any) -> Any:  # noqa: ANN401 - see above
        first = code.co_varnames[0]
        return function(arguments.pop(first), **arguments) if first in arguments else function(**arguments)

    call.__wrapped__ = function  # type: ignore[attr-defined] # for `layers`
    return call


def _with_dictionary(handler: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function with any keyword arguments for one that gets all of them as one dictionary.

    Its name is that of the handler, so that `layers` takes it for the function that the pack defines.
    """

    def call(**arguments: object) -> object:
        result = handler(arguments)
        return _awaited_content(result) if hasattr(result, "__await__") else _content(result)

    call.__code__ = call.__code__.replace(co_qualname=name)
    return call


def _failing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that fails if the result of this one, a tool of Strands, says that it is an error."""

    def call(**arguments: object) -> object:
        result = function(**arguments)
        return _awaited_checked(result) if hasattr(result, "__await__") else _checked(result)

    call.__wrapped__ = function  # type: ignore[attr-defined] # for `layers`
    return call


async def _awaited_checked(result: Any) -> object:  # noqa: ANN401 - see `_checked`
    return _checked(await result)


def _checked(result: Any) -> object:  # noqa: ANN401 - tools return any value
    if isinstance(result, dict) and result.get("status") == "error":
        _content(result)
    return result


async def _awaited_content(result: Any) -> object:  # noqa: ANN401 - see `_content`
    return _content(await result)


def _content(result: Any) -> object:  # noqa: ANN401 - tools return any value
    """Return the text of blocks of content, as in MCP, or the value of the only one; other results unchanged.

    Raises:
        ToolFailed: The result says that it is an error.
    """
    blocks = result.get("content") if isinstance(result, dict) else None
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return result
    texts = [str(block["text"]) for block in blocks if "text" in block]
    if result.get("is_error") or result.get("status") == "error":
        raise ToolFailed("\n".join(texts) or "The tool failed without a message.")
    if len(blocks) == 1 and "json" in blocks[0]:
        return blocks[0]["json"]
    return "\n".join(texts) if len(texts) == len(blocks) else result


def _takes(called: FunctionType, kept: FunctionType) -> bool:
    """Return whether a method can be called with the arguments of a function, and requires no others."""
    if not set(_required(called)[1:]) <= set(_required(kept)):
        return False
    return bool(called.__code__.co_flags & _HAS_VARIABLE_KEYWORDS) or _names(kept.__code__) <= _names(called.__code__)


def _required(function: FunctionType) -> list[str]:
    """Return the names of the parameters of a function that have no default, in order."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())]
    others = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return [*positional, *(name for name in others if name not in (function.__kwdefaults__ or {}))]


def _names(code: CodeType) -> set[str]:
    return {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}


def _kept(namespace: Mapping[str, object], name: str) -> FunctionType | None:
    """Return the last function that the pack has defined with this name, wherever it is kept."""
    defined = [
        one
        for one in gc.get_objects()
        if type(one) is FunctionType and one.__code__.co_qualname == name and one.__globals__ is namespace
    ]
    return max(defined, key=lambda one: one.__code__.co_firstlineno, default=None)
