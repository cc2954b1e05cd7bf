"""Names of a package that are imported on first use (PEP 562), so that importing the package stays fast.

It also keeps two threads from a deadlock: while one imports a module, Python makes it wait for the package of the
module, and another thread that imports the package would wait for the module.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` is too heavy to import for this: every worker would pay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def on_demand(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package.

    Args:
        package: Name of the package.
        modules: Names that the package offers, each with its module in the package.
    """

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names
