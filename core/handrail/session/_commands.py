"""The commands of a session of ours: what is beside `PersonCommands` acts on the model, the tools and recovery."""

from __future__ import annotations

from handrail import events as ev
from handrail.loop.calls import ToolSet
from handrail.loop.context import RunConfig, RunContext
from handrail.loop.people import PendingAnswers
from handrail.loop.run import Run
from handrail.policy import Approve, Bounds
from handrail.providers.base import Provider
from handrail.session.person import PersonCommands, is_known, unknown_word
from handrail.session.who import this_person
from handrail.tools.source import ToolSource


class Commands(PersonCommands):
    """The commands of a session of ours. `Session` adds the runs they act on."""

    def __init__(
        self, ctx: RunContext, config: RunConfig, toolset: ToolSet, answers: PendingAnswers, bounds: Bounds
    ) -> None:
        super().__init__(ctx, answers, bounds)
        self._config, self._toolset = config, toolset
        self._run: Run | None = None
        self._replaced: list[Provider] = []
        self._numbers = 0

    @property
    def running(self) -> bool:
        return self._run is not None

    @property
    def provider(self) -> Provider:
        return self._config.provider

    @property
    def tool_source(self) -> ToolSource | None:
        """Where the tools of MCP servers come from; None without one."""
        return self._toolset.source

    def set_recovery(self, on: bool) -> None:
        """Switch recovery on or off. Switching it off ends a pause, and no request follows (rule R12)."""
        self._config.policy = self._config.policy.model_copy(update={"enabled": on})
        self._ctx.emit(ev.SettingsChanged(**self._ctx.stamp(), recovery=on))
        if not on:
            self._ctx.interrupts.send("recovery_off")

    def set_provider(self, provider: Provider) -> None:
        """Use another model from the next request on. Raises ValueError when a cost bound needs its unknown price."""
        old, self._config.provider = self._config.provider, provider
        try:
            self._check_price(self._ctx.state.bounds if self.running else self._bounds)
        except ValueError:
            self._config.provider = old
            raise
        self._replaced.append(old)
        model = provider.model
        self._ctx.emit(ev.SettingsChanged(**self._ctx.stamp(), model=model.name, window=model.window))

    def set_approve(self, mode: Approve) -> None:
        """Change which tool calls need approval (rule H5). Raises ValueError for an unknown mode."""
        if not is_known(mode, Approve):
            raise ValueError(unknown_word("the approval mode", mode, Approve))
        self._toolset.mode = mode
        self._ctx.emit(ev.SettingsChanged(**self._ctx.stamp(), approve=mode, by=this_person()))

    def compact(self) -> None:
        """Summarise older messages before the next request (rule R14, by hand)."""
        self._config.compact_now = True

    def _check_price(self, bounds: Bounds) -> None:
        if bounds.max_cost is not None and self._config.provider.model.price is None:
            name = self._config.provider.model.name
            raise ValueError(
                f"max_cost: the price of {name} is unknown, so a cost bound cannot be enforced; set its price"
            )
