"""Signing in to a server over HTTP: OAuth by the SDK. Tokens are kept in the system's keyring, else in a file 0600."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import platformdirs
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

_SERVICE: Final = "handrail-mcp"
_PAGE: Final = b"<!doctype html><title>Handrail</title><p>You are signed in. You can close this page."


class TokenStore:
    """The tokens for one address."""

    def __init__(self, url: str, folder: Path | None = None) -> None:
        self._name = hashlib.sha256(url.encode()).hexdigest()[:32]
        self._file = (
            folder or platformdirs.user_state_path("handrail", appauthor=False) / "mcp"
        ) / f"{self._name}.json"

    async def get_tokens(self) -> OAuthToken | None:
        said = self._read().get("tokens")
        return OAuthToken.model_validate(said) if said else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._write("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        said = self._read().get("client")
        return OAuthClientInformationFull.model_validate(said) if said else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write("client", client_info)

    @property
    def known(self) -> bool:
        """Whether somebody signed in here."""
        return "tokens" in self._read()

    def _read(self) -> dict[str, Any]:
        text = None
        with suppress(Exception):  # no keyring, a locked one: the file counts
            text = importlib.import_module("keyring").get_password(_SERVICE, self._name)
        if text is None:
            with suppress(OSError):
                text = self._file.read_text("utf-8")
        try:
            said = json.loads(text or "{}")
        except ValueError:
            return {}
        return said if isinstance(said, dict) else {}

    def _write(self, key: str, value: BaseModel) -> None:
        text = json.dumps({**self._read(), key: value.model_dump(mode="json", exclude_none=True)})
        with suppress(Exception):
            importlib.import_module("keyring").set_password(_SERVICE, self._name, text)
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = self._file.with_suffix(".new")
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        made.replace(self._file)


async def stored_auth(url: str, folder: Path | None = None) -> OAuthClientProvider | None:
    """What authorizes requests to `url` with the tokens of an earlier login; None when nobody signed in."""
    store = TokenStore(url, folder)
    return _provider(url, store, 0, None, None) if store.known else None


class Login:
    """One sign-in: `show(url)` sends the person to the browser; the answer comes back to a port of this machine."""

    def __init__(self, url: str, show: Callable[[str], None], folder: Path | None = None) -> None:
        self._url, self._show = url, show
        self._store = TokenStore(url, folder)
        self._came: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def auth(self) -> OAuthClientProvider:
        """What authorizes requests; the first one that is refused starts the sign-in."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return _provider(self._url, self._store, port, self._redirect, self._callback)

    def close(self) -> None:
        self._server.close()

    async def _redirect(self, url: str) -> None:
        self._show(url)

    async def _callback(self) -> AuthorizationCodeResult:
        return await self._came

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode("latin-1").split(" ")
        given = {k: v[0] for k, v in parse_qs(urlsplit(line[1] if len(line) > 1 else "").query).items()}
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + _PAGE)
        with suppress(OSError):
            await writer.drain()
        writer.close()
        if "code" in given and not self._came.done():
            result = AuthorizationCodeResult(
                code=given["code"], state=given.get("state"), iss=given.get("iss")
            )
            self._came.set_result(result)
        elif "error" in given and not self._came.done():
            self._came.set_exception(PermissionError(given.get("error_description") or given["error"]))


def _provider(
    url: str,
    store: TokenStore,
    port: int,
    redirect: Callable[[str], Awaitable[None]] | None,
    callback: Callable[[], Awaitable[AuthorizationCodeResult]] | None,
) -> OAuthClientProvider:
    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "Handrail",
            "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        }
    )
    return OAuthClientProvider(url, metadata, store, redirect, callback)
