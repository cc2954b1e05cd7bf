"""The root command, and helpers of all commands."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from typer.core import TyperGroup

import pegboard
from pegboard.cli.exit_codes import INTERRUPTED, NOT_FOUND, OK, PROVIDER, TOOL_FAILED, USAGE

if TYPE_CHECKING:
    from pegboard.models import RecordedCall, ToolError, ToolSpec
    from pegboard.runtime import Runtime

__all__ = ["EXIT_CODES", "INTERRUPTED", "NOT_FOUND", "OK", "PROVIDER", "TOOL_FAILED", "USAGE"]

_SETTINGS = {"help_option_names": ["-h", "--help"], "color": False}
"""Settings of typer. Its own colors, as of `--install-completion`, would be escapes that Pegboard shows as symbols."""

EXIT_CODES = {
    OK: "success",
    TOOL_FAILED: "the tool failed",
    USAGE: "wrong usage or invalid arguments",
    NOT_FOUND: "unknown tool",
    PROVIDER: "the model's provider failed",
    129: "the terminal was closed",
    INTERRUPTED: "interrupted by ctrl+c",
    141: "a reader of the output has ended",
    143: "ended by kill",
}
"""Exit code → meaning, for all commands."""

_ROOT_HELP = """Run and test the tools that language-model agents use. Without a command, open the app.

stdout is data, stderr is messages. Exit codes: 0 success, 1 the tool failed, 2 wrong usage or invalid arguments,
3 unknown tool, 4 the model's provider failed, 130 interrupted.

`pegboard guide` explains everything else; `pegboard guide agent` is for agents. --help --json describes a command as
JSON."""


CLIENTS_HELP: Final = (
    "A file, or claude-code, claude-desktop, codex, copilot, cursor, gemini, opencode, vscode or windsurf."
)
"""The clients whose files are found by themselves, without the modules that find them."""

_SYNONYMS: Final = {
    "call": "invoke",
    "chat": "ask",
    "create": "new",
    "describe": "info",
    "doctor": "deps",
    "exec": "invoke",
    "execute": "invoke",
    "health": "deps",
    "help": "guide",
    "init": "new",
    "log": "history",
    "logs": "history",
    "ls": "list",
    "proxy": "watch",
    "run": "invoke",
    "secrets": "auth",
    "server": "mcp",
    "servers": "mcp",
    "show": "info",
}
"""Words that users type for a command, and its name."""


class _Group(TyperGroup):
    """A group of commands; for an unknown command it suggests those that may be meant, also in groups inside."""

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]  # noqa: ANN401 - typer's own classes
        """Return the command that the arguments begin with, and the others."""
        if args and self.get_command(ctx, args[0]) is None and (meant := self._meant(args[0])):
            suggested = ", ".join(f"`{ctx.command_path} {name}`" for name in meant)
            ctx.fail(f"No such command {args[0]!r}. Did you mean {suggested}?")
        return super().resolve_command(ctx, args)

    def _meant(self, word: str) -> list[str]:
        names = {word, _SYNONYMS.get(word)}
        found = [name for name in self.commands if name in names]
        for group, command in self.commands.items():
            found += [f"{group} {name}" for name in getattr(command, "commands", ()) if name in names]
        return sorted(found)


class _SortedGroup(_Group):
    """The root command; its help lists the commands in alphabetical order, whatever the order of their modules."""

    def _meant(self, word: str) -> list[str]:
        return [f"tools invoke {shlex.quote(word)}"] if "." in word else super()._meant(word)

    def make_context(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - typer's own classes
        """Parse a command line."""
        with _explained():
            return super().make_context(*args, **options)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # noqa: ANN401 - as above
        """Run the command."""
        with _explained():
            return super().invoke(ctx)

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # as in `ask`
        """Return the names of the commands."""
        return sorted(self.commands)


@contextmanager
def _explained() -> Iterator[None]:
    """Correct the errors that typer reports."""
    try:
        yield
    except BrokenPipeError as error:
        raise BrokenPipeError from error  # With its number, typer would exit with 1.
    except typer.BadParameter as error:
        error.message = error.message.removeprefix("Value error, ")  # pydantic's words before those of typer
        raise


CommandT = TypeVar("CommandT", bound=Callable[..., object])


class _Typer(typer.Typer):
    """A typer whose commands all accept `--packs` and `--mcp`."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[CommandT], CommandT]:  # noqa: ANN401 - typer's
        """Register a command; the list of commands shows the first sentence of its help, uncut."""

        def decorate(function: CommandT) -> CommandT:
            line = (options.get("help") or inspect.getdoc(function) or "").partition("\n")[0]
            summary = f"{line.partition('. ')[0].removesuffix('.')}."
            register = super(_Typer, self).command(name, **{"short_help": summary, **options})
            register(_with_common_options(function))
            return function

        return decorate


