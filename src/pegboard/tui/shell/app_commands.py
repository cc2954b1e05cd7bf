"""The commands that are available on every page."""

from __future__ import annotations

from typing import Final

from pegboard.tui.commands import Command

APP_COMMANDS: Final[tuple[Command, ...]] = (
    Command("mode.tools", "f5", "mode('tools')", "Tools", "Go to the Tools page; there, focus the tool list."),
    Command("mode.chat", "f6", "mode('chat')", "Chat", "Go to the Chat page, where a model uses the tools."),
    Command("mode.script", "f7", "mode('script')", "Script", "Go to the Script page: bash scripts that use the tools."),
    Command("mode.health", "f8", "mode('health')", "Health", "Go to the Health page: requirements of the tools."),
    Command("tools.problems", "ctrl+g,exclamation_mark", "show_problems", "Problems", "List all problems."),
    Command("app.help", "f1,question_mark", "help", "Help", "Show the keys of the focused pane.", footer=True),
    Command("app.guide", "", "guide", "Guide", "Read the guide; type to search it."),
    Command(
        "app.palette",
        "ctrl+p,alt+p",
        "command_palette",
        "Commands",
        "Find a command or a tool.",
        footer=True,
        priority=True,
    ),
    Command("app.jump", "ctrl+o", "jump", "Jump", "Label every focusable element; type a label to jump to it."),
    Command("app.next", "tab", "focus_next", "Next", "Focus the next element."),
    Command("app.previous", "shift+tab", "focus_previous", "Previous", "Focus the previous element."),
    Command(
        "chat.asking",
        "f12,alt+a",
        "to_asking",
        "Approval",
        "Go to the call awaiting approval; again, to the next one.",
        priority=True,
    ),
    Command(
        "app.undo_rule",
        "alt+z",
        "undo_rule",
        "Undo the last rule",
        "Remove the rule that the last approval added.",
        priority=True,
    ),
    Command("app.rules", "", "rules", "Rules", "Edit which calls of models run, ask first or are rejected."),
    Command("app.trust", "", "trust", "Trust this folder…", "Review the settings of this folder and trust them."),
    Command("app.theme", "", "change_theme", "Theme", "Choose a theme; Pegboard remembers it."),
    Command("app.quit", "ctrl+q", "quit", "Quit", "Quit Pegboard and cancel running calls.", priority=True),
    Command("app.interrupt", "ctrl+c", "help_quit", "Interrupt", "Copy the selection; this key does not quit."),
)
