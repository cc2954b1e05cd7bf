"""One layer of settings, from a file or an environment variable: its values, their lines, and its errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ValidationError

from pegboard.built_in import BUILT_IN_PACKS
from pegboard.config.complaints import complaint, is_about_type, kind_of
from pegboard.config.files import shown, unusable
from pegboard.config.lines import key_lines
from pegboard.config.paths import absolute
from pegboard.config.settings import McpServer, Origin, Settings, Unused, variable_name
from pegboard.data.toml import TomlError, parse_toml
from pegboard.models import Problem

TomlTable: TypeAlias = dict[str, Any]  # outside data: TOML before validation
KeyPath: TypeAlias = tuple[str | int, ...]

NO_TOOL: Final = "No tool runs until this is fixed."
"""Consequence of an error in a limit of tools: the intended limit is unknown."""
NO_MODEL: Final = "No model is used until this is fixed."
"""Consequence of an error in the address of a model."""

STILL_USED: Final = "The settings from before are used until this is fixed."
"""Consequence of an error that appears while Pegboard runs."""

NOT_USED: Final = "The server is not used until this is fixed."
"""Consequence of an error in the entry of an MCP server: the value may be a limit."""

_VARIABLE = re.compile(r"PEGBOARD_([\w-]+?(?:__[\w-]+?)+)")
_OTHER_VARIABLES = frozenset(
    {"PEGBOARD_CONFIG", "PEGBOARD_DATA_DIR", "PEGBOARD_STATE_DIR", "PEGBOARD_CACHE_DIR", "PEGBOARD_PACKS"}
    | {"PEGBOARD_SERVE_TOKEN", "PEGBOARD_STARTED"}
)
_DOTTED = (("keys",), ("tools", "timeouts"))
"""Tables whose keys contain dots, which a user may leave unquoted."""
_LIMITS = frozenset({"roots", "private", "secrets"})
"""Keys in `[packs.NAME]` that limit what a pack may do."""


@dataclass
class Layer:
    """Settings from one source: a file or one variable."""

    table: TomlTable
    file: Path | None = None
    variable: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)
    """Unknown settings."""
    blocked: Problem | None = None
    """Why no tool may run; empty if tools may run."""
    model_blocked: Problem | None = None
    """Why no model may be used; empty if models may be used."""
    blocked_servers: dict[str, Problem] = field(default_factory=dict)
    """Why MCP servers may not be used, by name."""
    may_block: bool = True
    """Whether an error may block tools or models; an error in an untrusted file may not."""

    def origin(self, key: str) -> Origin:
        """Return where a value of this layer is set."""
        if self.variable:
            return Origin(variable=self.variable)
        return Origin(shown(self.file), self.lines.get(key))

    def add(self, problem: Problem, *, tools: bool = False, model: bool = False) -> None:
        """Add a problem, and record whether it blocks all tools or all models."""
        tools, model = tools and self.may_block, model and self.may_block
        if tools or model:
            consequences = f"{NO_TOOL if tools else ''} {NO_MODEL if model else ''}".strip()
            problem = problem.model_copy(update={"fix": f"{problem.fix} {consequences}".strip(), "severity": "error"})
        self.problems.append(problem)
        if tools:
            self.blocked = self.blocked or problem
        if model:
            self.model_blocked = self.model_blocked or problem


def file_layer(file: Path, text: str | Problem, *, may_block: bool = True) -> Layer:
    """Parse a configuration file.

    Args:
        file: Its path.
        text: Its text, or why it can't be read.
        may_block: Whether its errors may block tools or models.
    """
    layer = Layer({}, file, may_block=may_block)
    table = _parsed(file, text)
    if isinstance(table, Problem):
        layer.add(table if not may_block else table.model_copy(update={"fix": ""}), tools=True, model=True)
        return layer
    layer.table = table
    # `\r\n` is one line break to TOML, as `\n` is.
    layer.lines = key_lines(str(text).replace("\r\n", "\n"))
    _join_dotted(layer.table)
    return layer


def _parsed(file: Path, text: str | Problem) -> TomlTable | Problem:
    if isinstance(text, Problem):
        return text
    try:
        return parse_toml(text)
    except TomlError as error:
        failure = "can't be parsed" if error.line is None else "is not valid TOML"
        return unusable(file, f"This file {failure}: {error}.", error.line)


def environment_layers(environ: Mapping[str, str]) -> Iterator[Layer]:
    """Yield a layer for each `PEGBOARD_SECTION__KEY`, in the order of their names."""
    for variable in sorted(environ):
        match = _VARIABLE.fullmatch(variable)
        if match is None:
            if variable.startswith("PEGBOARD_") and variable not in _OTHER_VARIABLES:
                yield _misspelt(variable)
            continue
        written = match[1].split("__")
        keys = [*map(str.lower, written)]
        if keys[:2] == ["mcp", "servers"] and keys[3:4] == ["env"]:
            keys[4:] = written[4:]
        candidates = [_nested(keys, value) for value in _meanings(environ[variable])]
        yield Layer(_fitting(candidates), variable=variable)


def respell(layer: Layer, files: Sequence[Layer]) -> None:
    """Change names in a variable to those in the files that differ only in case, or in `-` for `_`.

    Only names that users choose can have capital letters or hyphens: those of packs, of their settings, and of servers.

    Args:
        layer: The layer of a variable.
        files: The layers of the files; of two similar names, that of the first one counts.
    """
    for path in (("packs",), ("mcp", "servers")):
        table, *known = (_table_at(one.table, path) for one in (layer, *files))
        depth = layer.variable.count("__") - len(path) + 1
        _rename(table, [one for one in known if one], depth)


def _table_at(table: object, path: Sequence[str]) -> TomlTable:
    for key in path:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


def _rename(table: TomlTable, known: Sequence[TomlTable], depth: int) -> None:
    if depth <= 0 or not known:
        return
    for key in [*table]:
        similar = [name for one in known for name in one if variable_name(name) == variable_name(key)]
        name = key if key in similar or not similar else similar[0]
        table[name] = value = table.pop(key)
        if isinstance(value, dict):
            _rename(value, [one[name] for one in known if isinstance(one.get(name), dict)], depth - 1)


def _fitting(candidates: Sequence[TomlTable]) -> TomlTable:
    """Return the first valid table; else the first one with values of the right types, such as a number out of range.

    If the types of all are wrong, return the last one: the problem is about the text, which is what the user wrote.
    """
    errors = [_errors(table) for table in candidates]
    unfit = [[kind for _, kind, _ in found if is_about_type(kind)] for found in errors]
    judged = errors if [] in errors or not unfit[-1] else unfit
    return next((table for table, found in zip(candidates, judged, strict=True) if not found), candidates[-1])


def _misspelt(variable: str) -> Layer:
    """Return an empty layer, with a problem if the variable looks like a setting with one underscore."""
    layer = Layer({}, variable=variable)
    name = variable.removeprefix("PEGBOARD_").lower()
    meant = next((key for key in _known_keys(Settings) if key.replace(".", "_") == name), None)
    if meant is not None:
        example = f"PEGBOARD_{meant.replace('.', '__').upper()}" + ("__KEY" if "." not in meant else "")
        problem = Problem(message=f"{variable}: This variable has no effect.", fix=f"Did you mean `{example}`?")
        layer.add(problem, tools=meant in {"tools", "tools.allow"}, model=meant in {"model", "model.base_url"})
    return layer


def _meanings(text: str) -> list[object]:
    """Return what a variable's value may mean: a TOML value, or plain text."""
    try:
        parsed = parse_toml(f"value = {text}")
    except TomlError:
        return [text]
    return [parsed["value"], text] if len(parsed) == 1 else [text]


