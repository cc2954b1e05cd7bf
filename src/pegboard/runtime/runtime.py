"""Start reading here: `Runtime` builds everything and offers every operation."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pegboard import models
from pegboard.config import Paths
from pegboard.registry import AllowList
from pegboard.runtime.activity import Activity
from pegboard.runtime.configuration import Configuration
from pegboard.runtime.health import ToolHealth
from pegboard.runtime.models import Models
from pegboard.runtime.parts import Parts
from pegboard.runtime.pipelines import Pipelines
from pegboard.runtime.presets import ToolPresets
from pegboard.runtime.queries import Queries
from pegboard.runtime.rules import ApprovalRules
from pegboard.runtime.scripts import Scripts
from pegboard.runtime.servers import Servers
from pegboard.runtime.tools import Tools

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.ask import Ask
    from pegboard.config import Settings
    from pegboard.history import History
    from pegboard.models import CallEvent, JsonObject, Problem, ToolCall, ToolResult
    from pegboard.ports import Model
    from pegboard.runtime.configuration import ReadSettings
    from pegboard.runtime.reload import SettingsChange
    from pegboard.runtime.sessions import KeptSessions


class Runtime:
    """One running Pegboard: its tools, the pipeline of their calls, and the record.

    Building it is cheap: each part is read, scanned, opened or started when it is first needed. Use it as an async
    context manager, or `close` it.

    Args:
        settings: The configuration, or a function that reads it with its problems.
        paths: Where Pegboard keeps its files.
        packs: More packs folders, after the configured ones.
        allow: Tools that can be used, within those that the configuration allows.
        problems: Problems of the configuration, to be shown with all others.
    """

    def __init__(
        self,
        settings: Settings | ReadSettings,
        paths: Paths,
        *,
        packs: Sequence[Path] = (),
        allow: AllowList | None = None,
        problems: Sequence[Problem] = (),
    ) -> None:
        self.paths = paths
        self.configuration = Configuration(settings if callable(settings) else lambda: (settings, problems))
        self._parts = Parts(self.configuration, paths, packs, allow)
        self.tools = Tools(self._parts)
        self.health = ToolHealth(self._parts, self.tools)
        self.rules = ApprovalRules(self._parts)
        self.models = Models(self._parts)
        self.activity = Activity(self._parts)
        self.presets = ToolPresets(self._parts)
        self.scripts = Scripts(self._parts)
        self.queries = Queries(self._parts)
        self.servers = Servers(self._parts, self.models)
        self.pipelines = Pipelines(self._parts)

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        packs: Sequence[Path] = (),
        tool_allow: str | None = None,
    ) -> Self:
        """Build a runtime from the configuration files and the environment.

        Args:
            environ: The environment; that of the process by default.
            packs: More packs folders for this run (`--packs`).
            tool_allow: Patterns separated by commas (`--tool-allow`). They narrow the configured allow list.
        """
        paths = Paths.from_environment(environ)
        allow = None if tool_allow is None else AllowList.parse(tool_allow)
        return cls(partial(_read_settings, environ), paths, packs=packs, allow=allow)

    async def reload(self) -> SettingsChange:
        """Read the configuration again, and apply what can change while Pegboard runs.

        Limits of tools never change before a restart, and MCP servers change only with `servers.configured`. If a part
        that limits tools or models can't be read, nothing changes.
        """
        import asyncio

        async with self.servers.configured.changing, self.models.closing_retired():
            return await asyncio.to_thread(self._reload)

    def _reload(self) -> SettingsChange:
        from pegboard.runtime.reload import changed_settings

        read, problems = self.configuration.read()
        settings, change = changed_settings(self.settings, read)
        if change.blocked is None:
            self.configuration.replace(settings, problems)
            self.models.forget()
        return change

    @property
    def settings(self) -> Settings:
        """The configuration; the first use reads it, which blocks."""
        return self.configuration.settings

    @property
    def folders(self) -> tuple[Path, ...]:
        """The packs folders, in order of precedence."""
        return self._parts.folders

    @property
    def history(self) -> History:
        """The record of calls; every method blocks."""
        return self._parts.history

    @cached_property
    def sessions(self) -> KeptSessions:
        """Saved conversations; every method blocks."""
        from pegboard.runtime.sessions import KeptSessions

        return KeptSessions(self._parts.history, self.paths.sessions, self._parts.redaction)

    def problems(self, *, packs: bool = True) -> tuple[Problem, ...]:
        """Return the problems of the configuration, the packs, the history and the presets, as far as they were read.

        Args:
            packs: Whether to include problems of packs.
        """
        of_packs = self._parts.registry.problems() if packs else ()
        stores = (getattr(self._parts, name) for name in ("history", "presets") if self._parts.is_built(name))
        kept = (problem for store in stores for problem in store.problems)
        refused = self._parts.grants.problems() if packs and self._parts.is_built("grants") else ()
        return (*self.configuration.problems, *of_packs, *refused, *self.rules.problems(missing=packs), *kept)

    def record_problems(self) -> tuple[Problem, ...]:
        """Return the problems of the history, including calls that aren't recorded, as far as it was used."""
        return self._parts.history.problems if self._parts.is_built("history") else ()

    def unrecorded(self) -> Problem | None:
        """Return which calls aren't recorded, with reason and fix; None if all are."""
        return self._parts.history.unrecorded if self._parts.is_built("history") else None

    def watch_record(self, changed: Callable[[], object]) -> None:
        """Call a function, on any thread, whenever `unrecorded` may have changed; it must not block."""
        self._parts.history.on_problem_changed = changed

    def redacted(self, text: str) -> str:
        """Return a text without the secrets that are known now; read the disk."""
        return self._parts.redaction.text_now(text)

    def hide(self, name: str, secret: str) -> None:
        """Redact a secret of Pegboard's own from now on, in everything that is shown and recorded."""
        self._parts.redaction.add({name: secret})

    def redacted_args(self, args: JsonObject) -> JsonValue:
        """Return arguments of a call without known secrets; the same object if it contains none. Reads the disk."""
        return self._parts.redaction.value_now(args)

    def sweep(self) -> None:
        """Delete unused files: drafts of killed processes, and the index of folders that no longer exist.

        Blocks for a bounded time. Never raises, and keeps files that another process uses.
        """
        from pegboard.discovery import sweep

        sweep(self._parts.paths.index)
        self._parts.history.sweep()

    def call(self, call: ToolCall) -> AsyncGenerator[CallEvent]:
        """Run a call through the pipeline; see `Gateway.call`."""
        return self._parts.gateway.call(call)

    async def reject(self, call: ToolCall, result: ToolResult) -> tuple[ToolCall, ToolResult]:
        """Record a call that was not made because its arguments can't be read; return both without secrets."""
        finished = await self._parts.gateway.reject(call, result)
        return finished.call, finished.result

    async def result(self, call: ToolCall) -> tuple[ToolCall, ToolResult]:
        """Run a call; return it as it was made, aliases resolved, with its result."""
        events = [event async for event in self.call(call) if isinstance(event, models.Finished)]
        return events[-1].call, events[-1].result

    async def cancel(self, call_id: str) -> bool:
        """Cancel a running or waiting call, which then finishes as cancelled; return False if none has this id."""
        if await self._parts.gateway.cancel(call_id):
            return True
        return self._parts.is_built("script_gateway") and await self._parts.script_gateway.cancel(call_id)

    async def prewarm(self) -> None:
        """Start a worker, so that the first call doesn't wait for one."""
        await self._parts.executor.prewarm()

    def ask(
        self,
        session: str | None = None,
        *,
        model: str | Model | None = None,
        base_url: str | None = None,
        with_tools: bool = True,
        without: Collection[str] = (),
        system: str | None = None,
        send_key: bool = False,
    ) -> Ask:
        """Return an `Ask`, which asks a model within a session.

        Args:
            session: The session to continue, or the id of a new one; by default a new id.
            model: `provider:model`, or a `Model`; by default the configured one, or the offline one if none is
                configured.
            base_url: URL of an OpenAI-compatible server; by default the configured one.
            with_tools: Whether to offer the tools that can be used to the model.
            without: Names of tools that aren't offered.
            system: Instructions to the model in this session from now on; unchanged by default.
            send_key: As in `Models.get`.
        """
        from pegboard.ask import Ask, AskLimits, TurnRecord

        set_ = self._parts.settings.ask
        return Ask(
            session if session is not None else os.urandom(8).hex(),
            model=lambda: (
                self.models.get(model, base_url, send_key=send_key)
                if model is None or isinstance(model, str)
                else model
            ),
            calls=self._parts.gateway,
            sessions=self.sessions,
            turn=lambda: TurnRecord(self._parts.history, self._parts.redaction),
            whole=self._whole_text,
            limits=AskLimits(
                set_.steps, set_.tokens, set_.seconds, set_.result_limit, set_.turn_bytes, set_.turn_calls
            ),
            with_tools=with_tools,
            without=without,
            parallel=set_.parallel,
            system=system,
            instructions=self.servers.instructions,
            text_calls=self.models.reads_text_calls,
        )

    def _whole_text(self, call_id: str) -> str | None:
        from pegboard.ask.result_text import whole_text
        from pegboard.results.export import whole

        result = self._parts.history.result(call_id)
        try:
            return None if result is None else whole_text(result, whole(result))
        except (OSError, ValueError):
            return None

    async def close(self) -> None:
        """End running calls, worker processes, connections to servers and models, and the history's writer."""
        import asyncio

        if self._parts.is_built("script_runner"):
            await self._parts.script_runner.close()
        if self._parts.is_built("server_runner"):
            await self._parts.server_runner.close()
        elif self._parts.is_built("hub"):
            await self._parts.hub.close()
        if self._parts.is_built("executor"):
            await self._parts.executor.close()
        await self.models.close()
        self.activity.close()
        if self._parts.is_built("history"):
            await asyncio.to_thread(self._parts.history.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _read_settings(environ: Mapping[str, str] | None) -> tuple[Settings, Sequence[Problem]]:
    from pegboard.config import load  # imports pydantic, which takes longer than the rest of this package

    return load(environ)
