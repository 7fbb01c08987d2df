"""Sessions of agents that are not ours, for tests: a scripted agent, every event kept."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from handrail import events as ev
from handrail.agents.agent_session import AgentSession
from handrail.agents.registry import AgentEntry
from handrail.agents.routes import Route

AGENT = Path(__file__).with_name("fake_agent.py")


def entry(*flags: str, **more: Any) -> AgentEntry:
    """The scripted agent."""
    return AgentEntry("fake", (sys.executable, str(AGENT), *flags), title="Fake", mode="default", **more)


@dataclass
class Foreign:
    """A session and what happened in it."""

    session: AgentSession
    events: list[ev.Event] = field(default_factory=list)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def types(self) -> list[str]:
        """The names of the events, runs of deltas as one."""
        names: list[str] = []
        for event in self.events:
            if event.type not in names[-1:] or event.type != "message_delta":
                names.append(event.type)
        return names

    async def first(self, kind: type[Any]) -> Any:
        """The next event of a kind."""
        seen: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.when(kind, lambda event: None if seen.done() else seen.set_result(event))
        return await asyncio.wait_for(seen, 20)

    def when(self, kind: type[Any], act: Callable[[Any], object]) -> None:
        """Act on every event of a kind, as a person would."""
        self.session.listen(lambda event: act(event) if isinstance(event, kind) else None)


def foreign(folder: Path, agent: AgentEntry | None = None, *, url: str | None = None, **more: Any) -> Foreign:
    """A session of the scripted agent in `folder`; with `url` its requests go there, through the gateway."""
    kept = folder.parent / f"{folder.name}-session"
    kept.mkdir(exist_ok=True)
    if url is not None and agent is None:
        agent = entry(provider="anthropic")
    routes = {"anthropic": Route("anthropic", url)} if url is not None else {}
    environ = more.pop("environ", dict(os.environ))
    session = AgentSession(
        agent or entry(), cwd=folder, environ=environ, routes=routes, id=uuid4().hex[:11], folder=kept, **more
    )
    made = Foreign(session)
    session.listen(made.events.append)
    return made
