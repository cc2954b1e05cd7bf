"""Gives the tests of the form their stage."""

from __future__ import annotations

import pytest

from .form_stage import FormApp


@pytest.fixture
def app() -> FormApp:
    """An app with nothing but a form pane."""
    return FormApp()
