"""Hosts that are this machine."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host: a name, or an address with or without brackets."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name
        return host.lower() == "localhost"
