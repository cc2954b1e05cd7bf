"""The description of a tool."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pegboard.models.model import JsonObject, Model
from pegboard.models.problem import Problem
from pegboard.models.requirement import HealthRow, Requirement

ToolState = Literal["ready", "degraded", "blocked"]
"""Whether a tool can do its work: yes; partly; no."""


class Hints(Model):
    """What the author says of a tool's manners: the four MCP annotations and ours. `None` is unsaid."""

    read_only: bool | None = None
    """It changes nothing (MCP `readOnlyHint`)."""
    destructive: bool | None = None
    """It may delete or overwrite (MCP `destructiveHint`)."""
    idempotent: bool | None = None
    """Calling it twice does no more than calling it once (MCP `idempotentHint`)."""
    open_world: bool | None = None
    """It talks to things outside (MCP `openWorldHint`)."""
    timeout: float | None = None
    """Seconds that one call may take."""
    cache_seconds: float | None = None
    """How long a result may be used again within a session, in seconds."""
    stdin: str | None = None
    """The parameter that takes a script's standard input."""


class PackHandler(Model):
    """The address of a tool that is a function in a Python file."""

    kind: Literal["pack"] = "pack"
    pack: str
    function: str
    file: str
    """Absolute path."""
    line: int
    """Where the function's `def` stands, from 1."""
    is_async: bool = False


class McpHandler(Model):
    """The address of a tool of an MCP server."""

    kind: Literal["mcp"] = "mcp"
    server: str
    tool: str


class ScriptHandler(Model):
    """The address of the tool that runs scripts, of which there is one."""

    kind: Literal["script"] = "script"


Handler = Annotated[PackHandler | McpHandler | ScriptHandler, Field(discriminator="kind")]
"""Where a call of the tool is sent: an address, never a callable."""


class Location(Model):
    """Where a tool comes from, for people: the pack's file and line, the server's name, or Pegboard itself."""

    kind: Literal["pack", "mcp", "script"]
    file: str | None = None
    line: int | None = None
    server: str | None = Field(default=None, exclude_if=lambda server: server is None)
    """Not in the JSON of a tool that comes from a file."""


class ToolSpec(Model):
    """All that is known of a tool without running it."""

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
    """The call in one line: `fs.read_file(*, path: str, max_bytes: int = 204800) -> str`."""
    aliases: tuple[str, ...] = ()
    """Other names that the tool answers to, as they are called."""
    parameter_aliases: dict[str, str] = Field(default_factory=dict)
    """Other names of parameters: alias → parameter."""
    hints: Hints = Hints()
    requirements: tuple[Requirement, ...] = ()
    problems: tuple[Problem, ...] = ()
    """What is wrong with this tool; `discovery.scan` gives the same among all others."""

    @property
    def function(self) -> str:
        """The name without the pack."""
        return self.name.removeprefix(self.pack + ".")

    @property
    def summary(self) -> str:
        """The first line of the description."""
        return self.description.strip().split("\n", 1)[0]

    @property
    def location(self) -> Location:
        """Where the tool comes from."""
        match self.handler:
            case PackHandler(file=file, line=line):
                return Location(kind="pack", file=file, line=line)
            case McpHandler(server=server):
                return Location(kind="mcp", server=server)
            case ScriptHandler():
                return Location(kind="script")

    @property
    def annotations(self) -> JsonObject:
        """The hints as MCP annotations: only those that were said."""
        said = {
            "readOnlyHint": self.hints.read_only,
            "destructiveHint": self.hints.destructive,
            "idempotentHint": self.hints.idempotent,
            "openWorldHint": self.hints.open_world,
        }
        return {name: value for name, value in said.items() if value is not None}


class ToolInfo(Model):
    """A tool as `pegboard tools list --json` and the screen show it."""

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
    """What it needs, each with what was found."""
    problems: tuple[Problem, ...]

    @classmethod
    def of(cls, spec: ToolSpec, state: ToolState = "ready", requirements: tuple[HealthRow, ...] = ()) -> ToolInfo:
        """Shows `spec`, whose tool is in `state` for what was found of its requirements."""
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
