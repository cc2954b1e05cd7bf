"""Parts of URLs, also of invalid ones."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def url_parts(url: str) -> SplitResult:
    """Return the parts of a URL; of an invalid one, such as `http://[`, only its text as path."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # is read only now
    except ValueError:
        return SplitResult("", "", url, "", "")
    return parts
