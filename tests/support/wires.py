"""A request held against all three wires: what any of their makers would refuse fails, with its place."""

from __future__ import annotations

from wire_anthropic import check_anthropic
from wire_check import check_chat
from wire_responses import check_responses

from handrail.messages import AssistantMessage
from handrail.providers._chat_request import ChatQuirks, chat_body
from handrail.providers._messages_request import AnthropicQuirks, messages_body
from handrail.providers._responses_request import ResponsesQuirks, responses_body
from handrail.providers.base import ModelInfo, Request


def hold_wires(request: Request) -> None:
    """Raise AssertionError for a request that a provider would refuse."""
    check_anthropic(messages_body(ModelInfo("anthropic/claude-sonnet-4-6"), request, AnthropicQuirks()))
    last = request.messages[-1]
    if isinstance(last, AssistantMessage) and last.stop_detail == "pause_turn":
        return  # a paused reply goes back as it is, and only the wire above knows pauses
    check_chat(chat_body(ModelInfo("openai/gpt-5-mini"), request, ChatQuirks()))
    check_responses(responses_body(ModelInfo("openai/gpt-5-mini"), request, ResponsesQuirks()))
