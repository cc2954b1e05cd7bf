"""The report on what tools need and whether it is there."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.sdk.findings import Row, row
from pegboard.sdk.host import Host, installed
from pegboard.sdk.names import not_found
from pegboard.sdk.probes import probe_all
from pegboard.sdk.requirements import Requirement
from pegboard.sdk.source import Reading, parsed, read_requirements


def check_deps(tool: str | None = None) -> list[Row]:
    """Looks for what tools need.

    Nothing is imported for it, and whatever is wrong with a program or library is told in its row. Programs are run
    all at once, each for five seconds at most.

    Args:
        tool: A tool (`ripgrep.search`) or a whole pack (`ripgrep`); every tool if left out.

    Returns:
        One row for each thing that each tool needs, in the order of the packs and their tools: `tool`, `kind`, `name`,
        `status` (`ok`, `missing`, `outdated` or `error`), `version`, `minVersion`, `path`, `install` and `error`.

    Raises:
        ValueError: There is no such tool or pack.
    """
    host = installed()
    needs = list(_needs(host, tool))
    found = dict(probe_all((requirement for _, requirement in needs), find_secret=host.find_secret))
    return [row(name, requirement, found[requirement]) for name, requirement in needs]


def _needs(host: Host, wanted: str | None) -> Iterator[tuple[str, Requirement]]:
    packs, sources = host.packs(), host.sources()
    pack, _, function = (wanted or "").partition(".")
    if wanted is not None and (pack not in packs or (function and function not in packs[pack])):
        raise not_found(wanted if function else f"{pack}.", packs)
    for name in packs if wanted is None else [pack]:
        reading = _reading(sources.get(name))
        for each in [function] if function else packs[name]:
            for requirement in reading.of(each):
                yield f"{name}.{each}", requirement


def _reading(file: str | None) -> Reading:
    tree = parsed(file) if file else None
    return read_requirements(tree) if tree else Reading()
