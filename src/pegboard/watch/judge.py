"""Decisions on calls: rules with `ask` or `deny`, the pause, and the answers of people."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, cast

from pydantic import JsonValue

from pegboard.brake import RESUMED, Answer, AskedQuestion, BrakeError, Question, Questions
from pegboard.data.json_spans import spans
from pegboard.data.json_text import JsonTextError, write
from pegboard.gateway.rules import Rules
from pegboard.models import JsonObject, ToolCall
from pegboard.results.edits import edit_note
from pegboard.watch.connection import ClientConnection
from pegboard.watch.gate import FileMark, mark_of, rejections
from pegboard.watch.link import HOLD, PASS, REJECT
from pegboard.watch.messages import ambiguity, items, read
from pegboard.watch.record import moment

_MOST_RELEASED: Final = 10_000
_GONE: Final = {
    "cancelled": "The client cancelled the call.",
    "ended": "The server or the proxy ended while the call waited.",
}
"""Why a call is no longer held."""
_LONE_RETURN: Final = re.compile(rb"\r(?!\n)")
"""A line break to many servers, for which a call may follow it; JSON allows it between any two values."""


@dataclass
class _Held:
    """A call that waits for an answer."""

    connection: ClientConnection
    line: bytes
    key: str
    call: ToolCall
    at: float
    asked: AskedQuestion


@dataclass
class Judge:
    """Decisions on the messages of clients.

    Args:
        rules: The rules.
        rules_file: Their file.
        questions: The questions to people.
        redact: Returns arguments without secrets, or the same object if they contain none.
        wait: Seconds to wait for a person if no app is open.
        send: Called with the number of a message and the decision.
        approved: Called with the number of a message whose call a person approves, before its decision.
    """

    rules: Rules
    rules_file: str
    questions: Questions
    redact: Callable[[JsonObject], JsonValue]
    wait: float
    send: Callable[[int, bytes], None]
    approved: Callable[[int], object] = field(default=lambda _: None)
    _held: dict[int, _Held] = field(default_factory=dict)
    _released: dict[int, tuple[ClientConnection, list[str]]] = field(default_factory=dict)
    _harmless: FileMark = ()

    @property
    def is_waiting(self) -> bool:
        """Whether calls wait for an answer."""
        return bool(self._held)

    def decide(self, number: int, connection: ClientConnection, line: bytes, at: float) -> None:
        """Decide on a message, or ask a person."""
        self._report_harmless_rules()
        message = read(line)
        seen = connection.calls(message)
        calls = [(key, call) for key, call, _ in seen]
        note = next((note for *_, note in seen if note), "")
        if text := ambiguity(line):
            self._reject(number, connection, line, calls, at, text)
            return
        if note or not isinstance(message, dict | list):
            text = f"Rules can't be applied to it. {note or 'It is not a message.'}"
            self._reject(number, connection, line, calls, at, text)
            return
        if _LONE_RETURN.search(line.strip()):
            text = "It contains a carriage return, after which servers may read another message."
            self._reject(number, connection, line, calls, at, text)
            return
        self._decide(number, connection, line, calls, at)

    def _decide(
        self,
        number: int,
        connection: ClientConnection,
        line: bytes,
        calls: list[tuple[str, ToolCall]],
        at: float,
        *,
        is_held: bool = False,
    ) -> None:
        """Decide on the calls of a message, which may already be held."""
        state = self.questions.brake.state
        verdicts = [self._verdict(connection, call) for _, call in calls]
        denied = next((reason for action, reason in verdicts if action == "deny"), None)
        asking = next((reason for action, reason in verdicts if action == "ask"), None)
        if calls and denied is not None:
            self._reject(number, connection, line, calls, at, denied, is_held=is_held)
        elif calls and state == "stopped":
            text = "All calls from agents are stopped in Pegboard."
            self._reject(number, connection, line, calls, at, text, is_held=is_held)
        elif calls and (asking is not None or state == "paused"):
            if len(items(read(line))) > 1:
                text = "Calls in a batch can't wait for approval. Send them one by one."
                self._reject(number, connection, line, calls, at, text)
                return
            key, call = calls[0]
            question = Question(
                tool=call.name,
                args=call.args,
                agent=str(connection.agent),
                server="" if connection.worker == connection.server else connection.server,
                reason=asking or "Calls from agents are paused.",
                kind="paused" if asking is None else "ask",
                call=call.id,
                edit_problem=connection.edit_problem,
            )
            try:
                asked = self.questions.open(question, wait=self.wait)
            except BrakeError as error:
                self._reject(number, connection, line, calls, at, str(error), is_held=is_held)
                return
            if not is_held:
                connection.recorder.started(call, moment(at), waits=True)
                self.send(number, HOLD)
            self._held[number] = _Held(connection, line, key, call, at, asked)
            self.poll()
        else:
            self._release(number, connection, calls, at, PASS, is_held=is_held)

    def refuse(self, number: int, line: bytes) -> None:
        """Reject a message that can't be decided on, or whose middle wasn't received because too many others wait."""
        text = "The message was not forwarded because rules can't be applied to it."
        self.send(number, REJECT + rejections(line, text))

    def poll(self) -> None:
        """Look for answers."""
        for number, held in [*self._held.items()]:
            answer = held.asked.poll()
            if answer is not None and number in self._held:
                del self._held[number]
                self._apply(number, held, answer)

    def gone(self, number: int, reason: str, at: float) -> None:
        """Close the question of a call that won't be forwarded: its client cancelled it or has left."""
        text = _GONE.get(reason, "The client disconnected.")
        held = self._held.pop(number, None)
        if held is not None:
            held.asked.close(text)
            held.connection.rejected(held.call, held.at, text, "cancelled", time.time())
        elif number in self._released:
            connection, keys = self._released.pop(number)
            for key in keys:
                connection.cancel(key, at)

    def close(self) -> None:
        """Close all questions."""
        for number in [*self._held]:
            self.gone(number, "ended", 0.0)

    def _apply(self, number: int, held: _Held, answer: Answer) -> None:
        calls = [(held.key, held.call)]
        if answer.kind != "approve":
            said = answer.reason
            if answer.by_person:
                said = f"The user rejected this call.{f' They said: {said}' if said.strip() else ''}"
            self._reject(number, held.connection, held.line, calls, held.at, said, is_held=True)
            return
        if held.asked.question.kind == "paused" and answer.by == RESUMED:
            self._decide(number, held.connection, held.line, calls, held.at, is_held=True)
            return
        line: bytes | None = b""
        note, for_agent = "", b""
        if answer.args is not None:
            calls = [(held.key, held.call.model_copy(update={"args": answer.args}))]
            line = with_arguments(held.line, answer.args)
            if write(answer.args) != write(held.call.args):
                note = "The user edited the arguments."
                shown = cast("JsonObject", self.redact(answer.args))
                for_agent = b"\0" + edit_note(shown).encode("utf-8", "backslashreplace")
        action, reason = self._verdict(held.connection, calls[0][1])  # The rules may have changed meanwhile.
        if action == "deny" or line is None:
            text = reason or "The edit can't be applied."
            self._reject(number, held.connection, held.line, calls, held.at, text, is_held=True)
            return
        if answer.by_person:
            self.approved(number)
        self._release(number, held.connection, calls, held.at, PASS + line + for_agent, note, is_held=True)

    def _release(
        self,
        number: int,
        connection: ClientConnection,
        calls: list[tuple[str, ToolCall]],
        at: float,
        verdict: bytes,
        note: str = "",
        *,
        is_held: bool,
    ) -> None:
        released = time.time() if is_held else at
        for key, call in calls:
            connection.begin(key, call, at, note, released)
        if calls:
            self._released[number] = (connection, [key for key, _ in calls])
            if len(self._released) > _MOST_RELEASED:
                del self._released[next(iter(self._released))]
        self.send(number, verdict)

    def _reject(
        self,
        number: int,
        connection: ClientConnection,
        line: bytes,
        calls: list[tuple[str, ToolCall]],
        at: float,
        reason: str,
        *,
        is_held: bool = False,
    ) -> None:
        name = calls[0][1].name if calls else "The message"
        text = f"{name} was not called. {reason}"
        for _, call in calls:
            connection.rejected(call, at, text, released=time.time() if is_held else 0.0)
        self.send(number, REJECT + rejections(line, text))

    def _verdict(self, connection: ClientConnection, call: ToolCall) -> tuple[str, str]:
        """Return the action of a rule that holds a call, and its reason; `allow` if none does."""
        spec = connection.spec_named(call.name)
        try:
            verdict = self.rules.verdict(spec, call.model_copy(update={"source": "mcp"}))
        except Exception as error:  # noqa: BLE001 - a schema of the server must not disable a rule
            return "deny", f"The rules can't be applied to it ({type(error).__name__})."
        if self.rules.problems:
            return "deny", f"The rules can't be read: {self.rules.problems[0].message}"
        if verdict.rule is None or verdict.action == "allow":
            return "allow", ""
        return verdict.action, verdict.reason

    def _report_harmless_rules(self) -> None:
        """Report the state of the rules' file if no rule can hold a call, so that the proxy doesn't ask again."""
        mark = mark_of(self.rules_file)
        if mark is None or mark == self._harmless:
            return
        read_rules = self.rules.read()
        is_harmless = read_rules.problem is None and all(
            rule.action == "allow" or rule.scope == "ask" for rule in read_rules.rules
        )
        if is_harmless and mark == mark_of(self.rules_file):
            self._harmless = mark
            self.send(0, json.dumps(mark).encode())


def with_arguments(line: bytes, args: JsonObject) -> bytes | None:
    """Return a call with other arguments and otherwise unchanged; None if that is impossible."""
    try:
        text = line.decode().strip()
        root = spans(text)
        arguments, params = root.at("params", "arguments"), root.at("params")
    except (UnicodeDecodeError, JsonTextError):
        return None
    new = json.dumps(args)
    if arguments is not None:
        return f"{text[: arguments.start]}{new}{text[arguments.end :]}".encode()
    if params is None or params.members is None:
        return None
    comma = "," if params.members else ""
    return f'{text[: params.start + 1]}"arguments":{new}{comma}{text[params.start + 1 :]}'.encode()
