"""A server's questions: as a form, answered, and after the end of ours or of the server's process (mcp.md, rule H6)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp_bench import StartBench, text_of, until

from handrail.events.parts import FormField
from handrail.mcp._questions import fields_of
from handrail.tools.base import FormAnswer, ToolError

ADA = FormAnswer("accept", {"name": "Ada", "age": 36})


@pytest.mark.parametrize("flags", [(), ("--modern",)], ids=["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_a_question_is_a_form_and_its_answer_goes_back(
    nasty: StartBench, flags: tuple[str, ...], action: Any
) -> None:
    bench = await nasty(*flags)
    bench.answers = [ADA if action == "accept" else FormAnswer(action)]
    got = json.loads(text_of(await bench.call("ask")))
    assert got["action"] == action
    assert got.get("content") == ({"name": "Ada", "age": 36} if action == "accept" else None)
    [form] = bench.asked
    assert form.needed == "nasty asks: Who are you?"
    assert form.fields == (
        FormField("name", "text", label="Your name", required=True),
        FormField("age", "integer", minimum=0),
        FormField("colour", "choice", options=(("red", "red"), ("blue", "blue"))),
    )
    assert form.resume is not None


async def test_time_that_a_person_takes_is_no_time_of_the_call(nasty: StartBench) -> None:
    bench = await nasty(timeout=0.4)

    async def slowly(form: Any) -> FormAnswer:
        await asyncio.sleep(0.6)  # the server's process waits in real time
        return ADA

    bench.ask = slowly
    assert json.loads(text_of(await bench.call("ask")))["action"] == "accept"


@pytest.mark.parametrize("forgets", [False, True])
async def test_after_our_restart_the_call_goes_on_with_the_answer(nasty: StartBench, forgets: bool) -> None:
    flags = ["--modern", *(["--forgets"] if forgets else [])]
    first = await nasty(*flags)
    first.answers = [ADA]
    await first.call("ask")
    resume = first.asked[0].resume
    await first.servers.close()
    first.log.unlink()

    second = await nasty(*flags)
    second.resume, second.answers = json.loads(json.dumps(resume)), [ADA]
    assert json.loads(text_of(await second.call("ask")))["content"] == {"name": "Ada", "age": 36}
    assert len(second.asked) == 1
    calls = [m["params"] for m in second.seen("tools/call")]
    assert resume is not None
    assert calls[0]["requestState"] == resume["state"]
    assert len(calls) == (3 if forgets else 1)
    if forgets:  # anew, and the answer is given to the same question without asking again
        assert "requestState" not in calls[1]
        assert calls[2]["inputResponses"]["who"]["content"] == {"name": "Ada", "age": 36}


async def test_in_the_earlier_protocol_the_call_begins_anew_with_the_answer(nasty: StartBench) -> None:
    first = await nasty()
    first.answers = [ADA]
    await first.call("ask")
    resume = first.asked[0].resume
    await first.servers.close()

    second = await nasty()
    second.resume, second.answers = resume, [ADA]
    assert json.loads(text_of(await second.call("ask")))["content"] == {"name": "Ada", "age": 36}
    assert len(second.asked) == 1

    third = await nasty()
    third.resume, third.answers = resume, [FormAnswer("decline")]
    with pytest.raises(ToolError, match="outcome unknown"):
        await third.call("ask")


async def test_an_answer_outlives_the_server_that_asked(nasty: StartBench) -> None:
    bench = await nasty()

    async def when_it_is_gone(form: Any) -> FormAnswer:
        bench.asked.append(form)
        await until(lambda: bench.servers.statuses()[0].state != "ready")
        return ADA

    bench.ask = when_it_is_gone
    with pytest.raises(ToolError, match=r"lost twice|not running"):
        await bench.call("ask_and_die")
    assert len(bench.asked) == 1


async def test_nobody_there_leaves_the_question_open(nasty: StartBench) -> None:
    class Absent(Exception):
        pass

    async def nobody(form: Any) -> FormAnswer:
        raise Absent

    bench = await nasty()
    bench.ask = nobody
    with pytest.raises(Absent):
        await bench.call("ask")


def test_every_kind_of_field_is_read() -> None:
    fields = fields_of(
        {
            "properties": {
                "text": {"type": "string", "minLength": 2, "maxLength": 5, "default": "abc"},
                "number": {"type": "number", "minimum": 1, "maximum": 2},
                "flag": {"type": "boolean", "default": True},
                "day": {"type": "string", "format": "date"},
                "moment": {"type": "string", "format": "date-time"},
                "mail": {"type": "string", "format": "email"},
                "site": {"type": "string", "format": "uri"},
                "named": {"type": "string", "enum": ["a", "b"], "enumNames": ["Apple", "Bean"]},
                "titled": {"type": "string", "oneOf": [{"const": "x", "title": "Ex"}, {"const": "y"}]},
                "several": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 2,
                    "items": {"anyOf": [{"const": "f"}]},
                },
                "wrong_default": {"type": "integer", "default": "none"},
            },
            "required": ["flag"],
        }
    )
    assert [f.kind for f in fields] == [
        *(
            "text",
            "number",
            "boolean",
            "date",
            "date-time",
            "email",
            "uri",
            "choice",
            "choice",
            "choices",
            "integer",
        )
    ]
    assert fields[0] == FormField("text", default="abc", minimum=2, maximum=5)
    assert fields[2] == FormField("flag", "boolean", required=True, default=True)
    assert fields[7].options == (("a", "Apple"), ("b", "Bean"))
    assert fields[8].options == (("x", "Ex"), ("y", "y"))
    assert fields[9] == FormField("several", "choices", options=(("f", "f"),), minimum=1, maximum=2)
    assert fields[10].default is None


@pytest.mark.parametrize(
    "spec", [{"type": "object"}, {"type": "array", "items": {"type": "string"}}, {}, "text"]
)
def test_a_field_that_no_form_can_show_is_refused(spec: Any) -> None:
    with pytest.raises(ValueError, match="its field 'a'"):
        fields_of({"properties": {"a": spec}})
