"""Pieces of output joined to lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pegboard.results.log import LogLine, LogLines, Stream


def test_a_line_is_returned_when_it_ends() -> None:
    log = LogLines()
    assert log.feed("stdout", "one\ntw") == _lines("stdout", "one")
    assert [line.text for line in log.begun()] == ["tw"]
    assert log.feed("stdout", "o\n") == _lines("stdout", "two")
    assert log.begun() == []


def test_streams_do_not_mix_within_a_line() -> None:
    log = LogLines()
    log.feed("stdout", "out")
    assert log.feed("stderr", "err\n") == _lines("stderr", "err")
    assert log.feed("stdout", "put\n") == _lines("stdout", "output")


def test_a_carriage_return_ends_a_line_so_that_nothing_is_overwritten() -> None:
    log = LogLines()
    assert log.feed("stdout", "10%\r20%\r\n30%\r") == _lines("stdout", "10%", "20%")
    assert log.feed("stdout", "\nx") == _lines("stdout", "30%")


def test_control_characters_are_visible() -> None:
    assert LogLines().feed("stderr", "\x1b[2J\x07\n") == _lines("stderr", "␛[2J␇")


def test_a_line_without_end_is_returned_in_pieces() -> None:
    log = LogLines()
    pieces = [line.text for _ in range(10) for line in log.feed("stdout", "x" * 1_000)]
    assert {len(piece) for piece in pieces} == {2_000}
    assert sum(map(len, pieces)) + sum(len(line.text) for line in log.begun()) == 10_000


@given(st.lists(st.text(st.sampled_from("ab\r\n"))))
def test_the_lines_do_not_depend_on_how_the_output_was_split(parts: list[str]) -> None:
    cut, whole = LogLines(), LogLines()
    in_parts = [line for part in parts for line in cut.feed("stdout", part)]
    at_once = whole.feed("stdout", "".join(parts))
    assert in_parts + cut.begun() == at_once + whole.begun()


def _lines(stream: Stream, *texts: str) -> list[LogLine]:
    return [LogLine(stream, text) for text in texts]
