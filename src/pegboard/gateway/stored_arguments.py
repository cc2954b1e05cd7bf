"""Rejection of stored arguments from which a value was redacted."""

from __future__ import annotations

from typing import Final

from pegboard.data.mask import REDACTED, redacted_steps
from pegboard.data.pointer import numeric_keys, pointer
from pegboard.errors import FormFaults
from pegboard.models import Fault, JsonObject
from pegboard.models.call import CallSource

_STORED: Final[dict[CallSource, str]] = {
    "form": "the form, or in its preset, script or check",
    "cli": "the preset, the script, --arg or --args",
    "batch": "the row of the file, or in the arguments of all rows",
    "check": "the check",
}
"""Where to enter a value, by the source of a call. Other sources compute their arguments, and may mean the text."""


def check_redacted(source: CallSource, arguments: JsonObject) -> None:
    """Check that stored arguments have all their values, so that no tool receives the replacement instead.

    Args:
        source: Source of the call.
        arguments: Its arguments.

    Raises:
        FormFaults: They contain the replacement of a redacted value.
    """
    where = _STORED.get(source)
    if where is None:
        return
    message = f"contains {REDACTED} in place of a value; enter it in {where}"
    faults = [
        Fault(path=pointer(*steps), message=message, keys=numeric_keys(*steps)) for steps in redacted_steps(arguments)
    ]
    if faults:
        raise FormFaults(faults)
