"""A shop for scripts: tools with all kinds of hints and parameters."""

import time

from pegboard.sdk import ToolFailed, call_tool, hints

USERS = {7: "Ada", 8: "Grace"}


@hints(read_only=True)
def get_user(*, id: int) -> dict[str, object]:  # noqa: A002 - what the API calls it
    """Return a user.

    Args:
        id: The user's number.
    """
    if id not in USERS:
        raise ToolFailed(f"There is no user {id}.", code="not_found")
    return {"id": id, "name": USERS[id], "orders": [id * 10, id * 10 + 1]}


@hints(read_only=True)
def words(*, text: str, tags: list[str] = [], loud: bool = False, limit: int = 3) -> str:  # noqa: B006
    """Return words as text, without a newline."""
    joined = " ".join([*text.split(), *tags][:limit])
    return joined.upper() if loud else joined


@hints(read_only=True, stdin="text")
def lines(*, text: str) -> int:
    """Count lines."""
    return len(text.splitlines())


@hints(read_only=True)
def search(*, filter: dict[str, object] | None = None, note: str | None = None) -> dict[str, object]:  # noqa: A002
    """Return the arguments."""
    return {"filter": filter, "note": note}


@hints(read_only=True)
def big(*, size: int) -> str:
    """Return a text of this many characters."""
    return "x" * size


@hints(read_only=True)
def nap(*, seconds: float, word: str = "slept") -> str:
    """Sleep."""
    time.sleep(seconds)
    return word + "\n"


@hints(read_only=True, timeout=0.3)
def hang() -> str:
    """Never end."""
    time.sleep(60)
    return ""


def buy(*, thing: str) -> str:
    """Change data."""
    return f"bought {thing}\n"


def again(*, commands: str) -> object:
    """Run a script from within a tool."""
    return call_tool("script.run", commands=commands)
