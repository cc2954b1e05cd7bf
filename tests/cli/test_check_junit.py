"""JUnit reports of checks that contain any text."""

from __future__ import annotations

import random
from xml.etree import ElementTree as ET

import pytest

from pegboard.checks.junit import junit
from pegboard.checks.model import CheckReport, FailedExpectation
from pegboard.models import Problem

_PIECES = (
    *map(chr, range(0x20)), "\x7f", "\x85", "\x9b", "\ud800", "\udfff", "\udc80\ud83d", "\ufffe", "\uffff",
    "\U0001fffe", "\U0010ffff", "\u202e", "\u200d", "\ufeff", "\r\n", "<![CDATA[", "&#0;", "&amp;", "<", ">", '"', "'",
    "]]>", "\x1b[31m", "é", "日本", "🙂", "<!--", "<?xml?>", "%s", "{}", "[b]",
)  # fmt: skip


def _text(chance: random.Random) -> str:
    """Return a text with a readable word at each end of anything else."""
    return f"first{''.join(chance.choice(_PIECES) for _ in range(chance.randrange(12)))}last"


@pytest.mark.promise("BAT-3", "SEC-5")
def test_reports_are_valid_xml_and_readable_whatever_they_contain() -> None:
    chance = random.Random(4)
    for _ in range(400):
        name, tool, file, message = (_text(chance) for _ in range(4))
        difference = FailedExpectation(expectation="exact", path="", message=message)
        failed = CheckReport(check=name, tool=tool, file=file, status="failed", differences=(difference, difference))
        broken = CheckReport(check=name, tool=tool, file=file, status="error", problem=Problem(message=message))
        root = ET.fromstring(junit([failed, broken], [Problem(message=message, file=file)]))
        texts = [
            *(case.attrib[key] for case in root.iter("testcase") for key in ("name", "classname")),
            *(found.attrib["message"] for found in [*root.iter("failure"), *root.iter("error")]),
        ]
        assert len(texts) == 9
        for text in texts:
            assert text == "checks" or ("first" in text and "last" in text)
            assert "\x1b" not in text
            assert "\u202e" not in text
        (failure,) = root.iter("failure")
        assert failure.text is not None
        assert failure.text.count("first") == 2


@pytest.mark.promise("BAT-3")
@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\x00b", "a␀b"), ("a\x1b[1mb", "a␛[1mb"), ("a\ud800b", "a\\ud800b"), ("a\uffffb", "ab"), ("a\r\nb", "a\nb")],
)
def test_characters_that_xml_cannot_contain_are_shown_as_symbols(text: str, shown: str) -> None:
    report = CheckReport(check=text, tool="t", file="f", status="passed")
    case = ET.fromstring(junit([report])).find(".//testcase")
    assert case is not None
    assert case.attrib["name"] == shown


REQUIRED: dict[str, set[str]] = {
    "testsuites": set(),
    "testsuite": {"name", "tests", "failures", "errors", "skipped"},
    "testcase": {"name", "time"},
    "failure": set(),
    "error": set(),
    "properties": set(),
    "property": {"name", "value"},
}
ALLOWED: dict[str, set[str]] = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"time", "timestamp"},
    "testcase": {"classname"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "properties": set(),
    "property": set(),
}
"""Attributes that the schemas of Jenkins' xUnit plugin (junit-10.xsd) and of Maven Surefire both know."""


@pytest.mark.promise("BAT-3")
def test_reports_are_valid_by_the_schemas_of_jenkins_and_surefire_and_name_the_files() -> None:
    difference = FailedExpectation(expectation="exact", path="", message="Expected 1.")
    passed = CheckReport(check="a", tool="t.a", file="checks/a.toml", status="passed", duration_ms=1234.5)
    failed = CheckReport(check="b", tool="t.b", file="checks/b.toml", status="failed", differences=(difference,))
    broken = CheckReport(
        check="c", tool="t.c", file="checks/c.toml", status="error", problem=Problem(message="Broken.")
    )
    unreadable = Problem(message="No TOML.", file="checks/d.toml")
    root = ET.fromstring(junit([passed, failed, broken], [unreadable]))
    for element in root.iter():
        assert REQUIRED[element.tag] <= element.attrib.keys() <= REQUIRED[element.tag] | ALLOWED[element.tag]
    cases = {case.attrib["name"]: case for case in root.iter("testcase")}
    assert {name: [child.tag for child in case] for name, case in cases.items()} == {
        "a": [],
        "b": ["failure"],
        "c": ["error"],
        "checks/d.toml": ["error"],
    }
    assert [child.tag for child in root[0]] == ["properties", *["testcase"] * 4]
    files = {one.attrib["name"]: one.attrib["value"] for one in root.iter("property")}
    assert files == {name: f"checks/{name}.toml" for name in "abc"}
    assert cases["checks/d.toml"].attrib["time"] == "0.000"
