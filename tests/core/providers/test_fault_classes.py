"""What recovery makes of the faults that our client reports: words of ours that it did not know would end a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mock_server import MockServer, sse
from replay import HELLO

from handrail.clock import EPOCH
from handrail.providers.base import Finished, ModelInfo
from handrail.providers.chat import OpenAIChat
from handrail.providers.http import Http
from handrail.recovery.classify import classify

pytestmark = pytest.mark.attack

HALF = sse({"choices": [{"delta": {"content": "half"}}]}, done=False)


async def class_of(server: MockServer, base_url: str | None = None) -> str:
    provider = OpenAIChat(ModelInfo("demo/m"), base_url=base_url or server.url)
    *_, last = [part async for part in provider.stream(HELLO)]
    await provider.aclose()
    assert isinstance(last, Finished) and last.message.failure is not None
    return classify(last.message.failure, now=EPOCH).class_


@pytest.mark.parametrize("how", [{}, {"cut": "eof"}, {"cut": "reset"}, {"framing": "length", "cut": "eof"}])
async def test_K2_a_stream_that_breaks_or_just_ends_is_transient(
    server: MockServer, how: dict[str, Any]
) -> None:
    server.answer(HALF, **how)
    assert await class_of(server) == "transient"


@pytest.mark.parametrize("cut", ["eof", "reset"])
async def test_K2_a_server_that_goes_away_before_it_answers_is_transient(
    server: MockServer, cut: Any
) -> None:
    server.answer(head=False, cut=cut)
    assert await class_of(server) == "transient"


async def test_K2_nobody_listens_is_transient(server: MockServer) -> None:
    port = server.port
    await server.stop()
    assert await class_of(server, f"http://127.0.0.1:{port}/v1") == "transient"
    await server.start()


async def test_K2_a_name_that_nobody_knows_is_transient(server: MockServer) -> None:
    assert await class_of(server, "http://no-such-host.invalid/v1") == "transient"


async def test_K2_no_answer_in_time_is_transient(server: MockServer, monkeypatch: pytest.MonkeyPatch) -> None:
    short = Http.__init__.__kwdefaults__ | {"header_timeout_s": 0.05}
    monkeypatch.setattr(Http.__init__, "__kwdefaults__", short)
    server.answer(head=False, cut="hang")
    assert await class_of(server) == "transient"


async def test_K2_an_empty_200_and_words_without_events(server: MockServer) -> None:
    server.answer(b"")
    assert await class_of(server) == "transient"
    server.forget()
    server.answer(sse("not json at all", done=False))
    assert await class_of(server) == "transient"


@pytest.mark.parametrize(
    ("status", "body", "class_"),
    [
        (503, b"", "transient"),
        (529, b'{"error":{"message":"Overloaded"}}', "transient"),
        (401, b'{"error":{"message":"Incorrect API key provided"}}', "auth"),
        (404, b"404 page not found", "invalid_request"),
        (307, b"", "invalid_request"),
    ],
)
async def test_K2_statuses(server: MockServer, status: int, body: bytes, class_: str) -> None:
    headers = {"location": "https://elsewhere.example/v1"} if status == 307 else {}
    server.answer(body, status, headers)
    assert await class_of(server) == class_


@pytest.mark.parametrize(
    ("finish", "class_"),
    [
        ("network_error", "transient"),
        ("model_context_window_exceeded", "context_overflow"),
        ("error", "transient"),
    ],
)
async def test_K2_finish_reasons(server: MockServer, finish: str, class_: str) -> None:
    server.answer(sse({"choices": [{"delta": {"content": "x"}, "finish_reason": finish}]}))
    assert await class_of(server) == class_


async def test_K2_a_ca_bundle_that_holds_none_is_not_retried(
    server: MockServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert await class_of(server, "https://api.example.test/v1") != "transient"
