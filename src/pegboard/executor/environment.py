"""What of our environment a worker sees."""

from __future__ import annotations

from collections.abc import Mapping

_NAMES = frozenset({
    "CURL_CA_BUNDLE", "DYLD_LIBRARY_PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "PYTHONHOME",
    "PYTHONPATH", "REQUESTS_CA_BUNDLE", "SHELL", "SSL_CERT_DIR", "SSL_CERT_FILE", "TERM", "TMPDIR", "TZ", "USER",
    "VIRTUAL_ENV",
})  # fmt: skip
_PREFIXES = ("LC_", "XDG_")
_SUFFIXES = ("_PROXY", "_proxy")


def reduced(environ: Mapping[str, str]) -> dict[str, str]:
    """Gives the variables that any program needs to find its way, and none that may hold a secret."""
    return {
        name: value
        for name, value in environ.items()
        if name in _NAMES or name.startswith(_PREFIXES) or name.endswith(_SUFFIXES)
    }
