"""A tool that runs scripts over many tools."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Self

from pegboard.models import CallEvent, ExpectedCall, JsonObject, ScriptAnalysis, ToolSpec
from pegboard.ports import Calls
from pegboard.scripts.analysis import analyze
from pegboard.scripts.commands import (
    TOOL_SECONDS,
    CallableCommand,
    CallableTool,
    CallOrigin,
    ScriptCommand,
    ToolCommand,
    commands_of,
)
from pegboard.scripts.execution import Execution, Limits, ScriptResult
from pegboard.scripts.sandbox import Sandboxes

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
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
        "stderr": {"type": "string", "description": "Error messages, and notes on missing output."},
        "exit_code": {
            "type": "integer",
            "description": "0 if it succeeded; 124 after a timeout, 125 if a limit left the result incomplete.",
        },
    },
    "required": ["stdout", "stderr", "exit_code"],
    "additionalProperties": False,
}

_TOOL_TIPS: Final = """\
- Call a tool by its name: `{example}`. Flags are `--name value` or `--name=value`. For a list, repeat the flag or pass
  JSON; for a field of an object, use `--filter.size 3`; for true the flag alone, for false `--no-name`. Required
  arguments may be passed in order without flags, and all arguments as JSON: `--args '{"limit": 3}'`.
- A result that is text is printed as it is, anything else as JSON on one line: continue with `jq`."""
_TIPS: Final = """\
- A tool that fails prints the reason to stderr and exits with a code other than 0: use `||`, `if`, `set -e`,
  `set -o pipefail`.
- Run independent calls concurrently: `a & b & wait` (64 at a time), `xargs -P 8 -n 1 TOOL`,
  `parallel TOOL ::: a b`.
- Print only what you need: filter, count and join in the script.
- The script has its own temporary files; only tools can access the files of this machine, its programs and the
  network.
