"""MCP servers of the configuration: add one, remove one, and apply changes of the file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from textual import work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.notifications import SeverityLevel
from textual.widgets import Button, Static

from pegboard.config.new_servers import command_from_here, relative_file
from pegboard.config.paths import absolute, working_directory
from pegboard.config.servers import target_keys
from pegboard.models import JsonObject, Problem, ServerConfig, ToolSpec
from pegboard.models.spec import McpHandler
from pegboard.results.clean import clean_line
from pegboard.tui.commands import Command, bindings
from pegboard.tui.dialogs.confirm import Confirm
from pegboard.tui.dialogs.form_dialog import FormDialog
from pegboard.tui.widgets.question import QuestionScreen

if TYPE_CHECKING:
    from pegboard.runtime import Runtime
    from pegboard.runtime.configured_servers import ServerChange

_OTHER_KEYS: Final = ("env", "headers", "cwd", "oauth", "protocol", "roots", "timeout", "tools", "trusted")
_TEXTS: Final[JsonObject] = {"type": "object", "additionalProperties": {"type": "string"}}
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Name of the pack with its tools, such as `files`."},
        "server": {
            "type": "string",
            "description": "Command that starts the server, or its URL.",
            "examples": ["npx -y @modelcontextprotocol/server-everything", "https://example.com/mcp"],
        },
        "env": {**_TEXTS, "description": "Environment variables of the command; `${NAME}` inserts a secret."},
        "headers": {**_TEXTS, "description": "Headers of requests to the URL; `${NAME}` inserts a secret."},
        "cwd": {"type": "string", "description": "Folder in which the command starts."},
    },
    "required": ["name", "server"],
    "additionalProperties": False,
}


class AddServerScreen(FormDialog[str | None]):
    """A form that adds an MCP server to the configuration file; it returns the name of the server.

    Args:
        runtime: Runtime with the servers.
    """

    PAGE = "Add MCP server"
    DEFAULT_CSS = """
    AddServerScreen {
        & > #box { width: 90; max-width: 96%; height: 24; max-height: 92%; padding: 0 1; }
        FormPane { height: 1fr; scrollbar-size-vertical: 1; }
        #problem { height: auto; max-height: 4; padding: 0 1; color: $text-error; }
        #foot { margin: 0 0 1 0; }
        Button { margin-left: 2; min-width: 10; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command(
            "server.add",
            "ctrl+r,ctrl+s,ctrl+j",
            "add",
            "Add",
            "Add the server and connect to it.",
            footer=True,
            priority=True,
        ),
        Command("server.close", "escape", "close", "Close", "Close without adding a server.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("Add MCP server")
        self._runtime = runtime
        self._problem = Static(id="problem")

    def compose_body(self) -> ComposeResult:
        """Compose the form, the reason why a server can't be added, and the buttons."""
        yield self.form
        yield self._problem
        with Horizontal(id="foot"):
            yield Button(Content("Close"), id="close", compact=True)
            yield Button(Content("Add"), id="add", variant="primary", compact=True)

    def on_mount(self) -> None:
        """Show the form."""
        self._problem.display = False
        handler = McpHandler(server="servers", tool="add")
        self.show_form(ToolSpec(name="servers.add", pack="servers", input_schema=_SCHEMA, handler=handler))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Add the server, or close."""
        event.stop()
        if event.button.id == "add":
            self.action_add()
        else:
            self.action_close()

    @work(group="add server")
    async def action_add(self) -> None:
        """Add the server if the form is valid; show why it can't be added."""
        values = self.form.submit()
        if values is None:
            return
        name = str(values["name"])
        try:
            entry = _entry(values)
        except ValueError as error:
            self._report(Problem(message=f"The command can't be parsed: {error}.", fix="Check its quotes."))
            return
        added = await self._runtime.servers.configured.add(name, entry)
        if isinstance(added, Problem):
            self._report(added)
            return
        show_notes(self.app, added)
        self.dismiss(name)

    def _report(self, problem: Problem) -> None:
        self._problem.display = True
        self._problem.update(Content(clean_line(str(problem))))


class ServerChangesScreen(QuestionScreen[bool]):
    """The servers that would start and end, in full. The focus is on the text, which only scrolls.

    Args:
        lines: What would happen to each server; plain text.
        title: The question.
    """

    PAGE = "Changed MCP servers"
    AUTO_FOCUS = "#changes"
    ANSWERS = ("servers.apply",)
    DEFAULT_CSS = """
    ServerChangesScreen {
        & > #box { width: 80; max-width: 96%; height: auto; max-height: 92%; padding: 0 1; border: round $warning; }
        #changes { height: auto; max-height: 1fr; margin-top: 1; scrollbar-size-vertical: 1; }
        #changes Static { height: auto; }
        Button { margin-left: 2; min-width: 10; }
    }
    """
    ACTIONS: ClassVar[tuple[Command, ...]] = (
        Command("servers.apply", "ctrl+y", "answer(True)", "Apply", "Start and end these servers.", footer=True),
        Command("servers.keep", "n,escape", "answer(False)", "Close", "Close without applying.", footer=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(ACTIONS)

    def __init__(self, lines: list[str], title: str = "Apply the changed MCP servers?") -> None:
        super().__init__(title)
        self._lines = lines

    def compose_body(self) -> ComposeResult:
        """Compose the changes and the buttons."""
        with VerticalScroll(id="changes"):
            for line in self._lines:
                yield Static(Content(line))
        with Horizontal(id="foot"):
            yield Button(Content("Close"), id="close", compact=True)
            yield Button(Content("Apply"), id="apply", variant="warning", compact=True)

    def answer_by_button(self, button: str) -> None:
        """Close with the answer of a button."""
        self.dismiss(button == "apply")

    def action_answer(self, apply: bool) -> None:
        """Close with the answer."""
        self.dismiss(apply)


def show_notes(app: App[None], notes: Iterable[str]) -> None:
    """Show what the user should know about an added server.

    Args:
        app: The running app.
        notes: As `ConfiguredServers.add` returns them.
    """
    for note in notes:
        severity: SeverityLevel = "warning" if note.startswith("warning: ") else "information"
        app.notify(clean_line(note.removeprefix("warning: ")), severity=severity, markup=False)


async def apply_changes(app: App[None], runtime: Runtime) -> None:
    """Show how the servers in the configuration differ from those in use, and apply that if the user agrees.

    Args:
        app: The running app.
        runtime: Runtime with the servers.
    """
    configured = runtime.servers.configured
    changes = await asyncio.to_thread(configured.changes)
    if isinstance(changes, Problem):
        _report(app, changes)
        return
    if not changes:
        app.notify("The MCP servers are as configured.")
        return
    lines = await asyncio.to_thread(lambda: [_line(runtime, change) for change in changes])
    if await app.push_screen_wait(ServerChangesScreen(lines)):
        problem = await configured.apply(changes)
        if problem is not None:
            _report(app, problem)


async def remove_server(app: App[None], runtime: Runtime, name: str) -> None:
    """Remove a server from the configuration file if the user confirms it.

    Args:
        app: The running app.
        runtime: Runtime with the servers.
        name: The server.
    """
    file = runtime.paths.config_file
    question = f"{clean_line(name)} is removed from {file}, and its running calls fail. Its secrets stay."
    if await app.push_screen_wait(Confirm("Remove MCP server?", question, "Remove")):
        problem = await runtime.servers.configured.remove(name)
        if problem is not None:
            _report(app, problem)


def _entry(values: JsonObject) -> dict[str, object]:
    """Return the keys of a server in the configuration.

    Raises:
        ValueError: A quote of the command isn't closed.
    """
    entry = target_keys(str(values["server"]).strip())
    here = working_directory()
    args = entry.get("args", [])
    words = [str(entry.get("command", "")), *map(str, args if isinstance(args, list) else [])]
    if "command" in entry:
        entry["command"] = command_from_here(words[0])
    if values.get("cwd"):
        entry["cwd"] = str(absolute(str(values["cwd"]), here))
    elif relative_file(words):
        entry["cwd"] = str(here)  # else the file would be found only if Pegboard starts here
    return {**entry, **{key: values[key] for key in ("env", "headers") if values.get(key)}}


def _line(runtime: Runtime, change: ServerChange) -> str:
    """Return what applying a change does, with the names of the other keys that it changes."""
    name, after = clean_line(change.name), change.after
    is_used = change.before is not None and change.before.enabled and change.before.problem is None
    if after is None or not after.enabled or after.problem is not None:
        why = "" if after is None or after.problem is None else f": {clean_line(after.problem.message)}"
        return f"{'Stop' if is_used else 'Remove' if after is None else 'Do not start'} {name}{why}"
    verb = "Restart" if is_used else "Start"
    before = change.before or ServerConfig()
    keys = [key for key in _OTHER_KEYS if getattr(before, key) != getattr(after, key)]
    more = f" ({', '.join(keys)})" if keys else ""
    rules = clean_line(runtime.rules.existing(change.name))
    target = runtime.servers.configured.target(after.command, after.args, after.url)
    start = f"{verb} {name}: {clean_line(target)}{more}"
    return f"{start}\n{rules}" if rules else start


def _report(app: App[None], problem: Problem) -> None:
    app.notify(clean_line(str(problem)), severity="error", markup=False)
