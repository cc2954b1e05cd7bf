"""The data of pending calls and their answers."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from pegboard.models import JsonObject
    from pegboard.models.rule import Rule

AnswerKind: TypeAlias = Literal["approve", "reject", "closed"]
AnswerTerm: TypeAlias = Literal["once", "session", "always"]


def start_of_process(pid: int) -> str:
    """Return when a process started, in a form that only compares; `ended` if it has ended, empty if it is unknown."""
    try:
        state, *numbers = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return "ended" if state == b"Z" else numbers[18].decode()  # its parent may never ask for its exit status
    except (OSError, IndexError, ValueError):
        pass
    if Path("/proc/self").exists():
        return "ended"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "ended"
    except OSError:
        pass
    return ""


@dataclass(frozen=True)
class Question:
    """A call that waits. Its texts are untrusted."""

    tool: str
    """Qualified name: `SERVER.TOOL`."""
    args: JsonObject
    """All its arguments. `Questions` writes them without the secrets that the process that asks knows."""
    agent: str
    """The client that called."""
    server: str
    """The MCP server; empty for a tool of the agent's own."""
    reason: str
    """Why it waits, as a sentence."""
    kind: Literal["ask", "paused"] = "ask"
    """Whether a person has to approve it, or it only waits until calls are resumed."""
    call: str = ""
    """Id of the call in the history."""
    via: str = "watch"
    """The command that asks: `watch` or `serve`."""
    has_session: bool = True
    """Whether the client has a session that no other client has, to which an answer can be limited."""
    is_session_exact: bool = False
    """Whether an answer for the session allows only exactly these arguments, rather than any."""
    edit_problem: str = ""
    """Why the arguments can't be edited, as a clause; empty if they can."""
    id: str = field(default_factory=lambda: os.urandom(8).hex())
    asked_at: float = field(default_factory=time.time)
    """Seconds since 1970."""
    pid: int = field(default_factory=os.getpid)
    """The process that asks."""
    started: str = field(default_factory=lambda: start_of_process(os.getpid()))
    """Start of that process, because the system uses ids again."""

    @property
    def is_asker_running(self) -> bool:
        """Whether the process that asks still runs."""
        return start_of_process(self.pid) == self.started

    @property
    def accepts_rule(self) -> bool:
        """Whether an answer can add a rule, because the process that asks runs the calls itself."""
        return self.via == "serve" and self.kind == "ask"

    @property
    def session_problem(self) -> str:
        """Why an answer can't last for the session of the client, as a clause; empty if it can."""
        if self.via != "serve":
            return "the answer for a session works only for calls of `pegboard serve`"
        if self.kind != "ask":
            return "it only waits until calls are resumed"
        return "" if self.has_session else "its client has no session by which Pegboard could recognize it"


@dataclass(frozen=True)
class Answer:
    """The answer to a question."""

    kind: AnswerKind
    reason: str = ""
    """For a rejection: the person's reason. For a closed question: why it was closed."""
    args: JsonObject | None = None
    """The edited arguments; None if they are unchanged."""
    by: str = ""
    """The process that answered, for people."""
    by_person: bool = True
    """Whether a person decided; False if no person could be asked, or if the call ended."""
    lasts: AnswerTerm = "once"
    """For how long it approves: this call, or also calls that match a rule, in its session or permanently."""
    rule: Rule | None = None
    """The rule to add. Without one, the process that asks builds the rule of a session itself."""


@dataclass(frozen=True)
class RuleOutcome:
    """Outcome of the rule of an answer in the process that asked."""

    problem: str
    """Why it wasn't added; empty if it was."""
    is_exact: bool
    """Whether it matches only exactly the arguments of the call."""
