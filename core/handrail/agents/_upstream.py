"""A connection to a provider, opened as the environment says: TLS, a proxy, or plain to this machine."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import h11
import httpx

from handrail.providers.http import CONNECT_S, is_loopback

READ = 64 * 1024


class UpstreamFailed(Exception):
    """The provider cannot be reached, or answers with something that is no HTTP."""


@dataclass(slots=True)
class Upstream:
    """An open connection. `absolute`: requests name the whole address, as a plain proxy wants it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    absolute: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    used: bool = False

    @property
    def closed(self) -> bool:
        """The other side hung up."""
        return self.reader.at_eof() or self.writer.is_closing()

    def close(self) -> None:
        """Hang up at once: a reply under way ends here."""
        self.writer.transport.abort()


def origin_of(url: str) -> str:
    """`scheme://host:port` of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


async def connect(url: str) -> Upstream:
    """Open a connection to where `url` leads. Raises UpstreamFailed."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(CONNECT_S):
            proxy = _proxy(parts.scheme, host)
            if proxy is not None:
                return await _through(proxy, parts.scheme, host, port)
            secure = _tls() if parts.scheme == "https" else None
            reader, writer = await asyncio.open_connection(
                host, port, ssl=secure, server_hostname=host if secure else None, limit=4 * READ
            )
            return Upstream(reader, writer)
    except TimeoutError:
        raise UpstreamFailed(f"could not connect to {host}:{port}: timed out") from None
    except (OSError, ValueError, h11.ProtocolError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UpstreamFailed(f"could not connect to {host}:{port}: {words}") from None


@cache
def _tls() -> ssl.SSLContext:
    context = httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _proxy(scheme: str, host: str) -> SplitResult | None:
    """The proxy that the environment names for `host`; loopback never goes through one."""
    if is_loopback(host) or proxy_bypass(host):
        return None
    known: Mapping[str, str] = getproxies()
    named = known.get(scheme) or known.get("all")
    if not named:
        return None
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    if proxy.scheme not in ("http", "https") or not proxy.hostname:
        raise ValueError(f"the proxy of the environment is not one for HTTP: {proxy.scheme}")
    return proxy


async def _through(proxy: SplitResult, scheme: str, host: str, port: int) -> Upstream:
    """A plain request names its whole address to the proxy; TLS goes through a tunnel."""
    secure = _tls() if proxy.scheme == "https" else None
    reader, writer = await asyncio.open_connection(
        proxy.hostname, proxy.port or (443 if secure else 80), ssl=secure, limit=4 * READ
    )
    headers: tuple[tuple[str, str], ...] = ()
    if proxy.username is not None:
        login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
        headers = (("proxy-authorization", f"Basic {base64.b64encode(login).decode()}"),)
    if scheme == "http":
        return Upstream(reader, writer, absolute=True, headers=headers)
    tunnel = h11.Connection(h11.CLIENT)
    target = f"{host}:{port}"
    asked = h11.Request(method="CONNECT", target=target, headers=[("host", target), *headers])
    writer.write((tunnel.send(asked) or b"") + (tunnel.send(h11.EndOfMessage()) or b""))
    while (event := tunnel.next_event()) is h11.NEED_DATA:
        tunnel.receive_data(await reader.read(READ))
    if not isinstance(event, h11.Response) or event.status_code != 200:
        writer.transport.abort()
        status = event.status_code if isinstance(event, h11.Response) else "no answer"
        raise OSError(f"the proxy {proxy.hostname} refuses the tunnel ({status})")
    await writer.start_tls(_tls(), server_hostname=host)
    return Upstream(reader, writer)