def _nested(keys: Sequence[str], value: object) -> TomlTable:
    table: TomlTable = {keys[-1]: value}
    for key in reversed(keys[:-1]):
        table = {key: table}
    _join_dotted(table)
    return table


def _join_dotted(table: TomlTable) -> None:
    """Make `keys = {tools = {run = …}}`, which `tools.run = …` means to TOML, `keys = {"tools.run" = …}`."""
    for path in _DOTTED:
        holder: object = table
        for key in path[:-1]:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(holder.get(path[-1]), dict):
            holder[path[-1]] = dict(flat(holder[path[-1]]))


def flat(table: TomlTable) -> Iterator[tuple[str, object]]:
    """Yield every value with its dotted key, in the order of the table."""
    # Not recursive: `a.a.a. …` makes tables nested deeper than Python's stack.
    waiting: list[tuple[str, object]] = [*reversed(table.items())]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{key}.{inner}", value[inner]) for inner in reversed(value)]
        else:
            yield key, value


def leaves(table: TomlTable) -> Iterator[str]:
    """Yield the dotted key of every value."""
    return (key for key, _ in flat(table))


def _errors(table: TomlTable) -> list[tuple[KeyPath, str, str]]:
    """Return the errors of a table: the location, pydantic's name for the error, and its message."""
    if not table:
        return []
    try:
        Settings.model_validate(table)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return [(_within(table, item["loc"]), item["type"], item["msg"]) for item in found]
    return []


