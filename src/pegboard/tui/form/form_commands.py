"""The commands of the form of a tool."""

from __future__ import annotations

from typing import Final

from pegboard.tui.commands import Command

FORM_COMMANDS: Final[tuple[Command, ...]] = (
    Command(
        "form.text",
        "ctrl+t",
        "text",
        "Edit JSON",
        "Switch between the fields and the arguments as JSON.",
        footer=True,
        meaning="Switch view",
    ),
    Command(
        "form.drop_text",
        "",
        "drop_text",
        "Discard JSON",
        "Discard invalid JSON and go back to the last valid text.",
    ),
    Command(
        "form.reset",
        "ctrl+n",
        "reset",
        "Reset form",
        "Clear the form and restore its defaults.",
        meaning="New",
        words="new clear empty",
    ),
    Command(
        "form.bring_back",
        "ctrl+z",
        "bring_back",
        "Undo fill",
        "Undo the last fill or reset of the form.",
        meaning="Undo",
    ),
    Command("form.tab", "tab", "next(1)", "Next", "Focus the next field.", priority=True),
    Command("form.back_tab", "shift+tab", "next(-1)", "Previous", "Focus the previous field.", priority=True),
    Command("form.next", "down", "next(1)", "Next field", "Focus the next field."),
    Command("form.previous", "up", "next(-1)", "Previous field", "Focus the previous field."),
    Command("form.page_down", "pagedown", "page(1)", "Page down", "Scroll the form down."),
    Command("form.page_up", "pageup", "page(-1)", "Page up", "Scroll the form up."),
    Command("form.top", "ctrl+home,home", "end(-1)", "Top", "Scroll to the top of the form."),
    Command("form.bottom", "ctrl+end,end", "end(1)", "Bottom", "Scroll to the end of the form."),
    Command("form.fold_all", "", "fold_all", "Collapse all", "Collapse every section, list and map."),
    Command("form.unfold_all", "", "unfold_all", "Expand all", "Expand every section, list and map."),
)
