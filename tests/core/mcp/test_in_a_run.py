"""Servers' tools in a real run: offered, approved, journalled, asked about, resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp_bench import make as make_servers
from runs import call, says

from handrail import events as ev
from handrail.clock import RealClock
from handrail.messages import ToolMessage
from handrail.providers.scripted import ScriptedProvider, ScriptedReply
from handrail.session import Session
from handrail.session.journal import read_journal
from handrail.session.resume import load_run
from handrail.session.store import Store
from handrail.session.writer import JournalWriter


class Life:
    """One life of the program: a session on disk, a scripted model, the nasty server, a person who answers."""

    def __init__(
        self,
        folder: Path,
        replies: list[ScriptedReply],
        *flags: str,
        id: str | None = None,
        attended: bool = True,
        **more: Any,
    ) -> None:
        clock = RealClock()
        store = Store(folder / "sessions")
        journal = store.open(id, clock) if id else store.create(clock)
        self.writer, self.path = JournalWriter(journal, clock), store.path_of(journal.session)
        self.provider = ScriptedProvider(replies, clock)
        self.session = Session(
            self.provider,
            cwd=folder,
            clock=clock,
            record=self.writer,
            id=journal.session,
            attended=attended,
            source=make_servers(folder, flags, more),
        )
        if id:
            past = load_run(journal.contents)
            self.session.load(past.events, past.in_flight)
        self.events: list[ev.Event] = []
        self.session.listen(self.events.append)
        self.approvals: list[str] = []
        self.answers: list[tuple[Any, str]] = []
        self.session.listen(self._person)

    def _person(self, event: ev.Event) -> None:
        if isinstance(event, ev.ApprovalRequested) and self.approvals:
            self.session.approve(event.id, self.approvals.pop(0))  # type: ignore[arg-type]
        if isinstance(event, ev.HumanRequested) and self.answers:
            how, text = self.answers.pop(0)
            self.session.answer(event.id, how, text)

    async def run(self, answer: str | None = None) -> ev.RunFinished:
        going = self.session.resume(answer=answer) if self.session.state.prompt else self.session.run("Go.")
        try:
            last = await going
        finally:
            self.writer.close()
        assert isinstance(last, ev.RunFinished)
        return last

    def of(self, kind: type) -> list[Any]:
        return [e for e in self.events if isinstance(e, kind)]

    @property
    def results(self) -> list[str]:
        return [e.text for e in self.of(ev.ToolFinished)]


ECHO = call("mcp__nasty__echo", text="hello")
ASK = call("mcp__nasty__ask")


async def test_a_call_is_offered_approved_journalled_and_told_the_model(tmp_path: Path) -> None:
    life = Life(tmp_path, [says("", ECHO), says("Done.")])
    life.approvals = ["once"]
    last = await life.run()
    assert last.outcome == "completed"
    request = life.provider.requests[0]
    assert "mcp__nasty__echo" in [tool.name for tool in request.tools]
    assert "From the tool server nasty" in request.system
    [joined] = life.of(ev.ToolsChanged)
    assert (joined.server, joined.state, joined.of, len(joined.added)) == ("nasty", "ready", 12, 12)
    [approval] = life.of(ev.ApprovalRequested)
    assert approval.title == 'nasty: echo text="hello"'
    assert approval.pattern == "mcp__nasty__echo with any arguments"
    assert life.results == ["hello"]
    assert [m.content[0].text for m in life.provider.requests[1].messages if isinstance(m, ToolMessage)] == [
        "hello"
    ]  # type: ignore[union-attr]
    kinds = [record.kind for record in read_journal(life.path).records]
    assert [
        k for k in kinds if k in ("tools_changed", "approval_answered", "tool_started", "tool_finished")
    ] == [*("tools_changed", "approval_answered", "tool_started", "tool_finished")]


async def test_nobody_there_denies_and_the_server_is_not_called(tmp_path: Path) -> None:
    life = Life(tmp_path, [says("", ECHO), says("Done.")], attended=False)
    await life.run()
    assert life.results[0].startswith("denied:")
    assert '"tools/call"' not in (tmp_path / "nasty.jsonl").read_text()


async def test_a_read_only_hint_counts_from_a_trusted_server_only(tmp_path: Path) -> None:
    for trust in (False, True):
        life = Life(tmp_path, [says("", ECHO), says("Done.")], "--read-only", attended=False, trust=trust)
        await life.run()
        assert (life.results == ["hello"]) is trust


async def test_approve_all_of_a_server_does_not_ask(tmp_path: Path) -> None:
    life = Life(tmp_path, [says("", ECHO), says("Done.")], attended=False, approve="all")
    await life.run()
    assert life.results == ["hello"]


async def test_a_dead_server_holds_nothing_up(tmp_path: Path) -> None:
    life = Life(tmp_path, [says("Done.")], "--mute", start_timeout=0.3)
    assert (await life.run()).outcome == "completed"
    [failed] = life.of(ev.ToolsChanged)
    assert (failed.state, failed.why) == ("failed", "it did not answer within 0.3 s")


async def test_tools_that_come_in_mid_run_are_in_the_next_request(tmp_path: Path) -> None:
    wait = [says("", call("mcp__nasty__steps", size=3)) for _ in range(2)]
    life = Life(tmp_path, [says("", call("mcp__nasty__change")), *wait, says("Done.")], approve="all")
    await life.run()
    names = [{tool.name for tool in request.tools} for request in life.provider.requests]
    assert "mcp__nasty__new_0" not in names[0]
    assert "mcp__nasty__new_0" in names[-1]
    assert len(life.of(ev.ToolsChanged)) == 2


async def test_H6_a_form_is_answered_and_a_wrong_answer_is_refused(tmp_path: Path) -> None:
    life = Life(tmp_path, [says("", ASK), says("Done.")], approve="all")
    refused = []

    def person(event: ev.Event) -> None:
        if isinstance(event, ev.HumanRequested):
            try:
                life.session.answer(event.id, "answered", "age=-1")
            except ValueError as error:
                refused.append(str(error))
            life.session.answer(event.id, "answered", "name=Ada age=36")

    life.session.listen(person)
    await life.run()
    assert refused == ["name: is required: text; age: '-1' does not fit: a whole number, at least 0"]
    [asked] = life.of(ev.HumanRequested)
    assert [f.name for f in asked.fields] == ["name", "age", "colour"]
    [answered] = life.of(ev.HumanAnswered)
    assert json.loads(answered.text) == {"name": "Ada", "age": 36}
    assert json.loads(life.results[0])["content"] == {"name": "Ada", "age": 36}


async def test_H4_a_question_survives_the_program_and_the_server(tmp_path: Path) -> None:
    for flags in ((), ("--modern",), ("--modern", "--forgets")):
        first = Life(tmp_path, [says("", ASK)], *flags, attended=False, approve="all")
        last = await first.run()
        assert last.outcome == "human-required"
        assert last.question is not None
        second = Life(tmp_path, [says("Done.")], *flags, id=first.session.id, attended=False, approve="all")
        assert (await second.run(answer="name=Ada")).outcome == "completed"
        assert json.loads(second.results[0])["content"] == {"name": "Ada"}, flags
        records = read_journal(second.path).records
        assert sum(record.kind == "human_requested" for record in records) == 1
        assert sum(record.kind == "human_answered" for record in records) == 1


async def test_an_answer_to_resume_that_does_not_fit_asks_again(tmp_path: Path) -> None:
    first = Life(tmp_path, [says("", ASK)], "--modern", attended=False, approve="all")
    await first.run()
    second = Life(tmp_path, [], "--modern", id=first.session.id, attended=False, approve="all")
    last = await second.run(answer="age=36")
    assert last.outcome == "human-required"
    assert last.question is not None
    assert last.question.tried == "the answer did not fit: name: is required: text"
