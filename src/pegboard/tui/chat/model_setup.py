"""Dialog to set up a language model: provider, model, base URL and key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import JsonValue
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Label, Static

from pegboard.config import Secrets, set_values
from pegboard.errors import ModelError
from pegboard.models import Problem
from pegboard.models.model_requirements import OFFLINE
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.form.lines import SELECT_ALL
from pegboard.tui.widgets.dialog import Dialog

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_PAUSE: Final = 0.3
"""Delay after typing before the requirements are looked up, in seconds."""


class _Entry(Input):
    """Input of one setting."""

    BINDINGS: ClassVar[list[BindingType]] = [SELECT_ALL]


class ModelSetup(Dialog[str | None]):
    """Dialog that writes the model to the user's configuration and its key to the keyring; it returns the name.

    Args:
        runtime: Provides configuration, providers and secrets.
        name: `provider:model` to start with.
        base_url: Base URL to start with.
    """

    PAGE = "Model setup"
    AUTO_FOCUS = "#model"

    DEFAULT_CSS = """
    ModelSetup {
        & > #box { width: 80; height: auto; padding: 0 1; overflow-y: auto; scrollbar-size-vertical: 1; }
        Horizontal { height: auto; }
        Label { width: 12; color: $text-primary; padding: 0 1; }
        Input, Input:focus {
            border: none; border-left: outer $border; height: 1; padding: 0 1; background: $panel; width: 1fr;
        }
        #hint { height: auto; min-height: 4; padding: 1 1 0 1; }
        #outcome { height: auto; padding: 0 1; }
        Button { margin-left: 2; min-width: 10; }
    }
    """

    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("model.save", "ctrl+s", "save", "Save", "Save the model and its key.", footer=True, priority=True),
        Command("model.test", "ctrl+r", "test", "Test", "Send a short question.", footer=True, priority=True),
        Command("model.close", "escape", "close", "Close", "Close without saving.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime, name: str = "", base_url: str | None = None) -> None:
        super().__init__("Model setup")
        self._runtime = runtime
        provider, _, model = ("", "", "") if name == OFFLINE else name.partition(":")
        self._provider = _Entry(
            provider, placeholder="openai, anthropic, ollama … or a name of your own", id="provider"
        )
        self._model = _Entry(model, placeholder="name of the model, as the provider writes it", id="model")
        self._base_url = _Entry(base_url or "", placeholder="only for your own server: https://host/v1", id="base-url")
        self._key = _Entry("", placeholder="unchanged", password=True, id="key")
        self._hint = Static(id="hint")
        self._outcome = Static(id="outcome")

    def compose_body(self) -> ComposeResult:
        """Compose the inputs, what the model requires, and the buttons."""
        for label, entry in (
            ("Provider", self._provider),
            ("Model", self._model),
            ("Base URL", self._base_url),
            ("Key", self._key),
        ):
            with Horizontal():
                yield Label(Content(label))
                yield entry
        yield self._hint
        with Vertical(id="foot"):
            yield self._outcome
            with Horizontal():
                yield Button(Content("Close"), id="close", compact=True)
                yield Button(Content("Test"), id="test", compact=True)
                yield Button(Content("Save"), id="save", variant="primary", compact=True)

    def on_mount(self) -> None:
        """Look up the requirements; focus the provider if it is not known yet."""
        self._look_up()
        if not self._provider.value:
            self._provider.focus()

    @property
    def _chosen_name(self) -> str:
        return f"{self._provider.value.strip()}:{self._model.value.strip()}"

    @property
    def _chosen_url(self) -> str | None:
        return self._base_url.value.strip() or None

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.workers.cancel_group(self, "test")  # its outcome would be that of other settings
        self._outcome.update("")
        self._look_up()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus_next()

    @work(exclusive=True, group="requirements")
    async def _look_up(self) -> None:
        """Show what the model requires, and to which host its key goes."""
        await asyncio.sleep(_PAUSE)
        if not (self._provider.value.strip() and self._model.value.strip()):
            known = ", ".join(await asyncio.to_thread(self._runtime.models.providers))
            self._hint.update(Content.styled(f"Providers: {known}. Any other name needs a base URL.", "$text-muted"))
            return
        try:
            required = await asyncio.to_thread(self._runtime.models.requirements, self._chosen_name, self._chosen_url)
        except ModelError as error:
            self._hint.update(
                Content.assemble((f"✗ {clean_line(str(error))}", "$text-error"), f"\n{clean_line(error.fix)}")
            )
            return
        where = f" at {required.where}" if required.where else ""
        lines = [clean_line(required.title + where)]
        if required.extra:
            lines.append(f"✗ Library not installed. Run `{required.install}`.")
        if required.secret_place:
            lines.append(f"✓ {required.secret} from {clean_line(required.secret_place)}")
        elif required.needs_key:
            lines.append(f"✗ {required.secret} is not set. Enter the key above; it is stored in the keyring.")
        if self._key.value:
            lines.append(f"The key is stored as {required.secret} and sent only to {clean_line(required.where)}.")
        self._hint.update(Content("\n".join(lines)))

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        match event.button.id:
            case "save":
                self.action_save()
            case "test":
                self.action_test()
            case _:
                self.action_close()

    # Actions

    def _show_outcome(self, text: str, style: str) -> None:
        self._outcome.update(Content.styled(clean_line(text), style))

    def _is_named(self) -> bool:
        """Return whether the model has a name; otherwise focus the field that lacks it and say so."""
        for entry, what in ((self._provider, "provider"), (self._model, "model")):
            if not entry.value.strip():
                self._show_outcome(f"✗ Enter the name of the {what}.", "$text-error")
                entry.focus()
                return False
        return True

    @work(exclusive=True, group="test")
    async def action_test(self) -> None:
        """Send a short question to the model with these settings, without saving them."""
        if not self._is_named():
            return
        self._show_outcome("Testing…", "$text-muted")
        try:
            await self._runtime.models.check(self._chosen_name, self._chosen_url, self._key.value or None)
        except ModelError as error:
            self._show_outcome(f"✗ {error} {error.fix}", "$text-error")
        else:
            self._show_outcome(f"✓ {self._chosen_name} answers.", "$text-success")

    @work(exclusive=True, group="save")
    async def action_save(self) -> None:
        """Write the model to the configuration and the key to the keyring."""
        if not self._is_named():
            return
        name, url, key = self._chosen_name, self._chosen_url, self._key.value
        try:
            required = await asyncio.to_thread(self._runtime.models.requirements, name, url)
        except ModelError as error:
            self._show_outcome(f"✗ {error} {error.fix}", "$text-error")
            return
        problem: Problem | None = None
        if key:
            problem = await asyncio.to_thread(Secrets(self._runtime.paths).set, required.secret, key)
        if problem is None:
            values: dict[str, JsonValue] = {"model.name": name, "model.base_url": url}
            problem = await asyncio.to_thread(set_values, self._runtime.paths.config_file, values)
        if problem is not None:
            self._show_outcome(f"✗ {problem}", "$text-error")
            return
        await self._runtime.reload()
        settings = self._runtime.settings
        if (settings.model.name, settings.model.base_url) != (name, url):
            origin = settings.origin("model.name" if settings.model.name != name else "model.base_url")
            self.notify(f"{clean_line(origin)} overrides the saved model.", severity="warning", markup=False)
        self.dismiss(name)
