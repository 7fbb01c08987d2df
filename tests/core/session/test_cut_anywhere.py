"""Random runs, their journals cut at any byte, read back and gone on with (rules J1 to J4, L5, H6).

Cuts are a sample chosen by a seed; EVERY_BYTE=1 in the environment tries each one.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from runs import ANSWER, Spy, breaks, call, fails, hold_protocol, make, says, submit
from wire_anthropic import check_anthropic
from wire_check import check_chat
from wire_responses import check_responses

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.policy import RecoveryPolicy
from handrail.providers._chat_request import ChatQuirks, chat_body
from handrail.providers._messages_request import AnthropicQuirks, messages_body
from handrail.providers._responses_request import ResponsesQuirks, responses_body
from handrail.providers.base import ModelInfo, Request
from handrail.providers.scripted import ScriptedReply
from handrail.session.journal import Journal
from handrail.session.records import JournalContents, read_journal
from handrail.session.resume import load_run
from handrail.session.writer import JournalWriter

pytestmark = pytest.mark.attack

CUTS = 60
EVERY_BYTE = bool(os.environ.get("EVERY_BYTE"))
MODEL = ModelInfo("test/one", 200_000, 4_096)


def random_replies(chance: random.Random) -> list[ScriptedReply]:
    """A run of six to nine replies of every kind, ended by words or a value."""
    takes = {"takes_s": chance.choice([0, 3, 5])}
    ids = chance.choice([None, "same", ""])
    kinds = [
        lambda: says("I look.", call("lookup", ids, n=chance.random()), **takes),
        lambda: says("", call("write", ids, n=1), call("lookup", n=chance.random()), thinking="So.", **takes),
        lambda: says("", call("ask_human", kind="login", needed=f"Log in {chance.random()}.")),
        lambda: says("", call("lookup", n=1), call("ask_human", kind="captcha", needed="Solve it."), **takes),
        lambda: says("The first half of it", stop="length", takes_s=4),
        lambda: breaks("It breaks", call("write", n=2)),
        lambda: fails("overloaded", 503),
        lambda: fails("You have hit your usage limit. Try again in 42 min.", 429),
        lambda: says("", submit("five"), call("lookup", n=chance.random())),
        lambda: says("", call("nowhere"), call("lookup")),
        lambda: says(""),
    ]
    middle = [chance.choice(kinds)() for _ in range(chance.randint(5, 8))]
    return [*middle, says("", submit(5))]


def person(session: Any) -> None:
    """Answers what is asked, steers once, queues one more thing."""
    said = []

    def on(event: ev.Event) -> None:
        if isinstance(event, ev.HumanRequested):
            session.clock.call_later(30, lambda: session.answer(event.id, "answered", "Yes."))
        elif isinstance(event, ev.ApprovalRequested):
            session.clock.call_later(5, lambda: session.approve(event.id, "once"))
        elif isinstance(event, ev.ToolBatchStarted) and not said:
            said.append(session.steer("Mind the tests."))

    session.listen(on)


def new(replies: list[ScriptedReply], clock: VirtualClock, record: JournalWriter | None) -> Any:
    tools = [Spy("lookup", takes_s=2), Spy("write", effect="edit", takes_s=1)]
    made = make(
        replies,
        tools=tools,
        schema=ANSWER,
        recovery=RecoveryPolicy(no_progress=False),
        clock=clock,
        attended=True,
        approve="ask",
        record=record,
        bounds={"max_attempts": 50},
    )
    person(made[0])
    return made


def hold_wires(request: Request) -> None:
    """No provider would refuse this request."""
    hold_protocol(request)
    check_chat(chat_body(MODEL, request, ChatQuirks()))
    check_anthropic(messages_body(MODEL, request, AnthropicQuirks()))
    check_responses(responses_body(MODEL, request, ResponsesQuirks()))


async def gone_on(contents: JournalContents, at: str) -> None:
    """Go on from what is there; the model has nothing more to say than the value."""
    past = load_run(contents)
    clock = VirtualClock(past.events[-1].at)
    session, provider, events = new([says("", submit(5), times=None)], clock, None)
    session.load(past.events, past.in_flight)
    finished = await session.resume()
    assert (finished.outcome, finished.value) == ("submitted", {"answer": 5}), at
    for request in provider.requests:
        hold_wires(request)
    both = [*past.events, *events]
    asked = Counter(c.id for e in both if isinstance(e, ev.MessageFinished) for c in e.message.calls)
    results = Counter(e.call_id for e in both if isinstance(e, ev.ToolFinished))
    assert asked == results and set(asked.values()) <= {1}, f"{at}: each call has its one result"
    started = Counter(e.call_id for e in both if isinstance(e, ev.ToolStarted) and e.effect == "edit")
    assert set(started.values()) <= {1}, f"{at}: what changes things began twice"
    answered = Counter(e.id for e in both if isinstance(e, ev.HumanAnswered | ev.ApprovalAnswered))
    assert set(answered.values()) <= {1}, f"{at}: answered twice"
    steered = Counter(e.id for e in both if isinstance(e, ev.Steered))
    queued = {m.id for e in both if isinstance(e, ev.QueueChanged) for m in e.steering}
    waiting = {m.id for m in session.state.queue.all}
    assert queued == set(steered) ^ waiting and set(steered.values()) <= {1}, (
        f"{at}: delivered once (rule L8)"
    )


@pytest.mark.parametrize("seed", range(6))
async def test_J2_a_journal_cut_at_any_byte_is_gone_on_with(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    clock, path = VirtualClock(), tmp_path / "whole" / "journal.jsonl"
    keeper = JournalWriter(Journal.create(path, session="s", meta={}, clock=clock), clock)
    session, provider, _ = new(random_replies(chance), clock, keeper)
    finished = await session.run("Go.")
    keeper.close()
    assert finished.outcome == "submitted"
    for request in provider.requests:
        hold_wires(request)
    whole = read_journal(path)
    data = path.read_bytes()
    begun = whole.records[1].offset + whole.records[1].length
    cuts = range(begun, whole.records[-1].offset + 1)
    for cut in cuts if EVERY_BYTE else sorted(chance.sample(cuts, CUTS)):
        at = f"seed {seed}, cut at byte {cut}"
        part = tmp_path / "part.jsonl"
        part.write_bytes(data[:cut])
        there = read_journal(part)
        wholly = [r.data for r in whole.records if r.offset + r.length <= cut]
        assert [r.data for r in there.records] == wholly, f"{at}: every whole record is there"
        await gone_on(there, at)
