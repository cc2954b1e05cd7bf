"""Tools to try the workbench with."""

from pegboard.sdk import hints


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
def echo(*, value: object) -> object:
    """Gives back what it is given.

    Args:
        value: Any JSON value.

    Returns:
        The same value.
    """
    return value
