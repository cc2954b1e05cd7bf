"""`pegboard rules list | test | add | delete | move`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from pegboard.cli.arguments import ArgOption, ArgsOption, ArgumentError, NameArgument, complete_tools, read_arguments
from pegboard.cli.root import TOOL_FAILED, USAGE, JsonOption, PacksOption, find, group, open_runtime, scanned

if TYPE_CHECKING:
    from collections.abc import Callable

    from pegboard.models import JsonObject
    from pegboard.models.rule import Rule, RuleFile
    from pegboard.runtime import Runtime

rules = group("rules", "Decide which calls of models and other agents run, ask first, or are rejected.")

NumberArgument = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="Number of the rule in `rules list`.")]


@rules.command("list")
def list_(context: typer.Context, json: JsonOption = False, packs: PacksOption = None) -> None:
    """List the rules in their order: the last one that matches a call applies, but a matching deny always does."""
    from pegboard.cli.output import narrate_problems, print_json, print_table

    runtime = scanned(context)
    found = _read(runtime)
    narrate_problems(runtime.rules.problems(missing=True))
    if json:
        print_json([{"number": number, **_as_json(rule)} for number, rule in enumerate(found.rules, 1)])
        return
    print_table(
        [(str(number), str(rule)) for number, rule in enumerate(found.rules, 1)],
        ("", "RULE"),
        empty="No rules: read-only tools run, all others ask for approval. `pegboard rules add` adds one.",
    )


@rules.command("test")
def try_(
    context: typer.Context,
    name: NameArgument,
    args: ArgsOption = None,
    arg: ArgOption = None,
    client: Annotated[bool, typer.Option("--client", help="Test a call of an MCP client, not of a model.")] = False,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Print whether a call of a model would run, ask first, or be rejected, and why; don't run it.

    Example: `pegboard rules test fs.read_file --arg path=a.txt`.
    """
    from pegboard.cli.output import narrate, narrate_problems, print_json, print_text
    from pegboard.errors import FormFaults
    from pegboard.models import ToolCall
    from pegboard.results.clean import clean_line

    runtime = scanned(context, connects=True, tool=name)
    spec = find(runtime, name)
    _read(runtime)
    narrate_problems(runtime.rules.problems(missing=False))
    try:
        arguments = read_arguments(runtime, spec, args, arg or [])
    except ArgumentError as error:
        _fail(str(error), USAGE)
    try:
        arguments = runtime.tools.prepare(spec, arguments)
    except FormFaults as faults:
        narrate(f"note: the call fails because its arguments are invalid: {faults}")
    verdict = runtime.rules.verdict(ToolCall(name=spec.name, args=arguments, source="mcp" if client else "ask"))
    assert verdict is not None, "the tool exists"
    number = None if verdict.rule is None else verdict.rule + 1
    if json:
        print_json({"action": verdict.action, "reason": verdict.reason, "rule": number})
        return
    by = f" (rule {number})" if number else ""
    print_text(f"{verdict.action}: {clean_line(verdict.reason)}{by}\n")


@rules.command()
def add(
    context: typer.Context,
    action: Annotated[
        Literal["allow", "ask", "deny"], typer.Argument(metavar="ACTION", help="What happens to the calls.")
    ],
    tools: Annotated[
        list[str],
        typer.Argument(
            metavar="TOOL", help="Names of tools, or patterns such as 'fs.*'.", autocompletion=complete_tools
        ),
    ],
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="ARGUMENT=PATTERN", help="Only calls whose argument matches; can be repeated."),
    ] = None,
    exactly: Annotated[
        str | None, typer.Option("--exactly", metavar="JSON", help="With allow: only calls with these arguments.")
    ] = None,
    scope: Annotated[
        Literal["ask", "mcp"] | None,
        typer.Option("--scope", help="Only calls of models (ask) or of MCP clients (mcp)."),
    ] = None,
    packs: PacksOption = None,
) -> None:
    """Add a rule after the others, so that it precedes them.

    Examples: `pegboard rules add allow fs.read_file --where 'path=src/**'`, `pegboard rules add deny 'shell.*'`.
    """
    from pydantic import ValidationError

    from pegboard.cli.output import narrate_problems
    from pegboard.models.rule import Rule

    if "" in tools:
        _fail("The rule was not added: the name of its tool is empty.", USAGE)
    patterns: dict[str, list[str]] = {}
    for pair in where or ():
        name, found, pattern = pair.partition("=")
        if not found or not name:
            _fail(f"--where {pair} is not ARGUMENT=PATTERN.", USAGE)
        patterns.setdefault(name, []).append(pattern)
    try:
        rule = Rule.model_validate({action: tools, "where": patterns, "exactly": exactly, "scope": scope})
    except ValidationError as error:
        reasons = "; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors())
        _fail(f"The rule was not added: it {reasons}.", USAGE)
    runtime = scanned(context)
    known = runtime.rules.problems(missing=True)
    _change(runtime, lambda _: runtime.rules.add(None, rule))
    narrate_problems(problem for problem in runtime.rules.problems(missing=True) if problem not in known)


@rules.command()
def delete(context: typer.Context, number: NumberArgument, packs: PacksOption = None) -> None:
    """Delete a rule and the comments directly above and below it."""
    runtime = open_runtime(context)
    _change(runtime, lambda seen: runtime.rules.remove(seen, _index(seen, number)))


@rules.command()
def move(
    context: typer.Context,
    number: NumberArgument,
    to: Annotated[int, typer.Argument(metavar="TO", min=1, help="Its new number.")],
    packs: PacksOption = None,
) -> None:
    """Move a rule, because the last one that matches a call applies."""
    runtime = open_runtime(context)
    _change(runtime, lambda seen: runtime.rules.move(seen, _index(seen, number), _index(seen, to)))


def _read(runtime: Runtime) -> RuleFile:
    """Return the rules; exit if their file can't be used."""
    found = runtime.rules.read()
    if found.problem is not None:
        _fail(str(found.problem), TOOL_FAILED)
    return found


def _change(runtime: Runtime, change: Callable[[RuleFile], object]) -> None:
    """Change the rules; exit if that fails."""
    from pegboard.errors import RulesError

    try:
        change(_read(runtime))
    except RulesError as error:
        _fail(str(error), TOOL_FAILED)


def _index(found: RuleFile, number: int) -> int:
    """Return the index of a rule by its number; exit if there is none."""
    if number > len(found.rules):
        _fail(f"There is no rule {number}. `pegboard rules list` lists the rules.", USAGE)
    return number - 1


def _as_json(rule: Rule) -> JsonObject:
    return {"action": rule.action, "tools": [*rule.tools]} | rule.model_dump(
        mode="json", include={"where", "exactly", "scope"}
    )


def _fail(message: str, code: int) -> NoReturn:
    from pegboard.cli.output import narrate
    from pegboard.results.clean import clean_line

    narrate(clean_line(message))
    raise typer.Exit(code)
