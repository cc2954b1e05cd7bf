"""Exit codes of all commands."""

OK, TOOL_FAILED, USAGE, NOT_FOUND, PROVIDER, INTERRUPTED = 0, 1, 2, 3, 4, 130
