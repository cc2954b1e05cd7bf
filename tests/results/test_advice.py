"""Advice on failed calls."""

from __future__ import annotations

from pegboard.results.advice import failing_line

TRACEBACK = """Traceback (most recent call last):
  File "/packs/room.py", line 12, in book
    read("{}")
  File "/packs/_calendar.py", line 3, in read
    json.loads(text)
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
ValueError: Extra data
"""


def test_the_failing_line_is_the_innermost_one_of_the_pack_and_its_helpers() -> None:
    found = failing_line(TRACEBACK)
    assert found is not None
    assert (found.file, found.line, found.function) == ("/packs/_calendar.py", 3, "read")


def test_of_chained_exceptions_the_last_one_counts() -> None:
    again = TRACEBACK.replace("line 12", "line 14").replace("_calendar.py", "room.py")
    found = failing_line(f"{TRACEBACK}\nDuring handling of the above exception, another exception occurred:\n\n{again}")
    assert found is not None
    assert (found.file, found.line) == ("/packs/room.py", 3)


GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "/packs/room.py", line 20, in book_all
  |     async with asyncio.TaskGroup() as tasks:
  |   File "/usr/lib/python3.11/asyncio/taskgroups.py", line 145, in __aexit__
  |     raise me from None
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/packs/room.py", line 12, in book
    |     read("{}")
    | ValueError: Extra data
    +---------------- 2 ----------------
    | KeyError: 'two'
    +------------------------------------
"""


def test_of_a_group_of_exceptions_the_line_that_raised_it_counts() -> None:
    found = failing_line(GROUP)
    assert found is not None
    assert (found.file, found.line, found.function) == ("/packs/room.py", 20, "book_all")
    caused = f"{TRACEBACK}\nDuring handling of the above exception, another exception occurred:\n\n{GROUP}"
    assert failing_line(caused) == found
    again = TRACEBACK.replace("line 12", "line 14").replace("_calendar.py", "room.py")
    chained = failing_line(f"{GROUP}\nThe above exception was the direct cause of the following exception:\n\n{again}")
    assert chained is not None
    assert chained.line == 3


def test_without_a_frame_there_is_no_failing_line() -> None:
    assert failing_line(None) is None
    assert failing_line("ValueError: no frames") is None
