"""Keys as the user remapped them: what the map means and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from textual.dom import DOMNode

from pegboard.config import Settings
from pegboard.models import Problem
from pegboard.tui.commands import Command

Place = tuple[str, Sequence[Command]]
"""The name of a part of the screen and the commands it declares."""


def places() -> list[Place]:
    """Gives every place of the screen with its commands; loads those that weren't needed yet.

    The app and its screen are one place, since the keys of both work wherever the focus is.
    """
    from pegboard.tui.app import PegboardApp
    from pegboard.tui.tools.screen import ToolsScreen

    everywhere = (*PegboardApp.ACTIONS, *ToolsScreen.ACTIONS)
    others = [
        (cls.__name__, tuple(vars(cls)["ACTIONS"]))
        for cls in _subclasses(DOMNode)
        if "ACTIONS" in vars(cls) and cls not in {PegboardApp, ToolsScreen}
    ]
    return [("everywhere", everywhere), *others]


def _subclasses(cls: type[DOMNode]) -> set[type[DOMNode]]:
    return {cls}.union(*(_subclasses(child) for child in cls.__subclasses__()))


def key_problems(settings: Settings, places: Sequence[Place]) -> list[Problem]:
    """Finds unknown ids, and keys that two commands of one place claim since one of them was remapped.

    Args:
        settings: For `[keys]`, and where each of them was set.
        places: Every place with its commands.
    """
    known = {command.id for _, commands in places for command in commands}
    problems = [_unknown(command_id, known, settings) for command_id in settings.keys if command_id not in known]
    for _, commands in places:
        problems += _clashes(settings, commands)
    return problems


def _unknown(command_id: str, known: Iterable[str], settings: Settings) -> Problem:
    nearest = get_close_matches(command_id, list(known), n=1)
    fix = f"Did you mean `{nearest[0]}`?" if nearest else "Help (f1) names the ids of all commands."
    return settings.warning(f"keys.{command_id}", f"[keys] has no command `{command_id}`.", fix)


def _clashes(settings: Settings, commands: Sequence[Command]) -> list[Problem]:
    keymap = settings.keys
    owners: dict[str, Command] = {}
    problems: list[Problem] = []
    for command in commands:
        for key in filter(None, (key.strip() for key in keymap.get(command.id, command.keys).split(","))):
            other = owners.setdefault(key, command)
            if other is command or not {other.id, command.id} & keymap.keys():
                continue
            message = f"[keys] gives `{key}` to both `{other.id}` and `{command.id}`."
            remapped = command if command.id in keymap else other
            problems.append(settings.warning(f"keys.{remapped.id}", message, "Give one of them another key."))
    return problems
