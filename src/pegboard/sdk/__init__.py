"""What the author of a pack imports.

A pack is an ordinary Python file. What stands here lets it say more about its tools, speak while they run, and use
secrets, config, HTTP and the tools of other packs; without Pegboard around, in a script or a test, all of it still
works::

    from pegboard.sdk import hints, progress, requires_cli

    @hints(read_only=True, timeout=30)
    @requires_cli("wc")
    def count_lines(*, paths: list[str]) -> int:
        \"\"\"Counts the lines of several files.\"\"\"
        ...
        progress(done, len(paths))

What tools say: `hints`, `aliases`, `requires_cli`, `requires_lib`, `requires_secret`; `progress`, `log`, `ToolFailed`.
Who started them: `caller`.
What they use: `get_secret`, `get_config`; `safe_request`, `api_headers`, `lazy_client`; `batch_execute`,
`normalize_items`; `get_pack`, `call_tool`; `check_deps`. For the tests of a pack there is `pegboard.sdk.testing`.
"""

from pegboard.sdk.declare import aliases, hints
from pegboard.sdk.failure import ToolFailed
from pegboard.sdk.host import caller, log, progress

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay
if TYPE_CHECKING:
    from pegboard.sdk.batch import batch_execute, normalize_items
    from pegboard.sdk.clients import lazy_client
    from pegboard.sdk.granted import get_config, get_secret
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
    "api_headers": "http",
    "batch_execute": "batch",
    "call_tool": "proxies",
    "check_deps": "report",
    "get_config": "granted",
    "get_pack": "proxies",
    "get_secret": "granted",
    "lazy_client": "clients",
    "normalize_items": "batch",
    "requires_cli": "requirements",
    "requires_lib": "requirements",
    "requires_secret": "requirements",
    "safe_request": "http",
}
"""What a pack may never ask for, and the module it is in: loaded when it is asked for."""


def __getattr__(name: str) -> object:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
