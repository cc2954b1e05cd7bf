"""Functions and decorators for the authors of packs.

A pack is an ordinary Python file, and every public function in it that has a docstring is a tool. Import this package
to describe a tool in more detail, to report progress, and to use secrets, configuration, HTTP and the tools of other
packs. Everything also works in a plain script or a test, without Pegboard running::

    from pegboard.sdk import hints, progress, requires_cli

    @hints(read_only=True, timeout=30)
    @requires_cli("wc")
    def count_lines(*, paths: list[str]) -> int:
        \"\"\"Count the lines of several files.\"\"\"
        ...
        progress(done, len(paths))

Declare:
    `hints`: Whether a tool is read-only or destructive, its timeout, its caching.
    `aliases`: Other names of a tool and its parameters.
    `requires_cli`, `requires_lib`, `requires_secret`: Programs, libraries and secrets that a tool requires.

Report during a call:
    `progress`, `log`: Progress and messages, shown while the tool runs.
    `ToolFailed`: An error with a message for the user or the model.
    `caller`: Whether the user or an agent started the call.

Use:
    `get_secret`, `get_config`: Secrets and configuration of the pack.
    `safe_request`, `api_headers`, `lazy_client`: HTTP requests and API clients.
    `batch_execute`, `normalize_items`: One function for many items.
    `call_tool`, `get_pack`: Tools of other packs.
    `check_deps`: Status of the requirements.

To test a pack, use `pegboard.sdk.testing`.
"""

from pegboard.on_demand import on_demand

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay

if TYPE_CHECKING:
    from pegboard.sdk.batch import batch_execute, normalize_items
    from pegboard.sdk.clients import lazy_client
    from pegboard.sdk.declare import aliases, hints
    from pegboard.sdk.failure import ToolFailed
    from pegboard.sdk.granted import get_config, get_secret
    from pegboard.sdk.host import caller, log, progress
    from pegboard.sdk.http import api_headers, safe_request
    from pegboard.sdk.proxies import call_tool, get_pack
    from pegboard.sdk.report import check_deps
    from pegboard.sdk.requirements import requires_cli, requires_lib, requires_secret

__all__ = [
    "ToolFailed",
    "aliases",
    "api_headers",
    "batch_execute",
    "call_tool",
    "caller",
    "check_deps",
    "get_config",
    "get_pack",
    "get_secret",
    "hints",
    "lazy_client",
    "log",
    "normalize_items",
    "progress",
    "requires_cli",
    "requires_lib",
    "requires_secret",
    "safe_request",
]

_ON_DEMAND = {
    "ToolFailed": "failure",
    "aliases": "declare",
    "api_headers": "http",
    "batch_execute": "batch",
    "call_tool": "proxies",
    "caller": "host",
    "check_deps": "report",
    "get_config": "granted",
    "get_pack": "proxies",
    "get_secret": "granted",
    "hints": "declare",
    "lazy_client": "clients",
    "log": "host",
    "normalize_items": "batch",
    "progress": "host",
    "requires_cli": "requirements",
    "requires_lib": "requirements",
    "requires_secret": "requirements",
    "safe_request": "http",
}
"""Name → module, imported on first use to keep the start of a worker fast."""

__getattr__, __dir__ = on_demand(__name__, _ON_DEMAND)
