"""`pegboard config show | set | unset`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pegboard.cli.arguments import complete_settings
from pegboard.cli.root import TOOL_FAILED, USAGE, JsonOption, PacksOption, group, open_runtime

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.config import ShownSetting
    from pegboard.models import Problem
    from pegboard.runtime import Runtime

_STATUS: Final = {
    "used": "",
    "trusted": " (trusted folder)",
    "untrusted": " (not used: folder not trusted)",
    "unknown": " (not used: unknown setting)",
    "ignored": " (not used: only your own configuration sets it)",
    "withheld": " (not used: this folder configures its pack or server)",
}

config = group("config", "Show and change settings, and show where each one is set.")

KeyArgument = Annotated[
    str,
    typer.Argument(
        metavar="KEY", help="Name of the setting in `config show`: model.name.", autocompletion=complete_settings
    ),
]


@config.command()
def show(context: typer.Context, json: JsonOption = False, packs: PacksOption = None) -> None:
    """Print every setting, where it is set, and whether it is used; mask secrets."""
    import json as json_

    from pegboard.cli.output import narrate_problems, print_json
    from pegboard.config import Redactor, Secrets, shown_settings
    from pegboard.results.clean import clean_line

    runtime = open_runtime(context)
    narrate_problems((*runtime.problems(packs=False), *_theme_problems(runtime)))
    settings = [
        _in_use(runtime, setting)
        for setting in shown_settings(runtime.settings, Redactor(Secrets(runtime.paths).known()))
    ]
    if json:
        print_json(settings)
        return
    for setting in settings:
        value = json_.dumps(setting.value, ensure_ascii=False)
        print(clean_line(f"{setting.key} = {value}  # {setting.origin}{_STATUS[setting.status]}"))


@config.command("set", context_settings={"ignore_unknown_options": True})  # the value can be a negative number
def set_(
    context: typer.Context,
    key: KeyArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Text, or JSON for numbers, lists and the like.")],
    packs: PacksOption = None,
) -> None:
    """Set a value in your configuration file; the rest of the file stays as it is.

    Examples: `pegboard config set model.name openai:gpt-5`, `pegboard config set tools.timeout 30`.
    """
    from pegboard.cli.output import narrate, narrate_problems
    from pegboard.config import Redactor, Secrets, shown_settings, typed_value

    runtime = open_runtime(context)
    shown = shown_settings(runtime.settings, Redactor(Secrets(runtime.paths).known()))
    before = next((setting.value for setting in shown if setting.key == key), None)
    typed = typed_value(value, before)
    if typed is None:
        narrate("TOML has no null. To remove the setting, run `pegboard config unset`.")
        raise typer.Exit(USAGE)
    _write(runtime, key, typed, value)
    _warn_about_credentials(runtime, key, typed)
    if key == "ui.theme":
        narrate_problems(_theme_problems(open_runtime(context)))
    elif key.startswith("keys."):
        narrate_problems(
            problem for problem in _key_problems(open_runtime(context)) if key.removeprefix("keys.") in problem.message
        )


@config.command()
def unset(context: typer.Context, key: KeyArgument, packs: PacksOption = None) -> None:
    """Remove a value or a table from your configuration file, so that its default applies."""
    from pegboard.cli.output import narrate
    from pegboard.config import is_set

    runtime = open_runtime(context)
    file = runtime.paths.config_file
    if not is_set(file, key):
        narrate(f"{file} doesn't set {key!r}. `pegboard config show` prints every setting with its origin.")
        raise typer.Exit(USAGE)
    _write(runtime, key, None)


def _write(runtime: Runtime, key: str, value: JsonValue, text: str = "") -> None:
    """Write or remove a value; exit if that fails, and say what overrides it.

    Args:
        runtime: The runtime.
        key: Name of the setting.
        value: The value; None removes it.
        text: The value as text, for a setting that expects text and not a number, such as a variable of a server.
    """
    from pegboard.cli.output import narrate
    from pegboard.config import set_values
    from pegboard.results.clean import clean_line

    file = runtime.paths.config_file
    problem = set_values(file, {key: value})
    if problem is not None and isinstance(value, int | float) and set_values(file, {key: text}) is None:
        problem = None
    if problem is not None:
        narrate(clean_line(str(problem)))
        raise typer.Exit(TOOL_FAILED if problem.file else USAGE)
    origin = runtime.settings.origin(key)
    if origin != "default" and not origin.startswith(str(file)):
        narrate(f"note: {clean_line(origin)} {'still sets' if value is None else 'overrides'} it.")


def _warn_about_credentials(runtime: Runtime, key: str, value: JsonValue) -> None:
    """Print which credentials of a server a new value has written to the file, and where they belong."""
    from pegboard.cli.output import narrate
    from pegboard.config.literal_secrets import without_literals
    from pegboard.results.clean import clean_line

    if not key.startswith("mcp.servers."):
        return
    server, *steps = key.removeprefix("mcp.servers.").split(".")
    for step in reversed(steps):
        value = {step: value}
    if not isinstance(value, dict):
        return
    for literal in without_literals(server, value, lambda _: None)[1]:
        narrate(
            clean_line(
                f"warning: {runtime.paths.config_file} now contains {literal.where} in plain text. Store it with"
                f" `pegboard auth set {literal.name}`, and write ${{{literal.name}}} in its place."
            )
        )


def _in_use(runtime: Runtime, setting: ShownSetting) -> ShownSetting:
    """Return a setting as it is in use: a theme that was chosen in the app replaces the configured one."""
    if setting.key != "ui.theme" or setting.status not in {"used", "trusted"}:
        return setting
    from pegboard.config.theme_choice import ThemeChoice

    file = runtime.paths.state / "theme"
    chosen = ThemeChoice(file, runtime.settings.ui.theme).get()
    if chosen == runtime.settings.ui.theme:
        return setting
    return setting.model_copy(update={"value": chosen, "origin": f"{file} (chosen in the app)", "status": "used"})


def _theme_problems(runtime: Runtime) -> Iterator[Problem]:
    """Yield a warning if the configured theme doesn't exist."""
    settings, folder = runtime.settings, runtime.paths.themes
    if settings.origin("ui.theme") == "default":
        return
    from textual.theme import BUILTIN_THEMES

    from pegboard.tui.shell import themes

    found, damaged = themes.load((themes.shipped(), folder))
    known = {*BUILTIN_THEMES, *(theme.name for theme in found)}
    if settings.ui.theme not in known:
        own = [one for one in damaged if one.file and one.file.endswith(f"{os.sep}{settings.ui.theme}.toml")]
        if own:  # The theme exists, but can't be used.
            yield from own
            return
        from difflib import get_close_matches

        near = get_close_matches(settings.ui.theme, known, n=1)
        fix = f"Did you mean `{near[0]}`?" if near else f"Add it to {folder}."
        yield settings.warning("ui.theme", f"Unknown theme `{settings.ui.theme}`.", fix)


def _key_problems(runtime: Runtime) -> list[Problem]:
    """Return warnings about the keys that the configuration assigns; this imports the interface."""
    from pegboard.tui.app import PegboardApp
    from pegboard.tui.shell.keymap import command_groups, key_problems
    from pegboard.tui.tools.screen import ToolsScreen

    return key_problems(runtime.settings, command_groups(PegboardApp, ToolsScreen))
