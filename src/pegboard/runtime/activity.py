"""Activity: every recorded call, running or finished, of every process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pegboard import models
from pegboard.errors import StoreError
from pegboard.runtime.tools import Tools

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.copy_as import CopyKind
    from pegboard.history.recorded import RecordedCalls
    from pegboard.history.watch import HistoryChange
    from pegboard.models import (
        CallCount,
        CallEvent,
        CallRecord,
        CallSource,
        DroppedCalls,
        HistoryPage,
        HistoryQuery,
        JsonObject,
        ParsedQuery,
        RecordedCall,
        ToolCall,
        ToolResult,
        ToolSpec,
    )
    from pegboard.models.difference import CallDiff
    from pegboard.models.erasure import RedactionReport
    from pegboard.models.statistics import ToolStatistics
    from pegboard.models.timeline import SessionTimeline, SessionTool
    from pegboard.runtime.parts import Parts

MOST_COMPARED = 64_000_000
"""Bytes of a result's JSON beyond which two results are not compared."""


_SCRIPT = "script.run"
"""`scripts.NAME`, which takes long to import."""


class Activity:
    """Operations on recorded calls. Every method but `changes`, `parse` and `run_again` blocks.

    All methods that read or write the history raise `StoreError` if that fails.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @cached_property
    def _calls(self) -> RecordedCalls:
        from pegboard.history.recorded import RecordedCalls

        return RecordedCalls(self._parts.history)

    # Find

    @staticmethod
    def parse(text: str) -> ParsedQuery:
        """Parse a query such as `tool:ckan.* status:failed since:2h "free text"`; invalid parts become problems."""
        from pegboard.history.query import parse_query

        return parse_query(text)

    def completions(self, text: str) -> tuple[str, ...]:
        """Return what can replace the last word of a query, the best first."""
        from pegboard.history.completion import completions

        return completions(text, self.tools(), self._calls.agents())

    def page(self, query: HistoryQuery | None = None, *, before: int | None = None, limit: int = 100) -> HistoryPage:
        """Return the newest calls that match.

        Args:
            query: The query; None for all calls.
            before: `HistoryPage.next` of the page before.
            limit: Maximum number of calls.
        """
        return self._calls.page(query or models.HistoryQuery(), before=before, limit=limit)

    def page_after(self, query: HistoryQuery | None = None, *, after: int = 0, limit: int = 100) -> HistoryPage:
        """Return the oldest calls above a position that match, the newest first.

        Args:
            query: The query; None for all calls.
            after: `HistoryPage.next` of the page of older calls; 0 for the oldest calls.
            limit: Maximum number of calls.
        """
        return self._calls.page_after(query or models.HistoryQuery(), after, limit=limit)

    def count(self, query: HistoryQuery | None = None) -> CallCount:
        """Return the number of calls that match, exactly up to 10,000."""
        return self._calls.count(query or models.HistoryQuery())

    def get(self, call_id: str) -> RecordedCall | None:
        """Return a call by its id or the unique start of its id (at least 4 characters), or None."""
        return self._calls.get(call_id)

    def find(self, ids: Sequence[str]) -> tuple[RecordedCall, ...]:
        """Return the calls with these ids that exist, the newest first."""
        return self._calls.find(ids)

    def calls_of(self, call_id: str, *, limit: int = 1000) -> HistoryPage:
        """Return the calls that a call, or a turn, made itself."""
        return self._calls.page(models.HistoryQuery(parent=call_id), limit=limit)

    def result(self, call_id: str) -> ToolResult | None:
        """Return the result of a call as its caller received it; None while it runs or if it is not stored."""
        return self._parts.history.result(call_id)

    def tools(self) -> tuple[str, ...]:
        """Return the names of all tools that the history contains."""
        return self._calls.tools()

    def dropped(self) -> DroppedCalls | None:
        """Return what the size limit has removed, or None if it has removed nothing."""
        return self._calls.dropped()

    def changes(self) -> AsyncGenerator[HistoryChange]:
        """Yield changes by any process, this one included, within 300 ms; close the iterator to stop.

        The first one is empty: earlier reads may lack changes, and all later changes are noticed.
        """
        from pegboard.history.watch import changes

        return changes(self._parts.history)

    # Change

    def delete(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Delete finished calls with the calls that they made; return the ids to `restore` within an hour."""
        return self._calls.delete(ids)

    def restore(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Undo `delete`, with the calls that were deleted together with these; return the ids of those restored."""
        return self._calls.restore(ids)

    def pin(self, ids: Sequence[str], *, pinned: bool = True) -> tuple[str, ...]:
        """Pin calls, which the size limit then never removes, or unpin them; return the ids of those that exist."""
        return self._calls.pin(ids, pinned=pinned)

    def redact(self, value: str) -> RedactionReport:
        """Replace a value in the history, results, sessions, presets, scripts, checks, drafts, logs and caches.

        To redact it in future calls too, the user writes it to the `.env` file beside the configuration file.

        Args:
            value: The value, at least 6 characters.
        """
        from pegboard.runtime.erase import redact

        return redact(self._parts, value)

    # Use again

    def tool_of(self, call: CallRecord) -> ToolSpec | None:
        """Return the tool of a call if it can be used now, else None; see `unusable`."""
        if call.source == "otel" or call.is_turn:
            return None
        if not self._parts.registry.scanned:
            self._parts.registry.scan()
        return self._parts.usable_tool(call.tool)

    def unusable(self, call: CallRecord) -> str:
        """Return why a call can't be opened in the form or run again; empty if it can."""
        if reason := self.unrepeatable(call):
            return reason
        if call.tool == _SCRIPT or self.tool_of(call) is not None:
            return ""
        return Tools(self._parts).why_missing(call.tool) or f"{call.tool} is not available."

    def unrepeatable(self, call: CallRecord) -> str:
        """Return why a call can't be run again whatever tools exist; empty if a tool of its name can run it."""
        if call.is_turn:
            return "It is a turn of a model, not a call. To repeat a turn of a chat, send its message again."
        if call.is_batch:
            return "It is a batch, not a call. Run its file again with `pegboard batch`, or the calls of its rows."
        if call.source == "otel":
            return "It is known from the telemetry of another agent, whose tools Pegboard can't run."
        agent = models.Agent.of_session(call.session) if call.source == "watch" else None
        if agent is not None and call.tool.startswith(f"{agent.name}."):
            return f"It is a tool of {agent.name} itself, which Pegboard can't run."
        if isinstance(call, models.RecordedCall) and call.state == "waiting":
            return "It waits for approval, and hasn't run."
        return ""

    def run_again(
        self, call: CallRecord, source: CallSource, args: JsonObject | None = None, *, call_id: str | None = None
    ) -> AsyncGenerator[CallEvent]:
        """Run a recorded call again; yield its events as `Runtime.call` does.

        Args:
            call: The recorded call.
            source: Who runs it again.
            args: Its arguments; the recorded ones by default.
            call_id: Id of the new call, to cancel it by.
        """
        made = models.ToolCall(name=call.tool, args=call.args if args is None else args, source=source)
        return self.run(made if call_id is None else made.model_copy(update={"id": call_id}))

    def run(self, call: ToolCall) -> AsyncGenerator[CallEvent]:
        """Run a call of the user, also one of `script.run`, which models may not be offered."""
        if call.name == _SCRIPT:
            return self._parts.script_gateway.call(call)
        return self._parts.gateway.call(call)

    def copied_as(self, kind: CopyKind, call: CallRecord) -> str:
        """Return a call as a command line, script command, JSON, Python or MCP request.

        Args:
            kind: `cli`, `script`, `json`, `python` or `mcp`.
            call: The call. If its tool isn't available, its arguments are written without knowledge of their types.
                A script is written as for `pegboard script run`, because `script.run` may not be offered as a tool.
        """
        from pegboard.forms import script_texts
        from pegboard.forms.copy_as import copied_as
        from pegboard.runtime.tools import Tools

        script = call.args.get("commands") if call.tool == _SCRIPT else None
        tools = Tools(self._parts)
        if isinstance(script, str) and (kind == "cli" or kind == "script" or kind == "python"):
            folders = dict.fromkeys(filter(None, map(tools.packs_option, tools.all())))
            return script_texts.copied_as(kind, script, [*folders])
        spec = self.tool_of(call) or _unknown_tool(call.tool)
        return copied_as(kind, spec, call.args, options=tools.options(spec))

    def export(self, ids: Sequence[str], on_incomplete: Callable[[str], object] | None = None) -> Iterator[str]:
        """Yield calls that exist as lines of JSON, the oldest first, each with its result.

        Each line has the fields of the record and `result`: `{ok, data, error, meta}`, or null without a stored result.
        The data is complete; if the file of a large result can't be read, `meta.truncated` has the size of the rest.

        Args:
            ids: Ids of the calls.
            on_incomplete: Called with the reason if the file of a large result can't be read.
        """
        for call_id in [call.id for call in reversed(self.find(ids))]:
            yield from self._lines([call_id], on_incomplete)

    def export_matching(
        self,
        query: HistoryQuery,
        limit: int | None = None,
        on_incomplete: Callable[[str], object] | None = None,
    ) -> Iterator[str]:
        """Yield the newest calls that match as lines of JSON, the newest first; see `export`.

        Args:
            query: The query.
            limit: Maximum number of calls.
            on_incomplete: Called with the reason if the file of a large result can't be read.
        """
        before: int | None = None
        left = limit
        while left is None or left > 0:
            page = self.page(query, before=before, limit=min(200, left or 200))
            for call in page.calls:
                yield _line(call, self.result(call.id), on_incomplete)
            left = None if left is None else left - len(page.calls)
            before = page.next
            if before is None:
                return

    def export_session(self, session: str, on_incomplete: Callable[[str], object] | None = None) -> Iterator[str]:
        """Yield all calls of a session as lines of JSON, the oldest first; see `export`."""
        from pegboard.history.statistics import ids_of

        for call_id in ids_of(self._calls.reader, session):
            yield from self._lines([call_id], on_incomplete)

    def _lines(self, ids: Sequence[str], on_incomplete: Callable[[str], object] | None) -> Iterator[str]:
        for call in self.find(ids):
            yield _line(call, self.result(call.id), on_incomplete)

    # Compare

    def diff(self, before: RecordedCall, after: RecordedCall) -> CallDiff:
        """Compare the arguments and results of two calls; bounded in time and memory."""
        from pegboard.history.diff import diff
        from pegboard.models.difference import CallDiff
        from pegboard.results.images import SavedImages

        arguments = diff(before.args, after.args)
        too_large = next((call for call in (before, after) if call.size > MOST_COMPARED), None)
        if too_large is not None:
            problem = f"The results were not compared because one has {too_large.size:,} bytes."
            return CallDiff(before=before, after=after, arguments=arguments, result=None, problem=problem)
        values: list[JsonValue] = []
        for call in (before, after):
            result = self.result(call.id)
            if result is None:
                reason = "is still running" if call.state == "running" else "has no stored result"
                problem = f"The results were not compared because the call {call.id[:12]} {reason}."
                return CallDiff(before=before, after=after, arguments=arguments, result=None, problem=problem)
            values.append(_comparable(result))
        saved = SavedImages(self._parts.paths.results.absolute())
        return CallDiff(
            before=before, after=after, arguments=arguments, result=diff(values[0], values[1], saved.are_equal)
        )

    # Statistics

    def statistics(self, tools: Sequence[str] | None = None) -> tuple[ToolStatistics, ...]:
        """Return use count, failures and durations of tools, the most used first.

        Args:
            tools: Names of the tools; None for all that were called.
        """
        from pegboard.history.statistics import statistics

        return statistics(self._calls.reader, tools)

    def timeline(self, session: str) -> SessionTimeline:
        """Return the model turns and calls of a session, with the gaps between them.

        Args:
            session: Id of the session, or the start of the id if no other session has it.
        """
        from pegboard.history.statistics import timeline

        return timeline(self._calls.reader, session)

    def session_tools(self, session: str) -> tuple[SessionTool, ...]:
        """Return the totals of the tools that a session called, the most used first."""
        from pegboard.history.statistics import session_tools

        return session_tools(self._calls.reader, session)

    def close(self) -> None:
        """Close the connection to the database."""
        if "_calls" in self.__dict__:
            self._calls.close()


def _comparable(result: ToolResult) -> JsonValue:
    from pegboard.results.export import whole

    if result.error is not None:
        error: JsonValue = result.error.model_dump(mode="json")
        return {"error": error, "data": result.data} if result.data is not None else {"error": error}
    try:
        return whole(result)
    except (OSError, ValueError) as error:
        raise StoreError(f"The results were not compared because a result file can't be read: {error}") from error


def _line(
    call: RecordedCall,
    result: ToolResult | None,
    on_incomplete: Callable[[str], object] | None = None,
) -> str:
    from pydantic_core import to_json

    from pegboard.results.export import completed

    fields = call.model_dump(mode="json", exclude={"position"})
    fields["result"] = None
    if result is not None:
        try:
            result = completed(result)
        except (OSError, ValueError) as error:
            if on_incomplete is not None and result.meta.truncated is not None:
                file = result.meta.truncated.file
                on_incomplete(f"{file}: {getattr(error, 'strerror', None) or error}")
        fields["result"] = result.model_dump(mode="json")
    return to_json(fields, inf_nan_mode="strings").decode()


def _unknown_tool(name: str) -> ToolSpec:
    pack, _, tool = name.rpartition(".")
    return models.ToolSpec(
        name=name,
        pack=pack,
        input_schema={"type": "object"},
        handler=models.PackHandler(pack=pack, function=tool, file="", line=0),
    )
