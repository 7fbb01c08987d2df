"""One interface of a session: the live run, the replay and the test double have it."""

from __future__ import annotations

import inspect

import pytest
from ports import FakeSession
from typing_extensions import get_protocol_members

from handrail.session import Session
from handrail.session.protocol import SessionProtocol
from handrail_tui.sessions.replay import Replay


@pytest.mark.parametrize("kind", [Session, Replay, FakeSession])
def test_house_every_session_takes_the_same_commands(kind: type) -> None:
    for name in get_protocol_members(SessionProtocol):
        wanted = inspect.getattr_static(SessionProtocol, name)
        if not inspect.isfunction(wanted):
            continue
        found = getattr(kind, name)
        parameters = inspect.signature(found).parameters.values()
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        names = {p.name for p in parameters}
        for parameter in inspect.signature(wanted).parameters.values():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                assert takes_any or parameter.name in names, f"{kind.__name__}.{name} lacks {parameter.name}"
        assert inspect.iscoroutinefunction(found) == inspect.iscoroutinefunction(wanted), name
