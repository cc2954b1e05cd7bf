"""The language models to choose from: the configured one, those of this machine, and whatever is typed."""

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
from pegboard.models.model_requirements import ModelNeeds
from pegboard.results.clean import clean_line
from pegboard.results.sizes import count
from pegboard.tui.commands import Command, bindings
from pegboard.tui.shell.footer import KeysLine
from pegboard.tui.widgets.dialog import Dialog
from pegboard.tui.widgets.filter_line import FilterLine
from pegboard.tui.widgets.pick_list import PickLine, PickList, ranked

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_OFFLINE: Final = "offline"
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*:\S.*")
_ANY: Final = "…"
"""Stands for a model that is still to be typed."""
_PAUSE = 0.05
"""Seconds without a key before it is looked up what the marked model needs."""


class ModelChoice(NamedTuple):
    """A model, and where it is."""

    name: str
    """`provider:model`, or `offline`."""
    base_url: str | None
    """None where the configuration says, or the provider is in its usual place."""


class Row(NamedTuple):
    """A model that can be chosen, or a provider whose models have to be typed."""

    choice: ModelChoice
    note: str = ""

    @property
    def provider(self) -> str:
        """The provider whose models have to be typed; empty where a model is chosen."""
        provider, _, model = self.choice.name.partition(":")
        return provider if model == _ANY else ""


