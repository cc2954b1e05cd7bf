"""Requests that any part of the screen may make of the app."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from pegboard.models import JsonObject


@dataclass
class Copy(Message):
    """Asks for a text to be copied."""

    text: str


@dataclass
class Called(Message):
    """A tool that needs something was called, which looks for what was missing."""

    tool: str
    """The qualified name."""


@dataclass
class Asking(Message):
    """A model is being asked, or isn't any more."""

    running: bool


@dataclass
class Scripting(Message):
    """A script runs, or doesn't any more."""

    running: bool


@dataclass
class TalkAbout(Message):
    """Asks for a text to be put into the line that one talks to the model with."""

    text: str


@dataclass
class OpenCall(Message):
    """Asks for a call in the form of its tool, ready to be run again."""

    tool: str
    """One of the tool's names."""
    arguments: JsonObject


@dataclass
class OpenTool(Message):
    """Asks for a tool to be shown in the Tools place, ready to be filled in."""

    tool: str
    """The qualified name."""
