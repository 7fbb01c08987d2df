"""A picture that the provider refuses leaves the model's view, and the run continues (rule W6)."""

from __future__ import annotations

from typing import Any

import pytest
from runs import Played, Spy, call, fails, play, says

from handrail import events as ev
from handrail.loop.projection import REFUSED, Projection
from handrail.messages import Failure, Image, Text, ToolMessage
from handrail.policy import RecoveryPolicy
from handrail.providers.base import Request
from handrail.recovery.reading.pieces import refuses_a_piece
from handrail.tools.base import ToolResult

COULD_NOT = "messages.2.content.1.image.source.base64: Could not process image"


def looking() -> Spy:
    async def look(args: Any, ctx: Any) -> ToolResult:
        return ToolResult((Text("a picture"), Image("aGVsbG8=", "image/png")))

    return Spy("look", act=look)


async def looks(*replies: Any, **more: Any) -> Played:
    return await play(replies, tools=[looking()], recovery=RecoveryPolicy(), **more)


def pictures(request: Request) -> int:
    results = [m for m in request.messages if isinstance(m, ToolMessage)]
    return sum(isinstance(block, Image) for m in results for block in m.content)


async def test_W6_a_refused_picture_leaves_the_view_and_the_request_is_made_once_more() -> None:
    played = await looks(says("", call("look")), fails(COULD_NOT, 400), says("A cat."))
    assert (played.outcome, played.finished.text) == ("completed", "A cat.")
    assert played.decisions == ["continue:refused-piece"]
    assert [pictures(request) for request in played.requests] == [0, 1, 0]
    result = next(m for m in played.requests[2].messages if isinstance(m, ToolMessage))
    assert result.text.startswith("a picture") and REFUSED in result.text


async def test_W6_the_newest_goes_first_and_each_once_until_none_is_left() -> None:
    refused = [fails(COULD_NOT, 400)] * 2
    played = await looks(says("", call("look")), says("", call("look")), *refused, says("Fine."))
    assert played.outcome == "completed" and played.decisions == ["continue:refused-piece"] * 2
    assert [pictures(request) for request in played.requests] == [0, 1, 2, 1, 0]


async def test_W6_without_a_picture_the_same_words_end_the_run() -> None:
    played = await play([fails(COULD_NOT, 400)], recovery=RecoveryPolicy())
    assert (played.outcome, played.finished.class_) == ("provider", "invalid_request")


async def test_W6_without_recovery_nothing_is_left_out() -> None:
    played = await play([says("", call("look")), fails(COULD_NOT, 400)], tools=[looking()])
    assert played.outcome == "provider" and played.decisions == []


async def test_W6_it_is_a_fold_so_it_holds_after_a_resume() -> None:
    played = await looks(says("", call("look")), fails(COULD_NOT, 400), says("A cat."))
    again = Projection()
    for event in played.events:
        again.apply(event)
    assert again.newest_picture is None
    decided = next(e for e in played.of(ev.Decided) if e.piece is not None)
    assert decided.reason == "refused-piece" and decided.failure is not None


@pytest.mark.parametrize(
    "text",
    [
        COULD_NOT,
        "Invalid image data: the base64 could not be decoded",
        "You uploaded an unsupported image. Please make sure your image is valid.",
        "messages.4.content.0.tool_result.content.1.image: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        "At least one of the image dimensions exceed max allowed size: 8000 pixels",
        "Unable to process input image. Please retry or report in the documentation",
        "The document is corrupted and cannot be read",
        "image media_type image/png does not match the data, which is image/jpeg",
        "this model does not support image input",
        "Failed to download image from the url",
    ],
)
def test_W6_what_refuses_a_piece(text: str) -> None:
    assert refuses_a_piece(Failure(text, "any", "response", 400))


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("invalid api key", 400),
        ("tools.0.input_schema: invalid schema", 400),
        ("the model is overloaded", 400),
        ("max_tokens is too large", 400),
        ("the prompt has too many tokens", 400),
        (COULD_NOT, 401),
        (COULD_NOT, 429),
    ],
)
def test_W6_what_refuses_no_piece(text: str, status: int) -> None:
    assert not refuses_a_piece(Failure(text, "any", "response", status))
