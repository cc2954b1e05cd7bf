"""Calls that wait for a person, asked by one process and answered by another.

A question is a file. An answer is a second file, which is created with its whole content and never replaced: of several
answers the first one exists, and the others fail. The process that asked closes a question in the same way, so a call
that was cancelled can't be approved, and an approved one can't be approved again. Answers stay for a while, without the
arguments, so that a late answer fails too. Secrets stay in the memory of the process that asks, which puts them back
into edited arguments.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pegboard import storage
from pegboard.brake.presence import Presence, is_anyone_present
from pegboard.brake.question import Answer, Question, RuleOutcome
from pegboard.brake.state import Brake
from pegboard.data.mask import moved_secret, restored
from pegboard.errors import PegboardError
from pegboard.until_done import until_done

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.models import JsonObject

NOT_SHOWN: Final = "No Pegboard app is open and `pegboard approve` is not running, so no one can approve it."
"""Reason of the rejection of a call that no process shows to a person."""
RESUMED: Final = "pegboard resume"
"""Author of the approval of a call that only waited because of a pause."""
RULE: Final = "a new rule"
"""Author of the approval of a call that a rule allows that was added while it waited."""

_POLL_SECONDS: Final = 0.03
_PRESENCE_SECONDS: Final = 0.5
_KEPT_SECONDS: Final = 3600.0
"""Time for which answers are kept, so that late ones fail."""
_SWEEP_SECONDS: Final = 60.0
"""Pause between two looks for old answers: there are thousands if many calls were rejected or held."""
_LARGEST: Final = 64 * 2**20
_ADDED_FIELDS: Final = {"edit_problem", "has_session", "is_session_exact", "lasts", "rule"}
"""Fields that questions and answers of earlier versions don't have."""


class BrakeError(PegboardError):
    """A question can't be asked or answered; the message says why."""


class AnsweredError(BrakeError):
    """A question is no longer pending: someone answered it first, or its call ended."""


