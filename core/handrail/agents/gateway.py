"""The gateway: between any client and its provider, on this machine, under bounds (rules L1 to L3, U, K, J5).

A client is pointed here by its base URL, `http://127.0.0.1:PORT/SESSION/TOKEN/PROVIDER`. What it sends goes to the
provider as it is, what comes back passes unchanged, streams too. Before each request that asks a model the session's
bounds are checked; a refused one gets an error of its own wire that no client retries.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from pydantic_core import from_json

from handrail.agents._exchange import Exchange, Refusal
from handrail.agents._http import BadRequest, ClientRequest, answer, read_request
from handrail.agents._relay import Relay, Relayed
from handrail.agents._upstream import READ, UpstreamFailed, origin_of
from handrail.agents._wires import WireName, error_body, model_of, wire_of
from handrail.agents.gateway_session import GatewaySession
from handrail.agents.limits import account_of
from handrail.agents.routes import Route, client_environ
from handrail.messages import Failure

_KEY_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a request belongs. `url` is the provider's address for it."""

    session: GatewaySession
    route: Route
    path: str
    query: str
    wire: WireName | None

    @property
    def url(self) -> str:
        base = self.route.address
        if self.wire == "anthropic" and self.route.messages_address is not None:
            base = self.route.messages_address
        return f"{base}{self.path}" + (f"?{self.query}" if self.query else "")


class Gateway:
    """A server on 127.0.0.1 for any number of sessions. Used with `async with`; leaving it hangs up on everybody."""

    def __init__(self) -> None:
        self._sessions: dict[str, GatewaySession] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Gateway:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen on `port`, by default on one that is free. Raises OSError."""
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", port, limit=4 * READ)

    async def stop(self) -> None:
        """Hang up on everybody and close the sessions."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for session in tuple(self._sessions.values()):
            await session.close()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        if self._server is None:
            raise RuntimeError("the gateway is not running")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def add(self, session: GatewaySession) -> None:
        """Let requests of `session` in."""
        self._sessions[session.id] = session

    def base_url(self, session: GatewaySession, provider: str | None = None) -> str:
        """The address for clients of `session`, of one provider or in front of all. It holds the session's token."""
        base = f"http://127.0.0.1:{self.port}/{session.id}/{session.token}"
        return base if provider is None else f"{base}/{provider}"

    def environ(self, session: GatewaySession, environ: Mapping[str, str]) -> dict[str, str]:
        """`environ` for a program whose requests are to come here."""
        return client_environ(self.base_url(session), session.routes, session.token, environ)

    # -- connections

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        relay = Relay(reader, writer)
        begun, goes_on = b"", True
        try:
            while goes_on:
                try:
                    request = await read_request(reader, writer, begun)
                except BadRequest as error:
                    body = error_body(None, error.status, str(error), "bad_request")
                    writer.write(answer(error.status, body, keep_alive=False))
                    break
                if request is None:
                    break
                relayed = await self._answer(request, relay, writer)
                begun, goes_on = request.rest + relayed.rest, relayed.reusable and request.keep_alive
            await writer.drain()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            relay.close()
            writer.close()

    async def _answer(self, request: ClientRequest, relay: Relay, writer: asyncio.StreamWriter) -> Relayed:
        """Answer one request, from the provider or by ourselves."""
        place = self._place(request)
        if isinstance(place, Refusal):
            return _say(writer, place, None, request)
        own = _own_key(place.route, place.wire, request)
        exchange: Exchange | None = None
        if place.wire is not None:
            body = _json(request.body)
            admitted = await place.session.admit(
                place.wire,
                place.route,
                _account(place, request),
                model_of(place.wire, place.path, body),
                len(request.body),
            )
            if isinstance(admitted, Refusal):
                return _say(writer, admitted, place.wire, request)
            exchange = admitted
        relayed = Relayed(client_left=True)
        try:
            relayed = await relay.carry(request, _with_key(place, own), own, exchange)
        except UpstreamFailed as error:
            words = f"{place.route.provider}: {error}"
            if exchange is not None:
                exchange.unreached = Failure(words, place.route.provider, "connect")
            relayed = _say(writer, Refusal(502, words, "unreachable"), place.wire, request)
        finally:
            if exchange is not None:
                exchange.over(whole=relayed.whole, client_left=relayed.client_left)
        return relayed

    def _place(self, request: ClientRequest) -> _Place | Refusal:
        """Where a request belongs. A wrong session or token learns nothing but that."""
        parts = urlsplit(request.target)
        _, id, token, provider, *rest = [*parts.path.split("/", 4), "", "", "", ""][:5]
        session = self._sessions.get(id)
        if session is None or not hmac.compare_digest(token.encode(), session.token.encode()):
            words = "this address of the Handrail gateway is not known: its session has ended or its token is wrong"
            return Refusal(401, words, "wrong_token")
        route = session.routes.get(provider)
        if route is None:
            known = ", ".join(sorted(session.routes))
            words = f"the gateway knows no provider '{provider[:40]}' in this address. It may be: {known}."
            return Refusal(404, words, "unknown_provider")
        if request.header("upgrade"):
            return Refusal(400, "the gateway passes requests and streams on, no web sockets", "no_upgrade")
        path = f"/{rest[0]}" if rest and rest[0] else ""
        return _Place(session, route, path, parts.query, wire_of(request.method, path))


def _say(
    writer: asyncio.StreamWriter, refusal: Refusal, wire: WireName | None, request: ClientRequest
) -> Relayed:
    """Answer by ourselves: in the wire's own error shape, or with the words that the provider said."""
    limit = refusal.limit
    if limit is not None and limit.body:
        body, headers = limit.body, limit.headers
    else:
        body, headers = error_body(wire, refusal.status, refusal.words, refusal.code), ()
    writer.write(answer(refusal.status, body, headers, keep_alive=request.keep_alive))
    return Relayed(whole=True, reusable=True, began=True)


def _json(body: bytes) -> object:
    try:
        return from_json(body)
    except ValueError:
        return None


def _account(place: _Place, request: ClientRequest) -> str:
    """Whose limit it is: the key that is sent, at the address that it is sent to."""
    sent = place.route.key or next((v for n in _KEY_HEADERS if (v := request.header(n))), "")
    sent = sent or dict(parse_qsl(place.query)).get("key", "")
    return account_of(origin_of(place.url), sent.removeprefix("Bearer "))


def _own_key(route: Route, wire: WireName | None, request: ClientRequest) -> Mapping[str, str]:
    """The headers that carry the gateway's own key, in the place where the client put what it had."""
    if route.key is None:
        return {}
    used = next((n for n in _KEY_HEADERS if request.header(n)), None)
    if used is None:
        used = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}.get(wire or "", "authorization")
    return {used: f"Bearer {route.key}" if used == "authorization" else route.key}


def _with_key(place: _Place, own: Mapping[str, str]) -> str:
    """The provider's address; a key of the client's in its query is taken out where the gateway has its own."""
    if not own or "key=" not in place.query:
        return place.url
    kept = urlencode([(n, v) for n, v in parse_qsl(place.query, keep_blank_values=True) if n != "key"])
    return _Place(place.session, place.route, place.path, kept, place.wire).url
