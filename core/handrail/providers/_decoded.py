"""The body of a response, decoded with bounded memory: a small body may hold gigabytes (gzip in gzip)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

MAX_REPLY: Final = 256 * 1024 * 1024
"""Decoded bytes of one response. A long reply with all its deltas has a tenth of that."""

ACCEPT_ENCODING: Final = "gzip, deflate"

_STEP: Final = 256 * 1024
_WINDOWS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class TooLarge(ValueError):
    """More bytes than a response may have. Asking again would give the same."""


class BodyDecoder:
    """Decodes the chunks of one body. `encoding` is its `content-encoding`.

    Raises ValueError for an encoding that was not asked for, among them one inside another.
    """

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", *_WINDOWS):
            raise ValueError(f"the content-encoding {name[:80]!r} is not supported")
        self._name = name
        self._inflater = zlib.decompressobj(_WINDOWS[name]) if name in _WINDOWS else None
        self._begun = False
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The decoded bytes of `chunk`, in pieces. Raises TooLarge, and zlib.error for a broken body."""
        if self._inflater is None:
            yield self._counted(chunk)
            return
        if self._name == "deflate" and not self._begun and chunk and chunk[0] & 0x0F != 8:
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave out the wrapper
        self._begun = self._begun or bool(chunk)
        while not self._inflater.eof:
            piece = self._inflater.decompress(chunk, _STEP)
            chunk = self._inflater.unconsumed_tail
            if piece:
                yield self._counted(piece)
            if len(piece) < _STEP and not chunk:
                return

    def _counted(self, piece: bytes) -> bytes:
        self._size += len(piece)
        if self._size > MAX_REPLY:
            raise TooLarge(f"the reply exceeds limit {MAX_REPLY} bytes: no more of it is read")
        return piece
