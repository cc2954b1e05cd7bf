"""Tools of a server as Pegboard's specs. One invalid part of a tool never hides another tool."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final, Literal, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from pegboard.data.json_text import DEEPEST
from pegboard.mcp.texts import quotation
from pegboard.models import Hints, JsonObject, McpHandler, Problem, ServerConfig, ToolSpec

_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME: Final = 64
"""Of a pack and a tool together, as most providers limit it."""
_SHORTEST_LIMIT: Final = 24
_MOST_PARAMETERS: Final = 8
_LONGEST_DEFAULT: Final = 30
"""Characters of a default in a signature."""
_HINTS: Final = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}
_LONGEST_ICON: Final = 100_000
"""Characters of the source of an icon, which may be the image itself."""
UNREADABLE: Final = "pegboard/unreadable"
"""Key of a tool that can't be passed on: the reason, as the end of a sentence."""
_AUTHOR: Final = "Report this to the server's author."


class ServerTools(NamedTuple):
    """Tools and problems of a server at one moment."""

    specs: tuple[ToolSpec, ...] = ()
    problems: tuple[Problem, ...] = ()
    tokens: int = 0
    """Estimate of the tokens that the definitions of the tools use in each turn of a model."""


def tool_specs(
    config: ServerConfig,
    pack: str,
    tools: Sequence[JsonValue],
    rejected: Collection[str],
    *,
    has_task_tools: bool = True,
) -> tuple[tuple[ToolSpec, ...], tuple[Problem, ...]]:
    """Return the specs of a server's tools that can be used, and the problems of all.

    Args:
        config: The server.
        pack: The name of its pack.
        tools: The tools as the server sent them.
        rejected: Names of tools that the protocol forbids clients to offer.
        has_task_tools: Whether to return tools that run only as a task, which Pegboard itself can't call.
    """
    entry = hashlib.sha256(config.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()
    specs: list[ToolSpec] = []
    problems: list[Problem] = []
    taken: dict[str, int] = {}
    seen: set[str] = set()
    for tool in tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(tool, dict) or not isinstance(name, str) or not name:
            problems.append(_problem(pack, f"The server {pack} lists a tool without a name.", "error"))
            continue
        if config.tools is not None and not any(fnmatchcase(name, pattern) for pattern in config.tools):
            continue
        obstacle = tool.get(UNREADABLE) or ("its `x-mcp-header` is invalid" if name in rejected else None)
        if obstacle is not None:
            problems.append(_problem(pack, f"The tool {quotation(name)} is not offered because {obstacle}.", "error"))
            continue
        if not has_task_tools and _is_task(tool):
            problems.append(_task_hint(pack, name))
            continue
        if name in seen:
            message = f"The server {pack} lists the tool {quotation(name)} more than once; only the first is offered."
            problems.append(_problem(pack, message, "warning"))
            continue
        seen.add(name)
        # Providers accept 64 characters, and shorten longer names to that.
        function = _free_name(_safe_name(name, max(_SHORTEST_LIMIT, _LONGEST_NAME - len(pack) - 1)), taken)
        spec = _spec(config, entry, pack, function, name, tool)
        specs.append(spec)
        problems += spec.problems
    return tuple(specs), tuple(problems)


def readable(tool: JsonValue) -> JsonValue:
    """Return a tool as the server sent it, or only its name and the reason if it can't be passed on as JSON."""
    try:
        text = to_json(tool)
        if text.count(b"[") + text.count(b"{") > DEEPEST:
            from_json(text)
    except ValueError as error:
        name = tool.get("name") if isinstance(tool, dict) else None
        reason = "contains half a character" if "surrogates" in str(error) else "is nested too deeply"
        shown = name.encode("utf-8", "replace").decode() if isinstance(name, str) else ""
        return {"name": shown, UNREADABLE: f"its description {reason}"}
    return tool


def readable_message(text: bytes) -> bytes:
    """Return a message in which tools that can't be passed on are replaced, see `readable`; other texts as they are."""
    if b"\\u" not in text and text.count(b"[") + text.count(b"{") <= DEEPEST:
        return text
    try:
        from_json(text)
    except ValueError:
        with suppress(ValueError, RecursionError):
            message = json.loads(text)
            result = message.get("result") if isinstance(message, dict) else None
            if isinstance(result, dict) and isinstance(result.get("tools"), list):
                result["tools"] = [readable(tool) for tool in result["tools"]]
                return to_json(message)
    return text


def _spec(config: ServerConfig, entry: str, pack: str, function: str, name: str, tool: JsonObject) -> ToolSpec:
    qualified = f"{pack}.{function}"
    problems: list[Problem] = []

    def warn(message: str) -> None:
        problems.append(_problem(pack, message, "warning", qualified))

    schema = _schema(tool.get("inputSchema"))
    if schema is None:
        warn(f"The input schema of {qualified} is not an object, so it has a free form.")
        schema = {"type": "object"}
    output = tool.get("outputSchema")
    if output is not None and not isinstance(output, dict):
        warn(f"The output schema of {qualified} is not an object, so results are not checked.")
        output = None
    claims = tool.get("annotations")
    claims = claims if isinstance(claims, dict) else {}
    for key in _HINTS:
        if key in claims and not isinstance(claims[key], bool):
            warn(f"The annotation {key} of {qualified} is neither true nor false, so it is ignored.")
    # Each field has the right type, and validation would take longer than everything else.
    return ToolSpec.model_construct(
        name=qualified,
        pack=pack,
        description=_description(name, tool, claims),
        input_schema=schema,
        output_schema=output,
        handler=McpHandler(
            server=pack,
            tool=name,
            saved=config.saved,
            trusted=config.trusted,
            claims={key: claims[key] for key in _HINTS if isinstance(claims.get(key), bool)},
            display=_display(tool, claims),
            entry=entry,
            cwd=config.cwd,
        ),
        signature=_signature(qualified, schema),
        hints=_hints(config, claims),
        problems=tuple(problems),
    )


def _hints(config: ServerConfig, claims: JsonObject) -> Hints:
    """Return the hints that count: from a server that isn't trusted, only those that make Pegboard more careful."""
    said = {field: claims[key] for key, field in _HINTS.items() if isinstance(claims.get(key), bool)}
    if not config.trusted:
        said = {field: value for field, value in said.items() if value and field in ("destructive", "open_world")}
    return Hints.model_validate({**said, "timeout": config.timeout})


def _description(name: str, tool: JsonObject, claims: JsonObject) -> str:
    text = tool.get("description")
    text = text if isinstance(text, str) else ""
    title = _title(tool, claims)
    if not text:
        return "" if title == name else title
    # some SDKs make the title of a tool from its name
    says_more = _letters(title) != _letters(name) and not text.startswith(title)
    return f"{title.strip()}\n\n{text}" if says_more else text


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


def _title(tool: JsonObject, claims: JsonObject) -> str:
    titles = (tool.get("title"), claims.get("title"))
    return next((title for title in titles if isinstance(title, str) and title.strip()), "")


def _display(tool: JsonObject, claims: JsonObject) -> JsonObject:
    """Return what clients show of a tool beside its name: its title, and the icons that they can be sent safely."""
    title, icons = _title(tool, claims), tool.get("icons")
    shown = [icon for icon in icons if _is_icon(icon)] if isinstance(icons, list) else []
    return {**({"title": title} if title else {}), **({"icons": shown} if shown else {})}


def _is_icon(icon: JsonValue) -> bool:
    """Return whether an icon has a source that runs no code and reads no file, and is otherwise valid."""
    if not isinstance(icon, dict) or not isinstance(source := icon.get("src"), str) or len(source) > _LONGEST_ICON:
        return False
    kind, sizes, theme = icon.get("mimeType"), icon.get("sizes"), icon.get("theme")
    return (
        source.lower().startswith(("https://", "data:image/"))
        and (kind is None or isinstance(kind, str))
        and (sizes is None or (isinstance(sizes, list) and all(isinstance(one, str) for one in sizes)))
        and theme in (None, "light", "dark")
    )


def _schema(schema: JsonValue) -> JsonObject | None:
    if not isinstance(schema, dict):
        return None
    return schema if "type" in schema else {"type": "object", **schema}


def _signature(qualified: str, schema: JsonObject) -> str:
    properties, required = schema.get("properties"), schema.get("required")
    properties = properties if isinstance(properties, dict) else {}
    names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    shown = [*_parameters(properties, names)]
    rest = ["…"] if len(properties) > _MOST_PARAMETERS else []
    return f"{qualified}({', '.join(['*', *shown, *rest]) if shown else ''})"


def _parameters(properties: JsonObject, required: set[str]) -> Iterator[str]:
    for name, part in [*properties.items()][:_MOST_PARAMETERS]:
        kind = part.get("type") if isinstance(part, dict) else None
        kind = " | ".join(str(one) for one in kind) if isinstance(kind, list) else kind
        typed = f"{name}: {kind}" if isinstance(kind, str) else name
        yield typed if name in required else f"{typed} = {_default(part)}"


def _default(part: JsonValue) -> str:
    """Return the default of a parameter, or an ellipsis if it is unknown or long."""
    value = part.get("default") if isinstance(part, dict) else None
    shown = repr(value) if isinstance(value, bool | int | float | str) else ""
    return shown if 0 < len(shown) <= _LONGEST_DEFAULT else "…"


def _is_task(tool: JsonObject) -> bool:
    """Return whether a tool rejects calls that aren't tasks."""
    execution = tool.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


def _task_hint(pack: str, name: str) -> Problem:
    # Without a pack, so that it isn't counted: neither the user nor the author can change anything.
    message = f"The tool {quotation(name)} of the server {pack} is not offered because it runs only as a task."
    return Problem(message=message, fix="Pegboard doesn't support the tasks of MCP.", severity="hint")


def _safe_name(name: str, longest: int) -> str:
    """Return a name that is usable in commands, rules and scripts; the same one for a usual name."""
    safe = _ODD.sub("_", name)
    if not re.search("[A-Za-z0-9]", safe):
        safe = f"tool_{_hash(name)}"
    if len(safe) > longest:
        safe = f"{safe[: longest - 9]}_{_hash(name)}"
    return safe.lstrip("-.") or safe


def _free_name(name: str, taken: dict[str, int]) -> str:
    """Return a name that isn't taken, and take it.

    Args:
        name: The wanted name.
        taken: Each name that is taken, with the last number that was added to it.
    """
    number, free = taken.get(name, 1), name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    taken[name] = number
    taken[free] = taken.get(free, 1)
    return free


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _problem(pack: str, message: str, severity: Literal["error", "warning"], tool: str | None = None) -> Problem:
    return Problem.model_construct(message=message, fix=_AUTHOR, severity=severity, pack=pack, tool=tool)
