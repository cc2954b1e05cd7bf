"""Reports on checks as JUnit XML, for CI."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pegboard.checks.model import CheckReport
from pegboard.models import Problem
from pegboard.results.clean import clean

_INVALID: Final = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 can't contain, and the carriage return."""


def junit(reports: Sequence[CheckReport], problems: Sequence[Problem] = ()) -> bytes:
    """Return a JUnit report; a test case per check, and one per file that can't be read.

    It is valid by the schemas of Jenkins' xUnit plugin and, but for the root, of Maven Surefire. They allow no file of
    a test case, so the properties of the suite name the file of each check.

    Args:
        reports: The reports on the checks.
        problems: Why files of checks are invalid.
    """
    errors = sum(report.status == "error" for report in reports) + len(problems)
    counts = {
        "tests": str(len(reports) + len(problems)),
        "failures": str(sum(report.status == "failed" for report in reports)),
        "errors": str(errors),
        "time": _seconds(sum(report.duration_ms for report in reports)),
    }
    root = Element("testsuites", counts)
    suite = SubElement(root, "testsuite", {"name": "pegboard", **counts, "skipped": "0"})
    files = SubElement(suite, "properties")
    for report in reports:
        SubElement(files, "property", {"name": _text(report.title), "value": _text(report.file)})
    for report in reports:
        case = _case(suite, report.tool, report.title, report.duration_ms)
        if report.problem is not None:
            _outcome(case, "error", str(report.problem), "")
        elif report.status == "failed":
            lines = [f"{one.expectation}: {one.message}" for one in report.differences]
            _outcome(case, "failure", lines[0], "\n".join(lines))
    for problem in problems:
        case = _case(suite, "checks", problem.file or "", 0.0)
        _outcome(case, "error", str(problem), "")
    indent(root)
    xml: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def _case(suite: Element, tool: str, title: str, milliseconds: float) -> Element:
    names = {"classname": _text(tool), "name": _text(title)}
    return SubElement(suite, "testcase", {**names, "time": _seconds(milliseconds)})


def _outcome(case: Element, tag: str, message: str, details: str) -> None:
    SubElement(case, tag, {"message": _text(message)}).text = _text(details)


def _text(text: str) -> str:
    r"""Return readable text that XML can contain.

    Control characters become symbols such as `␛`, and lone surrogates and invisible characters become escapes such as
    `\ud800`, so that a report shows them. The few others that XML excludes are removed.
    """
    return _INVALID.sub("", clean(text))


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"
