"""Times for display."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from pegboard.results.sizes import short_time


def test_a_time_is_short_today_and_a_date_in_another_year() -> None:
    now = datetime.now().astimezone()
    assert re.fullmatch(r"\d\d:\d\d:\d\d", short_time(now))
    before = now - timedelta(days=400)
    assert short_time(before) == f"{before:%Y-%m-%d}"
