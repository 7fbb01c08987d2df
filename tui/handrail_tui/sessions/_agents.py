"""Builds a session in which an agent of others works, new or resumed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.settings import Settings
from handrail_tui.sessions._builder import attach

if TYPE_CHECKING:
    from handrail.agents.agent_session import AgentSession
    from handrail.agents.registry import AgentEntry
    from handrail.policy import Bounds, RecoveryPolicy
    from handrail.session.writer import JournalWriter


def build_agent(
    entry: AgentEntry,
    writer: JournalWriter,
    chosen: Settings,
    cwd: Path,
    *,
    bounds: Bounds,
    recovery: RecoveryPolicy,
    attended: bool,
) -> AgentSession:
    """The session; `writer` writes its journal. Raises ConfigError, and ValueError when it refuses its bounds."""
    from handrail.agents.agent_session import AgentSession
    from handrail.agents.routes import routes
    from handrail.clock import RealClock
    from handrail.mask import key_values
    from handrail.providers import catalog

    session = AgentSession(
        entry,
        cwd=cwd,
        environ=os.environ,
        routes=routes(os.environ, chosen.providers),
        id=writer.journal.session,
        folder=writer.journal.path.parent,
        bounds=bounds,
        recovery=recovery,
        approve=chosen.approve,
        clock=RealClock(),
        record=writer,
        attended=attended,
        secrets=key_values(os.environ, catalog.key_variables(chosen.providers)),
        model_info=lambda name: catalog.model_info(name, chosen.models),
    )
    attach(session, writer, chosen, cwd)
    return session
