"""The body of a response, decoded with bounded memory: a small body may hold gigabytes (gzip in gzip)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Final

MAX_REPLY: Final = 256 * 1024 * 1024
"""Decoded bytes of one response. A long reply with all its deltas has a tenth of that."""

ACCEPT_ENCODING: Final = "gzip, deflate"

_STEP: Final = 256 * 1024
_GZIP: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_WINDOWS: Final = {"gzip": _GZIP_WINDOW, "x-gzip": _GZIP_WINDOW, "deflate": zlib.MAX_WBITS}


class TooLarge(ValueError):
    """More bytes than a response may have. Asking again would give the same."""


class BodyDecoder:
    """Decodes the chunks of one body. `encoding` is its `content-encoding`.

    A body that is packed by gzip without saying so, or once more than it says, is unpacked too. Raises ValueError for
    an encoding that was not asked for.
    """

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", *_WINDOWS):
            raise ValueError(f"the content-encoding {name[:80]!r} is not supported")
        self._name = name
        self._outer: Any = zlib.decompressobj(_WINDOWS[name]) if name in _WINDOWS else None
        self._inner: Any = None
        self._begun = self._unpacked = False
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The decoded bytes of `chunk`, in pieces. Raises TooLarge, and zlib.error for a broken body."""
        if self._name == "deflate" and not self._begun and chunk and chunk[0] & 0x0F != 8:
            self._outer = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave out the wrapper
        self._begun = self._begun or bool(chunk)
        for piece in _inflated(self._outer, chunk):
            if piece and not self._unpacked:
                self._unpacked = True
                if piece.startswith(_GZIP):
                    self._inner = zlib.decompressobj(_GZIP_WINDOW)
            for inner in _inflated(self._inner, piece):
                yield self._counted(inner)

    def _counted(self, piece: bytes) -> bytes:
        self._size += len(piece)
        if self._size > MAX_REPLY:
            raise TooLarge(f"the reply exceeds limit {MAX_REPLY} bytes: no more of it is read")
        return piece


def _inflated(inflater: Any, chunk: bytes) -> Iterator[bytes]:
    """`chunk` unpacked in pieces of bounded size; as it is where there is no inflater."""
    if inflater is None:
        yield chunk
        return
    while not inflater.eof:
        piece = inflater.decompress(chunk, _STEP)
        chunk = inflater.unconsumed_tail
        if piece:
            yield piece
        if len(piece) < _STEP and not chunk:
            return