def _with_common_options(function: Callable[..., object]) -> Callable[..., object]:
    """Return a command with the parameters of `--packs` and `--mcp`, whose values were collected by then."""

    @wraps(function)
    def run(*, _mcp: object = None, _packs: object = None, **arguments: object) -> object:
        return function(**arguments)

    signature = inspect.signature(function, eval_str=True)
    common = (
        {"_mcp": ServersOption} if "packs" in signature.parameters else {"_packs": PacksOption, "_mcp": ServersOption}
    )
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]  # which `inspect.signature` reads
        parameters=[
            *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()),
            *(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
                for name, option in common.items()
            ),
        ]
    )
    run.__annotations__ = {one.name: one.annotation for one in run.__signature__.parameters.values()}  # type: ignore[attr-defined]
    return run


def _collect_servers(context: typer.Context, texts: list[str] | None) -> list[str]:
    """Collect `--mcp` from before and after the command, in order."""
    gathered: list[str] = context.meta.setdefault("pegboard.mcp", [])
    gathered += texts or []
    return texts or []


ServersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp",
        metavar="COMMAND-OR-URL",
        help="Connect an MCP server for this run; NAME=… names its pack; can be repeated, before or after a command.",
        callback=_collect_servers,
    ),
]

app = _Typer(
    cls=_SortedGroup,
    name="pegboard",
    help=_ROOT_HELP,
    context_settings=_SETTINGS,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def group(name: str, help_: str) -> typer.Typer:
    """Add a group of commands to the command line and return it."""
    commands = _Typer(
        cls=_Group, name=name, help=help_, context_settings=_SETTINGS, rich_markup_mode=None, no_args_is_help=True
    )

    @commands.callback()
    def options(packs: PacksOption = None, mcp: ServersOption = None) -> None:
        """Accept `--packs` and `--mcp` between the group and the command."""

    commands.info.help = help_
    app.add_typer(commands, short_help=help_)
    return commands


def _collect(context: typer.Context, folders: list[Path] | None) -> list[Path]:
    """Collect `--packs` from before and after the command, in order."""
    gathered: list[Path] = context.meta.setdefault("pegboard.packs", [])
    gathered += folders or []
    return folders or []


def _folder(text: str) -> Path:
    """Return a packs folder; the empty text of an unset variable would be the working directory."""
    if not text:
        raise typer.BadParameter(
            "The folder is empty. Pass a folder, such as --packs tools, or --packs . for this one."
        )
    return Path(text)


PacksOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--packs",
        metavar="DIR",
        help="Add a packs folder for this run; can be repeated, before or after a command.",
        callback=_collect,
        parser=_folder,  # A folder that can't be read is a problem like any other, reported by the scan.
    ),
]


def _collect_allowed(context: typer.Context, patterns: list[str] | None) -> list[str] | None:
    """Add `--tool-allow` from before the command to that after it."""
    before: list[str] | None = context.meta.get("pegboard.allow")
    return [*before, *patterns] if before and patterns else patterns


AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tool-allow",
        metavar="CSV",
        help="Allow only these tools: names and patterns such as fs.*, separated by commas; can be repeated.",
        callback=_collect_allowed,
    ),
]

MOST: Final = 1_000_000_000
"""Maximum of an option that is a number of items; larger numbers can exceed those of the database."""


def or_stdout(file: Path | None) -> Path | None:
    """Return the file of an option, or None, which means stdout, for `-`."""
    return None if file == Path("-") else file


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def open_runtime(context: typer.Context, tool_allow: Sequence[str] | None = None) -> Runtime:
    """Build the runtime of one command, with the packs folders of its command line."""
    from pegboard.cli import crash
    from pegboard.cli.output import begin_command
    from pegboard.runtime import Runtime

    begin_command()
    allow = ",".join(tool_allow) if tool_allow else None
    runtime = Runtime.from_environment(packs=context.meta.get("pegboard.packs", []), tool_allow=allow)
    crash.follow(runtime)
    context.call_on_close(lambda: _report_record(runtime))
    return runtime


def _report_record(runtime: Runtime) -> None:
    """Print once, when a command ends, which of its calls aren't recorded and why."""
    from pegboard.cli.output import narrate_problems

    narrate_problems(runtime.record_problems())