class Questions:
    """The questions of this user. All methods can be called on any thread, and read and write small files.

    Args:
        state: The state folder.
        redact: Returns arguments without secrets, or the same object if they contain none; for processes that ask.
    """

    def __init__(self, state: Path, redact: Callable[[JsonObject], JsonValue] | None = None) -> None:
        self._redact = redact
        self._folder = state / "questions"
        self._present = state / "questions" / "open"
        self.brake = Brake(state / "brake.json")
        self._swept_at = -math.inf

    # Asking

    def open(self, question: Question, *, wait: float = 0.0) -> AskedQuestion:
        """Ask; the caller then polls the returned object.

        Args:
            question: The question.
            wait: Seconds after which the call is rejected if no process shows it to a person. A call that waits only
                because of a pause waits until it ends.

        Raises:
            BrakeError: The question can't be written.
        """
        try:
            storage.make_folder(self._folder)
            storage.tighten(self._folder)
            self._sweep()
            shown = question.args if self._redact is None else cast("JsonObject", self._redact(question.args))
            content = json.dumps(asdict(replace(question, args=shown))).encode()
            storage.write(self._question_file(question.id), content, replace=False, durable=False)
        except (OSError, ValueError, RecursionError) as error:
            raise BrakeError(f"The question can't be written: {error}.") from error
        return AskedQuestion(self, question, shown, wait)

    async def ask(self, question: Question, *, wait: float = 0.0) -> Answer:
        """Ask and return the answer; if the task is cancelled, close the question.

        Raises:
            BrakeError: The question can't be written.
        """
        opened: list[AskedQuestion] = []
        try:
            # Until it is written: a question that no one polls or closes would wait as long as this process runs.
            await until_done(asyncio.to_thread(lambda: opened.append(self.open(question, wait=wait))))
            [asked] = opened
            while (answer := await asyncio.to_thread(asked.poll)) is None:  # noqa: ASYNC110 - another process answers
                await asyncio.sleep(_POLL_SECONDS)
        except BaseException:
            for asked in opened:
                asked.close("The call was cancelled.")
            raise
        return answer

    def is_anyone_present(self) -> bool:
        """Return whether a process that shows questions to a person runs."""
        return is_anyone_present(self._present)

    # Answering

    def announce(self, kind: str = "app") -> Presence:
        """Announce that this process shows questions to a person, until the returned object is closed.

        Raises:
            OSError: It can't be announced.
        """
        storage.make_folder(self._folder)
        storage.tighten(self._folder)
        return Presence(self._present, kind)

    def pending(self) -> tuple[Question, ...]:
        """Return the questions that wait for an answer, the oldest first."""
        found = [question for question in self._all() if not self._answer_file(question.id).exists()]
        return tuple(sorted(found, key=lambda question: question.asked_at))

    def is_pending(self, question: Question) -> bool:
        """Return whether a question still waits for an answer."""
        return (
            question.is_asker_running
            and self._question_file(question.id).exists()
            and not self._answer_file(question.id).exists()
        )

    def answer(self, id_: str, answer: Answer) -> None:
        """Answer a question.

        Raises:
            AnsweredError: It is no longer pending.
            BrakeError: The answer can't be written.
        """
        if not id_.isalnum():
            raise AnsweredError(f"No call {id_!r} is waiting.")
        question = _read_question(self._question_file(id_))
        if question is None or not question.is_asker_running:
            raise AnsweredError("The call is no longer waiting: it was answered, or it ended.")
        try:
            storage.write(self._answer_file(id_), _content(answer), replace=False, durable=False)
        except FileExistsError:
            raise AnsweredError("The call is no longer waiting: it was answered, or it ended.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise BrakeError(f"The answer can't be written: {error}.") from error

    def subscribe(self, changed: Callable[[], object], seconds: float = 0.1) -> Callable[[], None]:
        """Call a function, on a thread of its own, whenever questions or the pause may have changed.

        A question changes also when the process that asked it is killed.

        Args:
            changed: The function.
            seconds: Interval in which the folder is looked at.

        Returns:
            A function that ends this.
        """
        ended = threading.Event()
        first = self._mark()  # Not on the thread, which may start after a change.

        def watch() -> None:
            seen, asked = first, self.pending()
            while not ended.wait(seconds):
                now = self._mark()
                if now != seen or not all(question.is_asker_running for question in asked):
                    seen, asked = now, self.pending()
                    changed()

        threading.Thread(target=watch, name="pegboard-questions", daemon=True).start()
        return ended.set

    # Files

    def read_answer(self, id_: str) -> Answer | None:
        """Return the answer to a question; None if there is none yet."""
        try:
            descriptor = os.open(self._answer_file(id_), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as error:
            return _refusal(f"The answer can't be read: {error.strerror}.")
        with os.fdopen(descriptor, "rb") as file:
            if os.fstat(descriptor).st_uid != os.getuid():
                return _refusal("The answer was written by another user.")
            try:
                content = json.loads(file.read(_LARGEST))
                names = {one.name for one in fields(Answer)} - (_ADDED_FIELDS - content.keys())
                return _answer_of({name: content[name] for name in names})
            except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
                return _refusal("The answer can't be read.")

    def finish(self, id_: str) -> None:
        """Remove a question that was answered; keep the answer without its arguments and its rule.

        The question is removed last: if this process is killed before, others find it and remove both.
        """
        with suppress(OSError):
            answer = self.read_answer(id_)
            if answer is not None and (answer.args is not None or answer.rule is not None):
                content = _content(replace(answer, args=None, rule=None))
                storage.write(self._answer_file(id_), content, durable=False)
        with suppress(OSError):
            self._question_file(id_).unlink(missing_ok=True)

    def report_rule(self, call: str, outcome: RuleOutcome) -> None:
        """Report the outcome of the rule of an answer.

        Args:
            call: Id of the call in the history.
            outcome: The outcome.

        Raises:
            OSError: It can't be written.
        """
        storage.write(self._rule_file(call), json.dumps(asdict(outcome)).encode(), durable=False)

    def rule_outcome(self, question: Question) -> RuleOutcome | None:
        """Return the outcome of the rule of an answer to a question; None if it is unknown."""
        if not question.call.isalnum():
            return None
        try:
            content = json.loads(self._rule_file(question.call).read_bytes())
            return RuleOutcome(str(content["problem"]), bool(content["is_exact"]))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def _question_file(self, id_: str) -> Path:
        return self._folder / f"{id_}.question"

    def _answer_file(self, id_: str) -> Path:
        return self._folder / f"{id_}.answer"

    def _rule_file(self, call: str) -> Path:
        return self._folder / f"{call}.rule"

    def _all(self) -> Iterator[Question]:
        """Yield the questions of processes that run; remove those of killed ones, which contain arguments."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - names suffice
        except OSError:
            return
        for name in names:
            if name.startswith(".") or not name.endswith(".question"):
                continue
            question = _read_question(self._folder / name)
            if question is None:
                continue
            if question.is_asker_running:
                yield question
            else:
                self._remove(name.removesuffix(".question"))

    def _remove(self, id_: str) -> None:
        """Remove a question and its answer, in the same order as `finish`."""
        with suppress(OSError):
            self._answer_file(id_).unlink(missing_ok=True)
            self._question_file(id_).unlink(missing_ok=True)

    def _mark(self) -> tuple[object, ...]:
        marks: list[object] = []
        for path in (self._folder, self.brake.file):
            try:
                status = path.stat()
                marks.append((status.st_mtime_ns, status.st_ino))
            except OSError:
                marks.append(None)
        return tuple(marks)

    def _sweep(self) -> None:
        """Remove the questions that killed processes left, and from time to time old answers and drafts."""
        for _ in self._all():
            pass
        now = time.monotonic()
        if now - self._swept_at < _SWEEP_SECONDS:
            return
        self._swept_at = now
        oldest = time.time() - _KEPT_SECONDS
        for name in os.listdir(self._folder):  # noqa: PTH208 - names suffice
            if name.endswith((".answer", ".rule")) or name.startswith("."):
                with suppress(OSError):
                    file = self._folder / name
                    if file.stat().st_mtime < oldest:
                        file.unlink()


class AskedQuestion:
    """A question that this process asked. Poll it until it has an answer, or close it.

    Args:
        questions: The questions.
        question: The question, with the secrets of its arguments.
        shown: The arguments without secrets; the same object if they contain none.
        wait: Seconds after which the call is rejected if no process shows it to a person.
    """

    def __init__(self, questions: Questions, question: Question, shown: JsonObject, wait: float) -> None:
        self._questions = questions
        self._shown = shown
        self._wait = wait
        self._alone_since: float | None = None
        self._checked_at = 0.0
        self._answer: Answer | None = None
        self.question = question

    def poll(self) -> Answer | None:
        """Return the answer; None while there is none."""
        if self._answer is not None:
            return self._answer
        found = self._questions.read_answer(self.question.id)
        if found is None:
            found = self._own_answer()
        if found is not None:
            self._questions.finish(self.question.id)
            self._answer = self._with_secrets(found)
        return self._answer

    def close(self, reason: str) -> Answer:
        """Close the question; return the answer if someone was faster."""
        if self._answer is None:
            self._answer = self._with_secrets(self._settle(Answer("closed", reason, by_person=False)))
            self._questions.finish(self.question.id)
        return self._answer

    def _with_secrets(self, answer: Answer) -> Answer:
        """Return an answer with the secrets that its author saw masked; a rejection if they can't be put back."""
        if answer.args is None:
            return answer
        problem = moved_secret(answer.args, self._shown)
        if problem:
            return _refusal(f"The edited arguments can't be used. {problem}", by=answer.by)
        return replace(answer, args=cast("JsonObject", restored(answer.args, self._shown, self.question.args)))

    def _own_answer(self) -> Answer | None:
        """Answer the question because of the pause, or because no process can show it."""
        now = time.monotonic()
        if now - self._checked_at < _PRESENCE_SECONDS and self.question.kind == "ask" and self._alone_since is None:
            return None
        state = self._questions.brake.state
        if state == "stopped":
            return self._settle(_refusal("All calls from agents are stopped in Pegboard.", by="pegboard stop"))
        if self.question.kind == "paused":
            return self._settle(Answer("approve", by=RESUMED, by_person=False)) if state == "running" else None
        self._checked_at = now
        if self._questions.is_anyone_present():
            self._alone_since = None
            return None
        if self._alone_since is None:
            self._alone_since = now
        if now - self._alone_since < self._wait:
            return None
        return self._settle(_refusal(NOT_SHOWN))

    def _settle(self, answer: Answer) -> Answer:
        """Write an answer unless there is one; return the one that counts."""
        try:
            self._questions.answer(self.question.id, answer)
        except AnsweredError:
            return self._questions.read_answer(self.question.id) or _refusal("The question was removed.")
        except BrakeError:
            return _refusal("The question can't be answered, because the disk can't be written.")
        return answer


def _refusal(reason: str, by: str = "") -> Answer:
    """Return a rejection that isn't a person's."""
    return Answer("reject", reason, by=by, by_person=False)


def _content(answer: Answer) -> bytes:
    """Return the content of an answer's file."""
    rule = None if answer.rule is None else answer.rule.model_dump(mode="json", exclude_defaults=True)
    return json.dumps({**asdict(replace(answer, rule=None)), "rule": rule}).encode()


def _answer_of(content: dict[str, Any]) -> Answer:
    """Return the answer of a file with all fields; a rejection if it is invalid."""
    rule = content.pop("rule", None)
    lasts = content.get("lasts", "once")
    is_valid = (
        content["kind"] in ("approve", "reject", "closed")  # Not a set: the value may be a list.
        and isinstance(content["args"], dict | None)
        and isinstance(content["reason"], str)
        and isinstance(content["by"], str)
        and isinstance(content["by_person"], bool)
        and lasts in ("once", "session", "always")
        and (lasts == "once" or (content["kind"] == "approve" and content["args"] is None))
        and (rule is None or lasts != "once")
    )
    if not is_valid:
        return _refusal("The answer is invalid.")
    answer = Answer(**content)
    if rule is None:
        return answer
    from pegboard.models.rule import Rule

    try:
        read = Rule.model_validate(rule)
        str(read).encode()  # Half a surrogate pair can't be written to the file of the rules.
    except (ValueError, RecursionError):
        return _refusal("The rule of the answer is invalid.")
    if read.action != "allow":
        return _refusal("The rule of the answer doesn't allow calls.")
    return replace(answer, rule=read)


def _read_question(file: Path) -> Question | None:
    try:
        content: dict[str, Any] = json.loads(file.read_bytes())
        names = {one.name for one in fields(Question)} - (_ADDED_FIELDS - content.keys())
        return Question(**{name: content[name] for name in names})
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
