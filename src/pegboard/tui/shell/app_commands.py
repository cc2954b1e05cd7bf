"""The commands that are available on every page."""

from __future__ import annotations

from typing import Final

from pegboard.tui.commands import Command

APP_COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "mode.tools",
        "f5",
        "mode('tools')",
        "Tools",
        "Go to the Tools page; there, focus the tool list.",
        words="home forms run",
    ),
    Command(
        "mode.chat",
        "f6",
        "mode('chat')",
        "Chat",
        "Go to the Chat page, where a model uses the tools.",
        words="ask model agent conversation history",
    ),
    Command(
        "mode.script",
        "f7",
        "mode('script')",
        "Script",
        "Go to the Script page: bash scripts that use the tools.",
        words="bash shell pipeline",
    ),
    Command(
        "mode.health",
        "f8",
        "mode('health')",
        "Health",
        "Go to the Health page: requirements of the tools.",
        words="requirements dependencies doctor check secrets",
    ),
    Command(
        "tools.problems",
        "ctrl+g,exclamation_mark",
        "show_problems",
        "Problems",
        "List all problems.",
        words="errors warnings log",
    ),
    Command(
        "app.help",
        "f1,question_mark",
        "help",
        "Help",
        "Show the keys of the focused pane.",
        footer=True,
        words="keys shortcuts bindings",
    ),
    Command(
        "app.guide",
        "",
        "guide",
        "Guide",
        "Read the guide; type to search it.",
        words="manual documentation handbook",
    ),
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
        words="approve allow permission confirm",
    ),
    Command(
        "app.undo_rule",
        "alt+z",
        "undo_rule",
        "Undo the last rule",
        "Remove the rule that the last approval added.",
        priority=True,
    ),
    Command(
        "app.rules",
        "",
        "rules",
        "Rules",
        "Edit which calls of models run, ask first or are rejected.",
        words="approve allow deny permissions approvals",
    ),
    Command("app.trust", "", "trust", "Trust this folder…", "Review the settings of this folder and trust them."),
    Command(
        "app.theme",
        "",
        "change_theme",
        "Theme",
        "Choose a theme; Pegboard remembers it.",
        words="colors colours dark light appearance",
    ),
    Command(
        "app.model",
        "",
        "connect_model",
        "Connect a model",
        "Choose and set up the model that answers.",
        words="provider key api llm base url",
    ),
    Command(
        "app.settings",
        "",
        "settings",
        "Settings",
        "Show, search, change and reset settings.",
        words="configuration config preferences options",
    ),
    Command(
        "app.quit",
        "ctrl+q",
        "quit",
        "Quit",
        "Quit Pegboard and cancel running calls.",
        footer=True,
        priority=True,
        words="exit close leave",
    ),
    Command("app.interrupt", "ctrl+c", "help_quit", "Interrupt", "Copy the selection; this key does not quit."),
)

APPROVAL_COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "talk.approve_once",
        "a",
        "answer('once')",
        "Once",
        "Approve the selected call once.",
        True,
        words="allow accept",
    ),
    Command(
        "talk.approve_session",
        "s",
        "answer('session')",
        "Session",
        "Approve the tool for this session; a destructive tool only with these arguments.",
        True,
    ),
    Command(
        "talk.approve_always", "A", "answer('always')", "Always", "Add a rule with arguments and a duration.", True
    ),
    Command("talk.reject", "r", "answer('reject')", "Reject", "Reject the selected call.", True),
    Command(
        "talk.reject_why",
        "R",
        "answer('reject_why')",
        "Reject, why",
        "Reject the call with a reason.",
        True,
    ),
    Command("talk.edit_call", "e", "answer('edit')", "Edit", "Edit the arguments in the form, then run.", True),
)
"""Answers to the selected call that awaits approval, in the conversation."""
