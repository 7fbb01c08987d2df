"""The official client reads what our own server says: the recordings that we made are what the wire is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mock_server import MockServer

OWN = Path(__file__).parent / "recordings"
ROWS = [json.loads(line) for line in (OWN / "expected.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
async def test_the_official_client_reads_the_same_reply(server: MockServer, row: dict[str, Any]) -> None:
    openai = pytest.importorskip("openai", reason="openai is not installed (extra: test)")
    server.answer((OWN / row["file"]).read_bytes().removeprefix("\ufeff".encode()))
    text, usage, calls = "", None, {}
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client:
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "go"}], stream=True
        )
        try:
            async for chunk in stream:
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    content = choice.delta.content
                    text += content if isinstance(content, str) else _text(content)
                    for fragment in choice.delta.tool_calls or ():
                        call = calls.setdefault(fragment.index, {"name": "", "arguments": ""})
                        call["name"] += fragment.function.name or ""
                        call["arguments"] += fragment.function.arguments or ""
        except openai.APIError as error:
            assert row["error"] is not None and error.message == row["error"]["message"]
        else:
            assert row["error"] is None
    assert text == row["text"]
    found = [{"name": c["name"], "arguments": json.loads(c["arguments"] or "{}")} for c in calls.values()]
    assert found == row["tool_calls"]
    counted = usage and {"input": usage.prompt_tokens, "output": usage.completion_tokens}
    assert counted == row["usage"]


def _text(content: Any) -> str:
    """The text of Mistral's lists, which the client passes through as they are."""
    return "".join(part["text"] for part in content or () if part["type"] == "text")
