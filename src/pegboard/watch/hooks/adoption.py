"""Hooks in the configuration of agents: `pegboard adopt AGENT --hooks`, and back."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import JsonValue

from pegboard import storage
from pegboard.config.client_files import client_home, config_home
from pegboard.config.client_formats import BOM
from pegboard.config.files import shown
from pegboard.data.json_edit import with_value, without
from pegboard.data.json_spans import JsonSpan, spans
from pegboard.data.json_text import JsonTextError
from pegboard.watch.adoption import pegboard_command
from pegboard.watch.changed_files import AdoptedFile, AdoptionError, ChangedFiles, EntryChange, read
from pegboard.watch.hooks.hook import CALLS, LIMIT_SECONDS

_CLAUDE_EVENTS: Final = (
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "UserPromptSubmit", "Stop", "SubagentStop",
    "SessionEnd",
)  # fmt: skip
_CODEX_EVENTS: Final = (
    "PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "Interrupt", "SessionEnd",
)  # fmt: skip
_COPILOT_EVENTS: Final = (
    "preToolUse", "postToolUse", "postToolUseFailure", "userPromptSubmitted", "agentStop", "sessionEnd",
)  # fmt: skip
_QWEN_EVENTS: Final = tuple(event for event in _CLAUDE_EVENTS if event != "PostToolBatch")
_GEMINI_EVENTS: Final = ("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionEnd")
_BEFORE_CALLS: Final = (*CALLS, "preToolUse")
_OTHER_SECONDS: Final = 60
_VERSION: Final = re.compile(rb"\d{1,4}(?:\.\d{1,6})+")
_VERSION_SECONDS: Final = 20.0
_NO_COMMAND: Final = "const COMMAND = []\n"
_SECONDS: Final = {"SessionEnd": 3, "Interrupt": 3}
"""Limits of events for which Codex accepts no longer ones."""


@dataclass(frozen=True)
class AgentHooks:
    """The hooks in the configuration of an agent."""

    file: Path
    events: tuple[str, ...] = ()
    second: int = 1
    """Its unit of timeouts, as a part of a second."""
    is_flat: bool = False
    """Whether its hooks have the form of Copilot CLI instead of that of Claude Code."""
    plugin: str = ""
    """Name of the module beside this one that its file is; it runs the hook, because the agent has only plugins."""
    remark: str = ""
    """What the user has to do afterwards."""

    @property
    def empty(self) -> str:
        """The text of a file without hooks."""
        return '{\n  "version": 1\n}\n' if self.is_flat else "{}\n"


def agents() -> dict[str, AgentHooks]:
    """Return the agents whose hooks Pegboard can configure, by name."""
    restart = "opencode loads plugins when it starts: restart it."
    review = "Codex runs new hooks only after you trust them: enter /hooks in Codex."
    return {
        "claude-code": AgentHooks(client_home("claude-code") / "settings.json", _CLAUDE_EVENTS),
        "codex": AgentHooks(client_home("codex") / "hooks.json", _CODEX_EVENTS, remark=review),
        "copilot": AgentHooks(client_home("copilot") / "hooks/pegboard.json", _COPILOT_EVENTS, is_flat=True),
        "gemini": AgentHooks(client_home("gemini") / "settings.json", _GEMINI_EVENTS, second=1000),
        "opencode": AgentHooks(config_home() / "opencode/plugins/pegboard.js", plugin="opencode.js", remark=restart),
        "qwen": AgentHooks(client_home("qwen") / "settings.json", _QWEN_EVENTS, second=1000),
    }


def _installed_version(program: str) -> str:
    """Return the version of a program; empty if it is unknown."""
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        shown = subprocess.run(  # noqa: S603 - no text of others
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(shown)
    return found[0].decode() if found else ""


class _OwnHook(NamedTuple):
    """A hook of Pegboard's."""

    event: str
    place: tuple[str | int, ...]
    """Its place, or that of its group if that has no other hook."""
    command: JsonSpan


