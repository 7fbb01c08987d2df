"""Only known words answer, what is stored can be read back, and the audit is complete (rules H5, H6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs import Spy, call, make, says

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.messages import Image
from handrail.session.audit import audit
from handrail.session.journal import Journal, read_journal
from handrail.session.writer import JournalWriter
from handrail.tools.base import Preview, ToolResult

pytestmark = pytest.mark.attack

UNKNOWN = ["denied", "no", "reject", "", "ONCE", "yes", "nobody", "stopped", None, True, ["once"]]


class Shown(Spy):
    def preview(self, args: Any, ctx: Any) -> Preview:
        return Preview("it", pattern="it *")


def stored(folder: Path) -> JournalWriter:
    clock = VirtualClock()
    return JournalWriter(Journal.create(folder / "s" / "j.jsonl", session="s", meta={}, clock=clock), clock)


@pytest.mark.parametrize("word", UNKNOWN)
async def test_H6_an_unknown_word_is_refused_and_denies(word: Any, tmp_path: Path) -> None:
    tool, refused = Spy("run_it", effect="run"), []
    record = stored(tmp_path)
    session, _, events = make(
        [says("", call("run_it")), says("Done.")], tools=[tool], attended=True, approve="ask", record=record
    )

    def on(event: ev.Event) -> None:
        if isinstance(event, ev.ApprovalRequested):
            with pytest.raises(ValueError, match="once, session, deny") as error:
                session.approve(event.id, word)
            refused.append(error)

    session.listen(on)
    await session.run("Go.")
    record.close()
    (answered,) = [e for e in events if isinstance(e, ev.ApprovalAnswered)]
    assert (len(refused), answered.how, tool.started) == (1, "deny", [])
    assert answered in list(read_journal(record.journal.path).events())


async def test_H6_an_unknown_word_answers_no_question() -> None:
    session, _, events = make(
        [says("", call("ask_human", kind="login", needed="x")), says("k")], attended=True
    )

    def on(event: ev.Event) -> None:
        if isinstance(event, ev.HumanRequested):
            for word in ("resolvd", "", "nobody", None):
                with pytest.raises(ValueError, match="resolved, answered"):
                    session.answer(event.id, word)
            session.answer(event.id, "declined")

    session.listen(on)
    await session.run("Go.")
    assert [e.how for e in events if isinstance(e, ev.HumanAnswered)] == ["declined"]


def test_H6_an_unknown_mode_is_refused() -> None:
    session, _, events = make([])
    with pytest.raises(ValueError, match="ask, edits, all"):
        session.set_approve("al")
    assert events == []


async def test_H6_what_could_not_be_read_back_is_never_stored(tmp_path: Path) -> None:
    record = stored(tmp_path)
    session, _, events = make([], record=record)
    with pytest.raises(ValueError, match="could not be read back"):
        session.notice("hello", level="loud")  # type: ignore[arg-type]
    await record.commit()
    record.close()
    assert events == [] and [r.kind for r in read_journal(record.journal.path).records] == ["header"]


async def test_H6_a_result_that_no_record_can_hold_is_an_error_result(tmp_path: Path) -> None:
    async def act(args: Any, ctx: Any) -> ToolResult:
        return ToolResult((Image(None, "image/png"),))  # type: ignore[arg-type]

    record = stored(tmp_path)
    session, _, events = make(
        [says("", call("draw")), says("Done.")], tools=[Spy("draw", act)], record=record
    )
    assert (await session.run("Go.")).outcome == "completed"
    record.close()
    (result,) = [e for e in events if isinstance(e, ev.ToolFinished)]
    assert result.is_error and "could not be read back" in result.text
    assert result in list(read_journal(record.journal.path).events())


async def test_H6_the_audit_names_who_allowed_what_and_by_which_pattern() -> None:
    tool = Shown("run_it", effect="run")
    replies = [says("", call("run_it", n=1)), says("", call("run_it", n=2)), says("Done.")]
    session, _, events = make(replies, tools=[tool], attended=True, approve="ask")
    session.listen(
        lambda e: (
            session.approve(e.id, "session", by="ada, pts/3") if isinstance(e, ev.ApprovalRequested) else None
        )
    )
    await session.run("Go.")
    entries = list(audit(events))
    assert [(e.what, e.how, e.by, e.tool, e.pattern) for e in entries] == [
        ("mode", "ask", "", "", None),
        ("approval", "session", "ada, pts/3", "run_it", "it *"),
        ("ran", "pattern it *", "", "run_it", None),
        ("ran", "pattern it *", "", "run_it", None),
    ]
