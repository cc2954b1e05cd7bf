"""The terminal while another program, such as an editor or a pager, has it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from textual.app import App


@contextmanager
def suspended(app: App[object]) -> Iterator[None]:
    """Suspend the app, which paints nothing meanwhile although its calls continue, and resume it in any case.

    Args:
        app: The running app.

    Raises:
        textual.app.SuspendNotSupported: The terminal can't be handed over.
    """
    raised: BaseException | None = None
    with app.suspend(), app.batch_update():
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - raised again; Textual doesn't resume after an exception
            raised = error
    if raised is not None:
        raise raised


def environment(app: App[object]) -> dict[str, str]:
    """Return the environment of a program that gets the terminal. Textual removes `NO_COLOR` from that of the process.

    Args:
        app: The running app.
    """
    return {**os.environ, **({"NO_COLOR": "1"} if app.no_color else {})}
