"""`pegboard approve`."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pegboard.cli.brake import WaitingCall, open_questions, question_json
from pegboard.cli.root import NOT_FOUND, TOOL_FAILED, USAGE, JsonOption, app, open_runtime

if TYPE_CHECKING:
    from pegboard.brake import Answer, Question, Questions
    from pegboard.models import JsonObject
    from pegboard.runtime import Runtime


@app.command()
def approve(
    context: typer.Context,
    call: Annotated[str | None, typer.Argument(metavar="ID", help="Id of the waiting call to answer.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve the call.")] = False,
    session: Annotated[
        bool,
        typer.Option("--session", help="Approve the call and later ones of the tool in its session (`serve` only)."),
    ] = False,
    no: Annotated[
        str | None, typer.Option("--no", metavar="REASON", help="Reject the call; the agent reads why.")
    ] = None,
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="With --yes: run it with these arguments instead.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the calls of other agents that wait for approval, and answer them.

    On a terminal, each call is shown as it arrives: answer y, n or e to edit its arguments; for calls of `pegboard
    serve` also s, which allows the tool in that session. Press ctrl+c to end. While this runs, calls that need approval
    wait for it.

    Examples: `pegboard approve --json`, `pegboard approve 1f0c3a5b7d9e2468 --no "not in production"`.
    """
    from pegboard.cli.approval import can_ask
    from pegboard.cli.output import narrate, print_json, print_table
    from pegboard.data.json_text import write

    questions = open_questions()
    runtime = open_runtime(context)
    if call is not None:
        _answer(runtime, questions, call, yes=yes, session=session, no=no, args=args)
        return
    if yes or session or no is not None or args is not None:
        narrate("Name the call to answer: pegboard approve ID --yes. `pegboard approve --json` lists their ids.")
        raise typer.Exit(USAGE)
    if json:
        print_json([question_json(WaitingCall.of(runtime, question).shown) for question in questions.pending()])
        return
    if can_ask():
        asyncio.run(_answer_all(runtime, questions))
        return
    waiting = [WaitingCall.of(runtime, question).shown for question in questions.pending()]
    print_table(
        [(one.id, _age(one), one.agent, one.tool, write(one.args)) for one in waiting],
        ("ID", "WAITS", "AGENT", "TOOL", "ARGUMENTS"),
        empty="No call is waiting for approval.",
    )


def _answer(
    runtime: Runtime, questions: Questions, call: str, *, yes: bool, session: bool, no: str | None, args: str | None
) -> None:
    from pegboard.brake import Answer, AnsweredError, BrakeError
    from pegboard.cli.output import narrate

    if [yes, session, no is not None].count(True) != 1 or (args is not None and not yes):
        narrate("Answer with --yes, with --session or with --no REASON; --args needs --yes.")
        raise typer.Exit(USAGE)
    asked = next((one for one in questions.pending() if one.id == call), None)
    if session and asked is not None and asked.session_problem:
        narrate(f"The call was not answered because {asked.session_problem}. Use --yes.")
        raise typer.Exit(USAGE)
    if args is not None and asked is not None and asked.edit_problem:
        narrate(f"The call was not answered because {asked.edit_problem}. Use --yes without --args, or --no.")
        raise typer.Exit(USAGE)
    edited = None if args is None else _object(args)
    if edited is not None and asked is not None:
        edited, problem = WaitingCall.of(runtime, asked).arguments.restored(edited)
        if problem:
            narrate(f"The call was not answered: {problem}")
            raise typer.Exit(USAGE)
    approval = Answer("approve", args=edited, by=_BY, lasts="session" if session else "once")
    answer = approval if no is None else Answer("reject", no, by=_BY)
    try:
        questions.answer(call, answer)
    except AnsweredError as error:
        narrate(str(error))
        raise typer.Exit(NOT_FOUND) from error
    except BrakeError as error:
        narrate(str(error))
        raise typer.Exit(TOOL_FAILED) from error
    narrate(_done(answer))


_BY: Final = "pegboard approve"
_WHY: Final = "Reason for the agent (may be empty): "
_POLL_SECONDS: Final = 0.1


def _object(text: str) -> JsonObject:
    from pegboard.cli.output import narrate
    from pegboard.data.json_text import JsonTextError, parse

    try:
        value = parse(text)
    except JsonTextError as error:
        narrate(f"The call was not answered because the text of --args {error}.")
        raise typer.Exit(USAGE) from None
    if not isinstance(value, dict):
        narrate('The call was not answered because --args must be a JSON object such as {"path": "."}.')
        raise typer.Exit(USAGE)
    return value


