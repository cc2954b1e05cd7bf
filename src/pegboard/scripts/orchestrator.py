"""Many tools behind one script."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, Self

from pegboard.models import CallEvent, JsonObject, ScriptAnalysis, ToolSpec
from pegboard.ports import Calls
from pegboard.scripts.analysis import analyze
from pegboard.scripts.commands import TOOL_SECONDS, CallableTool, Command, Origin, commands_of
from pegboard.scripts.execution import Execution, Limits, ScriptResult
from pegboard.scripts.sandbox import Sandboxes

INPUT_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "commands": {"type": "string", "minLength": 1, "description": "The bash script.", "format": "multiline"}
    },
    "required": ["commands"],
    "additionalProperties": False,
}
OUTPUT_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "stdout": {"type": "string", "description": "What the script printed."},
        "stderr": {"type": "string", "description": "Why something failed or is missing."},
        "exit_code": {"type": "integer", "description": "0 where it went well; 124 where its time was over."},
    },
    "required": ["stdout", "stderr", "exit_code"],
    "additionalProperties": False,
}

_TIPS: Final = """\
- Call a tool by its name: `{example}`. Flags are `--name value` or `--name=value`; a list is the flag again and again,
  or JSON; what is within an object is `--filter.size 3`; true is the flag alone, false `--no-name`. Required arguments
  may be given without their flags, in order, and all arguments as JSON: `--args '{"limit": 3}'`.
- A result that is text is printed as it is, anything else as JSON on one line: go on with `jq`.
- A tool that fails says why on stderr and has an exit code that isn't 0: use `||`, `if`, `set -e`, `set -o pipefail`.
- Calls that don't need each other run at once: `a & b & wait`, `xargs -P 8 -n 1 TOOL`, `parallel TOOL ::: a b`.
- Print only what you need: filter, count and join in the script.
- The files are the script's own and gone when it ends; those of this machine, its programs and the network are only
  reached by tools.
