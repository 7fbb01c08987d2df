"""HTTP as the gateway serves it: requests of a client read whole, short answers of our own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import h11

READ = 64 * 1024
MAX_HEAD = 256 * 1024
MAX_BODY = 256 * 1024 * 1024
_REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    413: "Content Too Large",
    429: "Too Many Requests",
}


class BadRequest(Exception):
    """What came is no HTTP request that can be answered."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request as it came. `headers` have the names as they were written. `rest` is what came behind it."""

    method: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    keep_alive: bool
    rest: bytes

    def header(self, name: str) -> str:
        """The value of the header `name` (lower case), empty when it is not there."""
        wanted = name.encode()
        return next((v.decode("latin-1") for n, v in self.headers if n.lower() == wanted), "")


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begun: bytes
) -> ClientRequest | None:
    """The next request of a connection; None when there is none. `begun` is what came of it already. Raises
    BadRequest."""
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
    if begun:
        parser.receive_data(begun)
    head: h11.Request | None = None
    body, size = list[bytes](), 0
    try:
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                if parser.they_are_waiting_for_100_continue:
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                data = await reader.read(READ)
                if not data and head is None and parser.trailing_data[0] == b"":
                    return None
                parser.receive_data(data)
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body.append(bytes(event.data))
                size += len(event.data)
                if size > MAX_BODY:
                    raise BadRequest(413, f"the request is larger than {MAX_BODY} bytes")
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                break
            else:
                return None
    except h11.RemoteProtocolError as error:
        raise BadRequest(400, f"no HTTP request: {error}") from None
    connection = b",".join(v.lower() for n, v in head.headers if n == b"connection")
    return ClientRequest(
        method=head.method.decode(),
        target=head.target.decode("latin-1"),
        headers=tuple(head.headers.raw_items()),
        body=b"".join(body),
        keep_alive=head.http_version == b"1.1" and b"close" not in connection,
        rest=bytes(parser.trailing_data[0]),
    )


def answer(status: int, body: bytes, headers: tuple[tuple[str, str], ...] = (), *, keep_alive: bool) -> bytes:
    """A whole answer of our own. Clients are told not to try again: nothing changes by itself."""
    sent = {"content-type": "application/json", **dict(headers)}
    sent |= {"content-length": str(len(body)), "x-should-retry": "false"}
    if not keep_alive:
        sent["connection"] = "close"
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return (
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}\r\n{lines}\r\n".encode("latin-1", "replace")
        + body
    )
