"""Reader of a list of a server, page by page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from pegboard.mcp.limits import LONGEST_LIST, MOST_EMPTY_PAGES, MOST_PAGES
from pegboard.results.sizes import size

if TYPE_CHECKING:
    from mcp_types import PaginatedResult

_PageT = TypeVar("_PageT", bound="PaginatedResult")


async def read_pages(
    what: str, most: int, fetch: Callable[[str | None], Awaitable[_PageT]], add: Callable[[_PageT], tuple[int, int]]
) -> str:
    """Read the pages of a list; return why it is incomplete, or an empty text if it isn't.

    Args:
        what: Name of the items.
        most: Number of items that are kept.
        fetch: Returns the page after a cursor.
        add: Adds the items of a page; returns how many different ones were found until now, and the length of the page.
    """
    cursors: set[str] = set()
    cursor: str | None = None
    found = length = empty = 0
    problem = f"Its list of {what} has more than {MOST_PAGES:,} pages, so Pegboard stopped reading it"
    for _ in range(MOST_PAGES):
        page = await fetch(cursor)
        before = found
        found, added = add(page)
        length += added
        empty = 0 if found > before else empty + 1
        cursor = page.next_cursor
        if found > most or (cursor and found == most):
            problem = f"It lists more than {most:,} {what}, so Pegboard stopped reading"
            break
        if not cursor:
            return ""
        if cursor in cursors:
            problem = f"It repeats a page of its list of {what}, so Pegboard stopped reading it"
            break
        if empty >= MOST_EMPTY_PAGES:
            problem = f"Its list of {what} has {empty} pages in a row with nothing new, so Pegboard stopped reading it"
            break
        if length > LONGEST_LIST:
            problem = f"Its list of {what} has more than {size(LONGEST_LIST)}, so Pegboard stopped reading it"
            break
        cursors.add(cursor)
    return f"{problem} after {min(found, most):,} {what}."
