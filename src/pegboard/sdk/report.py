"""Report on the requirements of tools and their status."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.sdk.findings import RequirementRow, report_row
from pegboard.sdk.host import Host, installed
from pegboard.sdk.names import not_found
from pegboard.sdk.probes import probe_all
from pegboard.sdk.requirements import DeclaredRequirement
from pegboard.sdk.source import DeclaredRequirements, parse_file, read_requirements


def check_deps(tool: str | None = None) -> list[RequirementRow]:
    """Check the requirements of tools and return their status.

    Libraries are not imported. Programs run concurrently to print their versions, each for at most five seconds::

        missing = [row["name"] for row in check_deps("ripgrep") if row["status"] != "ok"]

    Args:
        tool: Tool (`ripgrep.search`) or pack (`ripgrep`); all tools by default.

    Returns:
        One row per requirement of each tool, in the order of the packs and tools. Each row has the keys `tool`,
        `kind` (`cli`, `lib` or `secret`), `name`, `status` (`ok`, `missing`, `outdated` or `error`), `version`,
        `minVersion`, `path`, `install` and `error`.

    Raises:
        ValueError: The tool or pack does not exist.
    """
    host = installed()
    needs = list(_needs(host, tool))
    found = dict(probe_all((requirement for _, requirement in needs), find_secret=host.find_secret))
    return [report_row(name, requirement, found[requirement]) for name, requirement in needs]


def _needs(host: Host, wanted: str | None) -> Iterator[tuple[str, DeclaredRequirement]]:
    packs, sources = host.packs(), host.sources()
    pack, _, function = (wanted or "").partition(".")
    if wanted is not None and (pack not in packs or (function and function not in packs[pack])):
        raise not_found(wanted if function else f"{pack}.", packs)
    for name in packs if wanted is None else [pack]:
        reading = _reading(sources.get(name))
        for each in [function] if function else packs[name]:
            for requirement in reading.of(each):
                yield f"{name}.{each}", requirement


def _reading(file: str | None) -> DeclaredRequirements:
    tree = parse_file(file) if file else None
    return read_requirements(tree) if tree else DeclaredRequirements()
