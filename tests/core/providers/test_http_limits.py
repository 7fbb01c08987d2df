"""What a server may send: decoded bytes, encodings, framing (rules L11, R4, R15)."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from mock_server import MockServer

from handrail.messages import Failure
from handrail.providers import _decoded
from handrail.providers.http import Http, HttpFailure
from handrail.recovery.classify import classify

pytestmark = pytest.mark.attack


@pytest.fixture
async def http(server: MockServer) -> AsyncIterator[Http]:
    client = Http(server.url, {}, provider="demo")
    yield client
    await client.aclose()


async def data(http: Http) -> list[str]:
    async with http.post("x", {}) as reply, aclosing(reply.events()) as stream:
        return [event.data async for event in stream]


async def failure(http: Http) -> Failure:
    with pytest.raises(HttpFailure) as caught:
        await data(http)
    return caught.value.failure


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)]
)
async def test_a_compressed_stream_is_read_wherever_it_is_cut(
    encoding: str, packed: object, server: MockServer, http: Http
) -> None:
    events = "".join(f"data: {'x' * 2000}{n}\n\n" for n in range(500)).encode()
    body = packed(events)  # type: ignore[operator]
    server.answer([body[i : i + 7] for i in range(0, len(body), 7)], headers={"content-encoding": encoding})
    assert await data(http) == ["x" * 2000 + str(n) for n in range(500)]


async def test_R15_a_bomb_is_refused_with_bounded_memory(
    server: MockServer, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_decoded, "MAX_REPLY", 8_000_000)
    bomb = gzip.compress(b"data: " + b"x" * 200 + b"\n\n" + (b": " + b"\0" * 998 + b"\n") * 100_000)
    server.answer(bomb, headers={"content-encoding": "gzip"})
    tracemalloc.start()
    found = await failure(http)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "exceeds limit 8000000 bytes" in found.text and peak < 20_000_000
    assert classify(found, now=0.0).class_ == "invalid_request", "asking again would give the same"


@pytest.mark.parametrize("encoding", ["gzip, gzip", "gzip,deflate", "br", "zstd", "x" * 500])
async def test_R15_an_encoding_inside_another_is_refused(
    encoding: str, server: MockServer, http: Http
) -> None:
    server.answer(gzip.compress(gzip.compress(b"data: x\n\n")), headers={"content-encoding": encoding})
    found = await failure(http)
    assert "is not supported" in found.text and len(found.text) < 300
    assert classify(found, now=0.0).class_ == "invalid_request"


async def test_R15_an_error_that_is_a_bomb_is_cut(server: MockServer, http: Http) -> None:
    server.answer(gzip.compress(b"overloaded " * 5_000_000), 503, {"content-encoding": "gzip"})
    found = await failure(http)
    assert found.text.startswith("overloaded") and len(found.text) <= 64 * 1024


@pytest.mark.parametrize("junk", [b"zz\r\nhello", b"-5\r\n", b"5\r\nhelloworld\r\n", b"\x00\xff\r\n"])
async def test_R4_garbled_chunk_framing_is_transient(junk: bytes, server: MockServer, http: Http) -> None:
    server.answer(b"9\r\ndata: 1\n\n\r\n" + junk, headers={"transfer-encoding": "chunked"}, framing="close")
    assert classify(await failure(http), now=0.0).class_ == "transient"


async def test_R4_a_broken_compression_is_transient(server: MockServer, http: Http) -> None:
    body = bytearray(gzip.compress(b"".join(b"data: %d\n\n" % n for n in range(9_000))))
    body[200:260] = b"\xff" * 60
    server.answer(bytes(body), headers={"content-encoding": "gzip"})
    assert classify(await failure(http), now=0.0).class_ == "transient"
