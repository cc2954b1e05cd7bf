"""`pegboard config show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import typer

from pegboard.cli.root import JsonOption, PacksOption, group, open_runtime

if TYPE_CHECKING:
    from pegboard.config import ShownSetting
    from pegboard.models import Problem
    from pegboard.runtime import Runtime

_STATUS: Final = {
    "used": "",
    "trusted": " (trusted folder)",
    "untrusted": " (not used: folder not trusted)",
    "unknown": " (not used: unknown setting)",
}

config = group("config", "Show settings and where each one is set.")


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

    known = {*BUILTIN_THEMES, *(theme.name for theme in themes.load((themes.shipped(), folder))[0])}
    if settings.ui.theme not in known:
        from difflib import get_close_matches

        near = get_close_matches(settings.ui.theme, known, n=1)
        fix = f"Did you mean `{near[0]}`?" if near else f"Add it to {folder}."
        yield settings.warning("ui.theme", f"Unknown theme `{settings.ui.theme}`.", fix)
