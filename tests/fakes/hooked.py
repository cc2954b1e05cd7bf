"""An agent that runs `pegboard watch --hook` before and after its calls."""

from __future__ import annotations

import json
import subprocess
from typing import Any, NamedTuple

from watched import PROGRAM, SECONDS


class Answer(NamedTuple):
    """The answer of a hook."""

    code: int
    output: Any
    """Its stdout as JSON; None if it is empty."""
    error: str


class Hooked:
    """A session of an agent, whose process is that of the test.

    Args:
        session: Its id.
        agent: The agent's name.
        **common: More fields of every event.
    """

    def __init__(self, session: str = "s-1", agent: str = "claude-code", **common: Any) -> None:
        self.agent = agent
        self.common = {"session_id": session, "cwd": "/", **common}

    def start(self, event: str | None, **fields: Any) -> subprocess.Popen[bytes]:
        """Start a hook and write its event."""
        hook = subprocess.Popen(
            [PROGRAM, "watch", "--hook", self.agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert hook.stdin is not None
        named = {} if event is None else {"hook_event_name": event}
        hook.stdin.write(json.dumps({**self.common, **named, **fields}).encode())
        hook.stdin.close()
        hook.stdin = None
        return hook

    def run(self, event: str | None, **fields: Any) -> Answer:
        """Run a hook."""
        return answer_of(self.start(event, **fields))

    def before(self, tool: str, id_: str = "t-1", **args: Any) -> Answer:
        """Run the hook before a call."""
        return self.run("PreToolUse", tool_name=tool, tool_input=args, tool_use_id=id_)

    def after(self, tool: str, response: Any, id_: str = "t-1", **args: Any) -> Answer:
        """Run the hook after a call."""
        return self.run("PostToolUse", tool_name=tool, tool_input=args, tool_use_id=id_, tool_response=response)

    def end(self) -> Answer:
        """End the session."""
        return self.run("SessionEnd", reason="other")


def answer_of(hook: subprocess.Popen[bytes]) -> Answer:
    """Return the answer of a started hook."""
    output, error = hook.communicate(timeout=SECONDS)
    return Answer(hook.returncode, json.loads(output) if output else None, error.decode())
