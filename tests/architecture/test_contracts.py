"""Import contracts, checked by import-linter with `.importlinter`, and packages that threads import."""

from __future__ import annotations

import ast
import re
from configparser import ConfigParser
from pathlib import Path

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import pegboard

ROOT = Path(__file__).parents[2]


def test_imports_point_down_only() -> None:
    status = lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, "the report is above"


def layers(contract: str) -> list[set[str]]:
    """Return the packages of each layer of a contract."""
    config = ConfigParser()
    config.read(ROOT / ".importlinter")
    return _layers(config[f"importlinter:contract:{contract}"]["layers"].strip().split("\n"))


def test_the_architecture_shows_the_layers_of_the_contracts() -> None:
    shown = (ROOT / "src/pegboard/guide/architecture.md").read_text(encoding="utf-8").partition("## Layers")[2]
    core, _, tui = shown.split("```")[1].partition("tui: ")
    assert _layers(core.split("→")) == layers("layers")
    assert _layers(tui.split("→")) == layers("tui-layers")


def test_the_map_of_packages_names_each() -> None:
    named = set(re.findall(r"`(\w+)`", pegboard.__doc__ or ""))
    assert set().union(*layers("layers")) - named == {"__main__"}


def test_no_package_imports_its_own_modules_so_threads_can_import_both_concurrently() -> None:
    """Otherwise the app ends with `_DeadlockError` when one thread imports the package and another its module."""
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sorted((ROOT / "src").rglob("__init__.py"))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom | ast.Import)
        if _imports_from(node, ".".join(file.parent.relative_to(ROOT / "src").parts))
    ]
    assert not found, f"name these modules in `on_demand`: {found}"


def _imports_from(node: ast.ImportFrom | ast.Import, package: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or (node.module or "").startswith(f"{package}.") or node.module == package
    return any(alias.name.startswith(f"{package}.") for alias in node.names)


def _layers(texts: list[str]) -> list[set[str]]:
    return [set(re.findall(r"\w+", text)) for text in texts]
