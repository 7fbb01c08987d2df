"""Hostile text in every event: it neither breaks the screen nor reaches the terminal (rule L11)."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from ports import FakeSession
from textual.pilot import Pilot

from handrail import events as ev
from handrail.events import CallInfo, FieldError, Instruction, QueuedMessage
from handrail.messages import AssistantMessage, Failure, Text, Thinking, Usage
from handrail_tui.app import HandrailApp
from handrail_tui.screens.run import RunScreen

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def start(session: FakeSession) -> HandrailApp:
    return HandrailApp(session, lambda: session.run("a task"))


def screen_text(app: HandrailApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def screen_of(app: HandrailApp) -> RunScreen:
    return app.run_screen


async def settle(pilot: Pilot[Any]) -> None:
    """Let what was asked to be drawn be drawn."""
    await pilot.pause(0.12)


# Short and with the worst in front, so that no row cuts it off before it does harm.
HOSTILE = "\x1b[2J\x1b]52;c;aGk=\x07\x9b1m\x08[/ [/foo] [b]\u202e\ud83d\x00 $x {0}"


def hostile_events() -> list[ev.Event]:
    """Each kind of event, with hostile text wherever text may stand."""
    h = HOSTILE
    message = AssistantMessage(content=(Thinking(h), Text(h)), stop_reason="error", failure=Failure(h))
    question: dict[str, Any] = {"id": "h", "kind": "other", "needed": h, "where": h, "tried": h, "tool": h}
    bare: list[ev.Event] = [
        ev.RunStarted(
            prompt=h, context=h, instructions=(Instruction(h, h),), tools=(h,), max_turns=3, output={}
        ),
        ev.TurnStarted(turn=1),
        ev.MessageStarted(turn=1, model=h),
        ev.MessageDelta(turn=1, kind="thinking", text=h),
        ev.MessageDelta(turn=1, text=h),
        ev.MessageDelta(turn=1, kind="tool_call", index=0, name=h, text=h),
        ev.MessageFinished(turn=1, message=message),
        ev.ToolBatchStarted(turn=1, calls=tuple(CallInfo(str(n), h, h) for n in range(7))),
        ev.ToolStarted(turn=1, call_id="0", name=h, title=h),
        ev.ToolProgress(turn=1, call_id="0", text=h),
        ev.ToolFinished(turn=1, call_id="0", name=h, text=h, summary=h, is_error=True),
        ev.ToolFinished(
            turn=1, call_id="1", name=h, text=h, diff=f"--- a/{h}\n+++ b/{h}\n@@ -1 +1 @@ {h}\n-{h}\n+{h}"
        ),
        ev.Submission(turn=1, accepted=False, call_id="2", attempt=1, of=3, errors=(FieldError(h, h),)),
        ev.Submission(turn=1, accepted=True, call_id="3", value={h: [h, {h: h}]}),
        ev.ToolBatchFinished(turn=1, votes=1, of=7),
        ev.ToolsChanged(server=h, state=h, added=(h,), removed=(h,), of=2, why=h),
        ev.ToolsChanged(server=h, state="failed", why=h),
        ev.HumanRequested(**question, fields=(ev.FormField(h, label=h, help=h, options=((h, h),)),)),
        ev.TurnFinished(turn=1),
        ev.Decided(decision="retry", reason=h, why=h, failure=Failure(h), evidence={h: h}, omits=True),
        ev.CheckpointMade(text=h, quoted=3),
        ev.WaitStarted(seconds=60, until=60, words=h, source=h, reason=h),
        ev.WaitEnded(),
        ev.HumanRequested(**question),
        ev.HumanAnswered(id="h", how="answered", text=h),
        ev.ApprovalRequested(
            id="a", call_id="0", tool=h, title=h, detail=h, arguments={h: h}, why=h, pattern=h, diff=h
        ),
        ev.ApprovalAnswered(id="a", how="deny", text=h, pattern=h),
        ev.QueueChanged(steering=(QueuedMessage("1", h),), follow_ups=(QueuedMessage("2", h),)),
        ev.QueueChanged(returned=(QueuedMessage("1", h),)),
        ev.Steered(id="1", text=h),
        ev.SettingsChanged(model=h, approve=h),
        ev.CompactionStarted(why=h, messages=3, before=10),
        ev.CompactionFinished(ok=True, summary=h, after=3),
        ev.CompactionFinished(ok=False, why=h),
        ev.BudgetSpent(which=h, spent=1, limit=1),
        ev.NoProgress(what="call", times=3, name=h),
        ev.Notice(text=h, level="error"),
        ev.RunInterrupted(session=h),
        ev.RunFinished(
            outcome="submitted", error=h, bound=h, value={h: h}, text=h, session=h, usage=Usage(1, 1)
        ),
    ]
    return [dataclasses.replace(event, at=float(n)) for n, event in enumerate(bare)]


def test_every_event_has_its_hostile_twin() -> None:
    assert {type(event) for event in hostile_events()} == set(ev.Event.__args__)


@pytest.mark.parametrize("size", [(122, 50), (60, 24)])
async def test_L11_hostile_text_neither_breaks_the_screen_nor_reaches_the_terminal(
    size: tuple[int, int],
) -> None:
    session = FakeSession()
    app = start(session)
    async with app.run_test(size=size) as pilot:
        for event in hostile_events():
            session.emit(event)
            screen_of(app).paint()
            await pilot.pause(0)  # all messages handled; idle is rare while it spins
            assert OBEYED.search(screen_text(app).replace("\n", "")) is None, event.type
        transcript = screen_of(app).transcript
        for section in list(transcript._sections):
            for key in {row.fold for row in section.rows if row.fold is not None}:
                transcript.toggle(key)
        await settle(pilot)
        assert OBEYED.search(transcript.plain().replace("\n", "")) is None
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert OBEYED.search(screen_text(app).replace("\n", "")) is None
