"""The keys of all pages: each key has one meaning."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widget import Widget

import pegboard.tui
from pegboard.tui.commands import Command
from pegboard.tui.form.lines import Lines

ENTER_WITH_A_MODIFIER = {"ctrl+j", "ctrl+enter", "shift+enter", "alt+enter"}
"""These run in forms and break the line in prompts and editors, as `enter` does one of the two."""


def owners(cls: type[DOMNode] = DOMNode) -> set[type[DOMNode]]:
    """Return the classes of the package that declare commands, except those of dialogs."""
    found = {cls}.union(*(owners(child) for child in cls.__subclasses__()))
    return {
        one for one in found if "ACTIONS" in vars(one) and not issubclass(one, ModalScreen) and "pegboard" in str(one)
    }


def meanings() -> Iterator[tuple[str, str, str]]:
    """Yield the key, the meaning and the id of each command with a modifier or function key."""
    for module in pkgutil.walk_packages(pegboard.tui.__path__, "pegboard.tui."):
        importlib.import_module(module.name)
    for owner in owners():
        commands: tuple[Command, ...] = vars(owner)["ACTIONS"]
        for command in commands:
            for key in filter(None, command.keys.split(",")):
                modified = "+" in key or (key[0] == "f" and key[1:].isdigit())
                if modified and key not in ENTER_WITH_A_MODIFIER:
                    yield key, command.meaning or command.title, command.id


@pytest.mark.promise("TUI-7")
def test_each_key_has_one_meaning_on_all_pages() -> None:
    found: dict[str, dict[str, str]] = {}
    for key, meaning, command_id in meanings():
        found.setdefault(key, {})[meaning] = command_id
    assert {"ctrl+r", "ctrl+s", "ctrl+l", "ctrl+t", "ctrl+d", "f2"} <= found.keys()
    assert {key: ids for key, ids in found.items() if len(ids) > 1} == {}


@pytest.mark.promise("TUI-7")
def test_keys_that_edit_text_are_not_keys_of_pages() -> None:
    given_up = {"ctrl+d", "ctrl+k"}
    """Keys with `delete` and `shift+end, delete` as alternatives."""
    pages = {key for key, _, command_id in meanings() if command_id.split(".")[0] in {"tools", "script", "chat"}}
    typed = {
        key
        for binding in Lines.BINDINGS
        if isinstance(binding, Binding)
        for key in binding.key.split(",")
        if "+" in key
    }
    assert pages & typed <= given_up | ENTER_WITH_A_MODIFIER
    assert issubclass(Lines, Widget)
