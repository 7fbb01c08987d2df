"""`step()` as its callers see it: types in and out, what StepFailed tells, people, refusals (rules S1 to S9, L2)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mock_server import MockServer
from runs import Spy, call, fails, says, scripted, submit
from step_models import ANSWER, Model, Point, failing, prose, submits

from handrail import ConfigError, RecoveryPolicy, StepFailed, step, step_sync
from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.messages import AssistantMessage, Usage
from handrail.providers._calls import parse_call
from handrail.providers.base import Request
from handrail.providers.function import FunctionProvider
from handrail.tools.base import ToolContext

ROOT = Path(__file__).parents[3]


# What StepFailed tells -----------------------------------------------------------------------------------------------


async def test_S8_invalid_submissions_name_the_fields_of_the_last_one() -> None:
    failed = await failing(says("", call("submit")), says("", submit("five")), max_attempts=2)
    assert (failed.kind, failed.turns, failed.attempts) == ("invalid-submissions", 2, 2)
    assert [error.path for error in failed.errors] == ["answer"]
    assert failed.failure is None and failed.class_ is None and failed.bound is None
    assert str(failed) == "invalid-submissions after 2 turns: all 2 attempts to submit were invalid"


async def test_S8_a_provider_failure_is_told_with_its_class_and_words() -> None:
    failed = await failing(says("", submit("five")), fails("invalid x-api-key", 401))
    assert (failed.kind, failed.class_, failed.turns, failed.attempts) == ("provider", "auth", 2, 1)
    assert failed.failure is not None
    assert (failed.failure.status, failed.failure.text) == (401, "invalid x-api-key")
    assert failed.errors, "the last validation errors are kept beside it"


async def test_S8_a_usage_limit_says_when_it_ends() -> None:
    failed = await failing(fails("You have hit your usage limit. Try again in 42 min.", 429))
    assert (failed.kind, failed.class_) == ("usage-limit", "usage_limit")
    assert failed.until is not None


@pytest.mark.parametrize(
    ("bound", "kind"),
    [({"max_turns": 1}, "turn-limit"), ({"max_total_tokens": 10}, "budget"), ({"deadline_s": 5.0}, "budget")],
)
async def test_S8_the_bound_that_was_hit_and_the_usage_are_told(bound: dict[str, Any], kind: str) -> None:
    replies = [says("", call("lookup"), usage=Usage(10, 5))]
    failed = await failing(*replies, tools=[Spy(takes_s=9)], **bound)
    assert (failed.kind, failed.bound) == (kind, next(iter(bound)))
    assert failed.usage == Usage(10, 5)


async def test_S8_a_question_that_found_nobody_is_told() -> None:
    failed = await failing(says("HUMAN REQUIRED: login: Log in to the shop."))
    assert failed.kind == "human-required"
    assert failed.question is not None
    assert (failed.question.kind, failed.question.needed) == ("login", "Log in to the shop.")


async def test_S8_prose_and_its_turn_are_told() -> None:
    failed = await failing(says("It is 5."))
    assert str(failed) == "no-submit after 1 turn: the model ended without a submission"
    assert failed.transcript[-1].text == "It is 5."


async def test_S8_the_transcript_holds_all_that_was_said_with_results_in_call_order() -> None:
    async def wait(args: dict[str, Any], ctx: ToolContext) -> str:
        await ctx.clock.sleep(args["s"])
        return f"{args['s']} s"

    failed = await failing(
        says("I look.", call("wait", s=3), call("wait", s=1)),
        fails("overloaded", 503),
        says("HUMAN REQUIRED: login: Log in."),
        says("It is 5."),
        tools=[Spy("wait", wait)],
        recovery=True,
        human=lambda asked: "You are in.",
    )
    said = [(m.role, m.text) for m in failed.transcript]
    assert said == [
        ("user", "Go."),
        ("assistant", "I look."),
        ("tool", "3 s"),
        ("tool", "1 s"),
        ("assistant", ""),
        ("assistant", "HUMAN REQUIRED: login: Log in."),
        ("user", "You are in."),
        ("assistant", "It is 5."),
    ]


async def test_S8_a_failure_of_a_run_is_no_other_exception() -> None:
    async def raises(request: Request) -> AssistantMessage:
        raise KeyError("a provider with a fault of its own")

    with pytest.raises(StepFailed) as caught:
        await step("Go.", int, model=FunctionProvider(raises))
    assert caught.value.kind == "provider"
    assert "KeyError" in str(caught.value)


# Watching, people, tools ---------------------------------------------------------------------------------------------


async def test_on_event_hears_the_run_from_its_start_to_its_end() -> None:
    heard: list[ev.Event] = []
    await step("Go.", int, model=Model(submits('{"value": 5}')), on_event=heard.append)
    assert isinstance(heard[0], ev.RunStarted) and isinstance(heard[-1], ev.RunFinished)
    (submission,) = [event for event in heard if isinstance(event, ev.Submission)]
    assert (submission.accepted, submission.value) == (True, 5)


def names(request: Request) -> list[str]:
    return [spec.name for spec in request.tools]


async def test_S9_ask_human_is_offered_only_with_human() -> None:
    alone, helped = Model(submits('{"value": 5}')), Model(submits('{"value": 5}'))
    await step("Go.", int, model=alone)
    await step("Go.", int, model=helped, human=lambda asked: None)
    assert names(alone.asked[0]) == ["submit"]
    assert names(helped.asked[0]) == ["ask_human", "submit"]


async def say_later(asked: ev.HumanRequested) -> str:
    await asyncio.sleep(0)
    return f"done: {asked.needed}"


def gone(asked: ev.HumanRequested) -> str:
    raise OSError("no terminal")


@pytest.mark.parametrize(
    ("human", "told"),
    [
        (lambda asked: "You are in.", "You are in."),
        (say_later, "done: Log in."),
        (lambda asked: None, "The person cannot do it."),
        (gone, "The person cannot do it. OSError: no terminal"),
    ],
)
async def test_H3_the_callers_function_answers_for_the_person(human: Any, told: str) -> None:
    asks = AssistantMessage(
        (parse_call("c1", "ask_human", '{"kind": "login", "needed": "Log in."}'),), "tool_use"
    )
    model = Model(asks, submits('{"value": 5}'))
    assert await step("Go.", int, model=model, human=human) == 5
    assert model.asked[1].messages[-1].text == told


async def allow(asked: ev.ApprovalRequested) -> bool:
    await asyncio.sleep(0)
    return asked.tool == "bash"


def unsure(asked: ev.ApprovalRequested) -> bool:
    raise OSError("no terminal")


@pytest.mark.parametrize(
    ("approve", "ran"),
    [
        (None, True),
        ("all", True),
        ("edits", False),
        ("ask", False),
        (allow, True),
        (lambda asked: False, False),
        (unsure, False),
    ],
)
async def test_S9_tools_run_without_asking_unless_approve_says_so(approve: Any, ran: bool) -> None:
    tool = Spy("bash", effect="run")
    model = Model(
        AssistantMessage((parse_call("c1", "bash", "{}"),), "tool_use"),
        submits('{"value": 5}'),
    )
    assert await step("Go.", int, model=model, tools=[tool], approve=approve) == 5
    assert bool(tool.started) == ran


async def test_S9_recovery_is_off_unless_asked_for() -> None:
    assert (await failing(fails("overloaded", 503), says("", submit(5)))).kind == "provider"
    for recovery in (True, RecoveryPolicy(retries=1)):
        clock = VirtualClock()
        model = scripted([fails("overloaded", 503), says("", submit(5))], clock)
        assert await step("Go.", ANSWER, model=model, recovery=recovery, clock=clock) == {"answer": 5}


async def test_the_callers_system_prompt_cap_and_folder_are_used(tmp_path: Path) -> None:
    folders: list[Path] = []

    async def look(args: dict[str, Any], ctx: ToolContext) -> str:
        folders.append(ctx.cwd)
        return "ok"

    model = Model(AssistantMessage((parse_call("c1", "look", "{}"),), "tool_use"), submits('{"value": 5}'))
    options: dict[str, Any] = {"system": "You count.", "max_output": 99, "cwd": tmp_path}
    await step("Go.", int, model=model, tools=[Spy("look", look)], **options)
    assert model.asked[0].system.startswith("You count.")
    assert "`ask_human`" in model.asked[0].system and "HUMAN REQUIRED:" in model.asked[0].system  # rule H1
    assert (model.asked[0].max_output, folders) == (99, [tmp_path])


async def test_J5_keys_of_the_environment_reach_neither_events_nor_the_model(monkeypatch: Any) -> None:
    key = "sk-not-a-real-key-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    heard: list[ev.Event] = []
    model = Model(
        AssistantMessage((parse_call("c1", "lookup", "{}"),), "tool_use"), prose(f"I found {key}, as I said.")
    )
    with pytest.raises(StepFailed) as caught:
        await step("Go.", int, model=model, tools=[Spy(result=f"key={key}")], on_event=heard.append)
    assert key not in repr(heard)
    assert key not in repr(model.asked[1].messages)
    assert key not in repr(caught.value.transcript)


# Calling it ----------------------------------------------------------------------------------------------------------


def test_step_sync_gives_the_value_and_raises_the_failure() -> None:
    assert step_sync("Go.", Point, model=Model(submits('{"x": 3}'))) == Point(3)
    with pytest.raises(StepFailed, match="no-submit"):
        step_sync("Go.", Point, model=Model(prose("No.")))


async def test_step_sync_inside_an_event_loop_says_what_to_do() -> None:
    model = Model(submits('{"x": 3}'))
    with pytest.raises(RuntimeError, match="use `await step"):
        step_sync("Go.", Point, model=model)
    assert model.asked == []


@pytest.mark.parametrize("stored", [False, True])
async def test_S7_cancelling_the_callers_task_passes_through_even_after_a_value(stored: bool) -> None:
    started = asyncio.Event()

    async def hang(args: dict[str, Any], ctx: ToolContext) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    tool = Spy("hang", hang)
    calls = [call("hang"), *([submit(5)] if stored else [])]
    clock = VirtualClock()
    running = asyncio.ensure_future(
        step("Go.", ANSWER, model=scripted([says("", *calls)], clock), tools=[tool], clock=clock)
    )
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert tool.ended == ["cancelled"]


async def test_S7_a_timeout_of_the_callers_own_is_a_timeout() -> None:
    async def hang(request: Request) -> AssistantMessage:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await step("Go.", int, model=FunctionProvider(hang))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": -3}, "max_turns"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"deadline_s": 0.0}, "deadline_s"),
        ({"deadline_s": float("nan")}, "deadline_s"),
        ({"max_total_tokens": 0}, "max_total_tokens"),
        ({"max_cost": 0.0}, "max_cost"),
        ({"max_cost": 1.0}, "the price of function/model is unknown"),
        ({"tools": [Spy(), Spy()]}, "two tools are named 'lookup'"),
        ({"tools": [Spy("submit")]}, "may not be named 'submit'"),
        ({"tools": [Spy("ask_human")]}, "may not be named 'ask_human'"),
    ],
)
async def test_L2_what_cannot_be_is_refused_before_any_request(wrong: dict[str, Any], words: str) -> None:
    model = Model()
    with pytest.raises(ValueError, match=words):
        await step("Go.", int, model=model, **wrong)
    assert model.asked == []


@pytest.mark.parametrize("output", [object(), {"type": "nothing"}, {"$ref": "https://example.com/x.json"}])
async def test_L2_a_shape_that_cannot_be_is_refused_before_any_request(output: Any) -> None:
    model = Model()
    with pytest.raises(ValueError):
        await step("Go.", output, model=model)
    assert model.asked == []


async def test_a_model_that_cannot_be_reached_is_a_matter_of_configuration(monkeypatch: Any) -> None:
    for name in [name for name in os.environ if name.endswith(("_KEY", "_URL"))]:
        monkeypatch.delenv(name)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        await step("Go.", int, model="openai/gpt-5-mini")


# A program of twenty lines -------------------------------------------------------------------------------------------


@pytest.fixture
async def server() -> AsyncIterator[MockServer]:
    mock = MockServer()
    await mock.start()
    yield mock
    await mock.stop()


def streamed(name: str, arguments: str) -> str:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    parts = [({"role": "assistant", "tool_calls": [call]}, None), ({}, "tool_calls")]

    def lines() -> Iterator[str]:
        for delta, finish in parts:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            yield json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": [choice]})
        yield "[DONE]"

    return "".join(f"data: {line}\n\n" for line in lines())


async def test_a_newcomers_program_works_as_typed(server: MockServer) -> None:
    program = ROOT / "docs" / "examples" / "step.py"
    body = program.read_text("utf-8").partition('"""\n\n')[2]
    assert len([line for line in body.splitlines() if line.strip()]) <= 20
    server.answer(streamed("last_runs", '{"test": "checkout"}'))
    server.answer(streamed("submit", '{"flaky": true, "cause": "a timeout of 2 s"}'))
    done = await asyncio.create_subprocess_exec(
        sys.executable,
        str(program),
        env={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1", "PATH": os.defpath},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await done.communicate()
    assert (out.decode(), errors.decode()) == ("flaky: a timeout of 2 s\n", "")
    assert server.requests[1].body["messages"][-1]["content"].startswith("checkout: pass, pass, FAIL")
