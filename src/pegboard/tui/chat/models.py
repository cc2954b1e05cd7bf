"""Dialog to choose a language model: the configured one, those of local servers, or any typed name."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from pegboard.errors import ModelError
from pegboard.models.model_requirements import OFFLINE, ModelRequirements
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, as_word, bindings, first_key
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.keys_line import KeysLine
from pegboard.tui.widgets.pick_list import PickLine, PickList, ranked

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*:\S.*")
_ANY: Final = "…"
"""Placeholder of a model name that the user has to type."""
_ANY_ACCEPTED: Final = "any/any"
"""Model name that every provider accepts, to look up the requirements of a provider."""
_PAUSE = 0.05
"""Delay before the requirements of the selected model are looked up, in seconds."""


class ModelChoice(NamedTuple):
    """A model and its base URL."""

    name: str
    """`provider:model`, or `offline`."""
    base_url: str | None
    """None for the configured or default URL."""


class ModelRow(NamedTuple):
    """A row of the list: a model, or a provider whose model name has to be typed."""

    choice: ModelChoice
    note: str = ""

    @property
    def provider(self) -> str:
        """Provider of a row without a model; empty otherwise."""
        provider, _, model = self.choice.name.partition(":")
        return provider if model == _ANY else ""


class ModelList(PickList):
    """List of models and providers, with an additional first row for a typed name.

    Args:
        current: Name of the current model.
    """

    def __init__(self, current: str) -> None:
        super().__init__(sign=self._sign_of)
        self._current = current
        self._rows: Sequence[ModelRow] = ()
        self._is_moved = False

    @property
    def typed(self) -> str:
        """The typed model name; empty if it is incomplete or already listed."""
        name = self.sought.strip()
        is_new = all(row.choice.name != name for row in self._rows)
        return name if is_new and _NAME.fullmatch(name) else ""

    @property
    def row(self) -> ModelRow | None:
        """The selected row, or None."""
        if self.marked is None:
            return None
        return self._rows[self.marked - 1] if self.marked else ModelRow(ModelChoice(self.typed, None))

    def show_rows(self, rows: Sequence[ModelRow]) -> None:
        """Show the rows and select the current model, unless the user has moved the selection."""
        was_typed, marked = self.marked == 0, self.row.choice if self.row else None
        if not self._is_moved:
            marked = next((row.choice for row in rows if row.choice.name == self._current), marked)
        self._rows = rows
        self._lines = [PickLine(""), *(PickLine(clean_line(row.choice.name), row.note) for row in rows)]
        indexes = {row.choice: index for index, row in enumerate(rows, 1)}
        self._list(0 if was_typed else indexes.get(marked) if marked else None)

    def watch_cursor(self) -> None:
        """Remember that the user moved the selection."""
        self._is_moved = True
        super().watch_cursor()

    def watch_sought(self) -> None:
        """Remember that the user filtered the list."""
        self._is_moved = True
        super().watch_sought()

    def sift(self, query: str) -> list[int]:
        """Return the indexes of matching rows, the typed name first."""
        self._lines = [PickLine(f"use {clean_line(self.typed)}", pinned=True), *self._lines[1:]]
        return [index for index in ranked(query, self._lines) if index or self.typed]

    def _sign_of(self, index: int) -> str:
        if not index:
            return ""
        return "● " if self._rows[index - 1].choice.name == self._current else "  "


class ModelsScreen(Dialog[ModelChoice | None]):
    """Dialog that lists models and returns the chosen one.

    Args:
        runtime: Provides configuration, providers and local servers.
        current: Name of the current model.
    """

    PAGE = "Models"
    AUTO_FOCUS = "ModelList"

    DEFAULT_CSS = """
    ModelsScreen {
        & > #box {
            width: 90; height: 26;
            #search-status { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
            #requirements { height: auto; min-height: 5; max-height: 9; padding: 0 1; background: $panel; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "models.setup",
            "f2",
            "set_up",
            "Set up",
            "Enter provider, base URL and key of the selected model, and test it.",
            footer=True,
        ),
        Command("models.close", "escape", "close", "Close", "Close and keep the current model.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, current: str) -> None:
        super().__init__()
        self._list = ModelList(current)
        self._search_status = Static(id="search-status")
        self._requirements = Static(id="requirements")
        self._runtime = runtime
        self._current = current
        self._servers: dict[str, tuple[str, str, Sequence[str]]] = {}
        """Local servers by provider: title, base URL, names of models."""
        self._is_searching = True
        self._notes: dict[str, str] = {}
        """Status of each provider."""

    def compose(self) -> ComposeResult:
        """Yield the list and the requirements of the selected model."""
        with Vertical(id="box") as box:
            box.border_title = "Models"
            box.border_subtitle = Content(f"● current: {clean_line(self._current)}")
            yield FilterLine("type to filter or enter provider:model")
            yield self._list
            yield self._search_status
            yield self._requirements
            yield KeysLine()

    def on_mount(self) -> None:
        """Show the known models and look for more."""
        self._show()
        self._find_servers()
        self._load_requirements()

    @work(group="servers")
    async def _find_servers(self) -> None:
        """Look for local model servers and list each one that responds."""
        async with aclosing(self._runtime.models.local_servers()) as servers:
            async for server in servers:
                self._servers[server.provider] = (server.title, server.base_url, server.names)
                self._show()
        self._is_searching = False
        self._show()

    @work(group="providers")
    async def _load_requirements(self) -> None:
        """Look up the requirements of each provider."""
        for provider in await asyncio.to_thread(self._runtime.models.providers):
            self._notes.setdefault(provider, "")
        self._show()
        for provider in self._notes:
            try:
                required = await asyncio.to_thread(self._runtime.models.requirements, f"{provider}:{_ANY_ACCEPTED}")
            except ModelError as error:
                self._notes[provider] = clean_line(str(error))
            else:
                self._notes[provider] = _provider_note(required)
            self._show()

    def _show(self) -> None:
        """List the models found so far."""
        set_ = self._runtime.settings.model
        rows = [ModelRow(ModelChoice(OFFLINE, None), "built in, doesn't reason")]
        if set_.name and set_.name != OFFLINE:
            base_url = self._runtime.settings.base_url_of(set_.name)
            rows.insert(0, ModelRow(ModelChoice(set_.name, base_url), "configured"))
        for title, base_url, names in self._servers.values():
            # the configured model is listed already, unless its base URL differs
            known = set_.name if set_.base_url in {None, base_url} else None
            rows += [ModelRow(ModelChoice(name, base_url), f"{title}, local") for name in names if name != known]
        rows += [
            ModelRow(ModelChoice(f"{provider}:{_ANY}", None), "running locally" if provider in self._servers else note)
            for provider, note in self._notes.items()
        ]
        self._list.show_rows(rows)
        found = ", ".join(f"{title} ({count(len(names), 'model')})" for title, _, names in self._servers.values())
        here = f"Local servers: {found}" if found else "" if self._is_searching else "No local model server responds."
        looking = "looking for local model servers…" if self._is_searching else ""
        self._search_status.update(Content(" · ".join(filter(None, [here, looking]))), layout=False)

    # Actions

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Return the chosen model; for a provider, ask for a model name."""
        event.stop()
        row = self._list.row
        if row is not None and row.provider:
            self._list.sought = f"{row.provider}:"
        elif row is not None:
            self._choose(row.choice)

    @work(exclusive=True, group="take")
    async def _choose(self, choice: ModelChoice) -> None:
        """Return a model if it can be created, or show why not."""
        try:
            await asyncio.to_thread(self._runtime.models.get, choice.name, choice.base_url)
        except ModelError as error:
            self.notify(clean_line(f"{error} {error.fix}"), severity="error", markup=False)
        else:
            self.dismiss(choice)

    @work(exclusive=True, group="take")
    async def action_set_up(self) -> None:
        """Set up the selected model, and return it once it is saved."""
        from pegboard.tui.chat.model_setup import ModelSetup

        row = self._list.row
        choice = row.choice if row is not None else ModelChoice("", None)
        name = choice.name.removesuffix(_ANY)
        saved = await self.app.push_screen_wait(ModelSetup(self._runtime, name, choice.base_url))
        if saved is not None:
            self.dismiss(ModelChoice(saved, self._runtime.settings.base_url_of(saved)))

    def action_close(self) -> None:
        """Close without a choice."""
        self.dismiss(None)

    # Display

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()
        self.query_one(FilterLine).show(event.query, f"{event.found:,} of {event.total:,}")

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        self._show_requirements(self._list.row)

    @work(exclusive=True, group="requirements")
    async def _show_requirements(self, row: ModelRow | None) -> None:
        """Show the requirements of the selected model."""
        await asyncio.sleep(_PAUSE)
        text = Content()
        if row is not None:
            try:
                name = f"{row.provider}:{_ANY_ACCEPTED}" if row.provider else row.choice.name
                required = await asyncio.to_thread(self._runtime.models.requirements, name, row.choice.base_url)
            except ModelError as error:
                text = Content.assemble((f"✗ {error}", "$text-error"), f"\n{error.fix}")
            else:
                key = as_word(first_key(self._list, "pick.choose"))
                text = _requirements_text(
                    row, required, key, answers=row.choice.name.partition(":")[0] in self._servers
                )
        self._requirements.update(text)


def _provider_note(required: ModelRequirements) -> str:
    """Return what a provider requires, or where its key comes from."""
    if required.extra:
        return f"requires pegboard[{required.extra}]"
    if required.secret_place:
        return clean_line(f"key from {required.secret_place}")
    if required.needs_key:
        return f"requires {required.secret}"
    return "requires a local server" if required.is_local else "no key required"


def _requirements_text(row: ModelRow, required: ModelRequirements, key: str, *, answers: bool) -> Content:
    """Return the requirements of a model, and how to meet the missing ones."""
    title = Content.assemble((clean_line(row.choice.name), "bold"))
    if row.choice.name == OFFLINE:
        return title + "\nRequires no key and no network. It doesn't reason: it matches your words to tools."
    where = f" at {required.where}" if required.where else ""
    lines = [title + Content.styled(f"  {clean_line(required.title)}{where}", "$text-muted")]
    if row.provider:
        lines.append(Content(f"Press {key}, then type the name of the model."))
    if required.extra:
        lacks = f"✗ Library not installed. Run `{required.install}`."
        lines.append(Content.styled(lacks, "$text-warning"))
    if required.secret_place:
        lines.append(Content.styled(f"✓ {required.secret} from {clean_line(required.secret_place)}", "$text-success"))
    elif required.needs_key:
        lacks = f"✗ {required.secret} is not set. Run `pegboard auth set {required.secret}`."
        lines.append(Content.styled(lacks, "$text-warning"))
    else:
        lines.append(Content(f"No key required; {required.secret} is sent if set."))
    if required.start and not answers:
        lines.append(Content(f"Start its server with {required.start}."))
    return Content("\n").join(lines)
