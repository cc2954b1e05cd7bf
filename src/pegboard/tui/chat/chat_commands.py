"""The commands of the Chat page."""

from __future__ import annotations

from typing import Final

from pegboard.tui.commands import CHOOSE_MODEL, Command

CHAT_COMMANDS: Final[tuple[Command, ...]] = (
    Command("chat.interrupt", "escape", "interrupt", "Interrupt", "Stop the running turn.", True, priority=True),
    Command("chat.back", "escape", "back", "Message", "Focus the prompt."),
    Command("chat.new", "ctrl+n", "new", "New", "Start a new session; the current one is kept.", footer=True),
    Command(
        "chat.sessions",
        "ctrl+l",
        "sessions",
        "Sessions",
        "Open, rename, export or delete a session.",
        footer=True,
        meaning="Open saved",
        words="history resume conversations",
    ),
    Command("chat.save", "ctrl+s", "save", "Save", "Save this session to a file.", words="export markdown"),
    CHOOSE_MODEL,
    Command(
        "chat.tools",
        "ctrl+b,ctrl+backslash",
        "tools",
        "Tools",
        "Choose the tools that the model sees.",
        footer=True,
        meaning="Tool list",
    ),
    Command(
        "chat.retry",
        "ctrl+r",
        "retry",
        "Ask again",
        "Remove the last answer and resend the message.",
        meaning="Run",
        words="retry regenerate repeat",
    ),
    Command(
        "chat.edit_last",
        "ctrl+up",
        "edit_last",
        "Edit last",
        "Edit your last message and resend it.",
        meaning="Reuse",
    ),
    Command(
        "chat.result",
        "ctrl+d",
        "result",
        "Result",
        "Go to the last answer and its calls, or back.",
        priority=True,
        words="conversation transcript",
    ),
    Command("chat.system", "", "system", "System prompt", "Edit the system prompt of this session."),
    Command("chat.drop_queue", "", "drop_queue", "Edit queue", "Move queued messages back to the prompt."),
    Command("chat.maximise", "f10", "maximise", "Maximize", "Maximize the conversation; esc restores it."),
)
