"""What tests of providers share: a server that misbehaves on demand, and no proxy in between."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from mock_server import MockServer


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    """A provider on loopback; it answers what `server.answer(…)` said."""
    mock = MockServer()
    await mock.start()
    yield mock
    await mock.stop()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests speak to loopback, whatever the environment says about proxies."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
