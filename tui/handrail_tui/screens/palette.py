"""The actions of a run in the command palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider

if TYPE_CHECKING:
    from handrail_tui.controller.run import PaletteEntry, RunController


class RunCommands(Provider):
    """What can be done now, as the controller of the run tells it."""

    @property
    def _controller(self) -> RunController | None:
        return getattr(self.screen, "controller", None)

    def _entries(self) -> Iterator[tuple[PaletteEntry, Callable[[], object]]]:
        controller = self._controller
        if controller is None:
            return
        for entry in controller.palette():
            yield entry, self._performs(controller, entry)

    def _performs(self, controller: RunController, entry: PaletteEntry) -> Callable[[], object]:
        def perform() -> None:
            if words := controller.perform(entry.action, entry.args):
                controller.note(words)

        return perform

    async def discover(self) -> Hits:
        for entry, perform in self._entries():
            yield DiscoveryHit(entry.title, perform, help=entry.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry, perform in self._entries():
            if (score := matcher.match(entry.title)) > 0:
                yield Hit(score, matcher.highlight(entry.title), perform, help=entry.help)
