"""A session and its providers: what they hold open is closed with the run, and what they say is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mock_server import MockServer, sse
from runs import Spy, call, says, scripted

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.messages import AssistantMessage, Text
from handrail.providers.base import Finished, ModelInfo, Part, ProviderNotice, Request
from handrail.providers.chat import OpenAIChat
from handrail.session import Session


class Talker:
    """A provider that says something about itself, and counts how often it was closed."""

    def __init__(self, name: str = "demo/one", *, fails: bool = False) -> None:
        self.model = ModelInfo(name)
        self.closed = 0
        self._fails = fails

    async def stream(self, request: Request) -> AsyncIterator[Part]:
        yield ProviderNotice("the server \0 starts")
        yield ProviderNotice("over plain http", "warning")
        yield Finished(AssistantMessage((Text("Done."),), model=self.model.name))

    async def aclose(self) -> None:
        self.closed += 1
        if self._fails:
            raise OSError("no")


async def test_a_note_is_a_notice_and_no_part_of_the_reply() -> None:
    session = Session(Talker(), clock=VirtualClock())
    heard: list[ev.Event] = []
    session.listen(heard.append)
    finished = await session.run("Go.")
    notices = [(e.text, e.level) for e in heard if isinstance(e, ev.Notice)]
    assert notices == [("the server \ufffd starts", "info"), ("over plain http", "warning")]
    assert isinstance(finished, ev.RunFinished) and finished.text == "Done."


async def test_each_run_closes_what_its_provider_holds_open() -> None:
    provider = Talker(fails=True)
    session = Session(provider, clock=VirtualClock())
    for closed in (1, 2):
        assert isinstance(await session.run("Go."), ev.RunFinished)
        assert provider.closed == closed


async def test_a_provider_that_was_replaced_in_mid_run_is_closed_too() -> None:
    clock = VirtualClock()
    first, second = Talker("demo/one"), Talker("demo/two")
    session = Session(first, clock=clock)

    def change(event: ev.Event) -> None:
        if isinstance(event, ev.RunStarted):
            session.set_provider(second)

    session.listen(change)
    await session.run("Go.")
    assert (first.closed, second.closed) == (1, 1)


async def test_a_provider_that_holds_nothing_needs_no_close() -> None:
    clock = VirtualClock()
    session = Session(scripted([says("", call("lookup")), says("Done.")], clock), tools=[Spy()], clock=clock)
    assert isinstance(await session.run("Go."), ev.RunFinished)


async def test_L9_no_connection_is_left_when_the_run_is_over() -> None:
    server = MockServer()
    await server.start()
    server.answer(sse({"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}))
    session = Session(OpenAIChat(ModelInfo("demo/m"), base_url=f"{server.url}/v1"))
    await session.run("Go.")
    await server.idle()
    assert server.open == 0
    await server.stop()