- `help` lists the tools, `help TOOL` or `TOOL --help` tells all of one."""


class OrchestratorTool:
    """A tool that runs bash scripts whose commands are other tools.

    It may be used any number of times, by several at once, and from any thread with an event loop: each script has its
    own process, files and variables; the tools are shared. Built by an `OrchestratorToolBuilder`.

    Args:
        name: What it is called.
        description: What it is for, in short.
        commands: What its scripts may call, by name.
        env: Their environment variables.
        limits: How far each may go.
        sandboxes: Where their processes come from.
    """

    input_schema = INPUT_SCHEMA
    output_schema = OUTPUT_SCHEMA

    def __init__(
        self,
        name: str,
        description: str,
        commands: Mapping[str, Command],
        *,
        env: Mapping[str, str],
        limits: Limits,
        sandboxes: Sandboxes,
    ) -> None:
        self.name = name
        self.description = description
        self.env = dict(env)
        self.limits = limits
        self._commands = dict(commands)
        self._sandboxes = sandboxes

    @property
    def commands(self) -> tuple[Command, ...]:
        """What scripts may call, each command once."""
        return tuple(dict.fromkeys(self._commands.values()))

    @property
    def help(self) -> str:
        """What `help` prints in a script."""
        width = max((len(command.names[0]) for command in self.commands), default=0)
        lines = [f"  {command.names[0]:<{width}}  {command.summary}".rstrip() for command in self.commands]
        return "\n".join(["Tools:", *lines, "", "help TOOL tells all of one."]) + "\n"

    def system_prompt(self) -> str:
        """Gives Markdown for a model: what goes in and comes out, each command with its usage, and tips."""
        commands = self.commands
        described = [f"- `{command.usage}`\n  {command.summary}".rstrip() for command in commands]
        cuts = (
            f"stdout and stderr are cut after {self.limits.output:,} bytes each, the script is stopped after"
            f" {self.limits.seconds:g} s; both is said."
        )
        example = commands[0].usage if commands else "TOOL --name value"
        parts = [
            f"# {self.name}",
            self.description,
            '## Input\n`{"commands": "<bash>"}`: a bash script, run in a sandbox.',
            "## Output\n`stdout`, `stderr` and `exit_code` of the script. " + cuts,
            "## Commands\nAll of bash, with coreutils, grep, sed, awk, jq and others, and these tools:\n"
            + "\n".join(described),
            "## Tips\n" + _TIPS.replace("{example}", example),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def analyze(self, commands: str) -> ScriptAnalysis:
        """Says what a script will call, as far as can be known; nothing is run. Blocks for a moment."""
        try:
            sandbox = self._sandboxes.take()
        except OSError as error:
            return ScriptAnalysis(error=f"no process to read it in can be started: {error}")
        try:
            return analyze(commands, self._commands, sandbox.parse)
        finally:
            self._sandboxes.give_back(sandbox)

    async def execute(
        self,
        commands: str,
        *,
        tell: Callable[[CallEvent], None] = lambda event: None,
        origin: Origin | None = None,
        seconds: float | None = None,
        keeps_calls: bool = True,
    ) -> ScriptResult:
        """Runs a script; whoever cancels this ends it and the calls that it makes.

        Args:
            commands: The script.
            tell: Learns at once what is printed, as `Log`s of the script's own call, and what happens to the calls that
                it makes, which have that as their parent.
            origin: Whose its calls are; a new id of its own unless given.
            seconds: How long it may take, if not what the limits say.
            keeps_calls: Whether the result has the calls; together theirs may be large.

        Raises:
            OSError: No process can be started.
        """
        limits = self.limits if seconds is None else replace(self.limits, seconds=seconds)
        execution = Execution(
            self._commands,
            self.help,
            env=self.env,
            limits=limits,
            origin=origin or Origin(os.urandom(16).hex()),
            tell=tell,
            keeps_calls=keeps_calls,
        )
        return await execution.run(commands, self._sandboxes)

    def close(self) -> None:
        """Ends the processes that wait for the next script; it can still be used."""
        self._sandboxes.close()


class OrchestratorToolBuilder:
    """Builds an `OrchestratorTool`.

    Args:
        name: What it is called.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._description = ""
        self._tools: list[tuple[CallableTool, float]] = []
        self._specs: list[ToolSpec] = []
        self._calls: Calls | None = None
        self._env: dict[str, str] = {}
        self._limits = Limits()
        self._sandboxes: Sandboxes | None = None

    def description(self, text: str) -> Self:
        """Says in short what it is for."""
        self._description = text
        return self

    def tool(self, tool: CallableTool, *, seconds: float = TOOL_SECONDS) -> Self:
        """Adds a tool.

        Args:
            tool: The tool.
            seconds: How long a call of it may take; then it fails with the exit code 124, and the script goes on.
        """
        self._tools.append((tool, seconds))
        return self

    def specs(self, specs: Iterable[ToolSpec], calls: Calls) -> Self:
        """Adds tools of the registry, with the road that their calls take."""
        self._specs += specs
        self._calls = calls
        return self

    def env(self, name: str, value: str) -> Self:
        """Sets an environment variable of its scripts."""
        self._env[name] = value
        return self

    def limits(self, limits: Limits) -> Self:
        """Says how far a script may go."""
        self._limits = limits
        return self

    def sandboxes(self, sandboxes: Sandboxes) -> Self:
        """Takes the processes for its scripts from where others take theirs."""
        self._sandboxes = sandboxes
        return self

    def build(self) -> OrchestratorTool:
        """Gives the tool.

        Raises:
            ValueError: Two tools have one name, or a `CallableTool` has one that can't be a command's.
        """
        return OrchestratorTool(
            self._name,
            self._description,
            commands_of(self._specs, self._calls, self._tools),
            env=self._env,
            limits=self._limits,
            sandboxes=self._sandboxes or Sandboxes(self._limits.memory),
        )
