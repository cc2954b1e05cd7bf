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
