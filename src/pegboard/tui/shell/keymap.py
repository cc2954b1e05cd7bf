"""Problems with the keys that the user remapped in `[keys]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pkgutil import walk_packages
from typing import TYPE_CHECKING

from textual.dom import DOMNode
from textual.screen import Screen

import pegboard.tui
from pegboard.tui.commands import Command
from pegboard.tui.keys import is_for_focus, is_key, key_names, nearest_key
from pegboard.tui.shell.app_commands import APP_COMMANDS

if TYPE_CHECKING:
    from pegboard.config import Settings
    from pegboard.models import Problem

CommandGroup = tuple[str, Sequence[Command]]
"""Name of a widget class, and the commands that are available while it has the focus."""

_CONTENTS = {
    "ToolsScreen": ("tools", "form", "result"),
    "ChatScreen": ("chat",),
    "ScriptScreen": ("script", "result"),
    "HealthScreen": ("health",),
    "ActivityScreen": ("activity", "result"),
    "FormPane": ("form",),
    "ResultPane": ("result",),
}
"""Packages whose widgets are in a page or pane. A key of such a widget hides a command of the page or pane."""


def command_groups(*everywhere: type[DOMNode]) -> list[CommandGroup]:
    """Import every module of the interface, which takes about a second, and return the commands of all its classes.

    Args:
        everywhere: Classes that form one group, because their keys are always available: the app and its main page.
    """
    for module in walk_packages(pegboard.tui.__path__, f"{pegboard.tui.__name__}."):
        import_module(module.name)
    common = tuple(command for cls in everywhere for command in vars(cls)["ACTIONS"])
    others = [
        (cls.__name__, tuple(vars(cls)["ACTIONS"]))
        for cls in sorted(_subclasses(DOMNode), key=lambda cls: cls.__qualname__)
        if "ACTIONS" in vars(cls) and cls not in everywhere
    ]
    return [("everywhere", common), *others, *_nested_groups()]


def _nested_groups() -> list[CommandGroup]:
    """Return the commands of each page, pane or dialog with a list together with those of each widget in it."""
    from pegboard.tui.widgets.dialog import ListDialog
    from pegboard.tui.widgets.pick_list import PickList

    classes = sorted((cls for cls in _subclasses(DOMNode) if "ACTIONS" in vars(cls)), key=lambda cls: cls.__qualname__)
    widgets = [cls for cls in classes if not issubclass(cls, Screen) and not cls.__name__.startswith("_")]
    pairs = [
        (outer, inner)
        for outer in classes
        for inner in widgets
        if inner.__module__.split(".")[2] in _CONTENTS.get(outer.__name__, ()) and inner is not outer
    ]
    pairs += [(outer, PickList) for outer in classes if issubclass(outer, ListDialog)]
    return [
        (f"{inner.__name__} in {outer.__name__}", (*vars(outer)["ACTIONS"], *vars(inner)["ACTIONS"]))
        for outer, inner in pairs
    ]


def _subclasses(cls: type[DOMNode]) -> set[type[DOMNode]]:
    return {cls}.union(*(_subclasses(child) for child in cls.__subclasses__()))


def key_problems(settings: Settings, groups: Sequence[CommandGroup]) -> list[Problem]:
    """Return a problem for each unknown id or key, and for each remapped key that two commands share.

    Commands share a key if they are in one group, such as those of a page and of a pane in it, or if one of them is a
    command of the app: it runs the key before any focused widget, or a command that was remapped to the key hides it.

    Args:
        settings: The configuration with `[keys]`.
        groups: All commands.
    """
    known = {command.id for _, commands in groups for command in commands}
    problems = [_unknown(command_id, known, settings) for command_id in settings.keys if command_id not in known]
    problems += [
        _unknown_key(command_id, key, settings)
        for command_id, keys in settings.keys.items()
        for key in key_names(keys)
        if command_id in known and not is_key(key)
    ]
    for _, commands in groups:
        problems += _clashes(settings, commands)
    return list(dict.fromkeys(problems))  # lists of several dialogs have the same commands


def _unknown_key(command_id: str, key: str, settings: Settings) -> Problem:
    near = nearest_key(key)
    fix = (
        f"Did you mean `{near}`?"
        if near
        else f"Write keys as help ({_help_key(settings)}) shows them, such as `ctrl+y` or `f12`."
    )
    return settings.warning(f"keys.{command_id}", f"No key is named `{key}`; `{command_id}` in [keys] needs one.", fix)


def _unknown(command_id: str, known: Iterable[str], settings: Settings) -> Problem:
    nearest = get_close_matches(command_id, list(known), n=1)
    fix = f"Did you mean `{nearest[0]}`?" if nearest else f"Help ({_help_key(settings)}) lists the ids of all commands."
    return settings.warning(f"keys.{command_id}", f"Unknown command `{command_id}` in [keys].", fix)


def _help_key(settings: Settings) -> str:
    declared = next(command.keys for command in APP_COMMANDS if command.id == "app.help")
    return next(iter(key_names(settings.keys.get("app.help", declared))), "in the palette")


def _hidden(command: Command, key: str, keymap: Mapping[str, str]) -> Command | None:
    """Return the command of the app that can't be run by its key any more after another was remapped to the key."""
    if command.id not in keymap or command in APP_COMMANDS:
        return None
    return next((one for one in APP_COMMANDS if key in key_names(keymap.get(one.id, one.keys))), None)


def _clashes(settings: Settings, commands: Sequence[Command]) -> list[Problem]:
    keymap = settings.keys
    # Keys of the app that take precedence over those of any focused widget
    owners = {
        key: command
        for command in APP_COMMANDS
        if command.priority
        for key in key_names(keymap.get(command.id, command.keys))
        if key in key_names(command.keys) or not is_for_focus(key)
    }
    problems: list[Problem] = []
    for command in commands:
        for key in key_names(keymap.get(command.id, command.keys)):
            hidden = _hidden(command, key, keymap)
            other = owners.setdefault(key, hidden or command)
            if other.id == command.id or not {other.id, command.id} & keymap.keys():
                continue
            if key in key_names(other.keys) and key in key_names(command.keys):
                continue  # they share it by default: one is possible while the other isn't
            message = f"[keys] assigns `{key}` to both `{other.id}` and `{command.id}`."
            remapped = command if command.id in keymap else other
            problems.append(settings.warning(f"keys.{remapped.id}", message, "Assign another key to one of them."))
    return problems
