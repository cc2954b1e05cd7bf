"""The description of a tool."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pegboard.models.model import DataModel, JsonObject
from pegboard.models.problem import Problem
from pegboard.models.requirement import HealthRow, Requirement

ToolState = Literal["ready", "degraded", "blocked"]
"""Whether a tool can work: fully, in part, or not."""


class Hints(DataModel):
    """The author's hints on a tool's behaviour: the four MCP annotations and Pegboard's own. None means unspecified."""

    read_only: bool | None = None
    """The tool changes nothing (MCP `readOnlyHint`)."""
    destructive: bool | None = None
    """The tool may delete or overwrite data (MCP `destructiveHint`)."""
    idempotent: bool | None = None
    """Calling the tool twice has the same effect as once (MCP `idempotentHint`)."""
    open_world: bool | None = None
    """The tool talks to the outside world (MCP `openWorldHint`)."""
    timeout: float | None = None
    """Seconds that one call may take."""
    cache_seconds: float | None = None
    """Seconds for which a result can be reused within a session."""
    stdin: str | None = None
    """The parameter that receives a script's standard input."""


class PackHandler(DataModel):
    """The address of a tool that is a function in a Python file."""

    kind: Literal["pack"] = "pack"
    pack: str
    function: str
    file: str
    """Absolute path."""
    line: int
    """Line of the function's `def`, from 1."""
    is_async: bool = False
    helpers: tuple[str, ...] = ()
    """Absolute paths of the modules of the project that the tool's types come from, including missing ones."""


class McpHandler(DataModel):
    """The address of a tool of an MCP server."""

    kind: Literal["mcp"] = "mcp"
    server: str
    """Name of the server's pack."""
    tool: str
    """The server's own name of the tool: untrusted text."""
    saved: bool = True
    """Whether the server is in a configuration file; saved rules never apply to tools of another one."""
    trusted: bool = False
    """Whether the user trusts the server's annotations."""
    claims: dict[str, bool] = Field(default_factory=dict)
    """The server's annotations; `hints` has those that count."""
    display: JsonObject = Field(default_factory=dict, exclude=True, repr=False)
    """The server's `title` and `icons` of the tool, for MCP clients: untrusted."""
    entry: str = Field(default="", exclude=True, repr=False)
    """Digest of the server's configuration: another server may get its name."""
    cwd: str | None = Field(default=None, exclude=True, repr=False)
    """Folder in which the server runs, absolute; None for Pegboard's own, or if that is unknown."""
    listed: bool = Field(default=True, exclude=True, repr=False)
    """Whether the server described the tool; the schema of any other is unknown."""


class ScriptHandler(DataModel):
    """The address of the tool that runs scripts; there is only one."""

    kind: Literal["script"] = "script"


Handler = Annotated[PackHandler | McpHandler | ScriptHandler, Field(discriminator="kind")]
"""The target of a tool's calls: an address, never a callable."""


class Location(DataModel):
    """The origin of a tool, for people: the pack's file and line, the server's name, or Pegboard itself."""

    kind: Literal["pack", "mcp", "script"]
    file: str | None = None
    line: int | None = None
    server: str | None = Field(default=None, exclude_if=lambda server: server is None)
    """Left out of the JSON if the tool comes from a file."""


class ToolSpec(DataModel):
    """Description of a tool, built without running it."""

    name: str
    """The qualified name, `pack.function`."""
    pack: str
    description: str = ""
    """Markdown: the docstring without its sections on arguments and, if there is an output schema, returns."""
    input_schema: JsonObject
    """JSON Schema 2020-12 of the argument object unless it names another dialect in `$schema`."""
    output_schema: JsonObject | None = None
    handler: Handler
    signature: str = ""
    """The signature in one line: `fs.read_file(*, path: str, max_bytes: int = 204800) -> str`."""
    aliases: tuple[str, ...] = ()
    """Other names of the tool, qualified."""
    parameter_aliases: dict[str, str] = Field(default_factory=dict)
    """Other names of parameters: alias → parameter."""
    hints: Hints = Hints.model_construct()
    requirements: tuple[Requirement, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Problems of this tool; `discovery.scan` returns them among all others."""

    @property
    def function(self) -> str:
        """The name without the pack."""
        return self.name.removeprefix(self.pack + ".")

    @property
    def summary(self) -> str:
        """The first line of the description."""
        return self.description.strip().split("\n", 1)[0]

    @property
    def file(self) -> str | None:
        """Absolute path of the pack's file; None for other tools."""
        return self.handler.file if isinstance(self.handler, PackHandler) else None

    @property
    def files(self) -> tuple[str, ...]:
        """All files that the description was read from; empty for tools that aren't from packs."""
        return (self.handler.file, *self.handler.helpers) if isinstance(self.handler, PackHandler) else ()

    @property
    def object_schema(self) -> JsonObject:
        """The input schema with the type `object` at its root, which MCP and some providers of models require."""
        schema = self.input_schema
        return schema if schema.get("type") == "object" else {**schema, "type": "object"}

    @property
    def location(self) -> Location:
        """Origin of the tool."""
        match self.handler:
            case PackHandler(file=file, line=line):
                return Location.model_construct(kind="pack", file=file, line=line)  # of validated values
            case McpHandler(server=server):
                return Location.model_construct(kind="mcp", server=server)
            case ScriptHandler():
                return Location.model_construct(kind="script")

    @property
    def annotations(self) -> JsonObject:
        """The specified hints as MCP annotations; those of a server as it claims them."""
        if isinstance(self.handler, McpHandler):
            return dict(self.handler.claims)
        said = {
            "readOnlyHint": self.hints.read_only,
            "destructiveHint": self.hints.destructive,
            "idempotentHint": self.hints.idempotent,
            "openWorldHint": self.hints.open_world,
        }
        return {name: value for name, value in said.items() if value is not None}


class ToolInfo(DataModel):
    """A tool as `pegboard tools list --json` and the interface show it."""

    name: str
    aliases: tuple[str, ...]
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    annotations: JsonObject
    pack: str
    location: Location
    state: ToolState
    requirements: tuple[HealthRow, ...]
    """The tool's requirements, each with its status."""
    problems: tuple[Problem, ...]

    @classmethod
    def of(cls, spec: ToolSpec, state: ToolState = "ready", requirements: tuple[HealthRow, ...] = ()) -> ToolInfo:
        """Return the entry of a tool."""
        return cls.model_construct(
            name=spec.name,
            aliases=spec.aliases,
            description=spec.description,
            input_schema=spec.input_schema,
            output_schema=spec.output_schema,
            annotations=spec.annotations,
            pack=spec.pack,
            location=spec.location,
            state=state,
            requirements=requirements,
            problems=spec.problems,
        )