def _within(table: TomlTable, location: KeyPath) -> KeyPath:
    """Cut what pydantic adds to a location (`[key]`, the branch of a union) and the table doesn't have."""
    here: object = table
    for depth, part in enumerate(location):
        is_key = isinstance(here, dict) and part in here
        is_item = isinstance(here, list) and isinstance(part, int) and part < len(here)
        if not (is_key or is_item):
            return location[:depth]
        here = here[part]  # type: ignore[index]  # one of the two was just seen
    return location


def drop_errors(layer: Layer) -> None:
    """Remove invalid values from a layer, and add a problem for each; block tools or models without a safe default."""
    errors = {location: (kind, message) for location, kind, message in reversed(_errors(layer.table))}
    noted = len(layer.problems)
    # From the back, so that dropping one item of a list keeps the locations of those before it valid.
    for location in sorted(errors, key=lambda place: [(isinstance(part, str), part) for part in place], reverse=True):
        kind, message = errors[location]
        key = ".".join(map(str, location))
        value = _pop(layer.table, location)
        origin = layer.origin(key)
        if location[:2] == ("mcp", "servers") and len(location) > 2:
            _block_server(layer, location, kind, message, value)
            continue
        if kind == "extra_forbidden" or _is_misspelt_pack_setting(location, value):
            near = _nearest(key)
            layer.unused.append(Unused(key, value, origin, "unknown"))
            problem = origin.problem(f"Unknown setting `{key}`.", f"Did you mean `{near}`?" if near else "")
            layer.add(
                problem, tools=_may_limit_tools(location, value, near), model=_may_be_base_url(location, value, near)
            )
            continue
        layer.add(
            origin.problem(complaint(f"`{key}`", kind, message, value), "This value is not used."),
            tools=location in {("tools",), ("packs",)} or location[:2] == ("tools", "allow"),
            model=location in {("model",), ("model", "base_url")},
        )
    _check_packs(layer)
    layer.problems[noted:] = sorted(layer.problems[noted:], key=lambda problem: problem.line or 0)


def _block_server(layer: Layer, location: KeyPath, kind: str, message: str, value: object) -> None:
    """Add the problem of a value of an MCP server, which may be a limit, so that the server isn't used."""
    key = ".".join(map(str, location))
    origin = layer.origin(key)
    if kind == "extra_forbidden":
        near = _nearest_server_key(location)
        layer.unused.append(Unused(key, value, origin, "unknown"))
        message, fix = f"Unknown setting `{key}`.", f"Did you mean `{near}`? {NOT_USED}" if near else NOT_USED
    else:
        message, fix = complaint(f"`{key}`", kind, message, value), NOT_USED
    problem = origin.problem(message, fix)
    layer.problems.append(problem)
    if len(location) > 3:
        layer.blocked_servers.setdefault(str(location[2]), problem)


