"""Rows of oddities: the bytes of one reply, and what is to be made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from handrail.messages import AssistantMessage
from handrail.providers._chat_request import ChatQuirks
from handrail.providers.base import ModelInfo, Provider
from handrail.providers.chat import OpenAIChat
from handrail.providers.messages import Anthropic
from handrail.providers.responses import OpenAIResponses
from handrail.recovery.classify import classify

OWN = Path(__file__).parents[1] / "core/providers/oddities"
SHARED = Path(__file__).parents[2] / "../shared/corpus/oddities"


@dataclass(frozen=True)
class Oddity:
    """One row of an `expected.jsonl`, with the bytes of its reply."""

    row: Mapping[str, Any]
    body: bytes

    @property
    def name(self) -> str:
        return str(self.row["file"])

    @property
    def is_good(self) -> bool:
        """Whether nothing else than a good reply is right."""
        return self.row["stop"] in ("stop", "tool_use") and self.row["class"] is None


def oddities(folder: Path) -> list[Oddity]:
    """The rows of one folder; none where it is absent."""
    listing = folder / "expected.jsonl"
    if not listing.exists():
        return []
    rows = map(json.loads, listing.read_text(encoding="utf-8").splitlines())
    return [Oddity(row, (folder / row["file"]).read_bytes()) for row in rows]


def provider_for(row: Mapping[str, Any], url: str, client: httpx.AsyncClient | None = None) -> Provider:
    """The model behind `url` that speaks the wire of the row."""
    model = ModelInfo(f"{row.get('provider', 'demo')}/model")
    makers: dict[str, Callable[[], Provider]] = {
        "openai-chat": lambda: OpenAIChat(model, base_url=f"{url}/v1", quirks=ChatQuirks(), client=client),
        "openai-responses": lambda: OpenAIResponses(model, base_url=f"{url}/v1", client=client),
        "anthropic": lambda: Anthropic(model, base_url=url, client=client),
    }
    return makers[row["api"]]()


def is_empty(message: AssistantMessage) -> bool:
    """Whether a reply ended well and says nothing (rule R5)."""
    return message.stop_reason in ("stop", "tool_use") and not message.text.strip() and not message.calls


def class_of(message: AssistantMessage) -> str | None:
    """The class of a reply that is not good, as recovery sees it (rules K2, R3, R5)."""
    if message.stop_reason == "refusal":
        return "content_filter"
    if message.stop_reason == "length":
        return "output_truncated"
    if message.failure is not None:
        return classify(message.failure, now=0.0).class_
    return "empty" if is_empty(message) else None


def differences(row: Mapping[str, Any], message: AssistantMessage) -> list[str]:
    """What of a reply is not as its row says."""
    found = []

    def check(key: str, got: object, right: bool) -> None:
        if not right:
            found.append(f"{key}: {got!r}, not {row[key]!r}")

    stops = row["stop"] if isinstance(row["stop"], list) else [row["stop"]]
    classes = row["class"] if isinstance(row["class"], list) else [row["class"]]
    got, class_ = message.stop_reason, class_of(message)
    failed = class_ is not None
    check("stop", (got, message.failure), got in stops or ("not-success" in stops and failed))
    check("class", (class_, message.failure), class_ in classes)
    text = message.text.rstrip() if failed else message.text
    check("text", text, text == row["text"])
    calls = [{"name": c.name, "arguments": None if c.error else c.arguments} for c in message.calls]
    check("tool_calls", calls, calls == row["tool_calls"])
    right = message.thinking.startswith(row["thinking"]) and bool(message.thinking) == bool(row["thinking"])
    check("thinking", message.thinking, right)
    for key, tokens in row.get("usage", {}).items():
        got_tokens = getattr(message.usage, key, None)
        check("usage", got_tokens, got_tokens == tokens)
    said = message.failure.text if message.failure else ""
    check("failure_has", said, all(words in said for words in row.get("failure_has", ())))
    return found
