"""The appearance that is read before the settings are validated is the one that the settings have."""

from __future__ import annotations

from typing import Protocol

import pytest

from pegboard.config import Appearance, Settings, simple_appearance
from pegboard.models import Problem


class User(Protocol):
    file: object
    cwd: object

    def write(self, text: str | bytes) -> None: ...
    def overlay(self, text: str) -> None: ...
    def trust(self) -> None: ...
    def load(self, environ: dict[str, str] | None = None) -> tuple[Settings, tuple[Problem, ...]]: ...


def simple(user: User, environ: dict[str, str] | None = None) -> Appearance | None:
    return simple_appearance({"PEGBOARD_CONFIG": str(user.file), **(environ or {})}, user.cwd)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[model]\nname = "openai:gpt"',
        '[ui]\ntheme = "mine"\nvim_keys = true\nanimations = true\nfocus = "result"',
        "[ui]\nunknown = 1\n[tools]\nallow = 3",
        "\ufeff[ui]\nvim_keys = true",
    ],
)
def test_an_appearance_that_only_the_users_file_sets_is_that_of_the_settings(user: User, text: str) -> None:
    user.write(text)
    user.overlay('[tools]\nallow = ["fs.*"]')
    assert simple(user) == user.load()[0].appearance


@pytest.mark.parametrize(
    "text",
    [
        '[keys]\n"tools.run" = "f2"',
        "[ui]\nvim_keys = 1",
        "[ui]\ntheme = true",
        'ui = "dark"',
        "[ui",
        b"\xff",
        "[ui]\nvim_keys = true\nvim_keys = false",
    ],
)
def test_any_other_file_leaves_the_appearance_to_the_settings(user: User, text: str | bytes) -> None:
    user.write(text)
    assert simple(user) is None


@pytest.mark.parametrize(
    "text", ['[ui]\ntheme = "mine"', '[keys]\n"tools.run" = "f2"', '"\\u0075i".vim_keys = true', "["]
)
def test_a_folder_that_may_set_the_appearance_leaves_it_to_the_settings(user: User, text: str) -> None:
    user.overlay(text)
    assert simple(user) is None
    user.trust()
    assert simple(user) is None


@pytest.mark.parametrize("variable", ["PEGBOARD_UI__THEME", "PEGBOARD_KEYS__TOOLS__RUN"])
def test_a_variable_that_may_set_the_appearance_leaves_it_to_the_settings(user: User, variable: str) -> None:
    assert simple(user, {variable: "mine"}) is None
    assert simple(user, {"PEGBOARD_TOOLS__TIMEOUT": "3"}) == Settings().appearance
