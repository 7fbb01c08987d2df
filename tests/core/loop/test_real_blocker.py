"""A real blocker: a page that only a person can open, a tool that fetches, a model that asks (rules H1 to H4)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from puzzle_site import CAT, REPORT, WALL, PuzzleSite, puzzle_site

from handrail import events as ev
from handrail.clock import VirtualClock
from handrail.messages import AssistantMessage, Text, ToolCall, ToolMessage
from handrail.policy import Bounds
from handrail.providers.base import Request
from handrail.providers.function import FunctionProvider
from handrail.session import Session
from handrail.tools import Tool, ToolContext, tool


@pytest.fixture
async def site() -> AsyncIterator[PuzzleSite]:
    async with puzzle_site() as made:
        yield made


def fetcher() -> Tool:
    """A tool that fetches pages and keeps its cookies, as a browser does."""
    cookies = httpx.Cookies()

    @tool
    async def fetch(url: str, ctx: ToolContext) -> str:
        """Fetch a page."""
        with ctx.clock.busy():
            async with httpx.AsyncClient(cookies=cookies, trust_env=False) as client:
                response = await client.get(url)
                cookies.update(client.cookies)
        return f"HTTP {response.status_code}\n{response.text}"

    return fetch


class Model:
    """Fetches the report; asks a person when a wall stands in the way; never knows what the pictures show."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> AssistantMessage:
        self.requests.append(request)
        last = request.messages[-1]
        number = len(self.requests)
        if isinstance(last, ToolMessage) and WALL in last.text:
            found = re.search(r'href="([^"]+)"', last.text)
            assert found is not None
            asked = {
                "kind": "captcha",
                "needed": "Say which picture shows a cat.",
                "where": found[1],
                "tried": "fetched the page; it shows a picture puzzle",
            }
            return _calls(number, "ask_human", asked)
        if isinstance(last, ToolMessage) and REPORT in last.text:
            return AssistantMessage((Text(f"The page says: {REPORT}"),), "stop")
        return _calls(number, "fetch", {"url": f"{self._url}/report"})


def _calls(number: int, name: str, args: dict[str, str]) -> AssistantMessage:
    return AssistantMessage((ToolCall(f"c{number}", name, args, json.dumps(args)),), "tool_use")


async def solve(where: str, picture: int) -> str:
    """What the person does, in a browser of their own: they know the page only from where the card points."""
    async with httpx.AsyncClient(trust_env=False) as browser:
        page = (await browser.get(where)).text
        sid = re.search(r'name="sid" value="([^"]+)"', page)
        assert sid is not None
        form = {"sid": sid[1], "picture": str(picture)}
        return (await browser.post(where.split("?")[0], data=form)).text


def session_on(site: PuzzleSite, fetch: Tool, *, attended: bool) -> tuple[Session, Model, list[ev.Event]]:
    model, events = Model(site.url), list[ev.Event]()
    session = Session(
        FunctionProvider(model),
        tools=[fetch],
        clock=VirtualClock(),
        attended=attended,
        bounds=Bounds(max_turns=8),
    )
    session.listen(events.append)
    return session, model, events


async def test_H2_the_run_goes_on_with_the_session_that_the_person_unlocked(site: PuzzleSite) -> None:
    session, model, events = session_on(site, fetcher(), attended=True)
    acting: list[asyncio.Task[Any]] = []

    async def person(event: ev.HumanRequested) -> None:
        with session.clock.busy():
            assert await solve(event.where, CAT) == "Thank you."
        session.answer(event.id, "resolved", "it was the third one")

    session.listen(
        lambda e: (
            acting.append(asyncio.ensure_future(person(e))) if isinstance(e, ev.HumanRequested) else None
        )
    )
    finished = await session.run("What does the report say?")
    await asyncio.gather(*acting)
    assert isinstance(finished, ev.RunFinished)
    assert (finished.outcome, finished.text) == ("completed", f"The page says: {REPORT}")
    agent = [v for v in site.visits if v.path == "/report"]
    assert [v.status for v in agent] == [403, 200]
    assert agent[0].sid == agent[1].sid, "the very session that was locked"
    assert len(model.requests) == 4
    (asked,) = [e for e in events if isinstance(e, ev.HumanRequested)]
    assert (asked.kind, asked.where) == ("captcha", f"{site.url}/puzzle?sid={agent[0].sid}")


async def test_a_person_who_did_not_solve_it_is_asked_again(site: PuzzleSite) -> None:
    session, _, events = session_on(site, fetcher(), attended=True)
    pictures = [1, CAT]
    acting: list[asyncio.Task[Any]] = []

    async def person(event: ev.HumanRequested) -> None:
        with session.clock.busy():
            await solve(event.where, pictures.pop(0))
        session.answer(event.id, "resolved")

    session.listen(
        lambda e: (
            acting.append(asyncio.ensure_future(person(e))) if isinstance(e, ev.HumanRequested) else None
        )
    )
    finished = await session.run("What does the report say?")
    await asyncio.gather(*acting)
    assert isinstance(finished, ev.RunFinished) and finished.outcome == "completed"
    assert [e.id for e in events if isinstance(e, ev.HumanRequested)] == ["q1", "q2"]


async def test_H4_nobody_there_then_solved_and_answered_later(site: PuzzleSite) -> None:
    fetch = fetcher()
    session, _, events = session_on(site, fetch, attended=False)
    finished = await session.run("What does the report say?")
    assert isinstance(finished, ev.RunFinished)
    assert finished.outcome == "human-required" and finished.question is not None
    await solve(finished.question.where, CAT)
    later, _, _ = session_on(site, fetch, attended=False)
    later.load(events)
    again = await later.resume(answer="Solved.")
    assert isinstance(again, ev.RunFinished)
    assert (again.outcome, again.text) == ("completed", f"The page says: {REPORT}")
