"""`pegboard check ask`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.check_reports import JunitOption, PatternArgument, checks_of, collect, conclude, nothing, print_report
from pegboard.cli.root import TOOL_FAILED, USAGE, AllowOption, JsonOption, PacksOption, scanned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pegboard.checks.model import QuestionReport


def ask(
    context: typer.Context,
    pattern: PatternArgument = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="PROVIDER:NAME", help="Ask this model; can be repeated to compare models."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="Use this OpenAI-compatible server for the models."),
    ] = None,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", help="Ask each question N times.", min=1, max=1000)
    ] = 1,
    at_least: Annotated[
        float, typer.Option("--at-least", metavar="PERCENT", help="How often the call must be made.", min=0, max=100)
    ] = 100.0,
    junit: JunitOption = None,
    tool_allow: AllowOption = None,
    json: JsonOption = False,
    packs: PacksOption = None,
) -> None:
    """Ask models the questions of checks; exit with 1 if a model doesn't make the expected call.

    The expected call is not run. Other calls are, if their tool is read-only or a rule allows them. Example: `pegboard
    check ask --model openai:gpt-5 --model ollama:qwen3 --repeat 5`.
    """
    from pegboard.checks.questions import QuestionRunner
    from pegboard.cli.output import narrate, narrate_problems
    from pegboard.errors import SessionError, StoreError

    runtime = scanned(context, tool_allow, connects=True)
    models: Sequence[str | None] = model or [None]
    if base_url is not None and any(runtime.models.is_offline(one) for one in models):
        message = f"The offline model has no server, so {base_url!r} would not be used. Add --model PROVIDER:NAME."
        raise typer.BadParameter(message, param_hint="--base-url")
    files = checks_of(runtime)
    found, invalid = files.list(pattern)
    narrate_problems((*runtime.problems(packs=False), *invalid))
    checks = [one for one in found if one.questions]
    if not checks and not invalid:
        narrate(nothing(pattern) if not found else "No check has a question. `pegboard guide checks` explains them.")
        if pattern is not None:
            raise typer.Exit(USAGE)
    # The user named the model and its server.
    runner = QuestionRunner(runtime, files, base_url=base_url, repeat=repeat, at_least=at_least, send_key=True)
    try:
        reports, interruption = collect(runtime, runner.run(checks, models), None if json else _print)
    except (SessionError, StoreError) as error:
        narrate(f"The sessions of the questions can't be saved: {error}")
        raise typer.Exit(TOOL_FAILED) from error
    conclude(reports, invalid, junit=junit, json=json, interruption=interruption)


def _print(report: QuestionReport) -> None:
    """Print a report, how often the call was made, and which session shows a time that it was not."""
    from pegboard.cli.output import print_text
    from pegboard.results.sizes import count

    print_report(report)
    if report.asked:
        tokens = f", {count(report.tokens, 'token')}" if report.tokens else ""
        session = f", see the session {report.session}" if report.session else ""
        print_text(f"    {report.made} of {report.asked} times{tokens}{session}\n")
