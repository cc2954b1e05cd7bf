"""Resources, templates and prompts of an MCP server: forms for their variables, and what they return."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from pydantic import JsonValue
from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.suggester import Suggester
from textual.widgets import Static

from pegboard.models import JsonObject, Problem, ToolSpec
from pegboard.models.server_content import Completion, PromptInfo, ResourceInfo, ResourceTemplate
from pegboard.models.spec import McpHandler
from pegboard.results.clean import clean, clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.dialogs.form_dialog import FormDialog
from pegboard.tui.dialogs.server_resource import open_resource
from pegboard.tui.form import FormPane
from pegboard.tui.form.editors import TextLine
from pegboard.tui.messages import TalkAbout

if TYPE_CHECKING:
    from pegboard.runtime import Runtime

_OFFER_SECONDS = 2.0
"""Time that a dialog waits for the values that the server offers, before it opens without them."""

_Complete = Callable[[str, str, dict[str, str]], Awaitable["Completion | Problem"]]
"""Return completions of an argument's beginning, given the other arguments."""


async def open_item(
    app: App[None], runtime: Runtime, server: str, item: ResourceInfo | ResourceTemplate | PromptInfo
) -> None:
    """Read a resource, or ask for the variables of a template or a prompt first.

    Args:
        app: The running app.
        runtime: Runtime with the servers.
        server: Name of the server's pack.
        item: What to open.
    """
    match item:
        case ResourceInfo(uri=uri):
            await open_resource(app, runtime, server, uri)
        case ResourceTemplate():
            await _open_template(app, runtime, server, item)
        case PromptInfo():
            await _open_prompt(app, runtime, server, item)


async def _open_template(app: App[None], runtime: Runtime, server: str, template: ResourceTemplate) -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in template.variables},
        "required": [name for name in template.variables if name not in template.optional],
        "additionalProperties": False,
    }
    form = await _form(
        runtime, server, template.uri_template, schema, template.description, "Open", f"Resource of {server}"
    )
    values = await app.push_screen_wait(form)
    if values is None:
        return
    uri = await runtime.servers.expand(server, template.uri_template, values)
    if isinstance(uri, Problem):
        _report(app, uri)
    else:
        await open_resource(app, runtime, server, uri)


async def _open_prompt(app: App[None], runtime: Runtime, server: str, prompt: PromptInfo) -> None:
    """Ask for the arguments of a prompt, and insert its text into the prompt of the Chat page."""
    schema: JsonObject = {
        "type": "object",
        "properties": {
            one.name: {"type": "string", "title": one.title, "description": one.description} for one in prompt.arguments
        },
        "required": [one.name for one in prompt.arguments if one.required],
        "additionalProperties": False,
    }
    form = await _form(
        runtime, server, prompt.name, schema, prompt.description, "Send to chat", f"Prompt from {server}"
    )
    values = await app.push_screen_wait(form)
    if values is None:
        return
    filled = await runtime.servers.prompt(server, prompt.name, values)
    if isinstance(filled, Problem):
        _report(app, filled)
        return
    several = len({message.role for message in filled.messages}) > 1
    texts = [
        f"{message.role}:\n{_text(message.content)}" if several else _text(message.content)
        for message in filled.messages
    ]
    app.post_message(TalkAbout(clean("\n\n".join(texts))))


async def _form(
    runtime: Runtime, server: str, of: str, schema: JsonObject, about: str, run: str, title: str
) -> VariablesScreen:
    """Return the dialog for the variables, with the values that the server offers as examples."""

    async def complete(argument: str, value: str, others: dict[str, str]) -> Completion | Problem:
        return await runtime.servers.complete(server, of, argument, value, others)

    status = runtime.servers.status(server)
    offers = status is not None and "completions" in status.capabilities
    properties = schema["properties"]
    assert isinstance(properties, dict), "they were built here"
    if offers:
        try:
            async with asyncio.timeout(_OFFER_SECONDS):
                found = await asyncio.gather(*(complete(name, "", {}) for name in properties))
        except TimeoutError:
            found = []
        for part, offered in zip(properties.values(), found, strict=False):
            if isinstance(offered, Completion) and offered.values and isinstance(part, dict):
                part["examples"] = [*offered.values]
    handler = McpHandler(server=server, tool=of)
    spec = ToolSpec(name=of, pack=server, input_schema=schema, handler=handler)
    return VariablesScreen(spec, about, run, title, complete if offers else None)


class _ServerSuggester(Suggester):
    """Completions of one argument from the server."""

    def __init__(self, suggest: Callable[[str], Awaitable[str | None]]) -> None:
        super().__init__(case_sensitive=True)
        self._suggest = suggest

    async def get_suggestion(self, value: str) -> str | None:
        """Return the first value that the server offers."""
        return await self._suggest(value)


class VariablesScreen(FormDialog[dict[str, str] | None]):
    """A form for the variables of a template or the arguments of a prompt; it returns them, or None.

    Args:
        spec: Its schema, as of a tool.
        about: Description from the server.
        run: Title of the command that returns the values.
        title: Title of the dialog; plain text.
        complete: Returns the server's completions; None if it offers none.
    """

    PAGE = "Variables"

    DEFAULT_CSS = """
    VariablesScreen {
        & > #box { width: 90; max-width: 96%; height: 22; max-height: 92%; }
        #about { height: auto; max-height: 4; padding: 0 1; color: $text-muted; }
        FormPane { height: 1fr; scrollbar-size-vertical: 1; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("variables.run", "ctrl+r,ctrl+j", "run", "Continue", "Use these values.", True, priority=True),
        Command("variables.close", "escape", "close", "Back", "Close without using the values.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, spec: ToolSpec, about: str, run: str, title: str, complete: _Complete | None) -> None:
        form = FormPane("Nothing to fill in.")
        super().__init__(f"{clean_line(title)}: {clean_line(spec.name)}", f"{{variables.run}}: {run}", form)
        self._spec = spec
        self._about = clean(about)
        self._complete = complete

    def compose_body(self) -> ComposeResult:
        """Compose the description and the form."""
        if self._about:
            yield Static(Content(self._about), id="about")
        yield self.form

    def on_mount(self) -> None:
        """Show the form."""
        self.show_form(self._spec)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Let the server complete the focused line."""
        if self._complete is not None and isinstance(event.widget, TextLine):
            event.widget.suggester = _ServerSuggester(self._suggest_for(event.widget))

    def _suggest_for(self, line: TextLine) -> Callable[[str], Awaitable[str | None]]:
        async def suggest(value: str) -> str | None:
            draft = self.form.form.draft() if self.form.form is not None else {}
            name = line.field.name
            others = {key: text for key, text in draft.items() if key != name and isinstance(text, str)}
            assert self._complete is not None, "only with it are lines completed"
            found = await self._complete(name, value, others)
            values = found.values if isinstance(found, Completion) else ()
            return next((one for one in values if one.startswith(value) and one.isprintable()), None)

        return suggest

    def action_run(self) -> None:
        """Close with the values if they are valid."""
        arguments = self.form.submit()
        if arguments is not None:
            self.dismiss({name: value for name, value in arguments.items() if isinstance(value, str)})


def _report(app: App[None], problem: Problem) -> None:
    app.notify(clean_line(str(problem)), severity="error", markup=False)


def _text(content: JsonValue) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)
