"""The HTTP that every wire shares: one pool of connections, JSON out, events back, faults as data.

Nothing is retried and no redirect is followed here: what to do about a fault is decided elsewhere (rules K1,
R4), and a redirect must not carry a key to another host.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from handrail._version import __version__
from handrail.clock import Clock, RealClock
from handrail.messages import Failure, clean
from handrail.providers._decoded import ACCEPT_ENCODING
from handrail.providers._http_reply import HttpFailure, HttpReply, error_body, reply_failure, root_words
from handrail.providers.base import ModelInfo, ProviderNotice

CONNECT_S = 15.0
WRITE_S = 60.0


class Http:
    """Posts JSON to one base URL and reads events back.

    Connect, write and header timeouts are here; a stream has none, the loop owns its idle timeout (rule L10).
    Proxies and the CA bundle come from the environment (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE); a loopback
    address never goes through a proxy. Connections are kept and used again, one request at a time on each: HTTP/2
    would save nothing here, where a run has one request under way. Raises ValueError for a base URL, a header or a CA
    bundle that cannot work.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        provider: str,
        clock: Clock | None = None,
        client: httpx.AsyncClient | None = None,
        header_timeout_s: float = 600.0,
    ) -> None:
        self._base = _checked_base(base_url, provider)
        self._headers = _checked_headers(headers, provider)
        self._provider = provider
        self._clock = clock or RealClock()
        self._client = client
        self._owns_client = client is None
        self._header_timeout_s = header_timeout_s
        self._unsaid = self.warnings
        if client is None and self._base.scheme == "https":
            _check_bundle(provider)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know about this connection before a key goes over it."""
        if self._base.scheme == "http" and not is_loopback(self._base.host):
            return (
                f"{self._provider}: {self._base.host} is reached over plain http: keys and messages can be"
                " read on the way. Use https where the server offers it.",
            )
        return ()

    def notes(self) -> tuple[ProviderNotice, ...]:
        """The warnings as parts of a stream, each only once."""
        unsaid, self._unsaid = self._unsaid, ()
        return tuple(ProviderNotice(words, "warning") for words in unsaid)

    async def aclose(self) -> None:
        """Close the connections, unless the client was handed in. The next request opens new ones."""
        if self._client is not None and self._owns_client:
            client, self._client = self._client, None
            await client.aclose()

    @asynccontextmanager
    async def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[HttpReply]:
        """Post `body` as JSON to `path` under the base URL; the reply, once it began well.

        Raises HttpFailure for a connection that fails, a status that is not 2xx, and no header in time.
        Leaving the block ends the request at once (rule L9).
        """
        response = await self._send(path, body, headers or {})
        try:
            if not response.is_success:
                raise HttpFailure(await self._status_failure(response))
            yield HttpReply(response, self._provider, self._clock)
        finally:
            with self._clock.busy():
                await response.aclose()

    async def _send(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> httpx.Response:
        url = self._base.copy_with(path=self._base.path.rstrip("/") + "/" + path.lstrip("/"))
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        with self._clock.busy():
            try:
                client = self._open_client()
                request = client.build_request(
                    "POST",
                    url,
                    content=content,
                    headers={"accept-encoding": ACCEPT_ENCODING, **self._headers, **headers},
                )
                async with asyncio.timeout(self._header_timeout_s):
                    return await client.send(request, stream=True, follow_redirects=False)
            except TimeoutError:
                words = f"timed out: no answer began within {self._header_timeout_s:g} s"
                raise HttpFailure(Failure(words, self._provider, "response")) from None
            except (httpx.HTTPError, httpx.InvalidURL, OSError, ImportError, ValueError) as error:
                raise HttpFailure(self._send_failure(error)) from None

    def _open_client(self) -> httpx.AsyncClient:
        if self._client is None:
            here = is_loopback(self._base.host)
            plain_here = here and self._base.scheme == "http"  # never meets TLS: the CA bundle is not read
            self._client = httpx.AsyncClient(
                verify=False if plain_here else httpx.create_ssl_context(),
                trust_env=not here,
                timeout=httpx.Timeout(None, connect=CONNECT_S, write=WRITE_S, pool=CONNECT_S),
                limits=httpx.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=60.0),
            )
        return self._client

    def _send_failure(self, error: Exception) -> Failure:
        connecting = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
        if isinstance(error, connecting):
            words = f"could not connect to {self._base.netloc.decode()}: {root_words(error)}"
            return Failure(words, self._provider, "connect")
        if isinstance(error, httpx.HTTPError):
            return Failure(root_words(error), self._provider, "response")
        # Nothing was tried on the network and trying again would not help: no fault of connecting.
        words = f"the request could not be made (check HTTPS_PROXY, SSL_CERT_FILE and the base URL): {error}"
        return Failure(clean(words), self._provider, "response")

    async def _status_failure(self, response: httpx.Response) -> Failure:
        text = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
        if response.has_redirect_location:
            text += (
                f": the server redirects to {clean(response.headers['location'][:200])}, which is not followed,"
                " so that no key goes to another host. Set the base URL to where it leads."
            )
        else:
            with self._clock.busy():
                text = await error_body(response) or text
        return reply_failure(response, self._provider, "response", text)


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine, by its name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _checked_base(base_url: str, provider: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.strip())
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ValueError(_bad_base(base_url, provider, str(error))) from None
    if url.scheme not in ("http", "https"):
        raise ValueError(_bad_base(base_url, provider, "it does not begin with http:// or https://"))
    if not url.host:
        raise ValueError(_bad_base(base_url, provider, "it names no host"))
    return url


def _bad_base(base_url: str, provider: str, what: str) -> str:
    return (
        f"the base URL {base_url!r} of {provider} cannot be used: {what}."
        " Give one like https://api.example.com/v1 or http://127.0.0.1:8080/v1."
    )


def _check_bundle(provider: str) -> None:
    bundle = os.environ.get("SSL_CERT_FILE")
    if bundle and not Path(bundle).is_file():
        raise ValueError(
            f"SSL_CERT_FILE says {bundle}, which is not there, so no certificate of {provider} can be checked."
            " Correct the variable, or unset it to use the built-in certificates."
        )


def _checked_headers(headers: Mapping[str, str], provider: str) -> dict[str, str]:
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            # The value may be a key: it is never shown.
            raise ValueError(
                f"the header {name} for {provider} holds a line break or a letter beyond ASCII,"
                " which no HTTP header may hold. If it carries a key, copy the key again."
            )
    return dict(headers)


class Wire:
    """A model behind an HTTP address. `own` headers say how this wire shows its key; `headers` are sent beside them.

    Raises ValueError for a base URL or a header that cannot be used.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        base_url: str,
        own: Mapping[str, str],
        clock: Clock | None,
        headers: Mapping[str, str] | None,
        client: httpx.AsyncClient | None,
    ) -> None:
        self._model = model
        ours = {"content-type": "application/json", "user-agent": f"handrail/{__version__}"}
        sent = {**ours, **own, **(headers or {})}
        self._http = Http(base_url, sent, provider=model.provider, clock=clock, client=client)

    @property
    def model(self) -> ModelInfo:
        return self._model

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know about the connection."""
        return self._http.warnings

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def bearer(api_key: str | None) -> dict[str, str]:
    """The key as most wires show it; nothing where there is none."""
    return {"authorization": f"Bearer {api_key}"} if api_key else {}
