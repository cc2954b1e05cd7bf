"""Commands of the result pane."""

from __future__ import annotations

from pegboard.tui.commands import Command

PANE_COMMANDS: tuple[Command, ...] = (
    Command("result.next_view", "v", "view(1)", "Next view", "Show the result in the next view.", footer=True),
    Command("result.previous_view", "V", "view(-1)", "Previous view", "Show the result in the previous view."),
    Command("result.search", "slash", "search", "Search", "Search the result as you type.", footer=True),
    Command(
        "result.search_whole", "w", "search_whole", "Search all", "Search the whole of a result that is shown in part."
    ),
    Command("result.next_match", "n", "match(1)", "Next match", "Go to the next match."),
    Command("result.previous_match", "N", "match(-1)", "Previous match", "Go to the previous match."),
    Command(
        "result.jq",
        "vertical_line",
        "jq",
        "jq filter",
        "Filter the result with jq as you type; tab completes paths.",
        footer=True,
        words="query select path",
    ),
    Command("result.filter_rows", "f", "filter_rows", "Filter rows", "Show only the rows of a table with a text."),
    Command("result.whole", "escape", "whole", "Show all", "Remove the filter of the rows, or the jq filter."),
    Command("result.copy", "c", "copy", "Copy", "Copy the value at the cursor, or the whole text.", footer=True),
    Command("result.copy_path", "p", "copy_path", "Copy path", "Copy the path of the value for use in jq."),
    Command("result.copy_all", "C", "copy_all", "Copy all", "Copy the whole result as shown."),
    Command(
        "result.save",
        "s,ctrl+s",
        "save",
        "Save",
        "Save the complete result as .json or .txt, a table also as .csv or .md, an image as it is.",
        words="export file csv markdown image",
    ),
    Command("result.talk", "a", "talk", "Add to chat", "Quote the result in the message to the model."),
    Command("result.open", "o", "open", "Open", "Open the image, audio or resource at the cursor.", footer=True),
    Command("result.pager", "f3", "pager", "Pager", "Open the complete result in $PAGER.", footer=True),
)
