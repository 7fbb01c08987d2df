"""Speaking to a run from another process: the channel, its safety, its end (rules H4, H5, J5)."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runs import Spy, call, fails, make, says

from handrail import events as ev
from handrail.events import FormField
from handrail.policy import RecoveryPolicy
from handrail.session import control
from handrail.session.control import ADDRESS, SOCKET, Control, NotReachable, Refused
from handrail.session.who import user_of
from handrail.tools.base import Form, ToolContext, ToolResult

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets"),
]

QUESTION = says("", call("ask_human", kind="captcha", needed="Solve it.", where="http://x"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "s"
    made.mkdir(mode=0o700)
    return made


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def play(folder: Path, replies: Any, act: Callable[[ev.Event], Any], **more: Any) -> Any:
    """Run replies with a channel in `folder`; `act` runs in a thread, as another process would, when a person is
    asked. Returns the session, its outcome, its events."""
    session, _, events = make(replies, attended=True, **more)
    session.listen(Control(session, folder))
    acting: list[asyncio.Future[Any]] = []

    def on(event: ev.Event) -> None:
        if isinstance(event, ev.HumanRequested | ev.ApprovalRequested):
            acting.append(asyncio.ensure_future(asyncio.to_thread(act, event)))

    session.listen(on)
    finished = await session.run("Go.")
    await asyncio.gather(*acting)
    return session, finished, events


async def test_H4_a_question_is_answered_from_elsewhere(folder: Path) -> None:
    seen: list[dict[str, Any]] = []

    def act(event: ev.Event) -> None:
        seen.append(control.call(folder, "status"))
        seen.append(control.call(folder, "answer", how="answered", text="4711"))

    session, finished, events = await play(folder, [QUESTION, says("Done.")], act)
    assert finished.outcome == "completed"
    status, told = seen
    assert status["session"] == session.id and status["turn"] == 1 and status["approvals"] == []
    (question,) = status["questions"]
    assert question == {
        "id": "q1",
        "kind": "captcha",
        "needed": "Solve it.",
        "where": "http://x",
        "secret": False,
        "fields": [],
    }
    assert told == {"ok": True, "id": "q1"}
    (answered,) = [e for e in events if isinstance(e, ev.HumanAnswered)]
    assert (answered.how, answered.text) == ("answered", "4711")


@pytest.mark.parametrize(("how", "ran"), [("once", 1), ("deny", 0)])
async def test_H5_a_call_is_allowed_or_denied_from_elsewhere(folder: Path, how: str, ran: int) -> None:
    tool = Spy("run_it", effect="run")

    def act(event: ev.Event) -> None:
        with pytest.raises(Refused, match="only be allowed once"):
            control.call(folder, "approve", how="session")
        control.call(folder, "approve", how=how, text="not on main")

    _, finished, events = await play(
        folder, [says("", call("run_it")), says("Done.")], act, tools=[tool], approve="ask"
    )
    assert (finished.outcome, len(tool.started)) == ("completed", ran)
    (answered,) = [e for e in events if isinstance(e, ev.ApprovalAnswered)]
    assert (answered.how, answered.text) == (how, "not on main")


async def test_H6_an_unknown_word_from_elsewhere_is_refused_and_denies(folder: Path) -> None:
    tool = Spy("run_it", effect="run")

    def act(event: ev.Event) -> None:
        with pytest.raises(Refused, match=r"once, session, deny\. The call was denied"):
            control.call(folder, "approve", how="denied")

    _, _, events = await play(
        folder, [says("", call("run_it")), says("Done.")], act, tools=[tool], approve="ask"
    )
    (answered,) = [e for e in events if isinstance(e, ev.ApprovalAnswered)]
    assert (answered.how, tool.started) == ("deny", [])
    assert answered.by.startswith(user_of() + ", ")


async def test_J5_a_token_that_is_not_ascii_is_refused(folder: Path) -> None:
    seen: list[Any] = []

    def act(event: ev.Event) -> None:
        with control._read(folder).connect() as stranger:
            stranger.sendall('{"token": "é\\ud800", "do": "stop"}\n'.encode())
            seen.append(json.loads(stranger.recv(1_000)))
        control.call(folder, "answer", how="resolved")

    await play(folder, [QUESTION, says("Done.")], act)
    assert seen == [{"ok": False, "error": "the token is wrong"}]


async def test_L9_a_run_is_stopped_from_elsewhere(folder: Path) -> None:
    _, finished, _ = await play(folder, [QUESTION, says("no")], lambda e: control.call(folder, "stop"))
    assert (finished.outcome, finished.stopped) == ("cancelled", True)


async def test_H3_a_secret_reaches_only_the_tool_that_asked(folder: Path) -> None:
    got: list[str] = []

    async def ask(args: Any, ctx: Any) -> str:
        got.append(await ctx.ask("The password, please.", kind="login", secret=True))
        return "logged in"

    _, _, events = await play(
        folder,
        [says("", call("login")), says("Done.")],
        lambda e: control.call(folder, "answer", how="answered", text="hunter2hunter2"),
        tools=[Spy("login", ask)],
    )
    assert got == ["hunter2hunter2"]
    assert "hunter2" not in repr(events)


async def test_what_is_not_open_or_not_known_is_refused_in_words(folder: Path) -> None:
    words: list[str] = []

    def act(event: ev.Event) -> None:
        for do, said in [
            ("approve", {"how": "once"}),
            ("answer", {"id": "q9", "how": "answered"}),
            ("answer", {"how": "shout"}),
            ("dance", {}),
        ]:
            with pytest.raises(Refused) as refused:
                control.call(folder, do, **said)
            words.append(str(refused.value))
        control.call(folder, "answer", how="resolved")

    await play(folder, [QUESTION, says("Done.")], act)
    assert words == [
        "no approval is open",
        "there is no open question 'q9'; open: q1",
        "a question cannot be answered with 'shout'",
        "it may be: status, answer, approve, stop, steer, follow_up, skip, later",
    ]


@pytest.mark.parametrize(
    "line", [b"\n", b"[]\n", b"{\n", b"\xff\n", b"x" * 1_100_000, b'{"do":"stop"}\n', b""]
)
async def test_J5_who_does_not_know_the_token_is_not_heard(folder: Path, line: bytes) -> None:
    def act(event: ev.Event) -> None:
        where = control._read(folder)
        with where.connect() as stranger:
            try:
                stranger.sendall(line)
                stranger.shutdown(socket.SHUT_WR)
                told = stranger.recv(1_000)
            except OSError:
                told = b""
        assert told == b"" or not json.loads(told)["ok"]
        control.call(folder, "answer", how="resolved")

    _, finished, _ = await play(folder, [QUESTION, says("Done.")], act)
    assert finished.outcome == "completed"


async def test_J5_the_channel_is_for_its_owner_only_and_goes_with_the_run(folder: Path) -> None:
    modes: dict[str, int] = {}

    def act(event: ev.Event) -> None:
        modes.update({p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()})
        control.call(folder, "answer", how="resolved")

    await play(folder, [QUESTION, says("Done.")], act)
    assert modes == {ADDRESS: 0o600, SOCKET: 0o600}
    assert left_in(folder) == []
    with pytest.raises(NotReachable):
        control.call(folder, "status")


async def test_a_path_too_long_for_a_socket_gets_a_short_one(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 30)
    folder.mkdir(mode=0o700)
    short: list[Path] = []

    def act(event: ev.Event) -> None:
        short.append(Path(control._read(folder).path))
        assert stat.S_IMODE(short[0].parent.stat().st_mode) == 0o700
        control.call(folder, "answer", how="resolved")

    _, finished, _ = await play(folder, [QUESTION, says("Done.")], act)
    assert finished.outcome == "completed"
    assert not short[0].parent.exists() and left_in(folder) == []


async def test_what_a_killed_program_left_is_cleared_away(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / SOCKET))
    (folder / ADDRESS).write_text(json.dumps({"token": "t", "path": str(folder / SOCKET), "port": 0}))
    with pytest.raises(NotReachable):
        control.call(folder, "status")
    _, finished, events = await play(
        folder, [QUESTION, says("Done.")], lambda e: control.call(folder, "answer", how="resolved")
    )
    assert finished.outcome == "completed"
    assert not [e for e in events if isinstance(e, ev.Notice)]


async def test_a_channel_that_cannot_be_opened_ends_no_run(tmp_path: Path) -> None:
    session, _, events = make([says("Done.")])
    session.listen(Control(session, tmp_path / "gone"))
    finished = await session.run("Go.")
    assert finished.outcome == "completed"
    (notice,) = [e for e in events if isinstance(e, ev.Notice)]
    assert notice.level == "warning" and "cannot be controlled" in notice.text


async def test_the_next_run_of_a_session_listens_again(folder: Path) -> None:
    session, _, _ = make([QUESTION, says("one"), QUESTION, says("two")], attended=True)
    session.listen(Control(session, folder))

    def on(event: ev.Event) -> None:
        if isinstance(event, ev.HumanRequested):
            acting.append(
                asyncio.ensure_future(asyncio.to_thread(control.call, folder, "answer", how="resolved"))
            )

    acting: list[asyncio.Future[Any]] = []
    session.listen(on)
    assert (await session.run("Go.")).text == "one"  # type: ignore[union-attr]
    assert (await session.run("Again.")).text == "two"  # type: ignore[union-attr]
    await asyncio.gather(*acting)


LIMITED = fails("You have hit your usage limit. Try again in ~42 min.", 429)


async def while_waiting(folder: Path, act: Callable[[], Any]) -> tuple[Any, list[ev.Event]]:
    """A run that meets a limit; `act` runs in a thread once it waits. Time moves when nothing real is pending."""
    session, _, events = make([LIMITED, says("Done."), says("Again.")], recovery=RecoveryPolicy())
    session.listen(Control(session, folder))
    acting: list[asyncio.Future[Any]] = []

    async def do() -> Any:
        with session.clock.busy():
            return await asyncio.to_thread(act)

    def on(event: ev.Event) -> None:
        if isinstance(event, ev.WaitStarted) and not acting:
            acting.append(asyncio.ensure_future(do()))

    session.listen(on)
    await session.run("Go.")
    return await acting[0], events


async def test_U8_a_wait_is_skipped_from_elsewhere(folder: Path) -> None:
    told, events = await while_waiting(folder, lambda: control.call(folder, "skip"))
    assert told["ok"] and [e.how for e in events if isinstance(e, ev.WaitEnded)] == ["skipped"]


async def test_U8_a_wait_is_postponed_from_elsewhere_and_is_journalled_as_a_longer_one(folder: Path) -> None:
    def act() -> Any:
        until = control.call(folder, "status")["until"]
        return control.call(folder, "later", until=until + 900)

    told, events = await while_waiting(folder, act)
    waits = [e for e in events if isinstance(e, ev.WaitStarted)]
    assert [w.until for w in waits] == [waits[0].until, waits[0].until + 900] and told["until"] == waits[
        1
    ].until
    assert [e.how for e in events if isinstance(e, ev.WaitEnded)] == ["postponed", "elapsed"]
    request = next(e for e in events if isinstance(e, ev.TurnStarted) and e.turn == 2)
    assert request.at == waits[1].until


async def test_L8_words_reach_the_queue_from_elsewhere(folder: Path) -> None:
    def act() -> Any:
        control.call(folder, "follow_up", text="Then the tests.")
        return control.call(folder, "steer", text="Leave the API.")

    _, events = await while_waiting(folder, act)
    steered = [(e.kind, e.text) for e in events if isinstance(e, ev.Steered)]
    assert steered == [("steer", "Leave the API."), ("follow_up", "Then the tests.")]


@pytest.mark.parametrize(
    ("do", "said"),
    [
        ("later", {"until": 0}),
        ("later", {"until": "soon"}),
        ("later", {"until": True}),
        ("later", {}),
        ("steer", {"text": "  "}),
        ("steer", {"text": 5}),
        ("follow_up", {}),
    ],
)
async def test_what_makes_no_sense_is_refused_and_changes_nothing(folder: Path, do: str, said: Any) -> None:
    def act() -> str:
        with pytest.raises(Refused) as refused:
            control.call(folder, do, **said)
        return str(refused.value)

    words, events = await while_waiting(folder, act)
    assert words and [e.how for e in events if isinstance(e, ev.WaitEnded)] == ["elapsed"]


async def test_a_run_that_does_not_wait_says_so(folder: Path) -> None:
    refusals: list[str] = []

    def act(event: ev.Event) -> None:
        for do in ("skip", "later"):
            with pytest.raises(Refused) as refused:
                control.call(folder, do, until=4_000_000_000)
            refusals.append(str(refused.value))
        control.call(folder, "answer", how="resolved")

    await play(folder, [QUESTION, says("Done.")], act)
    assert all("not waiting" in words for words in refusals) and len(refusals) == 2


async def test_H6_a_form_is_answered_from_elsewhere_and_what_does_not_fit_is_refused(folder: Path) -> None:
    class Asking(Spy):
        async def run(self, args: Any, ctx: ToolContext) -> ToolResult:
            assert ctx.ask_form is not None
            fields = (FormField("name", required=True), FormField("age", "integer"))
            answer = await ctx.ask_form(Form("Who?", fields))
            return ToolResult(f"{answer.action} {dict(answer.values)}")

    told: list[Any] = []

    def act(event: ev.Event) -> None:
        told.append(control.call(folder, "status")["questions"][0]["fields"])
        with pytest.raises(Refused, match="age: 'old' does not fit"):
            control.call(folder, "answer", how="answered", text="name=Ada age=old")
        control.call(folder, "answer", how="answered", text="name=Ada age=36")

    replies = [says("", call("asking")), says("Done.")]
    _, _, events = await play(folder, replies, act, tools=[Asking("asking")])
    [result] = [event for event in events if isinstance(event, ev.ToolFinished)]
    assert result.text == "accept {'name': 'Ada', 'age': 36}"
    assert told == [["name: text (required)", "age: a whole number (optional)"]]
