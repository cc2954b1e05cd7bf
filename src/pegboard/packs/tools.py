"""Tools for trying out Pegboard."""

from pegboard.sdk import hints


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
def echo(*, value: object) -> object:
    """Return the value unchanged.

    Args:
        value: Any JSON value.

    Returns:
        The same value.
    """
    return value
