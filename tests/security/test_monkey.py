"""Random keys and clicks never end the app, and no unsafe text reaches the screen; the long run is a benchmark."""

from __future__ import annotations

import pytest
from random_user import PAGES, play


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.promise("SEC-5", "TUI-7")
async def test_random_keys_and_clicks_do_not_end_the_app(page: str) -> None:
    crash = await play(page, seed=1, steps=100)
    assert crash is None, str(crash)
