"""Every exception that Pegboard raises on purpose.

What a tool, a pack or a file does wrong is data (`models.Problem`, `models.ToolError`), not an exception.
These are for callers of our own functions::

    PegboardError
    ├── ConfigError        the configuration can't be used at all (a folder that can't be made, …)
    ├── FormFaults         a form or an argument object has faults; `.faults` has them all
    ├── ModelError         a language model's provider failed; `.code`, `.fix` and `.retry_after` say more
    ├── PresetError        a preset can't be saved, renamed or deleted
    ├── RulesError         the rules of approvals.toml can't be changed
    ├── SavedScriptError   a saved script can't be read, written, renamed or deleted
    ├── SessionError       a session isn't there, can't be named so, or is in use
    ├── StoreError         the history can't be opened or written
    └── WorkerError        a worker process can't be started
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pegboard.models import Fault


class PegboardError(Exception):
    """The root of the tree: catch it to catch everything that is ours."""


class ConfigError(PegboardError):
    """The configuration can't be used, and no default can stand in for it."""


class FormFaults(PegboardError):  # noqa: N818 - it carries `Fault`s, and is called so everywhere
    """Arguments that don't fit their schema: all faults at once.

    Attributes:
        faults: Every fault, in the order of the schema.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


ModelErrorCode: TypeAlias = Literal[
    "not_configured", "auth", "unknown_model", "rate_limited", "server", "context_too_long", "refused",
    "no_connection", "timeout", "broken_stream", "bad_request",
]  # fmt: skip
"""What went wrong between us and a provider: `refused` is a model that won't answer, `no_connection` a server that
isn't there, `broken_stream` an answer that ended before its end, `bad_request` anything else that isn't taken."""


class ModelError(PegboardError):
    """A language model's provider failed; the message is a sentence for the user.

    Attributes:
        code: The kind of failure.
        fix: What the user can do about it; may be empty.
        retry_after: Seconds after which it may be tried again, where the provider says so.
        detail: What the provider said itself: untrusted text.
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
    """A preset can't be saved, renamed or deleted; the message is a sentence that says why."""


class RulesError(PegboardError):
    """The rules can't be changed; the message is a sentence that says why."""


class SavedScriptError(PegboardError):
    """A saved script can't be read, written, renamed or deleted; the message is a sentence that says why."""


class SessionError(PegboardError):
    """A session can't be used, renamed or deleted; the message is a sentence that says why."""


class StoreError(PegboardError):
    """The history can't be opened or written."""


class WorkerError(PegboardError):
    """A worker process can't be started."""