def scanned(
    context: typer.Context,
    tool_allow: Sequence[str] | None = None,
    *,
    connects: bool = False,
    tool: str | None = None,
    calls: bool = False,
) -> Runtime:
    """Build the runtime of one command, with the tools that its command line allows.

    Patterns of the allow list that match no tool are warnings on stderr.

    Args:
        context: The command.
        tool_allow: Values of `--tool-allow`.
        connects: Whether to connect to MCP servers.
        tool: The only tool or pack that the command uses; it may use all if None.
        calls: Whether it calls that tool, which may call tools of servers.
    """
    runtime = open_runtime(context, tool_allow or context.meta.get("pegboard.allow"))
    scan(context, runtime, connects=connects, tools=None if tool is None else [tool], calls=calls)
    return runtime


def scan(
    context: typer.Context, runtime: Runtime, *, connects: bool, tools: Collection[str] | None, calls: bool
) -> None:
    """Find the tools of a command, as `scanned` does.

    Args:
        context: The command.
        runtime: Its runtime.
        connects: Whether to connect to MCP servers.
        tools: The only tools or packs that the command uses; it may use all if None.
        calls: Whether it calls these tools.
    """
    runtime.tools.scan()
    if connects and (runtime.settings.mcp.servers or context.meta.get("pegboard.mcp")):
        from pegboard.cli import servers

        servers.connect(runtime, context.meta.get("pegboard.mcp", ()), tools, calls=calls)
        context.call_on_close(lambda: servers.close(runtime))
    if "pegboard.allow" in context.meta:  # Not while the shell completes a command line.
        from pegboard.cli.output import narrate_problems

        narrate_problems(runtime.tools.allow_problems())


def find(runtime: Runtime, name: str) -> ToolSpec:
    """Return the tool with this name, or print why it can't be used and exit."""
    from pegboard.cli.output import narrate, narrate_problems

    missing = runtime.tools.why_not(name)
    if missing is not None and missing.error is not None:
        narrate_problems(runtime.problems())
        narrate(message_of(missing.error) + advice_on(missing.error, runtime, name))
        raise typer.Exit(NOT_FOUND)
    spec = runtime.tools.get(name)
    assert spec is not None, "asked above"
    return spec


def refuse_beside(option: str, others: Mapping[str, object], reason: str) -> None:
    """Exit with a message if options that have no effect beside another one are given.

    Args:
        option: The other option, which is given.
        others: Values of the options by their names; None and False mean that an option isn't given.
        reason: Why they have no effect, after "because".
    """
    from pegboard.cli.output import narrate

    if given := [name for name, value in others.items() if value is not None and value is not False]:
        narrate(f"{', '.join(given)} can't be combined with {option} because {reason}.")
        raise typer.Exit(USAGE)


def refuse_json_beside_data(*, data: bool, json: bool) -> None:
    """Exit with a message if both `--data` and `--json` are given."""
    if data:
        refuse_beside("--data", {"--json": json}, "it prints only the data")


def recorded_call(runtime: Runtime, call_id: str) -> RecordedCall:
    """Return the recorded call whose id starts so, or print that there is none, or several, and exit."""
    from pegboard.cli.output import narrate

    call = runtime.activity.get(call_id)
    if call is None:
        narrate(f"{call_id} doesn't identify exactly one recorded call. `pegboard history` lists the ids.")
        raise typer.Exit(NOT_FOUND)
    return call


def message_of(error: ToolError) -> str:
    """Return the message of an error, without the problem of a server if this command has printed that."""
    from pegboard.cli.output import is_printed

    summary, _, problem = error.message.partition(". ")
    return f"{summary}." if error.detail == "not_connected" and is_printed(problem) else error.message


def advice_on(error: ToolError, runtime: Runtime, name: str) -> str:
    """Return the sentence to add to the message of an unknown tool or of a lack of memory; otherwise nothing.

    For an unknown tool, it says how to load its pack from this folder, or how to list the tools if the message names no
    similar one.
    """
    from pegboard.cli.unloaded import unloaded_pack
    from pegboard.results.advice import advice

    if error.detail == "out_of_memory" and not error.said:
        return f"{'' if error.message.endswith('.') else '.'} {advice(error)}"
    if error.code != "tool_not_found" or not error.message.startswith("No tool is named "):
        return ""
    listing = "" if "Nearest:" in error.message else " `pegboard tools list` lists the tools."
    return unloaded_pack(runtime, name) or listing


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"pegboard {pegboard.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    packs: PacksOption = None,
    mcp: ServersOption = None,
    tool_allow: AllowOption = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Open the app if the command line has no command."""
    if context.invoked_subcommand is None:
        from pegboard.cli.open import open_app

        allow = ",".join(tool_allow) if tool_allow else None
        raise typer.Exit(open_app(context.meta.get("pegboard.packs", []), allow, context.meta.get("pegboard.mcp", [])))
    context.meta["pegboard.allow"] = tool_allow


app.info.help = _ROOT_HELP
