"""Environment variables passed to workers."""

from __future__ import annotations

from collections.abc import Mapping

_NAMES = frozenset({
    "CURL_CA_BUNDLE", "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH",
    "LOGNAME", "PATH", "PYTHONHOME", "PYTHONPATH", "REQUESTS_CA_BUNDLE", "SHELL", "SSL_CERT_DIR", "SSL_CERT_FILE",
    "TERM", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV",
    *(f"LC_{name}" for name in (
        "ADDRESS", "ALL", "COLLATE", "CTYPE", "IDENTIFICATION", "MEASUREMENT", "MESSAGES", "MONETARY", "NAME",
        "NUMERIC", "PAPER", "TELEPHONE", "TIME",
    )),
    *(f"XDG_{name}" for name in (
        "CACHE_HOME", "CONFIG_DIRS", "CONFIG_HOME", "DATA_DIRS", "DATA_HOME", "RUNTIME_DIR", "STATE_HOME",
    )),
})  # fmt: skip
"""Names, not patterns: a secret could have a name that matches a pattern."""

_PROXIES = frozenset({"ALL_PROXY", "FTP_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"})
"""In upper or lower case. Their values may contain a password, which `pegboard.config.redaction` hides."""


def worker_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return only the variables that every program needs."""
    return {name: value for name, value in environ.items() if name in _NAMES or name.upper() in _PROXIES}
