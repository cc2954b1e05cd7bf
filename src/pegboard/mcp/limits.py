"""Limits of what a server may send."""

from __future__ import annotations

LONGEST_MESSAGE = 32 * 2**20
"""Bytes of one message. Parsing a longer one would block the app noticeably."""

LONGEST_LIST = 64 * 2**20
"""Bytes of all pages of a list, about."""

MOST_TOOLS = 20_000
MOST_CONTENTS = 10_000
"""Resources, templates or prompts of a list."""
MOST_PAGES = 1_000
MOST_EMPTY_PAGES = 50
"""Pages of a list in a row with nothing new on them."""
MOST_OPEN_QUESTIONS = 32
"""Requests of a server that may await an answer; further ones are rejected."""

MOST_QUESTIONS = 20
"""Questions to the user until the server's running calls end; further ones are cancelled."""

LAST_ANSWERS = 0.3
"""Seconds for the answers to other requests of a session that the server has forgotten."""

FIRST_REST, LONGEST_REST = 1.0, 30.0
"""Seconds between two readings of what keeps changing."""
