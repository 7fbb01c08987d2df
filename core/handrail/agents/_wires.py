"""What the gateway must know of each wire: which requests ask a model, and how an error looks on it."""

from __future__ import annotations

import json
import re
from typing import Final, Literal, TypeAlias

WireName: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]

_GEMINI: Final = re.compile(r"/models/(?P<model>[^/:]+):(?:stream)?generateContent$", re.IGNORECASE)
_ENDINGS: Final[tuple[tuple[str, WireName], ...]] = (
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    ("/messages", "anthropic"),
)
_GOOGLE_STATUS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
}
_ANTHROPIC_TYPE: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    502: "api_error",
}
_OPENAI_TYPE: Final = {429: "rate_limit_exceeded", 502: "server_error"}


def wire_of(method: str, path: str) -> WireName | None:
    """The wire of a request that asks a model; None for everything else (lists of models, token counts, files)."""
    if method != "POST":
        return None
    if _GEMINI.search(path):
        return "gemini"
    return next((wire for ending, wire in _ENDINGS if path.rstrip("/").endswith(ending)), None)


def model_of(wire: WireName, path: str, body: object) -> str:
    """The model that a request names; empty when it names none."""
    if wire == "gemini":
        found = _GEMINI.search(path)
        return found["model"] if found else ""
    name = body.get("model") if isinstance(body, dict) else None
    return name if isinstance(name, str) else ""


def error_body(wire: WireName | None, status: int, words: str, code: str) -> bytes:
    """An error as the wire's own clients read it. `code` says in one word what happened."""
    error: dict[str, object]
    if wire == "anthropic":
        kind = _ANTHROPIC_TYPE.get(status, "api_error")
        error = {"type": "error", "error": {"type": kind, "message": words}}
    elif wire == "gemini":
        name = _GOOGLE_STATUS.get(status, "INTERNAL")
        error = {"error": {"code": status, "message": words, "status": name}}
    else:
        kind = _OPENAI_TYPE.get(status, "invalid_request_error")
        error = {"error": {"message": words, "type": kind, "param": None, "code": code}}
    return json.dumps(error, ensure_ascii=False).encode()
