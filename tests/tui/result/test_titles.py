"""Titles of the parts of the form and the result in the help, and of the views of a result."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import get_args

from textual.dom import DOMNode

import pegboard.tui.form
import pegboard.tui.result
from pegboard.results.views import View
from pegboard.tui.result.views import TITLES


def test_every_part_with_commands_has_a_title() -> None:
    parts: set[type[DOMNode]] = set()
    for package in (pegboard.tui.form, pegboard.tui.result):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            for _, part in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
                if issubclass(part, DOMNode) and "ACTIONS" in vars(part):
                    parts.add(part)
    assert len(parts) > 10
    assert [part for part in parts if not vars(part).get("PAGE", "").strip()] == []


def test_every_view_of_a_result_has_a_title() -> None:
    assert {*get_args(View), "error", "log"} == TITLES.keys()
