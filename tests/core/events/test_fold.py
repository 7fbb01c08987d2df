"""A fold's methods are named after the events that they handle."""

from __future__ import annotations

from handrail import events as ev
from handrail.events.fold import handlers


class Fold:
    def _run_started(self, event: ev.RunStarted) -> str:
        return event.prompt

    def _not_an_event(self) -> None:
        raise AssertionError


def test_house_a_fold_handles_the_events_that_it_has_methods_for() -> None:
    found = handlers(Fold)
    assert set(found) == {ev.RunStarted}
    assert found[ev.RunStarted](Fold(), ev.RunStarted(prompt="Go.")) == "Go."