def _nearest_server_key(location: KeyPath) -> str:
    from difflib import get_close_matches

    near = get_close_matches(str(location[-1]), McpServer.model_fields, n=1) if len(location) == 4 else []
    return ".".join((*map(str, location[:-1]), near[0])) if near else ""


def _may_limit_tools(location: KeyPath, value: object, near: str) -> bool:
    """Return whether an unknown setting may be a misspelt limit of tools, such as `[tools] deny` or `[tool] allow`."""
    if location[0] == "tools":
        return near == "tools.allow" or isinstance(value, str | list)
    if location[0] == "packs":
        return location[-1] in _LIMITS
    is_shallow = len(location) <= 2
    return is_shallow and (
        near in {"tools", "tools.allow"} or location[-1] == "allow" or (isinstance(value, dict) and "allow" in value)
    )


def _may_be_base_url(location: KeyPath, value: object, near: str) -> bool:
    """Return whether an unknown setting may be a misspelt `model.base_url`."""
    if location[0] in {"packs", "mcp"}:
        return False
    is_url = isinstance(value, str) and "://" in value
    return is_url or near == "model.base_url" or (isinstance(value, dict) and "base_url" in value)


def _check_packs(layer: Layer) -> None:
    """Check the types of what limits packs; each fails closed for its pack alone."""
    packs = layer.table.get("packs", {})
    for pack, config in packs.items():
        if pack == "folders" or not isinstance(config, dict):
            continue
        is_built_in = (BUILT_IN_PACKS / f"{pack}.py").is_file() if str(pack).isidentifier() else False
        for key in [*config]:
            path = f"packs.{pack}.{key}"
            fits = _fits_limit(key, config[key]) if is_built_in or key == "secrets" else True
            if key in _LIMITS and not fits:
                wanted = "true or false" if key == "private" else "a list of strings"
                message = f"`{path}` should be {wanted}, but is {kind_of(config[key])}."
                if key == "roots":
                    layer.add(
                        layer.origin(path).problem(
                            message, f"Tools of {pack} that use files don't run until this is fixed."
                        )
                    )
                else:
                    layer.add(layer.origin(path).problem(message, "This value is not used."))
                    del config[key]
            elif is_built_in and _is_like_roots(key) and "roots" not in config:
                fix = (
                    f"Did you mean `packs.{pack}.roots`? Tools of {pack} that use files don't run until this is fixed."
                )
                layer.add(layer.origin(path).problem(f"Unknown setting `{path}`.", fix))
                config["roots"] = []


def _fits_limit(key: str, value: object) -> bool:
    if key == "private":
        return isinstance(value, bool)
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _is_like_roots(key: str) -> bool:
    from difflib import SequenceMatcher

    return key != "roots" and SequenceMatcher(None, key.lower(), "roots").ratio() > 0.79


def _is_misspelt_pack_setting(location: KeyPath, value: object) -> bool:
    return len(location) == 2 and location[0] == "packs" and location[1] != "folders" and not isinstance(value, dict)


def _pop(table: TomlTable, location: KeyPath) -> object:
    holder: Any = table  # outside data, at a place known to be in it
    for part in location[:-1]:
        holder = holder[part]
    return holder.pop(location[-1])


def _nearest(key: str) -> str:
    """Return the known key that is most likely meant, or an empty text."""
    from difflib import get_close_matches

    parent, _, name = key.rpartition(".")
    known = list(_known_keys(Settings))
    siblings = [other for other in known if other.rpartition(".")[0] == parent]
    elsewhere = [other for other in known if other.rpartition(".")[2] == name]
    near = get_close_matches(key, siblings, n=1) or elsewhere or get_close_matches(key, known, n=1)
    return near[0] if near else ""


def _known_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        yield prefix + name
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _known_keys(info.annotation, f"{prefix}{name}.")


def make_folders_absolute(layer: Layer) -> None:
    """Make packs folders absolute: they are relative to the file that names them."""
    folders = layer.table.get("packs", {}).get("folders")
    if folders:
        start = layer.file.parent if layer.file else None
        layer.table["packs"]["folders"] = [absolute(folder, start) for folder in folders]