async def _answer_all(runtime: Runtime, questions: Questions) -> None:
    from pegboard.brake import AnsweredError, BrakeError
    from pegboard.cli.approval import ask_line
    from pegboard.cli.output import narrate
    from pegboard.results.sizes import count

    left: set[str] = set()
    is_announced = False
    with questions.announce("approve"):
        while True:
            waiting = questions.pending()
            pending = [one for one in waiting if one.id not in left]
            if not pending:
                if not is_announced:
                    state = f"{count(len(waiting), 'call')} left unanswered." if waiting else "No call is waiting."
                    narrate(f"{state} Waiting for calls; press ctrl+c to end.")
                    is_announced = True
                await asyncio.sleep(0.1)
                continue
            question, is_announced = pending[0], False
            try:
                call = await asyncio.to_thread(WaitingCall.of, runtime, question)
                answer = await _decide(questions, call)
            except AnsweredError as error:
                narrate(str(error))
                # Input for this call must not answer the next one, whose moment an agent can choose.
                await ask_line("Press enter to continue.")
                continue
            if answer is None:
                left.add(question.id)
                narrate(f"Left unanswered. Answer it later with: pegboard approve {question.id} --yes")
                continue
            try:
                questions.answer(question.id, answer)
            except (AnsweredError, BrakeError) as error:
                narrate(str(error))
            else:
                narrate(_done(answer))


async def _decide(questions: Questions, call: WaitingCall) -> Answer | None:
    """Show a call and return the answer; None if it stays unanswered. An unknown answer is asked for again.

    Raises:
        AnsweredError: The call no longer waits.
    """
    from pegboard.brake import Answer
    from pegboard.cli.output import narrate
    from pegboard.results.clean import clean_line

    question = call.question
    args: JsonObject | None = None  # as they are shown
    while True:
        accepts_session = not question.session_problem and args is None
        accepts_edit = not question.edit_problem
        _show(call.shown, args)
        narrate(_meaning(accepts_session=accepts_session, accepts_edit=accepts_edit))
        keys = "/".join(("y", *("s" * accepts_session), "n", *("e" * accepts_edit)))
        # With the name, because long arguments can scroll it away and imitate the call of another tool.
        typed = (await _line(questions, question, f"Run {clean_line(question.tool)}? [{keys}] ")).casefold()
        if accepts_edit and typed in {"e", "edit"}:
            changed = await call.arguments.edit(call.shown.args if args is None else args)
            args = args if changed is None else changed
        elif typed in {"y", "yes"}:
            return Answer("approve", args=None if args is None else call.arguments.restored(args)[0], by=_BY)
        elif accepts_session and typed in {"s", "session"}:
            return Answer("approve", by=_BY, lasts="session")
        elif typed in {"n", "no"}:
            return Answer("reject", await _line(questions, question, _WHY), by=_BY)
        elif not typed:
            return None
        else:
            narrate(f"The call still waits: {clean_line(typed)!r} isn't an answer.")


def _meaning(*, accepts_session: bool, accepts_edit: bool) -> str:
    """Return the possible answers to a call, in words."""
    answers = (
        "y: run it",
        *(["s: run it, and allow the tool in this session"] * accepts_session),
        "n: reject it",
        *(["e: edit the arguments"] * accepts_edit),
        "enter: leave it unanswered",
    )
    return " · ".join(answers)


async def _line(questions: Questions, question: Question, text: str) -> str:
    """Ask for a line while a call waits.

    Raises:
        AnsweredError: It no longer waits.
    """
    from pegboard.brake import AnsweredError
    from pegboard.cli.approval import ask_line
    from pegboard.cli.output import narrate

    asking = asyncio.create_task(ask_line(text))
    try:
        while not (await asyncio.wait({asking}, timeout=_POLL_SECONDS))[0]:
            if not await asyncio.to_thread(questions.is_pending, question):
                narrate("")
                raise AnsweredError("The call is no longer waiting: it was answered, or it ended.")
        return asking.result().strip()
    finally:
        asking.cancel()
        await asyncio.wait({asking})  # until it reads the terminal no more


def _show(question: Question, args: JsonObject | None) -> None:
    from pegboard.cli.output import narrate
    from pegboard.results.arguments import arguments_text
    from pegboard.results.clean import clean, clean_line

    lines = [
        f"{clean_line(question.agent)} calls {clean_line(question.tool)} ({_age(question)} ago).",
        clean_line(question.reason),
        "Arguments:" if args is None else "Edited arguments:",
        clean(arguments_text(question.args if args is None else args)),
        "The agent's client may time out while the call waits.",
    ]
    narrate("\n".join(lines))


def _done(answer: Answer) -> str:
    if answer.kind != "approve":
        return "Rejected."
    return "Approved for this session." if answer.lasts == "session" else "Approved."


def _age(question: Question) -> str:
    return f"{max(0, time.time() - question.asked_at):.0f} s"