class HookAdoption:
    """Changes of the hooks of one agent.

    Args:
        agent: Its name.
        state: The state folder.
        variables: Environment variables of `pegboard watch`, for agents that don't pass on their own environment.

    Raises:
        AdoptionError: Pegboard can't configure the agent's hooks, or the agent isn't installed.
    """

    def __init__(self, agent: str, state: Path, variables: Mapping[str, str] | None = None) -> None:
        known = agents()
        if agent not in known:
            raise AdoptionError(f"Pegboard can't configure the hooks of {agent}. Pass one of {', '.join(known)}.")
        self._agent = agent
        self._hooks = known[agent]
        in_folder = self._hooks.is_flat or self._hooks.plugin
        folder = self._hooks.file.parent.parent if in_folder else self._hooks.file.parent
        if not folder.is_dir():
            place = shown(folder)
            raise AdoptionError(f"{agent} has no configuration: {place} is missing. Start it once.")
        self._files = ChangedFiles(state / "adopted")
        name = hashlib.sha256(str(self._hooks.file.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._record = state / "adopted" / f"{name}.hooks.json"
        words = [*(f"{name}={value}" for name, value in (variables or {}).items()), *pegboard_command()]
        if variables:
            words.insert(0, "env")
        self._words = [*words, "watch", "--hook", agent]
        self._command = shlex.join(self._words)
        self._end = shlex.join(["watch", "--hook", agent])

    @property
    def remark(self) -> str:
        """The step that the user has to take afterwards; empty if there is none."""
        return self._hooks.remark

    def plan(self, *, undo: bool = False) -> AdoptedFile:
        """Return the change of the agent's file; nothing is written.

        Args:
            undo: Whether to remove the hooks.

        Raises:
            AdoptionError: The file can't be read.
        """
        file = self._hooks.file
        text = read(file) if file.exists() else ""
        if self._hooks.plugin:
            return self._plugin(text, undo=undo)
        body = text.removeprefix(BOM)
        try:
            changes, after = self._removed(body) if undo else self._added(body)
        except (JsonTextError, ValueError) as error:
            raise AdoptionError(f"{shown(file)} was not changed because it {error}.") from None
        written = text[: len(text) - len(body)] + after
        if undo and changes and (original := self._original(text)) is not None:
            written = original
        return AdoptedFile(file, text, written, tuple(changes))

    def apply(self, *, undo: bool = False) -> AdoptedFile:
        """Change the file, after a backup; remove it if it didn't exist before.

        Raises:
            AdoptionError: The file can't be changed.
        """
        return self._files.apply(lambda: self.plan(undo=undo), None if undo or self._hooks.plugin else self._remember)

    def _plugin(self, text: str, *, undo: bool) -> AdoptedFile:
        """Return the change of a file that is a plugin.

        Raises:
            AdoptionError: It isn't Pegboard's.
        """
        file = self._hooks.file
        own = Path(__file__).with_name(self._hooks.plugin).read_text("utf-8")
        if text and json.dumps(self._words[-3:])[1:] not in text:
            raise AdoptionError(f"{shown(file)} was not changed because Pegboard didn't write it.")
        if not undo and (version := _installed_version(self._agent)).partition(".")[0] not in ("", "1"):
            raise AdoptionError(
                f"Nothing was changed: {self._agent} {version} runs no plugins of {self._agent} 1, as Pegboard's is."
            )
        after = "" if undo else own.replace(_NO_COMMAND, f"const COMMAND = {json.dumps(self._words)}\n", 1)
        change = EntryChange("plugin", ("plugin",), "restored" if undo else "adopted")
        if after == text and not undo:
            change = replace(change, action="skipped", reason="it exists already")
        return AdoptedFile(file, text, after, (change,) if text or not undo else ())

    def _original(self, text: str) -> str | None:
        """Return the text of the file before the hooks were added; None if it was changed since."""
        try:
            content = json.loads(self._record.read_bytes())
            return str(content["before"]) if content["after"] == text else None
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _remember(self, change: AdoptedFile) -> None:
        before = self._original(change.before)
        if before is None and next(self._own(change.before.removeprefix(BOM)), None):
            self._record.unlink(
                missing_ok=True
            )  # It was changed since the first adoption, so no text is without hooks.
            return
        before = change.before if before is None else before
        storage.write(self._record, json.dumps({"before": before, "after": change.after}).encode())

    def _added(self, body: str) -> tuple[list[EntryChange], str]:
        changes, renewed = [], set()
        # Such as that of an environment that was moved, which would block the calls of some agents.
        while old := next((one for one in self._own(body) if one.command.value != self._command), None):
            body = f"{body[: old.command.start]}{json.dumps(self._command)}{body[old.command.end :]}"
            renewed.add(old.event)
        present = {one.event for one in self._own(body)}
        for event in self._hooks.events:
            if event in renewed:
                changes.append(EntryChange(event, ("hooks", event), "adopted"))
                continue
            if event in present:
                changes.append(EntryChange(event, ("hooks", event), "skipped", "it has the hook already"))
                continue
            seconds = _SECONDS.get(event, LIMIT_SECONDS if event in _BEFORE_CALLS else _OTHER_SECONDS)
            body = with_value(body or self._hooks.empty, ("hooks", event), self._hook(seconds))
            changes.append(EntryChange(event, ("hooks", event), "adopted"))
        return changes, body

    def _hook(self, seconds: int) -> JsonValue:
        if self._hooks.is_flat:
            return {"type": "command", "bash": self._command, "timeoutSec": seconds}
        return {"hooks": [{"type": "command", "command": self._command, "timeout": seconds * self._hooks.second}]}

    def _removed(self, body: str) -> tuple[list[EntryChange], str]:
        changes: dict[str, EntryChange] = {}
        while own := next(self._own(body), None):
            body = without(body, own.place)
            changes[own.event] = EntryChange(own.event, ("hooks", own.event), "restored")
        return [*changes.values()], body

    def _own(self, body: str) -> Iterator[_OwnHook]:
        hooks = spans(body, comments=True).at("hooks") if body.strip() else None
        groups = {member.name: member.value.items for member in (hooks.members if hooks is not None else None) or ()}
        for event, found in groups.items():
            for number, group in enumerate(found or ()):
                inner = group.at("hooks")
                hooks_of_group = inner.items if inner is not None and inner.items is not None else [group]
                for at, hook in enumerate(hooks_of_group):
                    command = hook.at("command") or hook.at("bash")
                    if command is not None and self._is_own(command.value):
                        last = () if len(hooks_of_group) == 1 else ("hooks", at)
                        yield _OwnHook(event, ("hooks", event, number, *last), command)

    def _is_own(self, command: JsonValue) -> bool:
        return isinstance(command, str) and command.endswith(self._end) and "pegboard" in command
