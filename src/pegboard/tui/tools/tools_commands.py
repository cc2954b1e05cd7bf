"""Commands of the Tools page."""

from __future__ import annotations

from typing import Final

from pegboard.tui.commands import Command

TOOLS_COMMANDS: Final = (
    Command(
        "tools.run",
        "ctrl+r,ctrl+j,ctrl+enter,alt+enter",
        "run",
        "Run",
        "Run the tool with the arguments in the form.",
        footer=True,
        priority=True,
        words="call execute start",
    ),
    Command(
        "tools.result",
        "ctrl+d",
        "result",
        "Result",
        "Go to the result, or back.",
        footer=True,
        priority=True,
        words="output log",
    ),
    Command("tools.cancel", "escape", "cancel", "Cancel", "Cancel the running call.", footer=True, priority=True),
    Command("tools.back", "escape", "show_tools", "Back", "Return to the tool list if no call is running."),
    Command(
        "tools.last_arguments",
        "ctrl+up",
        "last_arguments",
        "Last arguments",
        "Reuse the last call's arguments.",
        meaning="Reuse",
        words="history recent previous earlier",
    ),
    Command(
        "tools.save",
        "ctrl+s",
        "save_preset",
        "Save",
        "Save the form's arguments as a preset.",
        words="preset store",
    ),
    Command(
        "tools.presets",
        "ctrl+l",
        "presets",
        "Presets",
        "Load, save, rename or delete presets.",
        meaning="Open saved",
        words="open saved load",
    ),
    Command(
        "tools.checks",
        "alt+c",
        "checks",
        "Checks",
        "Run the checks of the tool, and see what a change of its schema breaks.",
        priority=True,
        words="tests regression compatibility",
    ),
    Command(
        "tools.keep",
        "alt+k",
        "keep",
        "Keep as check",
        "Keep the call with its result as a check.",
        priority=True,
        words="test regression snapshot",
    ),
    Command(
        "tools.copy_as",
        "ctrl+right_square_bracket",
        "copy_as",
        "Copy as",
        "Copy the call as a command line, script line, JSON, Python or MCP request.",
    ),
    Command(
        "tools.definition",
        "f2",
        "definition",
        "Schema",
        "Show the raw schema that models receive.",
        meaning="Details",
        words="definition json",
    ),
    Command(
        "tools.source",
        "f4",
        "source",
        "Source",
        "Open the tool's file in your editor, at its line.",
        meaning="Editor",
        words="code edit open",
    ),
    Command(
        "tools.sidebar",
        "ctrl+b,ctrl+backslash",
        "sidebar",
        "Sidebar",
        "Hide or show the tool list.",
        meaning="Tool list",
    ),
    Command("tools.maximise", "f10", "maximise", "Maximize", "Maximize the focused pane; esc restores it."),
    Command("tools.larger_form", "alt+pagedown", "divide(1)", "Larger form", "Enlarge the form."),
    Command("tools.smaller_form", "alt+pageup", "divide(-1)", "Smaller form", "Shrink the form."),
    Command("tools.fit", "", "fit", "Fit panes", "Make the form as high as its fields again."),
    Command(
        "tools.reconnect",
        "alt+r",
        "server('reconnect')",
        "Reconnect",
        "Reconnect to the MCP server.",
        True,
        meaning="Refresh",
    ),
    Command(
        "tools.log_in", "alt+l", "server('log_in')", "Log in", "Log in to the MCP server in the browser.", footer=True
    ),
    Command(
        "tools.log_out", "", "server('log_out')", "Log out", "Delete the login to the MCP server.", words="forget token"
    ),
    Command(
        "tools.remove_server",
        "",
        "server('remove_server')",
        "Remove MCP server…",
        "Remove the MCP server from the configuration file.",
        words="delete disconnect",
    ),
    Command("tools.batch", "", "batch", "Run over a file…", "Call the tool with every row of a file."),
    Command("tools.rescan", "", "app.rescan", "Rescan", "Scan every packs folder for tools again."),
)
