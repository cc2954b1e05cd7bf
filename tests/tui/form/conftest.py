"""Fixtures for the tests of the form."""

from __future__ import annotations

import pytest

from .form_stage import FormApp


@pytest.fixture
def app() -> FormApp:
    """App that contains only a form pane."""
    return FormApp()