- `help` lists the tools, `help TOOL` describes one."""


class OrchestratorTool:
    """A tool that runs bash scripts whose commands are other tools.

    It is reusable, concurrently and from any thread with an event loop: each script has its own process, files and
    variables; the tools are shared. Built by an `OrchestratorToolBuilder`.

    Args:
        name: Name of the tool.
        short_description: Its purpose, in a sentence.
        commands: Commands of its scripts, by name.
        env: Environment variables of its scripts.
        limits: Limits of each script.
        sandboxes: The pool of processes.
    """

    input_schema = INPUT_SCHEMA
    output_schema = OUTPUT_SCHEMA

    def __init__(
        self,
        name: str,
        short_description: str,
        commands: Mapping[str, ScriptCommand],
        *,
        env: Mapping[str, str],
        limits: Limits,
        sandboxes: Sandboxes,
    ) -> None:
        self.name = name
        self.short_description = short_description
        self.env = dict(env)
        self.limits = limits
        self._commands = dict(commands)
        self._sandboxes = sandboxes

    @staticmethod
    def builder(name: str) -> OrchestratorToolBuilder:
        """Return a builder of a tool with this name."""
        return OrchestratorToolBuilder(name)

    @property
    def description(self) -> str:
        """Description for models: the same as `short_description`."""
        return self.short_description

    @property
    def commands(self) -> tuple[ScriptCommand, ...]:
        """Commands of tools, each once."""
        return tuple(dict.fromkeys(self._commands.values()))

    @property
    def help(self) -> str:
        """Output of `help` in a script."""
        width = max((len(command.names[0]) for command in self.commands), default=0)
        lines = [f"  {command.names[0]:<{width}}  {command.summary}".rstrip() for command in self.commands]
        return "\n".join(["Tools:", *lines, "", "help TOOL describes one."]) + "\n"

    def system_prompt(self) -> str:
        """Return Markdown for a model: input and output, each command with its description and usage, and tips."""
        described = "\n".join(map(_described, self.commands))
        ends = (
            f"A script that prints more than {self.limits.output:,} bytes to stdout or stderr, or reaches another"
            f" limit, exits with 125; one that takes longer than {self.limits.seconds:g} s with 124."
        )
        parts = [
            f"# {self.name}",
            self.short_description,
            '## Input\n`{"commands": "<bash>"}`: a bash script, run in a sandbox.',
            f"## Output\n`stdout`, `stderr` and `exit_code` of the script. {ends}",
            f"## Commands\nAll of bash, with coreutils, grep, sed, awk, jq and others, and these tools:\n{described}",
            f"## Tips\n{self._tips()}",
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _tips(self) -> str:
        tools = [command for command in self.commands if not isinstance(command, CallableCommand)]
        callables = [command for command in self.commands if isinstance(command, CallableCommand)]
        tips = [_TOOL_TIPS.replace("{example}", tools[0].usage)] if tools else []
        if callables:
            tips.append(_callable_tip([f"`{command.names[0]}`" for command in callables]))
        return "\n".join([*tips, _TIPS])

    def analyze(self, commands: str) -> ScriptAnalysis:
        """Return the calls that a script will make, as far as they can be known; run nothing. Block for a moment.

        Raises:
            TypeError: The script is not a text.
            ValueError: The script can't be encoded.
        """
        _check_script(commands)
        try:
            sandbox = self._sandboxes.take()
        except OSError as error:
            return ScriptAnalysis(error=f"the script was not analyzed because no process can be started: {error}")
        try:
            return analyze(commands, self._commands, sandbox.parse)
        finally:
            self._sandboxes.give_back(sandbox)

    def destructive_calls(self, commands: str) -> tuple[ExpectedCall, ...]:
        """Return the calls of destructive tools in a script; block for a moment.

        A tool that the script names and may call in a way that can't be analyzed has a call with unknown words.

        Raises:
            TypeError: The script is not a text.
            ValueError: The script can't be encoded.
        """
        found = self.analyze(commands)
        named = (ExpectedCall(tool, (None,), None) for tool in found.named)
        return tuple(call for call in (*found.calls, *named) if self._is_destructive(call.tool))

    def _is_destructive(self, name: str) -> bool:
        command = self._commands.get(name)
        return isinstance(command, ToolCommand) and bool(command.spec.hints.destructive)

    async def execute(
        self,
        commands: str,
        *,
        on_event: Callable[[CallEvent], None] = lambda event: None,
        origin: CallOrigin | None = None,
        seconds: float | None = None,
        keeps_calls: bool = True,
    ) -> ScriptResult:
        """Run a script; cancelling this ends the script and its calls.

        Args:
            commands: The script.
            on_event: Callback for the script's output, as `Log`s of its own call, and for the events of its calls,
                which have that call as their parent.
            origin: Caller of its calls; by default a new id.
            seconds: Timeout; by default that of the limits.
            keeps_calls: Whether the result contains the calls, which may be large.

        Raises:
            TypeError: The script is not a text.
            ValueError: The script can't be encoded.
            OSError: No process can be started.
            Exception: `on_event` raised it; it ends the script.
        """
        _check_script(commands)
        limits = self.limits if seconds is None else replace(self.limits, seconds=seconds)
        execution = Execution(
            self._commands,
            self.help,
            env=self.env,
            limits=limits,
            origin=origin or CallOrigin(os.urandom(16).hex()),
            on_event=on_event,
            keeps_calls=keeps_calls,
        )
        return await execution.run(commands, self._sandboxes)

    def close(self) -> None:
        """End idle processes; the tool can still be used."""
        self._sandboxes.close()


class OrchestratorToolBuilder:
    """Builder of an `OrchestratorTool`.

    Args:
        name: Name of the tool.
    """

    def __init__(self, name: str) -> None:
        self._name = _text(name, "name")
        self._short_description = ""
        self._tools: list[tuple[CallableTool, float]] = []
        self._specs: list[ToolSpec] = []
        self._calls: Calls | None = None
        self._env: dict[str, str] = {}
        self._limits = Limits()
        self._sandboxes: Sandboxes | None = None

    def short_description(self, text: str) -> Self:
        """Set the tool's purpose, in a sentence."""
        self._short_description = _text(text, "short description")
        return self

    def tool(self, tool: CallableTool, *, seconds: float = TOOL_SECONDS) -> Self:
        """Add a tool.

        Args:
            tool: The tool.
            seconds: Timeout of a call; after it the call fails with exit code 124, and the script continues.

        Raises:
            TypeError: It isn't a `CallableTool`.
        """
        for attribute in ("name", "description"):
            _text(getattr(tool, attribute, None), f"{attribute} of a tool")
        if not callable(getattr(tool, "call", None)):
            raise TypeError(f"The tool {tool.name} needs a method call(args, stdin).")
        self._tools.append((tool, seconds))
        return self

    def specs(self, specs: Iterable[ToolSpec], calls: Calls) -> Self:
        """Add tools of the registry, with the pipeline for their calls."""
        self._specs += specs
        self._calls = calls
        return self

    def env(self, name: str, value: str) -> Self:
        """Set an environment variable of the scripts.

        Raises:
            TypeError: The name or the value is not a text.
            ValueError: The name isn't valid for a variable, or the value can't be encoded.
        """
        if not _VARIABLE.fullmatch(_text(name, "name of a variable")):
            raise ValueError(f"{name!r} is not a valid name of a variable. Use letters, digits and underscores.")
        value = _encodable(_text(value, f"value of {name}"), f"value of {name}")
        if "\0" in value:
            raise ValueError(f"The value of {name} contains a null character.")
        self._env[name] = value
        return self

    def limits(self, limits: Limits) -> Self:
        """Set the limits of a script.

        Raises:
            TypeError: It isn't a `Limits`.
        """
        if not isinstance(limits, Limits):
            raise TypeError(f"The limits must be a Limits, not {type(limits).__name__}.")
        self._limits = limits
        return self

    def sandboxes(self, sandboxes: Sandboxes) -> Self:
        """Share a pool of processes with other tools."""
        self._sandboxes = sandboxes
        return self

    def build(self) -> OrchestratorTool:
        """Return the tool.

        Raises:
            ValueError: Two tools have one name, or the name of a `CallableTool` isn't valid for a command.
        """
        return OrchestratorTool(
            self._name,
            self._short_description,
            commands_of(self._specs, self._calls, self._tools),
            env=self._env,
            limits=self._limits,
            sandboxes=self._sandboxes or Sandboxes(self._limits.memory),
        )


def _described(command: ScriptCommand) -> str:
    lines = command.description.split("\n") if isinstance(command, CallableCommand) else [command.summary]
    return "\n".join([f"- `{command.usage}`", *(f"  {line}".rstrip() for line in lines)]).rstrip()


def _callable_tip(names: Sequence[str]) -> str:
    if len(names) == 1:
        return (
            f"- {names[0]} receives its words and stdin as they are and prints text. Only its description says which\n"
            "  words it accepts; it has no `--help`."
        )
    return (
        f"- {', '.join(names[:-1])} and {names[-1]} receive their words and stdin as they are and print text.\n"
        "  Only their descriptions say which words they accept; they have no `--help`."
    )


def _check_script(commands: object) -> None:
    _encodable(_text(commands, "script"), "script")


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"The {what} must be a str, not {type(value).__name__}.")
    return value


def _encodable(text: str, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"The {what} can't be encoded as UTF-8: character {error.start + 1} is half of a surrogate pair."
        ) from None
    return text
