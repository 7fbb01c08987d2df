"""Builds a session from settings: provider, tools, instructions, hooks. Used for new and for resumed sessions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail import instructions, trust
from handrail.settings import Hooks, LoadedSettings, Settings
from handrail_tui.sessions.model import resolve_model
from handrail_tui.sessions.project_trust import warn_untrusted
from handrail_tui.sessions.servers import chosen_servers

if TYPE_CHECKING:
    from handrail.clock import Clock
    from handrail.events import Instruction
    from handrail.output.types import Output
    from handrail.policy import Bounds, RecoveryPolicy
    from handrail.providers.base import Provider
    from handrail.providers.catalog import Resolved
    from handrail.server_settings import ServerSettings
    from handrail.session import Session
    from handrail.session.person import PersonCommands
    from handrail.session.writer import JournalWriter
    from handrail.tools.base import Tool
    from handrail.tools.source import ToolSource


@dataclass(frozen=True, slots=True)
class SessionBuilder:
    """Everything a session is built from. `load` checks all of it, before a journal is created."""

    settings: Settings
    cwd: Path
    clock: Clock
    resolved: Resolved
    provider: Provider
    tools: list[Tool]
    instructions: tuple[Instruction, ...]
    servers: dict[str, ServerSettings]

    @classmethod
    def load(cls, loaded: LoadedSettings, cwd: Path, clock: Clock) -> SessionBuilder:
        """Resolve the model and load tools and instructions. Raises ConfigError."""
        from handrail.providers import catalog
        from handrail.providers.keys import withhold
        from handrail.tools import BUILTIN, builtin_tools
        from handrail.tools.sandbox import find_sandbox

        chosen = loaded.settings
        system = None if chosen.system is None else Path(chosen.system).expanduser()
        trusted = trust.is_trusted(trust.project_root(cwd), also=chosen.trusted)
        if not trusted:
            warn_untrusted(cwd, loaded)
        sandbox = find_sandbox(chosen.sandbox or "off")
        names = tuple(BUILTIN) if chosen.tools is None else chosen.tools
        tools = builtin_tools(names, sandbox=sandbox)
        in_force = instructions.load(cwd, trusted=trusted, system=system)
        resolved = resolve_model(chosen)
        provider = catalog.make_provider(resolved, clock)
        servers = chosen_servers(chosen, cwd, trusted=trusted)
        withhold(catalog.key_variables(chosen.providers))  # from here on children may start (rule J5)
        return cls(chosen, cwd, clock, resolved, provider, tools, in_force, servers)

    def build(
        self,
        writer: JournalWriter,
        *,
        bounds: Bounds,
        recovery: RecoveryPolicy,
        output: Output[Any] | None,
        attended: bool,
    ) -> Session:
        """The session; `writer` writes its journal. Raises ValueError when the session refuses its bounds."""
        from handrail.session import Session

        session = Session(
            self.provider,
            tools=self.tools,
            cwd=self.cwd,
            instructions=self.instructions,
            bounds=bounds,
            recovery=recovery,
            approve=self.settings.approve,
            calls_at_once=self.settings.calls_at_once,
            output_folder=writer.journal.path.parent / "output",
            clock=self.clock,
            record=writer,
            id=writer.journal.session,
            output=output,
            attended=attended,
            max_output=self.settings.max_output,
            effort=self.settings.effort,
            secrets=self._secrets(),
            source=self._source(writer.journal.path.parent),
        )
        attach(session, writer, self.settings, self.cwd)
        return session

    def _source(self, folder: Path) -> ToolSource | None:
        """The MCP servers of the session, not started yet. Nothing of them is imported without one."""
        if not self.servers:
            return None
        from handrail.mcp import Servers

        return Servers(
            self.servers, cwd=self.cwd, clock=self.clock, folder=folder / "mcp", sessions=folder.parent
        )

    def _secrets(self) -> list[str]:
        """The keys to mask: those of the environment, of the model and of the settings (rule J5)."""
        from handrail.mask import key_values
        from handrail.providers.catalog import key_variables
        from handrail.providers.keys import environment
        from handrail.session.spec import secrets_in

        keys = [self.resolved.api_key, *(p.key for p in self.settings.providers.values())]
        known = [key for key in keys if key and not key.startswith(("!", "keyring:"))]
        of_servers = [secret for server in self.servers.values() for secret in server.secrets]
        return [
            *key_values(environment(), key_variables(self.settings.providers)),
            *known,
            *secrets_in(self.resolved.headers, self.resolved.base_url),
            *of_servers,
        ]


def attach(session: PersonCommands, writer: JournalWriter, chosen: Settings, cwd: Path) -> None:
    """Let other terminals control the session, and the person's own commands hear of it."""
    from handrail.session.control import Control

    session.listen(Control(session, writer.journal.path.parent))
    if chosen.hooks != Hooks():
        from handrail_tui.sessions.hooks import HookRunner

        session.listen(
            HookRunner(
                chosen.hooks,
                session=session.id,
                cwd=cwd,
                report=lambda words: session.notice(words, level="warning"),
            )
        )
