"""How replies of the chat wire end: whole, cut, with a fault, stopped."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from chat_events import chunk, fragment, read
from mock_server import MockServer, sse
from replay import HELLO, ask, check_parts

from handrail.messages import AssistantMessage, Usage
from handrail.providers.base import (
    Finished,
    ModelInfo,
    Provider,
    Started,
    TextDelta,
)
from handrail.providers.chat import OpenAIChat


class TestEnds:
    @pytest.mark.parametrize(
        ("finish", "reason"),
        [
            ("stop", "stop"),
            ("eos", "stop"),
            ("length", "length"),
            ("max_tokens", "length"),
            ("model_length", "length"),
            ("content_filter", "refusal"),
            ("sensitive", "refusal"),
            ("MAX_OUTPUT_TOKENS", "length"),
            ("content-filter", "refusal"),
            ("RECITATION", "refusal"),
        ],
    )
    def test_W1_finish_reasons(self, finish: str, reason: str) -> None:
        _, message = read(chunk({"content": "x"}), chunk(finish=finish))
        assert (message.stop_reason, message.stop_detail, message.failure) == (reason, finish, None)

    @pytest.mark.parametrize(
        ("finish", "reason"),
        [
            ("stop", "tool_use"),
            ("length", "length"),
            ("content_filter", "refusal"),
        ],
    )
    def test_finish_reasons_beside_calls(self, finish: str, reason: str) -> None:
        _, message = read(chunk(fragment(0, "a", "look", "{}")), chunk(finish=finish))
        assert (message.stop_reason, message.stop_detail) == (reason, finish)

    def test_a_refusal_in_words(self) -> None:
        _, message = read(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk(finish="stop"))
        assert (message.stop_reason, message.text) == ("refusal", "I cannot.")

    def test_the_end_mark_alone_is_an_end(self) -> None:
        _, message = read(chunk({"content": "x"}))
        assert (message.stop_reason, message.stop_detail) == ("stop", None)

    @pytest.mark.parametrize(
        "finish",
        ["network_error", "error", "insufficient_system_resource", "tool_calls", "a word nobody knows", "7"],
    )
    async def test_W1_a_finish_reason_that_is_a_failure(
        self, server: MockServer, chat_model: Provider, finish: str
    ) -> None:
        server.answer(sse(chunk({"content": "half"}), chunk(finish=finish)))
        _, message = await ask(chat_model)
        assert (message.stop_reason, message.text) == ("error", "half")
        assert message.failure is not None
        assert message.failure.phase == "stream"
        assert message.failure.text.startswith(f"the stream ended with finish_reason {finish}")

    async def test_a_reply_is_whole_though_the_server_never_ends(
        self, server: MockServer, chat_model: Provider
    ) -> None:
        server.answer(sse(chunk({"content": "x"}, "stop")), cut="hang")
        _, message = await ask(chat_model)
        assert message.stop_reason == "stop"

    async def test_a_reply_is_whole_though_no_end_mark_ever_comes(
        self, server: MockServer, chat_model: Provider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("handrail.providers._streaming.SILENCE_S", 0.05)
        server.answer(sse(chunk({"content": "x"}, "stop"), done=False), cut="hang")
        _, message = await ask(chat_model)
        assert (message.stop_reason, message.failure) == ("stop", None)

    @pytest.mark.parametrize("counted", [True, False])
    async def test_W2_a_break_behind_the_finish_word_is_one_unless_usage_had_come(
        self, server: MockServer, chat_model: Provider, counted: bool
    ) -> None:
        usage = [{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}] if counted else []
        server.answer(sse(chunk({"content": "x"}, "stop"), *usage, done=False), cut="eof")
        _, message = await ask(chat_model)
        assert (message.stop_reason, message.text) == ("stop" if counted else "error", "x")

    async def test_K1_a_stream_that_just_ends_is_a_failure(
        self, server: MockServer, chat_model: Provider
    ) -> None:
        server.answer(sse(chunk({"content": "half"}), done=False))
        _, message = await ask(chat_model)
        assert (message.stop_reason, message.text) == ("error", "half")
        assert message.failure is not None
        assert message.failure.text == "the stream ended before the reply was finished"
        assert (message.failure.phase, message.failure.status) == ("stream", 200)


class TestFaults:
    async def fault(self, server: MockServer, chat_model: Provider, *events: Any) -> AssistantMessage:
        server.answer(sse(chunk({"content": "half"}), *events))
        _, message = await ask(chat_model)
        assert message.text == "half" and message.failure is not None
        return message

    @pytest.mark.parametrize(
        ("error", "status"),
        [
            ({"message": "overloaded", "code": 503}, 503),
            ({"message": "slow down", "code": "429"}, 429),
            ({"message": "bad", "status_code": 400, "code": "tool_use_failed"}, 400),
            ({"message": "bad", "type": "server_error", "code": None}, 200),
            ("words", 200),
        ],
    )
    async def test_K1_an_error_inside_a_good_reply(
        self, server: MockServer, chat_model: Provider, error: Any, status: int
    ) -> None:
        message = await self.fault(server, chat_model, {"error": error})
        assert message.stop_reason == "error" and message.failure is not None
        assert json.loads(message.failure.text) == {"error": error}
        assert (message.failure.phase, message.failure.status) == ("stream", status)
        assert message.failure.provider == "demo"

    async def test_K1_an_error_inside_a_choice(self, server: MockServer, chat_model: Provider) -> None:
        choice = {"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "upstream"}}
        message = await self.fault(server, chat_model, {"choices": [choice]})
        assert message.failure is not None and message.failure.status == 502

    async def test_K1_an_error_of_another_shape(self, server: MockServer, chat_model: Provider) -> None:
        told = {"object": "error", "message": "no such model", "code": 404}
        message = await self.fault(server, chat_model, told)
        assert message.failure is not None
        assert (json.loads(message.failure.text), message.failure.status) == (told, 404)

    async def test_R3_an_error_that_explains_a_cut_leaves_it_a_cut(
        self, server: MockServer, chat_model: Provider
    ) -> None:
        message = await self.fault(
            server, chat_model, chunk(finish="length"), {"error": {"message": "Token limit"}}
        )
        assert message.stop_reason == "length"

    async def test_K1_an_error_behind_a_stop_is_an_error(
        self, server: MockServer, chat_model: Provider
    ) -> None:
        message = await self.fault(server, chat_model, chunk(finish="stop"), {"error": {"message": "gone"}})
        assert message.stop_reason == "error"

    async def test_K1_an_event_that_is_no_json(self, server: MockServer, chat_model: Provider) -> None:
        message = await self.fault(server, chat_model, '{"choices": [')
        assert message.stop_reason == "error" and message.failure is not None
        assert "not JSON" in message.failure.text

    async def test_K1_a_huge_error_is_cut(self, server: MockServer, chat_model: Provider) -> None:
        message = await self.fault(server, chat_model, {"error": {"message": "x" * 1_000_000}})
        assert message.failure is not None and len(message.failure.text) == 65_536

    async def test_K1_statuses(self, server: MockServer, chat_model: Provider) -> None:
        server.answer('{"error":{"message":"slow"}}', 429, {"retry-after": "3"})
        _, message = await ask(chat_model)
        assert message.stop_reason == "error" and message.content == () and message.failure is not None
        assert (message.failure.status, message.failure.headers["retry-after"]) == (429, "3")

    async def test_K1_a_json_error_under_200(self, server: MockServer, chat_model: Provider) -> None:
        for body in ('{"error":{"code":401,"message":"no"}}', '[{"error":{"code":401,"message":"no"}}]'):
            server.forget()
            server.answer(body, headers={"content-type": "application/json"})
            _, message = await ask(chat_model)
            assert message.stop_reason == "error" and message.failure is not None
            assert message.failure.status == 401

    async def test_a_json_body_that_is_nothing_we_know(
        self, server: MockServer, chat_model: Provider
    ) -> None:
        server.answer('{"detail":"Not Found"}', headers={"content-type": "application/json"})
        _, message = await ask(chat_model)
        assert message.failure is not None
        assert json.loads(message.failure.text) == {"detail": "Not Found"}

    async def test_a_reply_that_was_not_streamed_is_taken(
        self, server: MockServer, chat_model: Provider
    ) -> None:
        said = {"role": "assistant", "content": "hi", **fragment(None, "a", "look", '{"x":1}')}
        whole = {
            "choices": [{"message": said, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        }
        server.answer(json.dumps(whole, indent=1), headers={"content-type": "application/json"})
        parts, message = await ask(chat_model)
        check_parts(parts, message)
        assert (message.text, message.stop_reason, message.usage) == ("hi", "tool_use", Usage(3, 2))
        assert [(c.id, c.arguments) for c in message.calls] == [("a", {"x": 1})]


class TestStopping:
    async def test_L9_closing_the_stream_ends_the_request_at_once(
        self, server: MockServer, chat_model: OpenAIChat
    ) -> None:
        server.answer(sse(chunk({"content": "half"}), done=False), cut="hang")
        stream = chat_model.stream(HELLO)
        assert isinstance(await anext(stream), Started)
        assert await anext(stream) == TextDelta("half")
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(server.closed_by_client.wait(), 5)

    async def test_L9_cancelling_ends_the_request_at_once(
        self, server: MockServer, chat_model: Provider
    ) -> None:
        server.answer(sse(chunk({"content": "half"}), done=False), cut="hang")
        task = asyncio.create_task(ask(chat_model))
        await server.arrival()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.closed_by_client.wait(), 5)

    async def test_the_connection_is_used_again(self, server: MockServer, chat_model: Provider) -> None:
        server.answer(sse(chunk({"content": "x"}, "stop")))
        for _ in range(4):
            await ask(chat_model)
        assert server.connections == 1


async def test_J5_the_key_goes_into_the_header_and_nowhere_else(
    server: MockServer, chat_model: OpenAIChat
) -> None:
    server.answer('{"error":{"message":"no"}}', 401)
    _, message = await ask(chat_model)
    assert server.requests[0].headers["authorization"] == "Bearer secret"
    assert server.requests[0].path == "/v1/chat/completions"
    assert "secret" not in repr(message) and "secret" not in repr(server.requests[0].body)


async def test_without_a_key_none_is_sent(server: MockServer) -> None:
    server.answer(sse(chunk({"content": "x"}, "stop")))
    provider = OpenAIChat(ModelInfo("x/y"), base_url=f"{server.url}/v1/chat/completions/")
    *_, last = [part async for part in provider.stream(HELLO)]
    await provider.aclose()
    assert isinstance(last, Finished) and last.message.text == "x"
    assert "authorization" not in server.requests[0].headers
    assert server.requests[0].path == "/v1/chat/completions"
