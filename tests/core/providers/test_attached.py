"""What a provider attaches for its own use goes back to that model, also after a resume, and to no other (rule W4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from bytes_in import ByteServer
from replay import stream_of
from runs import Spy

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.events.wire import Codec
from handrail.providers.base import ModelInfo, Provider
from handrail.providers.chat import OpenAIChat
from handrail.providers.messages import Anthropic
from handrail.providers.responses import OpenAIResponses
from handrail.session import Session

SIGNATURE = "SIG-7f3a+/=="
GOOGLE = {"extra_content": {"google": {"thought_signature": SIGNATURE}}}


def chat(delta: dict[str, Any], finish: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"


def chat_call(*, call: dict[str, Any] | None = None, id: str = "k1", **delta: Any) -> bytes:
    made = {"index": 0, "id": id, "function": {"name": "lookup", "arguments": "{}"}, **(call or {})}
    return chat({"tool_calls": [made], **delta}, "tool_calls")


def messages(block: dict[str, Any], stop: str) -> bytes:
    return stream_of(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    )


def responses(*items: dict[str, Any]) -> bytes:
    done = [{"type": "response.output_item.done", "output_index": n, "item": i} for n, i in enumerate(items)]
    return stream_of(*done, {"type": "response.completed", "response": {"status": "completed"}})


CALL = {"type": "function_call", "id": "i1", "call_id": "k1", "name": "lookup", "arguments": "{}"}
DONE = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Done."}]}
USE = {"type": "tool_use", "id": "k1", "name": "lookup", "input": {}}
SEALED = {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": SIGNATURE}
CHAT_DONE = chat({"content": "Done."}, "stop")
DETAIL = {"type": "reasoning.encrypted", "data": SIGNATURE, "index": 0}

MESSAGES_DONE = messages({"type": "text", "text": "Done."}, "end_turn")
LAST = {"chat": CHAT_DONE, "messages": MESSAGES_DONE, "responses": responses(DONE)}

REPLIES = [
    pytest.param("chat", chat_call(call=GOOGLE), CHAT_DONE, id="chat extra_content"),
    pytest.param(
        "chat", chat_call(call={"thought_signature": SIGNATURE}), CHAT_DONE, id="chat beside the call"
    ),
    pytest.param(
        "chat",
        chat_call(call={"function": {"name": "lookup", "arguments": "{}", "thoughtSignature": SIGNATURE}}),
        CHAT_DONE,
        id="chat inside the function",
    ),
    pytest.param(
        "chat",
        chat_call(call={"provider_specific_fields": {"thought_signature": SIGNATURE}}),
        CHAT_DONE,
        id="chat provider_specific_fields",
    ),
    pytest.param("chat", chat_call(id=f"call_1__thought__{SIGNATURE}"), CHAT_DONE, id="chat inside the id"),
    pytest.param("chat", chat_call(**GOOGLE), CHAT_DONE, id="chat beside the text"),
    pytest.param("chat", chat_call(reasoning_details=[DETAIL]), CHAT_DONE, id="chat reasoning_details"),
    pytest.param("chat", chat_call(reasoning_opaque=SIGNATURE), CHAT_DONE, id="chat reasoning_opaque"),
    pytest.param(
        "chat",
        chat_call(thinking_blocks=[{"type": "thinking", "thinking": "hm", "signature": SIGNATURE}]),
        CHAT_DONE,
        id="chat thinking_blocks",
    ),
    pytest.param(
        "messages",
        messages({**USE, "signature": SIGNATURE}, "tool_use"),
        MESSAGES_DONE,
        id="messages beside the call",
    ),
    pytest.param("responses", responses(SEALED, CALL), responses(DONE), id="responses encrypted"),
    pytest.param("responses", responses({**CALL, **GOOGLE}), responses(DONE), id="responses beside the call"),
]


class Demanding(ByteServer):
    """Answers with a call, and then only to a request that brings back what was attached to it."""

    def __init__(self, call: bytes, last: bytes) -> None:
        super().__init__([call])
        self._last = last

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not self.requests:
            return await super().handle_async_request(request)
        self.requests.append(request.content)
        if SIGNATURE.encode() not in request.content:
            said = {"error": {"code": 400, "message": "Function call is missing a thought_signature."}}
            return httpx.Response(400, json=said, request=request)
        return await ByteServer([self._last]).handle_async_request(request)


def model(api: str, server: httpx.AsyncBaseTransport, name: str = "demo/one") -> Provider:
    info, client = ModelInfo(name), httpx.AsyncClient(transport=server)
    if api == "chat":
        return OpenAIChat(info, base_url="http://127.0.0.1:9/v1", client=client)
    if api == "messages":
        return Anthropic(info, base_url="http://127.0.0.1:9", client=client)
    return OpenAIResponses(info, base_url="http://127.0.0.1:9/v1", client=client)


async def events_of(session: Session, prompt: str = "Go.") -> list[ev.Event]:
    heard: list[ev.Event] = []
    session.listen(heard.append)
    finished = await session.run(prompt)
    assert isinstance(finished, ev.RunFinished)
    return heard


def journalled(events: Sequence[ev.Event]) -> list[ev.Event]:
    """Events as they come back from disk."""
    return [Codec.loads(Codec.dumps(e)) for e in events if not isinstance(e, ev.MessageDelta)]


@pytest.mark.parametrize(("api", "call", "last"), REPLIES)
async def test_W4_a_server_that_demands_it_gets_it_back(api: str, call: bytes, last: bytes) -> None:
    server = Demanding(call, last)
    events = await events_of(Session(model(api, server), tools=[Spy()], clock=VirtualClock()))
    assert isinstance(events[-1], ev.RunFinished)
    assert (events[-1].outcome, events[-1].text) == ("completed", "Done.")


@pytest.mark.parametrize(("api", "call", "last"), REPLIES)
async def test_W4_also_after_a_resume_from_the_journal(api: str, call: bytes, last: bytes) -> None:
    server = Demanding(call, last)
    events = await events_of(Session(model(api, server), tools=[Spy()], clock=VirtualClock()))
    again = Session(model(api, server), tools=[Spy()], clock=VirtualClock())
    again.load(journalled(events))
    finished = (await events_of(again, "And now?"))[-1]
    assert isinstance(finished, ev.RunFinished) and finished.outcome == "completed"
    assert SIGNATURE.encode() in server.requests[-1]


@pytest.mark.parametrize(("api", "call", "last"), REPLIES)
async def test_W4_another_model_never_sees_it(api: str, call: bytes, last: bytes) -> None:
    events = await events_of(Session(model(api, Demanding(call, last)), tools=[Spy()], clock=VirtualClock()))
    for other in ("chat", "messages", "responses"):
        server = ByteServer([LAST[other]])
        again = Session(model(other, server, "demo/two"), tools=[Spy()], clock=VirtualClock())
        again.load(journalled(events))
        await events_of(again, "And now?")
        assert server.requests and SIGNATURE.encode() not in server.requests[-1]
