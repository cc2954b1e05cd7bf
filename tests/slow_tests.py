"""The slow tests, by file: those that take several CPU seconds.

Most of them run the app, start servers and commands as processes, or try many cases.
`@pytest.mark.slow` marks one in another file.

`-m "not slow"` leaves them out. Without arguments, pytest runs the first and the last case of each and takes a ninth
of the real schemas; `--every-case` or the name of the file or test runs all.
"""

from __future__ import annotations

FOLDERS = ("batch", "mcp", "security", "serve", "tui", "watch")
"""Folders whose tests are slow, unless their file is in `QUICK`."""

FILES = (
    "architecture/test_readme.py",
    "ask/providers/test_bounds.py",
    "ask/providers/test_faults.py",
    "ask/providers/test_hosts.py",
    "ask/providers/test_unusable.py",
    "ask/providers/test_weight.py",
    "ask/test_text_calls.py",
    "cli/test_ask.py",
    "cli/test_ask_approval.py",
    "cli/test_check.py",
    "cli/test_check_ask.py",
    "cli/test_check_compat.py",
    "cli/test_deps.py",
    "cli/test_history.py",
    "cli/test_manual.py",
    "cli/test_mcp.py",
    "cli/test_mcp_failures.py",
    "cli/test_new.py",
    "cli/test_processes.py",
    "cli/test_script.py",
    "cli/test_web.py",
    "discovery/test_fuzz.py",
    "discovery/test_index.py",
    "discovery/test_tools.py",
    "discovery/test_watch.py",
    "executor/test_arguments.py",
    "executor/test_calls.py",
    "executor/test_hazards.py",
    "executor/test_large_results.py",
    "executor/test_leftovers.py",
    "executor/test_packs.py",
    "forms/test_any_schema.py",
    "forms/test_copy_as.py",
    "forms/test_corpus.py",
    "forms/test_hard_cases.py",
    "gateway/test_nested.py",
    "gateway/test_waiting.py",
    "history/test_mishaps.py",
    "packs_builtin/ckan/test_catalogue.py",
    "packs_builtin/ckan/test_faults.py",
    "packs_builtin/ckan/test_through_the_runtime.py",
    "packs_builtin/test_git_compared.py",
    "packs_builtin/test_git_hostile.py",
    "packs_builtin/test_sqlite.py",
    "packs_builtin/test_through_the_gateway.py",
    "packs_builtin/test_web_private.py",
    "runtime/test_grants.py",
    "runtime/test_health.py",
    "schema/test_official_suite.py",
    "schema/test_validation.py",
    "scripts/test_analysis.py",
    "scripts/test_language.py",
    "scripts/test_limits.py",
    "scripts/test_record.py",
    "scripts/test_through_the_runtime.py",
    "scripts/test_unsupported.py",
    "sdk/test_author.py",
    "sdk/test_calling.py",
    "sdk/test_checking.py",
    "sdk/test_granted.py",
    "sdk/test_http.py",
    "sdk/test_probing.py",
)
"""Slow files of the other folders."""

QUICK = (
    "batch/test_rows.py",
    "mcp/test_real_servers.py",
    "security/test_permissions.py",
    "security/test_trust.py",
    "tui/form/test_keys.py",
    "tui/form/test_offers_recent.py",
    "tui/result/test_clipboard.py",
    "tui/result/test_titles.py",
    "tui/test_activity_feed.py",
    "tui/test_catalogue.py",
    "tui/test_footer.py",
    "tui/test_headless.py",
    "tui/test_key_table.py",
    "tui/test_script_bash.py",
    "tui/test_story.py",
    "tui/test_whole.py",
    "watch/test_brake.py",
)
"""Other files of `FOLDERS`, and a few of the whole app."""

EVERY_CASE = (
    "architecture/test_readme.py",
    "cli/test_ask.py",
    "cli/test_check_ask.py",
    "packs_builtin/test_sqlite.py",
    "tui/form/test_form_pictures.py",
    "tui/test_health_pictures.py",
    "tui/test_pictures.py",
    "tui/test_pictures_of_activity.py",
    "tui/test_pictures_of_agent_calls.py",
    "tui/test_pictures_of_chat.py",
    "tui/test_pictures_of_chat_dialogs.py",
    "tui/test_pictures_of_checks.py",
    "tui/test_pictures_of_lists.py",
    "tui/test_pictures_of_rules.py",
    "tui/test_pictures_of_script.py",
    "tui/test_pictures_of_servers.py",
)
"""Files of which every run takes each case, such as commands of the documents and pictures."""

FIRST = (
    "architecture/test_lint.py::test_the_tree_is_clean[types]",
    "watch/test_proxy.py::test_calls_pass_while_another_process_locks_the_database_for_30_seconds",
)
"""Tests that take half a minute or longer, or wait for it: the others run meanwhile."""
