"""Environment variables that every client of a server with a URL reads when it is created."""

from __future__ import annotations

import os
import ssl
from typing import Final
from urllib.request import getproxies

from pegboard.data.urls import url_parts

_SCHEMES: Final = frozenset({"", "http", "https", "socks5", "socks5h"})


def invalid_variable() -> tuple[str, str] | None:
    """Return why no client can be created and how to correct it, or None if the variables are valid."""
    return _certificates() or _proxies()


def proxy_setting(kind: str) -> str:
    """Return the setting that names the proxy for a kind of URLs, such as `http` or `all`."""
    names = (f"{kind}_proxy", f"{kind}_proxy".upper())
    variable = next((name for name in names if os.environ.get(name)), None)
    return f"the variable {variable}" if variable else "the proxy of the system"


def _certificates() -> tuple[str, str] | None:
    file = os.environ.get("SSL_CERT_FILE")
    if not file:
        return None
    try:
        ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        reason = "it has no certificate in the PEM format"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", "") or str(error)
    else:
        return None
    return (
        f"The file of certificates {file} can't be used: {reason}.",
        "Correct the variable SSL_CERT_FILE, or unset it.",
    )


def _proxies() -> tuple[str, str] | None:
    for kind, address in getproxies().items():
        scheme = url_parts(address).scheme if "://" in address else ""
        if kind in ("http", "https", "all") and scheme not in _SCHEMES:
            reason = f"The proxy has the scheme {scheme}, which isn't http, https, socks5 or socks5h."
            return reason, f"Correct {proxy_setting(kind)}."
    return None
