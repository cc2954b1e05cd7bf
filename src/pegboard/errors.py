"""Every exception that Pegboard raises on purpose.

Problems of a tool, a pack or a file are data (`models.Problem`, `models.ToolError`), not exceptions. These are for
callers of Pegboard's own functions::

    PegboardError
    ├── ConfigError        the configuration can't be used (a folder can't be created, …)
    ├── FormFaults         arguments are invalid; `.faults` lists every validation error
    ├── ModelError         a language model's provider failed; see `.code`, `.fix` and `.retry_after`
    ├── PresetError        a preset can't be saved, renamed or deleted
    ├── RulesError         the rules of approvals.toml can't be changed
    ├── SavedScriptError   a saved script can't be read, written, renamed or deleted
    ├── SessionError       a session doesn't exist, is in use, or can't have this name
    ├── StoreError         the history can't be opened or written
    └── WorkerError        a worker process can't be started

Modules derive more specific errors from `PegboardError`, such as `forms.json_text.JsonTextError`. Outside the tree are
only `sdk.ToolFailed`, which authors of tools raise, exceptions that never leave their module, and those of
`scripts.programs` and `scripts.calculator`, whose process doesn't import Pegboard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pegboard.models import Fault


class PegboardError(Exception):
    """Base class of every exception of Pegboard."""


class ConfigError(PegboardError):
    """A configuration file or a value of `--mcp` can't be used; the message is a sentence with the reason."""


class FormFaults(PegboardError):  # noqa: N818 - it carries `Fault`s, and is called so everywhere
    """Arguments that don't match their schema; the message joins all validation errors."""

    faults: tuple[Fault, ...]
    """Every validation error, in the order of the schema."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


ModelErrorCode: TypeAlias = Literal[
    "not_configured", "auth", "unknown_model", "rate_limited", "server", "context_too_long", "refused",
    "no_connection", "timeout", "broken_stream", "bad_request",
]  # fmt: skip
"""Kind of failure of a provider.

`refused`: the model declined to answer. `no_connection`: the server can't be reached. `broken_stream`: the response
ended early. `bad_request`: the provider rejected the request for another reason.
"""


class ModelError(PegboardError):
    """Failure of a language model's provider; the message is a sentence for the user.

    Attributes:
        code: The kind of failure.
        fix: What the user can do about it; may be empty.
        retry_after: Seconds to wait before a retry, if the provider sent them.
        detail: The provider's own message: untrusted text.
    """

    def __init__(
        self,
        message: str,
        *,
        code: ModelErrorCode,
        fix: str = "",
        retry_after: float | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.fix = fix
        self.retry_after = retry_after
        self.detail = detail


class PresetError(PegboardError):
    """A preset can't be saved, renamed or deleted; the message is a sentence with the reason."""


class RulesError(PegboardError):
    """The rules can't be changed; the message is a sentence with the reason."""


class UnknownRuleError(RulesError):
    """A rule no longer exists."""


class SavedScriptError(PegboardError):
    """A saved script can't be read, written, renamed or deleted; the message is a sentence with the reason."""


class SessionError(PegboardError):
    """A session can't be used, renamed or deleted; the message is a sentence with the reason."""


class StoreError(PegboardError):
    """The history can't be opened or written; the message is a sentence or the database's own words."""


class ShortValueError(StoreError):
    """A value is too short to be redacted; the message is a sentence with the reason."""


class ReadOnlyError(StoreError):
    """Recorded data can't be changed, because the file can't be written; the message is a sentence with the reason."""


def explained(error: Exception, failed: str) -> str:
    """Return the reason of an error as sentences.

    Args:
        error: A `StoreError`, or an error whose message may be a sentence.
        failed: What failed, without a full stop. It is omitted if the message is a sentence.
    """
    reason = str(error)
    if reason.endswith("."):
        return reason
    advice = ""
    if isinstance(error, StoreError):
        advice = " `pegboard paths` shows the database."
        if "full" in reason:
            advice = " Free space on the disk, then try again."
        elif "locked" in reason or "another process" in reason:
            advice = " End the process that uses it, then try again."
    return f"{failed}: {reason}.{advice}"


class WorkerError(PegboardError):
    """A worker process can't be started."""
