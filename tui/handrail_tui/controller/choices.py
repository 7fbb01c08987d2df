"""What a person chose on a card, as commands to the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail_tui.widgets.cards import chosen
from handrail_tui.widgets.cards.host import CardHost

if TYPE_CHECKING:
    from handrail_tui.screens.run import RunScreen


def apply_choice(screen: RunScreen, choice: chosen.Choice) -> None:
    """Carry out `choice`."""
    session = screen.session
    match choice:
        case chosen.Approve():
            session.approve(choice.id, choice.how, choice.text)
        case chosen.Answer():
            session.answer(choice.id, choice.how, choice.text, secret=choice.secret)
        case chosen.SkipWait():
            session.skip_wait()
        case chosen.RetryNow():
            _retry(screen)
        case chosen.GoOnWaiting():
            screen.patient_since = screen.view.last_data_at
        case chosen.AnotherModel():
            another_model(screen)
        case chosen.EditKey():
            screen.composer.note("Set the key (handrail config edit), then r tries again.")
        case chosen.RaiseBound():
            _raise_bound(screen, choice)
        case chosen.Stop():
            screen.action_stop()
        case chosen.Finish():
            screen.query_one(CardHost).put_away()


def another_model(screen: RunScreen) -> None:
    """Begin the command that changes the model; the person names it."""
    screen.composer.give_back("/model ", "name it: provider/name")
    screen.composer.input.focus()


def _retry(screen: RunScreen) -> None:
    """Ask again: end a pause, give up a stalled stream, or take up a run that failed."""
    if screen.view.wait is not None:
        screen.session.skip_wait()
    elif screen.session.running:
        screen.session.retry_now()
    else:
        screen.drive(screen.session.resume())


def _raise_bound(screen: RunScreen, choice: chosen.RaiseBound) -> None:
    """Raise a bound and go on with the run that it ended."""
    amount = choice.amount
    match choice.kind:
        case "max_turns":
            screen.session.raise_bounds(max_turns=int(amount))
        case "deadline_s":
            screen.session.raise_bounds(deadline_s=amount)
        case "max_total_tokens":
            screen.session.raise_bounds(max_total_tokens=int(amount))
        case "max_cost":
            screen.session.raise_bounds(max_cost=amount)
        case "max_attempts":
            screen.session.raise_bounds(max_attempts=int(amount))
    if not screen.session.running:
        screen.drive(screen.session.resume())
