"""Builds the house and offers its verbs."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from pegboard.config import Paths, Settings, load, packs_folders
from pegboard.config.paths import absolute
from pegboard.errors import ModelError, SessionError
from pegboard.gateway import Gateway, Rules, Timeouts, Verdict
from pegboard.models import (
    CallEvent,
    CallRecord,
    CallSource,
    Finished,
    HealthRow,
    JsonObject,
    Preset,
    Problem,
    Requirement,
    ToolCall,
    ToolInfo,
    ToolResult,
    ToolSpec,
    ToolState,
    ToolUses,
)
from pegboard.models.rule import Rule, RuleFile
from pegboard.registry import AllowList, Registry

if TYPE_CHECKING:
    import asyncio

    from pegboard.ask import Ask
    from pegboard.ask.providers import LocalServer, ProviderModel
    from pegboard.config import Secrets
    from pegboard.executor import Executor
    from pegboard.health import Health
    from pegboard.history import History, Sessions
    from pegboard.models.approval import AddedRule
    from pegboard.models.conversation import Usage
    from pegboard.models.needs import ModelNeeds
    from pegboard.ports import Approver, Model
    from pegboard.presets import Presets, SavedScripts
    from pegboard.runtime.grants import Grants
    from pegboard.runtime.redaction import Redaction
    from pegboard.scripts import OrchestratorTool, ScriptRunner


_ALLOW_FIX = "See `pegboard tools list` for the names."


def _no_key(_: str) -> None:
    """Find no key."""


class ToolDetails(ToolInfo):
    """What `pegboard tools info` tells beyond the listing."""

    timeout: float
    """Seconds that a call may take."""
    signature: str
    uses: ToolUses


class _PackFolders:
    """The packs folders as a source of tools.

    Args:
        folders: In the order in which their packs win.
        own: The one of the data folder, which needn't exist.
        index: The folder of the index.
    """

    def __init__(self, folders: Sequence[Path], own: Path, index: Path) -> None:
        self._folders = folders
        self._own = own
        self._index = index

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        from pegboard.discovery import scan

        wanted = [folder for folder in self._folders if folder != self._own or folder.is_dir()]
        return scan(wanted, index=self._index)


class _ScriptTool:
    """The tool that runs scripts as a source, if it is offered.

    Args:
        settings: The configuration.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.scripts

    def scan(self) -> tuple[Sequence[ToolSpec], Sequence[Problem]]:
        from pegboard.scripts import ScriptSource

        return ScriptSource(self._settings.seconds).scan()


def _configured_allow_list(settings: Settings) -> AllowList:
    """Return the allow list of the configuration; it admits nothing if what limits tools can't be used."""
    blocked = settings.loaded.blocked
    if blocked is not None:
        return AllowList((), reason=f"the configuration can't be used: {blocked}")
    return AllowList(settings.tools.allow)


