"""Runs as lists of events, for tests of the fold and of the screen."""

from __future__ import annotations

from typing import Any

from handrail import events as ev
from handrail.clock import EPOCH
from handrail.events import CallInfo, Event, FieldError, Ledger, QueuedMessage
from handrail.messages import AssistantMessage, Block, Failure, Text, Thinking, Usage


class Story:
    """Builds events one after the other. `pause` moves the time on."""

    def __init__(self, at: float = EPOCH) -> None:
        self.at = at
        self.turn: int | None = None
        self.events: list[Event] = []

    def add(self, event: type[Any], /, **fields: Any) -> Story:
        self.events.append(event(at=self.at, turn=self.turn, **fields))
        return self

    def pause(self, seconds: float) -> Story:
        self.at += seconds
        return self

    def start(
        self, prompt: str = "Fix the flaky checkout test. Leave the public API alone.", **more: Any
    ) -> Story:
        fields: dict[str, Any] = {
            "session": "7f3a",
            "model": "anthropic/claude-opus-5-5",
            "window": 200_000,
            "cwd": "/home/ada/code/shop",
            "max_turns": 12,
            "max_attempts": 3,
            "max_cost": 2.0,
            "recovery": {"enabled": True, "max_resumes": 8, "stream_retries": 6},
            "output": {"type": "object"},
        }
        return self.add(ev.RunStarted, prompt=prompt, **(fields | more))

    def request(self, number: int, attempt: int = 1, **more: Any) -> Story:
        self.turn = number
        self.add(ev.TurnStarted, attempt=attempt, **more).pause(0.4)
        return self.add(ev.MessageStarted, model="anthropic/claude-opus-5-5")

    def says(self, text: str, kind: str = "text", seconds: float = 0.0) -> Story:
        step = 24
        pieces = [text[i : i + step] for i in range(0, len(text), step)]
        for piece in pieces:
            self.pause(seconds / len(pieces)).add(ev.MessageDelta, kind=kind, text=piece)
        return self

    def reply(
        self, *content: Block, stop: Any = "tool_use", failure: Failure | None = None, **more: Any
    ) -> Story:
        message = AssistantMessage(content=content, stop_reason=stop, failure=failure, usage=Usage(900, 120))
        return self.add(ev.MessageFinished, message=message, **more)

    def batch(self, *calls: tuple[str, str], sequential: bool = False) -> Story:
        infos = tuple(CallInfo(f"c{self.turn}.{n}", name, title) for n, (name, title) in enumerate(calls))
        return self.add(ev.ToolBatchStarted, calls=infos, sequential=sequential)

    def tool(self, index: int, name: str, title: str = "", effect: str = "read") -> Story:
        return self.add(
            ev.ToolStarted, call_id=f"c{self.turn}.{index}", name=name, title=title, effect=effect
        )

    def output(self, index: int, text: str) -> Story:
        return self.add(ev.ToolProgress, call_id=f"c{self.turn}.{index}", text=text)

    def result(self, index: int, name: str, **more: Any) -> Story:
        return self.add(ev.ToolFinished, call_id=f"c{self.turn}.{index}", name=name, **more)

    def end_turn(self, seconds: float, tokens: int, cost: float, context: float) -> Story:
        usage = Usage(input=tokens - 400, output=400)
        return self.add(ev.TurnFinished, seconds=seconds, usage=usage, cost=cost, context=context)


def broken_stream(story: Story, **more: Any) -> Story:
    """The decision after a stream that broke, the checkpoint, the pause."""
    failure = Failure("peer closed connection without sending complete message body", "anthropic", "stream")
    story.add(
        ev.Decided,
        decision="retry",
        reason="transient",
        class_="transient",
        delay_s=2.0,
        until=story.at + 2,
        why="stream closed at 1.2k chars",
        number=1,
        limit=3,
        omits=True,
        failure=failure,
        evidence={"phase": "stream", "words": "peer closed connection"},
        after=Ledger(retries=1, unbroken=1),
    )
    story.add(
        ev.CheckpointMade,
        text="The previous reply broke.\n> I will make the total lazy and",
        quoted=1204,
        of=1204,
    )
    return story.add(
        ev.WaitStarted,
        seconds=2.0,
        until=story.at + 2,
        decision="retry",
        reason="transient",
        words="peer closed connection",
        number=1,
        limit=3,
    )


LONG = (
    "I will make the total lazy and " + "guard every refresh of it with one lock, " * 28 + "so that nothing"
)


def flaky() -> Story:
    """The run of the pictures: turn 3 with a batch under way is over, turn 4 broke and streams again."""
    story = Story().start()
    story.request(1).says("I look at the test first.", seconds=0.8).reply(Text("I look at the test first."))
    story.batch(("read", "tests/test_checkout.py")).tool(0, "read", "tests/test_checkout.py").pause(0.02)
    story.result(0, "read", text="line\n" * 88, summary="88 lines", seconds=0.02)
    story.add(ev.ToolBatchFinished, votes=0, of=1, seconds=0.02).end_turn(1.4, 3_100, 0.04, 0.02)
    story.pause(1)
    story.request(2).reply(Text("A value, to begin with."))
    story.batch(("submit", "flaky: true"))
    story.add(
        ev.Submission,
        accepted=False,
        call_id="c2.0",
        attempt=1,
        of=3,
        errors=(FieldError("cause", "Field required"),),
    )
    story.result(0, "submit", is_error=True, executed=False, text="cause: Field required")
    story.add(ev.ToolBatchFinished, votes=0, of=1, seconds=0.0).end_turn(0.9, 6_000, 0.08, 0.03)
    story.pause(1)
    story.request(3).says("Two tasks refresh the cache.\n" * 34, "thinking", 2.1)
    text = "The failure is a race in `cart_total`: two tasks refresh the cache."
    story.says(text, seconds=0.6).reply(
        Thinking("Two tasks refresh the cache.\n" * 34), Text(text), seconds=3.1
    )
    story.batch(("read", "src/cart.py"), ("grep", "cart_total"), ("bash", "pytest -q tests/checkout"))
    story.tool(0, "read").tool(1, "grep").tool(2, "bash", effect="run").pause(0.02)
    story.result(0, "read", text="x\n" * 214, summary="214 lines", seconds=0.02).pause(0.03)
    story.result(1, "grep", text="m\n" * 7, summary="7 matches in 3 files", seconds=0.05)
    story.output(2, "...........F............\n").pause(1.85)
    return story


def batch_done(story: Story) -> Story:
    story.result(2, "bash", text=".F.\n1 failed, 23 passed\n", summary="1 failed, 23 passed", seconds=1.9)
    return story.add(ev.ToolBatchFinished, votes=0, of=3, seconds=1.9).end_turn(6.2, 18_400, 0.21, 0.42)


def second_attempt(story: Story) -> Story:
    story.pause(0.5).request(4).says(LONG, seconds=3.0)
    story.reply(Text(LONG), stop="error", failure=Failure("peer closed connection"), seconds=3.4)
    broken_stream(story).pause(2.0).add(ev.WaitEnded, how="elapsed")
    queued = (QueuedMessage("q1", "add a regression test too"),)
    story.request(5, attempt=2, checkpoint=True).add(ev.QueueChanged, follow_ups=queued)
    story.says("I will make the total lazy and guard the refresh with a lock.\n\n", seconds=0.8)
    return story.says("Then the two tasks cannot both see an empty cache", seconds=0.4)
