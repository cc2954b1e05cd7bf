"""Requests to public addresses only, checked on the address of the connection."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any  # arguments of `ssl`
from urllib.request import getproxies, proxy_bypass

import httpx

from pegboard.sdk import ToolFailed

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_SPECIAL = [
    ip_network(network)
    for network in (
        "168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2001:db8::/32", "3fff::/20",
    )
]  # fmt: skip
"""Networks for special purposes, some of which Python counts as global; the first one is Azure's host of a machine."""
_HOST: ContextVar[str] = ContextVar("host")
"""Name that the certificate of the next connection must have."""


def is_public(address: str) -> bool:
    """Return whether an address belongs to the public internet.

    Addresses that contain an IPv4 address (IPv4-mapped, 6to4, NAT64) count like that one; Teredo is never public.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _inner(found) if isinstance(found, IPv6Address) else None
    if inner is not None:
        return is_public(str(inner))
    if isinstance(found, IPv6Address) and found not in _GLOBAL_UNICAST:
        return False
    return found.is_global and not found.is_multicast and not any(found in network for network in _SPECIAL)


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


class _NamedContext(ssl.SSLContext):
    """TLS for connections to an address whose certificate must have the name in `_HOST`.

    httpx can't be asked for that: it ignores `sni_hostname` behind a proxy.
    """

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:  # noqa: ANN401 - `ssl` knows them
        """Encrypt a connection."""
        return super().wrap_socket(*args, **{**options, "server_hostname": _HOST.get()})

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:  # noqa: ANN401 - as above
        """Encrypt a connection within the encrypted one to a proxy."""
        return super().wrap_bio(*args, **{**options, "server_hostname": _HOST.get()})


class PublicTransport(httpx.BaseTransport):
    """A transport that resolves names itself, and connects only to the public addresses that it found.

    It also handles redirects. A proxy from the environment receives the address instead of the name, so it resolves
    nothing.
    """

    def __init__(self) -> None:
        self._transports: dict[str | None, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the first public address that accepts a connection.

        Raises:
            ToolFailed: The host has no public address.
            httpx.ConnectError: The host can't be resolved or connected to.
        """
        transport = self._transport(_proxy_of(request.url))
        _HOST.set(request.url.raw_host.decode("ascii"))
        failed: httpx.ConnectError | httpx.ConnectTimeout | None = None
        for address in _public_addresses(request):
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,  # with the name as `Host`
                stream=request.stream,
                extensions=request.extensions,
            )
            try:
                return transport.handle_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failed = error
        assert failed is not None, "the list has an address"
        raise failed

    def close(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            transport.close()

    def _transport(self, proxy: str | None) -> httpx.HTTPTransport:
        if proxy not in self._transports:
            # Connections are not kept: they would be reused for another name with the same address.
            limits = httpx.Limits(max_connections=100, max_keepalive_connections=0)
            context = httpx.create_ssl_context()
            context.__class__ = _NamedContext  # it has the trusted certificates
            self._transports[proxy] = httpx.HTTPTransport(verify=context, proxy=proxy, limits=limits)
        return self._transports[proxy]


def _public_addresses(request: httpx.Request) -> list[str]:
    host, port = request.url.raw_host.decode("ascii"), request.url.port
    try:
        found = list(dict.fromkeys(_resolved(host, port or (443 if request.url.scheme == "https" else 80))))
    except (OSError, UnicodeError) as error:
        raise httpx.ConnectError(f"{request.url.host} can't be resolved: {error}", request=request) from error
    public = [address for address in found if is_public(address)]
    if not public:
        message = (
            f"{request.url} was not fetched because {request.url.host} is not a public address, and agents may only "
            "reach public ones. To allow it, set `private = true` under `[packs.web]` in the configuration."
        )
        raise ToolFailed(message, code="private_address")
    return public


def _resolved(host: str, port: int) -> Iterator[str]:
    for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        yield str(address[0])


def _proxy_of(url: httpx.URL) -> str | None:
    """Return the proxy that the environment names for an address."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy:
        return None
    with suppress(OSError):
        if proxy_bypass(url.host):
            return None
    return proxy if "://" in proxy else f"http://{proxy}"