class ModelList(PickList):
    """Models and providers; a model that is typed and isn't among them stands before them.

    Args:
        current: The name of the model that is used now.
    """

    def __init__(self, current: str) -> None:
        super().__init__(sign=self._sign_of)
        self._current = current
        self._rows: Sequence[Row] = ()
        self._is_moved = False

    @property
    def typed(self) -> str:
        """The name that is typed, if it is one and none of those that are listed."""
        name = self.sought.strip()
        is_new = all(row.choice.name != name for row in self._rows)
        return name if is_new and _NAME.fullmatch(name) else ""

    @property
    def row(self) -> Row | None:
        """The marked row; None if there is none."""
        if self.marked is None:
            return None
        return self._rows[self.marked - 1] if self.marked else Row(ModelChoice(self.typed, None))

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Shows these. The mark is on the current model as soon as that is there; once it was moved, it stays."""
        is_typed, marked = self.marked == 0, self.row.choice if self.row else None
        if not self._is_moved:
            marked = next((row.choice for row in rows if row.choice.name == self._current), marked)
        self._rows = rows
        self._lines = [PickLine(""), *(PickLine(clean_line(row.choice.name), row.note) for row in rows)]
        places = {row.choice: place for place, row in enumerate(rows, 1)}
        self._list(0 if is_typed else places.get(marked) if marked else None)

    def watch_cursor(self) -> None:
        """Notes that the user moved the mark."""
        self._is_moved = True
        super().watch_cursor()

    def watch_sought(self) -> None:
        """Notes that the user is looking for another one."""
        self._is_moved = True
        super().watch_sought()

    def sift(self, query: str) -> list[int]:
        """Gives the indexes of what fits, the name that is typed before all others."""
        self._lines = [PickLine(f"use {clean_line(self.typed)}", pinned=True), *self._lines[1:]]
        return [index for index in ranked(query, self._lines) if index or self.typed]

    def _sign_of(self, index: int) -> str:
        if not index:
            return ""
        return "● " if self._rows[index - 1].choice.name == self._current else "  "


class ModelsScreen(Dialog[ModelChoice | None]):
    """Lists the models; closes with the one that is to be asked from now on.

    Args:
        runtime: For the configuration, and for what is there.
        current: The name of the model that is used now.
    """

    PAGE = "Models"
    AUTO_FOCUS = "ModelList"

    DEFAULT_CSS = """
    ModelsScreen {
        align: center middle;
        background: $background 60%;
        #box {
            width: 90; max-width: 94%; height: 26; max-height: 90%; background: $surface;
            border: round $border; border-title-color: $text-primary; border-title-style: bold;
            border-subtitle-color: $text-muted;
            #looking { height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
            #needs { height: 5; padding: 0 1; background: $panel; }
        }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("models.close", "escape", "close", "Close", "Go back and keep the model.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, current: str) -> None:
        super().__init__()
        self._list = ModelList(current)
        self._looking = Static(id="looking")
        self._needs = Static(id="needs")
        self._runtime = runtime
        self._current = current
        self._here: dict[str, tuple[str, str, Sequence[str]]] = {}
        """The servers of this machine by their providers: title, base URL, names of models."""
        self._is_looking = True
        self._notes: dict[str, str] = {}
        """What is known of each provider, by name."""

    def compose(self) -> ComposeResult:
        """The list over what the marked model needs."""
        with Vertical(id="box") as box:
            box.border_title = "Models"
            box.border_subtitle = Content(f"● now {clean_line(self._current)}")
            yield FilterLine("type to filter, or any provider:model")
            yield self._list
            yield self._looking
            yield self._needs
            yield KeysLine()

    def on_mount(self) -> None:
        """Lists what is known, and looks for the rest."""
        self._show()
        self._look()
        self._ask_around()

    @work(group="look")
    async def _look(self) -> None:
        """Looks for the model servers of this machine; lists each as soon as it answers."""
        async with aclosing(self._runtime.models.local_servers()) as servers:
            async for server in servers:
                self._here[server.provider] = (server.title, server.base_url, server.names)
                self._show()
        self._is_looking = False
        self._show()

    @work(group="providers")
    async def _ask_around(self) -> None:
        """Finds out what each provider lacks."""
        for provider in await asyncio.to_thread(self._runtime.models.providers):
            self._notes.setdefault(provider, "")
        self._show()
        for provider in self._notes:
            try:
                needs = await asyncio.to_thread(self._runtime.models.requirements, f"{provider}:{_ANY}")
            except ModelError as error:
                self._notes[provider] = clean_line(str(error))
            else:
                self._notes[provider] = _note(needs)
            self._show()

    def _show(self) -> None:
        """Lists what is known by now."""
        set_ = self._runtime.settings.model
        rows = [Row(ModelChoice(_OFFLINE, None), "built in, doesn't reason")]
        if set_.name and set_.name != _OFFLINE:
            base_url = self._runtime.settings.base_url_of(set_.name)
            rows.insert(0, Row(ModelChoice(set_.name, base_url), "configured"))
        for title, base_url, names in self._here.values():
            # the configured one is there already, unless it is said to be elsewhere
            known = set_.name if set_.base_url in {None, base_url} else None
            rows += [Row(ModelChoice(name, base_url), f"{title}, here") for name in names if name != known]
        rows += [
            Row(ModelChoice(f"{provider}:{_ANY}", None), "answers here" if provider in self._here else note)
            for provider, note in self._notes.items()
        ]
        self._list.show_rows(rows)
        found = ", ".join(f"{title} ({count(len(names), 'model')})" for title, _, names in self._here.values())
        here = f"On this machine: {found}" if found else "" if self._is_looking else "No model server answers here."
        looking = "looking for model servers on this machine…" if self._is_looking else ""
        self._looking.update(Content(" · ".join(filter(None, [here, looking]))), layout=False)

    # What the user does

    @on(PickList.Chosen)
    def _chosen(self, event: PickList.Chosen) -> None:
        """Closes with the chosen model; of a provider, lets its model be typed."""
        event.stop()
        row = self._list.row
        if row is not None and row.provider:
            self._list.sought = f"{row.provider}:"
        elif row is not None:
            self._take(row.choice)

    @work(exclusive=True, group="take")
    async def _take(self, choice: ModelChoice) -> None:
        """Closes with a model, if there can be one of that name."""
        try:
            await asyncio.to_thread(self._runtime.models.get, choice.name, choice.base_url)
        except ModelError as error:
            self.notify(clean_line(f"{error} {error.fix}"), severity="error", markup=False)
        else:
            self.dismiss(choice)

    def action_close(self) -> None:
        """Closes without a model."""
        self.dismiss(None)

    # What is seen

    @on(PickList.Filtered)
    def _filtered(self, event: PickList.Filtered) -> None:
        event.stop()
        listed = event.total - 1
        self.query_one(FilterLine).show(event.query, f"{event.found - bool(self._list.typed):,} of {listed:,}")

    @on(PickList.Marked)
    def _marked(self, event: PickList.Marked) -> None:
        event.stop()
        self._tell(self._list.row)

    @work(exclusive=True, group="needs")
    async def _tell(self, row: Row | None) -> None:
        """Says what the marked model needs."""
        await asyncio.sleep(_PAUSE)
        said = Content()
        if row is not None:
            try:
                needs = await asyncio.to_thread(self._runtime.models.requirements, *row.choice)
            except ModelError as error:
                said = Content.assemble((f"✗ {error}", "$text-error"), f"\n{error.fix}")
            else:
                said = _told(row, needs, answers=row.choice.name.partition(":")[0] in self._here)
        self._needs.update(said)


def _note(needs: ModelNeeds) -> str:
    """Says in few words what a provider lacks, or where its key comes from."""
    if needs.extra:
        return f"needs pegboard[{needs.extra}]"
    if needs.secret_place:
        return clean_line(f"key from {needs.secret_place}")
    return f"needs {needs.secret}" if needs.needs_key else "needs a local server" if needs.is_local else "needs no key"


def _told(row: Row, needs: ModelNeeds, *, answers: bool) -> Content:
    """Says what a model needs, what of that is there, and what to do about the rest."""
    title = Content.assemble((clean_line(row.choice.name), "bold"))
    if row.choice.name == _OFFLINE:
        return title + "\nNeeds neither key nor network. It doesn't reason: it matches your words to tools."
    where = f" at {needs.where}" if needs.where else ""
    lines = [title + Content.styled(f"  {clean_line(needs.title)}{where}", "$text-muted")]
    if row.provider:
        lines.append(Content("Enter, then type the model's name."))
    if needs.extra:
        lacks = f"✗ Its library isn't installed: `pip install 'pegboard[{needs.extra}]'`"
        lines.append(Content.styled(lacks, "$text-warning"))
    if needs.secret_place:
        lines.append(Content.styled(f"✓ {needs.secret} from {clean_line(needs.secret_place)}", "$text-success"))
    elif needs.needs_key:
        lacks = f"✗ {needs.secret} is not set: `pegboard auth set {needs.secret}`"
        lines.append(Content.styled(lacks, "$text-warning"))
    else:
        lines.append(Content(f"Needs no key; {needs.secret} is sent where it is set."))
    if needs.start and not answers:
        lines.append(Content(f"Its server is started by {needs.start}."))
    return Content("\n").join(lines)
