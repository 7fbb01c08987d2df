"""There is no third outcome: whatever the caller's own code raises, a value or StepFailed (rules S2, S7, L6)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from runs import Spy, call, says, scripted, submit

from handrail import StepFailed, step
from handrail import events as ev
from handrail.clock import VirtualClock

SCHEMA = {"type": "object", "required": ["answer"], "properties": {"answer": {"type": "integer"}}}
ODD = [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), RuntimeError("no"), asyncio.CancelledError()]
IDS = [type(error).__name__ for error in ODD]


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even words")


def value(answer: int) -> Any:
    return says("", submit(answer=answer))


async def answer(*replies: Any, output: Any = SCHEMA, **more: Any) -> Any:
    clock = VirtualClock()
    return await step("Go.", output, model=scripted(replies, clock), clock=clock, **more)


@pytest.mark.parametrize("error", [*ODD, Silent()], ids=[*IDS, "Silent"])
async def test_S7_a_listener_that_raises_loses_no_value(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[ev.Event] = []

    def listen(event: ev.Event) -> None:
        heard.append(event)
        raise error

    with caplog.at_level(logging.ERROR, "handrail"):
        assert await answer(value(1), on_event=listen) == {"answer": 1}
    assert isinstance(heard[-1], ev.RunFinished)
    assert len([r for r in caplog.records if type(error).__name__ in r.getMessage()]) == 1


async def test_S8_a_listener_that_raises_changes_no_failure() -> None:
    def listen(event: ev.Event) -> None:
        raise SystemExit(1)

    with pytest.raises(StepFailed) as caught:
        await answer(says("no value"), on_event=listen)
    assert caught.value.kind == "no-submit"


@pytest.mark.parametrize("error", [*ODD[:4], Silent()], ids=[*IDS[:4], "Silent"])
async def test_L6_a_tool_that_raises_anything_gives_an_error_result(error: BaseException) -> None:
    async def broken(args: Any, ctx: Any) -> Any:
        raise error

    heard: list[ev.Event] = []
    got = await answer(
        says("", call("odd"), submit(answer=1)),
        says("done"),
        tools=[Spy("odd", broken)],
        on_event=heard.append,
    )
    assert got == {"answer": 1}
    [result] = [e for e in heard if isinstance(e, ev.ToolFinished) and e.name == "odd"]
    assert result.is_error and type(error).__name__ in result.text


@pytest.mark.parametrize("error", ODD, ids=IDS)
async def test_S2_a_validator_that_raises_anything_is_an_invalid_submission(error: BaseException) -> None:
    class Checked(BaseModel):
        answer: int

        @field_validator("answer")
        @classmethod
        def check(cls, answer: int) -> int:
            if answer == 1:
                raise error
            return answer

    assert await answer(value(1), value(2), output=Checked) == Checked(answer=2)


@pytest.mark.parametrize("error", ODD, ids=IDS)
async def test_H3_a_function_that_raises_instead_of_answering_declines(error: BaseException) -> None:
    def human(asked: ev.HumanRequested) -> str:
        raise error

    got = await answer(
        says("", call("ask_human", kind="login", needed="Log in.")), value(1), human=human, max_turns=3
    )
    assert got == {"answer": 1}


async def test_S7_the_callers_own_cancellation_passes_through() -> None:
    async def endless(args: Any, ctx: Any) -> Any:
        await asyncio.Event().wait()

    task = asyncio.ensure_future(answer(says("", call("odd")), tools=[Spy("odd", endless)]))
    for _ in range(50):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
