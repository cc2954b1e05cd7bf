"""`pegboard ask`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from pegboard.cli.root import (
    INTERRUPTED,
    OK,
    PROVIDER,
    TOOL_FAILED,
    USAGE,
    AllowOption,
    JsonOption,
    PacksOption,
    app,
    refuse_beside,
    scanned,
)
from pegboard.cli.servers import ElicitOption, answer_questions

if TYPE_CHECKING:
    from pegboard.models import ToolResult
    from pegboard.models.ask import AskEvent, Outcome
    from pegboard.runtime import Runtime

_LIMITS = {
    "size": ". The turn reached `turn_bytes` or `turn_calls` in [ask]. Its calls were not run.",
    "tokens": ". The limit is `tokens` in [ask].",
    "time": ". The limit is `seconds` in [ask].",
    "steps": ". The limit is `steps` in [ask].",
    "invalid_args": ". The model's calls were invalid several times in a row.",
    "length": ". The answer is incomplete: the model reached its own limit of tokens.",
    "filter": ". The answer is incomplete: the provider's content filter ended it.",
    "unknown": ". The answer may be incomplete: the provider ended it for an unknown reason.",
}
_UNASKED = "can't ask for approval"
"""Part of the message of a call that was rejected because there is no terminal."""
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class _AskCommand(TyperCommand):
    """Command whose `--with-tools` has an optional value, which may be a word of its own: `--with-tools false`."""

    # typer has its own contexts, and the name of the class that the parser expects differs by version.
    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        end = args.index("--") if "--" in args else len(args)
        joined: list[str] = []
        for word in args[:end]:
            if joined and joined[-1] == "--with-tools" and word.casefold() in (*_TRUE, *_FALSE):
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        joined = [f"{word}=true" if word == "--with-tools" else word for word in joined]
        return super().parse_args(ctx, [*joined, *args[end:]])


@app.command(cls=_AskCommand)
def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question; - reads it from stdin.")],
    with_tools: Annotated[
        str,
        typer.Option("--with-tools", metavar="[true|false]", help="Let the model use tools, or not; true by default."),
    ] = "true",
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Continue this session, or start it.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="PROVIDER:NAME", help="Use this model instead of the configured one."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url",
            metavar="URL",
            help="Use this OpenAI-compatible server for the model. The provider's key is sent there.",
        ),
    ] = None,
    json: JsonOption = False,
    approve: Annotated[
        list[str] | None,
        typer.Option(
            "--approve",
            metavar="PATTERN",
            help="Approve calls of matching tools in advance, unless a rule denies them; can be repeated.",
        ),
    ] = None,
    elicit: ElicitOption = None,
    tool_allow: AllowOption = None,
    packs: PacksOption = None,
) -> None:
    """Ask a language model, which can use the tools. Without a configured model, the built-in offline model answers.

    Read-only tools run. Others run if a rule in the file `approvals` of `pegboard paths` or --approve allows them. On a
    terminal, Pegboard asks you about the rest; elsewhere they are rejected.
    """
    import asyncio

    from pegboard.cli.output import narrate, narrate_problems, print_json
    from pegboard.errors import SessionError, StoreError, explained

    tools = with_tools.casefold()
    if tools not in (*_TRUE, *_FALSE):
        raise typer.BadParameter(f"--with-tools must be true or false, not {with_tools!r}.", param_hint="--with-tools")
    if tools in _FALSE:
        refuse_beside("--with-tools false", {"--approve": approve}, "the model can call no tools")
    try:
        # Not as text: in the locale C, Python accepts any bytes.
        text = sys.stdin.buffer.read().decode().replace("\r\n", "\n") if question == "-" else question
    except UnicodeDecodeError as error:
        raise typer.BadParameter("Standard input is not UTF-8.", param_hint="QUESTION") from error
    if not text.strip():
        raise typer.BadParameter("The question is empty.", param_hint="QUESTION")
    runtime = scanned(context, tool_allow, connects=True)
    if base_url is not None and runtime.models.is_offline(model):
        message = f"The offline model has no server, so {base_url!r} would not be used. Add --model PROVIDER:NAME."
        raise typer.BadParameter(message, param_hint="--base-url")
    output = _AskOutput(streams=not json and sys.stdout.isatty())
    answer_questions(context, runtime, elicit, output.turns)
    narrate_problems(runtime.problems(packs=False))
    if approve:
        narrate_problems(runtime.rules.approve_in_advance([one.strip() for text in approve for one in text.split(",")]))
    try:
        outcome, interruption = asyncio.run(
            _run(runtime, text, output, session=session, model=model, base_url=base_url, with_tools=tools in _TRUE)
        )
    except SessionError as error:
        narrate(str(error))
        raise typer.Exit(USAGE) from error
    except StoreError as error:
        narrate(explained(error, "The session can't be saved"))
        raise typer.Exit(TOOL_FAILED) from error
    if json:
        print_json(outcome)
    else:
        output.answer(outcome)
    if unasked := _unasked(outcome):
        narrate(f"To allow such a call, add a rule (`pegboard rules add --help`) or pass --approve {unasked}")
    if not json and session is None and outcome.stopped_by != "model_error" and runtime.unrecorded() is None:
        options = "" if tools in _TRUE else " --with-tools false"
        narrate(_continuation(outcome.session_id, model, options, has_base_url=base_url is not None))
    raise typer.Exit(interruption or _exit_code(outcome))


def _continuation(session: str, model: str | None, options: str, *, has_base_url: bool) -> str:
    """Return a line with the command that continues a session with the same model; its URL may contain a password."""
    import shlex

    same_model = f" --model {shlex.quote(model)}" if model else ""
    same_server = ' --base-url "…"' if has_base_url else ""
    return f'To continue: pegboard ask --session {session}{options}{same_model}{same_server} "…"'


def _unasked(outcome: Outcome) -> str:
    """Return the first tool whose call was rejected because no terminal could ask for approval, for a shell."""
    import shlex

    for one in outcome.tool_results:
        error = one.error
        if error is not None and error.detail == "denied" and not error.said and _UNASKED in error.message:
            return _clean_line(shlex.quote(one.tool))
    return ""


def _exit_code(outcome: Outcome) -> int:
    return {"interrupted": INTERRUPTED, "model_error": PROVIDER}.get(outcome.stopped_by, OK)


async def _run(
    runtime: Runtime,
    text: str,
    output: _AskOutput,
    *,
    session: str | None,
    model: str | None,
    base_url: str | None,
    with_tools: bool,
) -> tuple[Outcome, int]:
    """Ask; the first ctrl+c interrupts, a second one ends the program.

    Returns:
        The outcome, and the exit code if a signal interrupted it, else 0.
    """
    from contextlib import aclosing
    from functools import partial

    from pegboard.cli.approval import TerminalApprover, can_ask
    from pegboard.cli.interruption import interruptible
    from pegboard.models.ask import AskFinished

    # The user named both the provider, with its key, and the server.
    asking = runtime.ask(session, model=model, base_url=base_url, with_tools=with_tools, send_key=True)
    if can_ask():
        runtime.rules.approve_with(TerminalApprover(runtime, output.turns))
    outcome: Outcome | None = None
    with interruptible(asking.interrupt) as interruption:
        async with runtime, aclosing(asking.run(text)) as events:
            async for event in events:
                output.turns.write(partial(output.event, event))
                if isinstance(event, AskFinished):
                    outcome = event.outcome
    assert outcome is not None, "an ask always ends with AskFinished"
    return outcome, interruption.exit_code if interruption and outcome.stopped_by == "interrupted" else 0


class _AskOutput:
    """Output while the model works: text on stdout if it is a terminal, calls and logs on stderr.

    Args:
        streams: Whether to print the text as it arrives.

    Attributes:
        turns: The turns of the terminal's questions.
    """

    def __init__(self, *, streams: bool) -> None:
        from pegboard.cli.approval import TerminalTurns

        self.turns = TerminalTurns(self.end_line)
        self._streams = streams
        self._in_line = False
        self._is_new_turn = False
        self._printed: list[str] = []
        """Text of the last turn with any, without its thinking."""

    def event(self, event: AskEvent) -> None:
        """Print an event."""
        from pegboard.cli.output import narrate, narrate_log
        from pegboard.models import Finished, Log, Started
        from pegboard.models.ask import CallHappened, CallProposed, ModelSaid, ToolAnswered, TurnStarted, Waiting
        from pegboard.models.conversation import TextDelta, ThinkingEnded, TurnEnded

        match event:
            case ModelSaid(event=TextDelta(text=text)):
                self._text(text)
            case TurnStarted():
                self._is_new_turn = True
            case ModelSaid(event=TurnEnded()):
                self.end_line()
            case ModelSaid(event=ThinkingEnded()) if self._streams:
                self.end_line()
                self._printed.clear()
                narrate("The text above is the model's thinking. Its answer:")
            case CallProposed(call=call):
                narrate(f"→ {_clean_line(call.name)} {_compact(call.args)}")
            case CallHappened(event=Log(text=text)):
                narrate_log(text)
            case CallHappened(call_id=outer, event=Started(call=call, owner=owner)) if owner != outer:
                narrate(f"  → {_clean_line(call.name)} {_compact(call.args)}")
            case CallHappened(call_id=outer, event=Finished(call=call, result=result, owner=owner)) if owner != outer:
                narrate(f"  ← {_clean_line(call.name)} {_result_summary(result)}")
            case ToolAnswered(call=call, result=result):
                narrate(f"← {_clean_line(call.name)} {_result_summary(result)}")
            case Waiting():
                narrate("waiting: another process is asking in this session")

    def answer(self, outcome: Outcome) -> None:
        """Print the rest of the answer, and how the ask ended."""
        from pegboard.cli.output import narrate, print_data

        self.end_line()
        # A text that replaces an empty answer of the model didn't stream.
        if outcome.answer and outcome.answer.strip() != "".join(self._printed).strip():
            print_data(outcome.answer)
        if outcome.model_error is not None:
            error = outcome.model_error
            narrate(f"{error.code}: {error.message}{' ' + error.fix if error.fix else ''}")
        elif outcome.stopped_by != "answer":
            narrate(f"stopped by: {outcome.stopped_by}{_LIMITS.get(outcome.stopped_by, '')}")

    def _text(self, text: str) -> None:
        from pegboard.cli.output import end_log_line, print_text

        if self._streams and text:
            end_log_line()
            print_text(text)
            if self._is_new_turn and text.strip():
                self._is_new_turn = False
                self._printed.clear()
            self._printed.append(text)
            self._in_line = not text.endswith("\n")

    def end_line(self) -> None:
        """End the line of text or log output that the last event left open."""
        if self._in_line:
            print(flush=True)
            self._in_line = False


def _clean_line(text: str) -> str:
    from pegboard.results.clean import clean_line

    return clean_line(text)


def _result_summary(result: ToolResult) -> str:
    if result.error is not None:
        return _clean_line(f"{result.error.code}: {result.error.message}")
    from pegboard.results.sizes import duration

    return "cached" if result.meta.cached else duration(result.meta.duration_ms)


def _compact(value: object) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:199]}…"
