"""A server's result as one of ours: text capped as our own tools' with the rest in a file, pictures as images."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handrail.messages import Content, Image, Text, clean
from handrail.tools.base import ToolContext, ToolResult
from handrail.tools.capture import Capture
from handrail.tools.kept import kept_output
from handrail.tools.output import count, one_line, size

if TYPE_CHECKING:
    import mcp_types as types

MAX_PICTURE: Final = 3_750_000
"""Bytes of a picture for a model."""

MAX_PICTURES: Final = 20

_SIGNATURES: Final = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_EXTENSION: Final = re.compile(r"[a-z0-9]{1,8}")


class ResultReader:
    """Reads one result. `folder` is where the session keeps files, None for the folder of temporary files."""

    def __init__(self, ctx: ToolContext, folder: Path | None) -> None:
        self._ctx, self._folder = ctx, folder
        self._parts: list[str] = []
        self._images: list[Image] = []

    async def read(self, result: types.CallToolResult) -> ToolResult:
        """The result as the model gets it."""
        for block in result.content:
            await self._block(block)
        if result.structured_content is not None and not any(self._parts):
            self._parts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
        text = await capped("\n".join(self._parts), self._ctx)
        content: tuple[Content, ...] = tuple(self._images)
        if text or not content:
            content = (Text(text or "[no output]"), *content)
        return ToolResult(content, is_error=result.is_error, summary=self._summary(text))

    def _summary(self, text: str) -> str:
        pictures = count(len(self._images), "picture") if self._images else ""
        if not text:
            return pictures or "no output"
        words = text if len(text) <= 40 and "\n" not in text else count(text.count("\n") + 1, "line")
        return " · ".join(filter(None, (words, pictures)))

    async def _block(self, block: types.ContentBlock) -> None:
        match block.type:
            case "text":
                self._parts.append(block.text)
            case "image" | "audio":
                await self._data(block.data, block.mime_type, block.type)
            case "resource_link":
                about = f": {block.description}" if block.description else ""
                self._parts.append(f"[resource {block.name} at {block.uri}{about}]")
            case "resource":
                await self._resource(block.resource)

    async def _resource(self, resource: types.TextResourceContents | types.BlobResourceContents) -> None:
        text = getattr(resource, "text", None)
        if isinstance(text, str):
            self._parts.append(f"[resource {resource.uri}]\n{text}")
        else:
            await self._data(
                getattr(resource, "blob", ""), resource.mime_type or "", f"resource {resource.uri}"
            )

    async def _data(self, encoded: str, kind: str, what: str) -> None:
        kind = kind.partition(";")[0].strip().lower()
        shown = one_line(clean(kind), 60) or "unknown type"
        try:
            data = await self._ctx.clock.in_thread(lambda: base64.b64decode(encoded, validate=True))
        except (binascii.Error, ValueError):
            self._parts.append(f"[{what}, {shown}: its base64 cannot be read]")
            return
        signature = _SIGNATURES.get(kind)
        if (
            signature
            and signature.match(data)
            and len(data) <= MAX_PICTURE
            and len(self._images) < MAX_PICTURES
        ):
            self._images.append(Image(base64.b64encode(data).decode(), kind))
            return
        path = await self._ctx.clock.in_thread(lambda: _save(data, kind, self._folder))
        self._parts.append(f"[{what}, {shown}, {size(len(data))}: {path or 'could not be kept'}]")


async def capped(text: str, ctx: ToolContext) -> str:
    """`text` as our own tools cap it: head and tail, and the whole of it in a file that the model may read."""
    capture = Capture(ctx.clock, lambda _: None, kept_output(ctx))
    await capture.add(text.encode("utf-8", "replace"))
    await capture.close()
    return capture.text()


def _save(data: bytes, kind: str, folder: Path | None) -> str | None:
    if folder is None:
        return None
    ending = kind.rpartition("/")[2]
    ending = ending if _EXTENSION.fullmatch(ending) else "bin"
    path = folder / f"{secrets.token_hex(6)}.{ending}"
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
    except OSError:
        return None
    return str(path)


def joined_text(blocks: Iterable[types.ContentBlock]) -> str:
    """The text of blocks, for messages in which only text counts."""
    return clean("\n".join(block.text for block in blocks if block.type == "text")).strip()