class Runtime:
    """One running Pegboard: its tools, the road of their calls, and the record.

    Building it is cheap: nothing is scanned, opened or started before it is needed. Use it as an async context
    manager, or `close` it.

    Args:
        settings: The configuration.
        paths: Where things are kept.
        packs: More packs folders, after the configured ones.
        allow: Which tools may be used, as far as the configuration allows them too.
        problems: What was wrong with the configuration, to be shown with everything else.
    """

    def __init__(
        self,
        settings: Settings,
        paths: Paths,
        *,
        packs: Sequence[Path] = (),
        allow: AllowList | None = None,
        problems: Sequence[Problem] = (),
    ) -> None:
        self.settings = settings
        self.paths = paths
        self._given = {os.path.realpath(folder): str(folder.absolute()) for folder in packs}
        self.folders: tuple[Path, ...] = tuple(packs_folders(settings, paths, packs))
        configured = _configured_allow_list(settings)
        self._allow = configured if allow is None else allow.within(configured)
        self._allow_is_given = allow is not None
        self._timeouts = Timeouts(settings.tools.timeout, settings.tools.timeouts)
        self._problems = tuple(problems)
        self._models: dict[tuple[str, str | None, bool], ProviderModel] = {}
        scripts = [_ScriptTool(settings)] if settings.scripts.offer else []
        self._registry = Registry([_PackFolders(self.folders, paths.packs, paths.index), *scripts])

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        packs: Sequence[Path] = (),
        tool_allow: str | None = None,
    ) -> Self:
        """Builds what the configuration file and the environment ask for.

        Args:
            environ: The environment; that of the process unless given.
            packs: More packs folders for this run (`--packs`).
            tool_allow: Patterns separated by commas (`--tool-allow`). They narrow the configured allow list.
        """
        paths = Paths.from_environment(environ)
        settings, problems = load(environ)
        allow = None if tool_allow is None else AllowList.parse(tool_allow)
        return cls(settings, paths, packs=packs, allow=allow, problems=problems)

    # Tools

    def scan(self) -> bool:
        """Looks for tools again; blocks while it does. Gives whether anything changed."""
        return self._registry.scan()

    def tools(self) -> tuple[ToolSpec, ...]:
        """Gives the tools that may be used, by name, as the last scan found them."""
        return tuple(spec for spec in self._registry.tools() if self._allow.admits(spec))

    def hidden(self) -> int:
        """Gives how many tools the last scan found that the allow list keeps out."""
        return sum(not self._allow.admits(spec) for spec in self._registry.tools())

    def allow_problems(self) -> tuple[Problem, ...]:
        """Return a warning for each pattern of the allow list that matches no tool of the last scan."""
        unmatched = self._allow.unmatched(self._registry.tools())
        told = [(f'"{pattern}" in the allow list matches no tool.', _ALLOW_FIX) for pattern in unmatched]
        if self._allow_is_given:
            return tuple(Problem(message=message, fix=fix, severity="warning") for message, fix in told)
        return tuple(self.settings.warning("tools.allow", message, fix) for message, fix in told)

    def approve_in_advance(self, patterns: Sequence[str]) -> tuple[Problem, ...]:
        """Let calls of matching tools run without a question as long as this runtime lives; rules still deny.

        Args:
            patterns: As of an allow list. A call that a model wrote as text needs the exact name of its tool.

        Returns:
            A warning for each pattern that matches no tool.
        """
        self._rules.approve_in_advance(patterns)
        unmatched = AllowList(patterns).unmatched(self.tools())
        messages = (f'"{pattern}" approves no tool: none that may be used matches it.' for pattern in unmatched)
        return tuple(Problem(message=message, fix=_ALLOW_FIX, severity="warning") for message in messages)

    def tool(self, name: str) -> ToolSpec | None:
        """Gives the tool of that name or alias, if it may be used."""
        spec = self._registry.get(name)
        return spec if spec is not None and self._allow.admits(spec) else None

    def named(self, name: str | None) -> tuple[ToolSpec, ...]:
        """Gives the tool of that name or alias, or all of the pack of that name, as far as they may be used.

        Args:
            name: A tool or a pack; every tool if None.
        """
        if name is None:
            return self.tools()
        spec = self.tool(name)
        return tuple(known for known in self.tools() if known.pack == name) if spec is None else (spec,)

    def packs_option(self, spec: ToolSpec) -> str:
        """Gives the folder that another run must be given with `--packs` to find the tool; empty where it needn't."""
        file = spec.location.file
        return self._given.get(os.path.realpath(os.path.dirname(file)), "") if file else ""  # noqa: PTH120 - as above

    def why_not(self, name: str) -> ToolResult | None:
        """Gives the answer to a call of a tool that isn't there or isn't allowed; None where it can be called."""
        found = self._registry.find(name, self._allow)
        return found if isinstance(found, ToolResult) else None

    def timeout(self, spec: ToolSpec) -> float:
        """Gives the seconds that a call of the tool may take."""
        return self._timeouts.of(spec)

    def info(self, spec: ToolSpec) -> ToolInfo:
        """Gives the tool as a listing shows it; looks for what it needs unless that is known, and then blocks."""
        if not spec.requirements:
            return ToolInfo.of(spec)
        for _ in self._health.check([spec]):
            pass
        return ToolInfo.of(spec, self.state(spec), self._health.rows([spec]))

    def details(self, spec: ToolSpec) -> ToolDetails:
        """Gives all that is known of the tool, its use so far included; as `info`, and reads the history."""
        return ToolDetails(
            **dict(self.info(spec)),
            timeout=self.timeout(spec),
            signature=spec.signature,
            uses=self.uses(spec.name),
        )

    def problems(self, *, packs: bool = True) -> tuple[Problem, ...]:
        """Gives what is wrong with the configuration, the packs, the history and the presets, as far as they were read.

        Args:
            packs: Whether those of packs are wanted, which a call of a tool that was found has nothing to do with.
        """
        of_packs = self._registry.problems() if packs else ()
        stores = (self.__dict__.get(name) for name in ("_history", "_presets"))
        kept = (problem for store in stores if store is not None for problem in store.problems)
        refused = self._grants.problems() if packs and "_grants" in self.__dict__ else ()
        scanned = self._registry.scanned
        rules = self._rules.check(self._registry.tools(), missing=packs) if scanned else self._rules.problems
        return (*self._problems, *of_packs, *refused, *rules, *kept)

    def record_problems(self) -> tuple[Problem, ...]:
        """Return what isn't recorded and what else is wrong with the history, as far as it was used."""
        return self._history.problems if "_history" in self.__dict__ else ()

    def unrecorded(self) -> Problem | None:
        """Return which calls aren't recorded, why, and what to do; None if all are."""
        return self._history.unrecorded if "_history" in self.__dict__ else None

    def watch_record(self, changed: Callable[[], object]) -> None:
        """Call a function, on any thread, whenever `unrecorded` may have changed; it must not block."""
        self._history.on_trouble = changed

    def redacted(self, text: str) -> str:
        """Return a text without the secrets that are known now; reads the disk."""
        return self._redaction.text_now(text)

    async def watch(self) -> AsyncGenerator[None]:
        """Scans and follows the packs folders; never ends by itself.

        Yields after the first scan, and after each live rescan that changed something. Nothing that happens in between
        is missed.
        """
        import asyncio

        stop = asyncio.Event()
        # what the folders are compared with is taken here, before the scan
        changes = await asyncio.to_thread(self._changes, stop)
        try:
            await asyncio.to_thread(self.scan)
            yield
            async for _ in changes:
                if await asyncio.to_thread(self.scan):
                    yield
        finally:
            stop.set()
            await changes.aclose()

    def _changes(self, stop: asyncio.Event) -> AsyncGenerator[frozenset[str]]:
        from pegboard.discovery import watch

        return watch(self.folders, stop=stop)

    def sweep(self) -> None:
        """Deletes files that nobody needs any more: what killed processes left, the index of folders long gone.

        Blocks, for a bounded time; never raises, and takes nothing that another process uses.
        """
        from pegboard.discovery import sweep

        sweep(self.paths.index)
        self._history.sweep()

    # Health; a tool may be named by any of its names, or all tools of a pack by the pack's

    def state(self, spec: ToolSpec) -> ToolState:
        """Gives whether the tool can do its work, as far as was checked; until then it is taken to be ready."""
        return self._health.state(spec) if spec.requirements else "ready"

    def health(self, tool: str | None = None) -> tuple[HealthRow, ...]:
        """Gives what is known of what tools need, in their order; what wasn't looked for yet has no row.

        Args:
            tool: A tool or a pack; every tool that may be used if left out.
        """
        return self._health.rows(self.named(tool))

    def check(self, tool: str | None = None, *, again: bool = False) -> AsyncGenerator[HealthRow]:
        """Looks for what tools need, and yields each row of the report as soon as it is known.

        Closing it ends what still runs.

        Args:
            tool: A tool or a pack; every tool that may be used if left out.
            again: Whether to look again for what is known already.
        """
        return self._health.checking(self.named(tool), again=again)

    def checked(self, tool: str | None = None, *, again: bool = False) -> Generator[HealthRow]:
        """Does what `check` does where there is no loop; blocks between the rows."""
        return self._health.check(self.named(tool), again=again)

    def recheck(self, requirements: Iterable[Requirement]) -> AsyncGenerator[HealthRow]:
        """Looks for these things again, for all tools that need them, as `check` does.

        Args:
            requirements: What tools need, in any tool's words; each thing is looked for once.
        """
        return self._health.checking(self.tools(), again=True, only=requirements)

    def blocked_by(self, requirement: Requirement) -> tuple[str, ...]:
        """Gives the names of the tools that can't work without something."""
        return self._health.blocks(requirement)

    def _find_secret(self, name: str, *, of_folder: bool = False) -> tuple[str | None, str]:
        found = self._secrets.look_up(name, of_folder=of_folder)
        return (None, found.message) if isinstance(found, Problem) else (found.place, "")

    # Calls

    def call(self, call: ToolCall) -> AsyncGenerator[CallEvent]:
        """Takes a call down the road; see `Gateway.call`."""
        return self._gateway.call(call)

    def prepared(self, spec: ToolSpec, arguments: JsonObject) -> JsonObject:
        """Gives arguments as a call of the tool would have them: by the schema's names, with required defaults.

        Raises:
            FormFaults: They don't fit; all faults at once.
        """
        from pegboard.schema.arguments import prepare

        return prepare(spec, arguments)

    async def result(self, call: ToolCall) -> tuple[ToolCall, ToolResult]:
        """Makes a call and gives it as it was made, aliases resolved, with its result."""
        events = [event async for event in self.call(call) if isinstance(event, Finished)]
        return events[-1].call, events[-1].result

    async def cancel(self, call_id: str) -> bool:
        """Ends a running or waiting call, which then finishes as cancelled; False if none of that id runs."""
        if await self._gateway.cancel(call_id):
            return True
        return "_script_gateway" in self.__dict__ and await self._script_gateway.cancel(call_id)

    def approve_with(self, approver: Approver | None, rule_added: Callable[[AddedRule], object] | None = None) -> None:
        """Set who decides on calls that ask first.

        Args:
            approver: Decides on each call. Without one, such calls are rejected.
            rule_added: Receives every rule that an approval adds, and every one that couldn't be added.
        """
        self._gateway.approver = approver
        self._gateway.rule_added = rule_added

    def rule_matches(self, rule: Rule, call: ToolCall) -> bool:
        """Tell whether a rule matches a call of a tool that there is."""
        spec = self.tool(call.name)
        return spec is not None and self._rules.fits(rule, spec, call)

    def undo_rule(self, added: AddedRule) -> None:
        """Remove a rule that an approval added; writes the disk if it is permanent.

        Raises:
            RulesError: It isn't there any more, or the file can't be changed.
        """
        self._rules.remove(added.rule, added.session)

    def would(self, call: ToolCall) -> Verdict | None:
        """Says whether a call of a model or MCP client would run, ask or be refused; reads the disk.

        Gives None if there is no such tool.
        """
        spec = self.tool(call.name)
        return None if spec is None else self._rules.verdict(spec, call)

    def rules(self) -> RuleFile:
        """Gives the rules by which calls of models and MCP clients run, ask or are refused; reads the disk."""
        return self._rules.read()

    def add_rule(self, seen: RuleFile, rule: Rule) -> RuleFile:
        """Adds a rule as the last, which wins over those before it; writes the disk.

        Like every change of a rule, it gives the rules as they are then, and leaves all else in the file as it is.

        Args:
            seen: The rules as they were read.
            rule: The new one.

        Raises:
            RulesError: The file was changed since, its rules are written in an unusual way, or it can't be written.
        """
        return self._rules.change(seen, lambda text: text.with_added(rule))

    def change_rule(self, seen: RuleFile, at: int, rule: Rule) -> RuleFile:
        """Puts a rule in the place of one; see `add_rule`."""
        return self._rules.change(seen, lambda text: text.with_changed(at, rule))

    def remove_rule(self, seen: RuleFile, at: int) -> RuleFile:
        """Throws a rule away, and the comments right above and below it; see `add_rule`."""
        return self._rules.change(seen, lambda text: text.without(at))

    def move_rule(self, seen: RuleFile, at: int, to: int) -> RuleFile:
        """Puts a rule in another place, since of those that fit the last one wins; see `add_rule`."""
        return self._rules.change(seen, lambda text: text.with_moved(at, to))

    # Scripts

    def run_script(
        self, commands: str, *, source: CallSource = "cli", call_id: str | None = None, timeout: float | None = None
    ) -> AsyncGenerator[CallEvent]:
        """Runs a bash script whose commands are the tools that may be used; the user stands behind it.

        It is a call of `script.run`, whatever the allow list says of that name, with what is printed as `Log`s of it,
        and its events contain those of the calls within, which have it as their parent.

        Args:
            commands: The script.
            source: Who runs it.
            call_id: The id that the call gets, to cancel it by.
            timeout: Seconds that it may take; as the configuration says if left out.
        """
        from pegboard.scripts import NAME

        call = ToolCall(name=NAME, args={"commands": commands}, source=source, timeout=timeout)
        return self._script_gateway.call(call if call_id is None else call.model_copy(update={"id": call_id}))

    def orchestrator(self) -> OrchestratorTool:
        """Gives what runs scripts over the tools that may be used now: its commands, its help, what a script calls."""
        return self._scripts.orchestrator()

    def script_of(self, records: Iterable[CallRecord]) -> str:
        """Writes calls of the record as a script that makes them again, the oldest first; blocks for a moment."""
        from pegboard.scripts import script_of

        return script_of(records, self.tool)

    @cached_property
    def saved_scripts(self) -> SavedScripts:
        """The scripts that are kept; all that they do reads or writes the disk."""
        from pegboard.presets import SavedScripts

        return SavedScripts(self.paths.scripts)

    async def prewarm(self) -> None:
        """Starts a worker, so that the first call needn't wait for one."""
        await self._executor.prewarm()

    # Asking a model

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
        """Gives what asks a model within a session; `run` of it says something and yields what happens.

        Args:
            session: The session to go on with, or the id of a new one; one that isn't told to anybody if left out.
            model: `provider:model`, or one that is there; the configured one if left out, without one the offline one.
            base_url: Where an OpenAI-compatible server listens, if not where the configuration says.
            with_tools: Whether the model is offered the tools that may be used.
            without: Names of tools that it isn't offered.
            system: What it is told beforehand, in this session from now on; as it was if left out.
            send_key: As of `model`.
        """
        from pegboard.ask import Ask, Limits

        set_ = self.settings.ask
        return Ask(
            session if session is not None else os.urandom(8).hex(),
            model=lambda: (
                self.model(model, base_url, send_key=send_key) if model is None or isinstance(model, str) else model
            ),
            calls=self._gateway,
            sessions=self.sessions,
            whole=self._whole_text,
            limits=Limits(set_.steps, set_.tokens, set_.seconds, set_.result_limit, set_.turn_bytes, set_.turn_calls),
            with_tools=with_tools,
            without=without,
            parallel=set_.parallel,
            system=system,
            text_calls=self._reads_text_calls,
        )

    def _reads_text_calls(self, model: str) -> bool:
        """Whether the model is configured to write its calls as text; without a configured name, any is."""
        set_ = self.settings.model
        return set_.text_calls and set_.name in {None, model}

    def offered_names(self) -> dict[str, str]:
        """Gives the names of the tools that may be used by those that a model has for them."""
        from pegboard.ask.naming import Offer
        from pegboard.ask.telling import MORE

        return Offer(self.tools(), taken=[MORE]).names

    @property
    def system_prompt(self) -> str:
        """What a model is told beforehand, unless a session says otherwise."""
        from pegboard.ask.conversation import SYSTEM

        return SYSTEM

    def model(self, name: str | None = None, base_url: str | None = None, *, send_key: bool = False) -> Model:
        """Return a language model: the same one for the same name and server, with the connections that it keeps.

        Args:
            name: `provider:model`, or `offline`; the configured one if left out, without one the offline one.
            base_url: Where its server listens, if not where the configuration says.
            send_key: Whether the provider's key goes to `base_url` although it isn't the configured server: only
                where the user named it for this purpose.

        Raises:
            ModelError: There is no such provider, this can't be the name of one of its models, or the configuration
                of models can't be used.
        """
        from pegboard.ask.offline import NAME, OfflineModel

        name = name or self.settings.model.name or NAME
        if name == NAME:
            return OfflineModel()
        from pegboard.ask import providers

        where = self._base_url(name, base_url)
        has_key = send_key or self._is_configured(name, where)
        known = self._models.get((name, where, has_key))
        if known is None:
            is_of_folder = self.settings.is_base_url_from_folder(where)
            key = _no_key if not has_key else self._folder_key if is_of_folder else self._key
            known = providers.model(name, base_url=where, key=key)
        return self._models.setdefault((name, where, has_key), known)

    def _base_url(self, name: str, given: str | None) -> str | None:
        """Return the base URL of a model; only the provider that it was configured for gets the configured one.

        Raises:
            ModelError: `not_configured`, if the configured one can't be read: the question would go elsewhere.
        """
        blocked = self.settings.loaded.model_blocked
        if blocked is not None and not given:
            message = f"No model is used because the configuration of models can't be used: {blocked}"
            raise ModelError(message, code="not_configured")
        return given or self._configured_url(name)

    def _configured_url(self, name: str) -> str | None:
        """Return the configured base URL if it is meant for the provider of a model."""
        from pegboard.ask.providers.naming import is_own_provider

        set_ = self.settings.model
        if (set_.name is None or ":" not in set_.name) and is_own_provider(name.partition(":")[0].strip()):
            return None
        return self.settings.base_url_of(name) or None

    def _is_configured(self, name: str, where: str | None) -> bool:
        """Whether a provider's key is configured for a server: its usual one, or the one that the configuration names.

        Raises:
            ModelError: This is not the name of a model, or not a URL.
        """
        if where is None:
            return True
        from pegboard.ask.providers.naming import endpoint, origin

        configured = self._configured_url(name)
        try:
            usual = endpoint(name, configured)
        except ModelError:
            return False  # a provider that isn't known by name and not configured
        return origin(endpoint(name, where).base_url) == origin(usual.base_url)

    def preload_models(self) -> None:
        """Loads the library that talks to models, as the first turn would; blocks for a second."""
        from pegboard.ask.providers import preload

        preload()

    async def models_here(self) -> AsyncGenerator[LocalServer]:
        """Looks for model servers on this machine, and yields each with its models as soon as it answers."""
        import asyncio

        await asyncio.to_thread(__import__, "pegboard.ask.providers")
        from pegboard.ask.providers import discover
        from pegboard.ask.providers.servers import USUAL_PORTS

        looks = [asyncio.create_task(discover({provider: port})) for provider, port in USUAL_PORTS.items()]
        try:
            for look in asyncio.as_completed(looks):
                for server in await look:
                    yield server
        finally:
            for task in looks:
                task.cancel()
            await asyncio.gather(*looks, return_exceptions=True)

    def model_providers(self) -> tuple[str, ...]:
        """Gives the names of the providers that are known."""
        from pegboard.ask.providers.naming import PROVIDERS

        return tuple(PROVIDERS)

    def model_needs(self, name: str, base_url: str | None = None) -> ModelNeeds:
        """Says what a model needs, and what of that is there; blocks, and up to 30 seconds for a locked keyring.

        Args:
            name: `provider:model`, or `offline`.
            base_url: As of `model`.

        Raises:
            ModelError: This is no model's name, or there is no such provider.
        """
        from pegboard.ask.offline import NAME
        from pegboard.ask.providers.needing import needs
        from pegboard.models.needs import ModelNeeds

        if name == NAME:
            return ModelNeeds(title="Built in", is_local=True)
        where = self._base_url(name, base_url)
        has_key = self._is_configured(name, where)
        of_folder = self.settings.is_base_url_from_folder(where)
        return needs(name, where, lambda secret: self._find_secret(secret, of_folder=of_folder)[0] if has_key else None)

    def price(self, model: str, usage: Usage) -> float | None:
        """Gives what a model was paid for in US dollars, where its prices are known; blocks while they are loaded.

        Args:
            model: `provider:model`.
            usage: What it took.
        """
        from pegboard.ask.providers.price import price

        return price(model, usage)

    def _folder_key(self, name: str) -> str | None:
        """Return a provider's key for a host that the working directory's configuration names."""
        return self._key(name, of_folder=True)

    def _key(self, name: str, *, of_folder: bool = False) -> str | None:
        """Return a provider's key, and redact it everywhere from now on."""
        found = self._secrets.find(name, of_folder=of_folder)
        if found is None:
            return None
        self._redaction.add({name: found.reveal()})
        return found.reveal()

    def _whole_text(self, call_id: str) -> str | None:
        from pegboard.ask.telling import text_of
        from pegboard.results.export import whole

        result = self._history.result(call_id)
        try:
            return None if result is None else text_of(whole(result))
        except (OSError, ValueError):
            return None

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions that are kept; all that they do blocks."""
        from pegboard.history import Sessions

        return Sessions(self._history, self.paths.sessions)

    def exported(self, session: str, kind: Literal["markdown", "json"]) -> str:
        """Gives a session with all that was said as a text for a file; reads the disk.

        Raises:
            SessionError: There is no such session.
            StoreError: The database can't be read.
        """
        from pegboard.ask.export import as_json, as_markdown

        known = self.sessions.get(session)
        if known is None:
            raise SessionError(f"There is no session {session!r}.")
        entries = self.sessions.entries(session)
        return as_markdown(known, entries) if kind == "markdown" else as_json(known, entries)

    # History

    def history(self, *, tool: str | None = None, limit: int = 100) -> Sequence[CallRecord]:
        """Gives the newest records first; reads the disk."""
        return self._history.records(tool=tool, limit=limit)

    def recorded(self, call_id: str) -> ToolResult | None:
        """Gives the result of a past call as it was, if it is kept; reads the disk.

        Raises:
            StoreError: The database can't be read.
        """
        return self._history.result(call_id)

    def uses(self, tool: str) -> ToolUses:
        """Gives how often the tool was called and failed; reads the disk."""
        return self._history.uses(tool)

    def last_arguments(self, tool: str) -> JsonObject | None:
        """Gives the arguments of the tool's last call, if there was one; reads the disk."""
        return self._history.last_arguments(tool)

    # Presets; a tool may be named by any of its names, and needn't be there any more

    def presets(self, tool: str | None = None) -> tuple[Preset, ...]:
        """Gives the presets of a tool, or of all tools, by name; reads the disk.

        What can't be read is among `problems` instead.
        """
        tools = self._presets.tools() if tool is None else (self._full_name(tool),)
        return tuple(preset for name in tools for preset in self._presets.of(name))

    def save_preset(self, tool: str, name: str, arguments: JsonObject, *, replace: bool = True) -> Preset:
        """Keeps arguments under a name, in the place of those that were there if it may; writes the disk.

        Raises:
            PresetError: The name or the arguments can't be kept, the name is taken, or the file can't be written.
        """
        return self._presets.save(self._full_name(tool), name, arguments, replace=replace)

    def delete_preset(self, tool: str, name: str) -> None:
        """Throws a preset away, a damaged one as well; writes the disk.

        Raises:
            PresetError: There is none of that name, or it can't be deleted.
        """
        self._presets.delete(self._full_name(tool), name)

    def rename_preset(self, tool: str, old: str, new: str) -> None:
        """Gives a preset another name; writes the disk.

        Raises:
            PresetError: There is none of the old name, there is one of the new, or it can't be renamed.
        """
        self._presets.rename(self._full_name(tool), old, new)

    def _full_name(self, tool: str) -> str:
        spec = self._registry.get(tool)
        return tool if spec is None else spec.name

    # The parts, built when they are first needed

    @cached_property
    def _presets(self) -> Presets:
        from pegboard.presets import Presets

        return Presets(self.paths.presets)

    @cached_property
    def _history(self) -> History:
        from pegboard.history import History

        return History(self.paths.database, self.paths.results)

    @cached_property
    def _secrets(self) -> Secrets:
        from pegboard.config import Secrets

        return Secrets(self.paths)

    @cached_property
    def _grants(self) -> Grants:
        from pegboard.runtime.grants import Grants

        return Grants(self.settings.packs, self._secrets, self._redaction, of_folder=self.settings.packs_of_folder())

    @cached_property
    def _redaction(self) -> Redaction:
        from pegboard.runtime.redaction import Redaction

        return Redaction(self._secrets, self.settings)

    @cached_property
    def _executor(self) -> Executor:
        from pegboard.executor import Executor

        tools = self.settings.tools
        return Executor(
            results=self.paths.results,
            workers=tools.workers,
            memory_limit=tools.memory_limit,
            log_limit=tools.log_limit,
            result_limit=tools.result_limit,
            environment=self._environment,
            grants=self._grants,
        )

    @cached_property
    def _environment(self) -> dict[str, str]:
        """What of our environment tools see beside the usual variables."""
        return {name: os.environ[name] for name in self.settings.tools.environment if name in os.environ}

    @cached_property
    def _health(self) -> Health:
        from pegboard.executor.environment import reduced
        from pegboard.health import Health

        environ = {**reduced(os.environ), **self._environment}
        return Health(self.tools, find_secret=self._find_secret, environ=environ)

    @cached_property
    def _gateway(self) -> Gateway:
        return Gateway(
            self._registry,
            {"pack": self._executor, **({"script": self._scripts} if self.settings.scripts.offer else {})},
            self._history,
            allow=self._allow,
            timeouts=self._timeouts,
            rules=self._rules,
            readiness=self._health,
            redaction=self._redaction,
            cache=self.settings.ask.cache,
        )

    @cached_property
    def _script_gateway(self) -> Gateway:
        """The road of the user's own scripts, on which there is nothing else."""
        from pegboard.scripts import ScriptSource

        registry = Registry([ScriptSource(self.settings.scripts.seconds)])
        return Gateway(
            registry, {"script": self._scripts}, self._history, timeouts=self._timeouts, redaction=self._redaction
        )

    @cached_property
    def _scripts(self) -> ScriptRunner:
        from pegboard.scripts import Limits, ScriptRunner

        set_ = self.settings.scripts
        return ScriptRunner(lambda: self._gateway, Limits(seconds=set_.seconds, memory=set_.memory))

    @cached_property
    def _rules(self) -> Rules:
        return Rules(self.paths.approvals, self._roots)

    def _roots(self, pack: str) -> tuple[str, ...]:
        """Return the folders that the configuration confines a pack to; none if it doesn't say."""
        listed = self.settings.packs.of(pack).get("roots")
        listed = listed.split(os.pathsep) if isinstance(listed, str) else listed
        return (
            tuple(str(absolute(root)) for root in listed if isinstance(root, str)) if isinstance(listed, list) else ()
        )

    async def close(self) -> None:
        """Ends running calls, worker processes, connections to models and the history's writer."""
        import asyncio

        if "_scripts" in self.__dict__:
            await self._scripts.close()
        if "_executor" in self.__dict__:
            await self._executor.close()
        for model in self._models.values():
            await model.close()
        if "_history" in self.__dict__:
            await asyncio.to_thread(self._history.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
