"""The composer: what it sends, and that nothing typed is ever lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stage import CardApp
from textual import events
from textual.pilot import Pilot

from handrail.clock import EPOCH
from handrail.events import WaitStarted
from handrail_tui.controller.cards import SkipWait
from handrail_tui.widgets._composer_input import ComposerInput
from handrail_tui.widgets.composer import Composer

WAIT = WaitStarted(seconds=600, until=EPOCH + 600, reason="usage-limit", words="limit", at=EPOCH)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A letter counts as alone after almost no time."""
    monkeypatch.setattr(ComposerInput, "LONE_KEY_S", 0.01)
    yield


def shown(messages: list[object]) -> list[object]:
    out: list[object] = []
    for message in messages:
        match message:
            case Composer.Submitted(text=text, kind=kind):
                out.append((kind, text))
            case Composer.Command(name=name, args=args):
                out.append(f"/{name} {args}".rstrip())
            case Composer.Shell(command=command):
                out.append(f"!{command}")
            case _:
                out.append(type(message).__name__)
    return out


async def type_text(pilot: Pilot[None], text: str) -> None:
    for character in text:
        await pilot.press({" ": "space", "/": "slash", "!": "exclamation_mark"}.get(character, character))


async def paste(app: CardApp, pilot: Pilot[None], text: str) -> None:
    app.composer.input.post_message(events.Paste(text))
    await pilot.pause()


@pytest.mark.parametrize(
    ("mode", "key", "kind"),
    [
        ("idle", "enter", "prompt"),
        ("idle", "alt+enter", "prompt"),
        ("running", "enter", "steer"),
        ("running", "alt+enter", "follow_up"),
        ("running", "ctrl+enter", "follow_up"),
        ("running", "ctrl+s", "follow_up"),
        ("waiting", "enter", "steer"),
    ],
)
async def test_enter_steers_a_run_and_the_other_key_follows_up(mode: str, key: str, kind: str) -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        app.composer.mode = mode  # type: ignore[assignment]
        await type_text(pilot, "be brief")
        await pilot.press(key)
        await pilot.pause()
        assert shown(app.got) == [(kind, "be brief")]
        assert app.composer.text == ""


async def test_an_empty_composer_sends_nothing() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await pilot.press("enter", "space", "enter", "alt+enter")
        assert app.got == []


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter"])
async def test_a_line_break_does_not_send(key: str) -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await pilot.press("a", key, "b")
        assert app.composer.text == "a\nb"
        assert app.composer.input.size.height == 2
        await pilot.press("enter")
        await pilot.pause()
        assert shown(app.got) == [("prompt", "a\nb")]


async def test_it_grows_to_eight_lines_and_no_further() -> None:
    app = CardApp()
    async with app.run_test(size=(80, 30)) as pilot:
        assert app.composer.input.size.height == 1
        await paste(app, pilot, "\n".join("abcdefghijkl"))
        assert app.composer.input.size.height == 8


async def test_L11_a_paste_is_whole_and_cannot_reach_the_terminal() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        lines = "\r\n".join(f"line {n}" for n in range(2_000))
        await paste(app, pilot, f"\x1b]0;owned\x07\x9b2J{lines}")
        assert app.composer.text == lines.replace("\r\n", "\n")
        await pilot.press("enter")
        await pilot.pause()
        assert shown(app.got) == [("prompt", lines.replace("\r\n", "\n"))]


async def test_a_refused_text_comes_back_before_what_was_typed_since() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await type_text(pilot, "first")
        await pilot.press("enter")
        await type_text(pilot, "second")
        submitted = app.got[0]
        assert isinstance(submitted, Composer.Submitted)
        submitted.refuse("the journal cannot be written")
        await pilot.pause()
        assert app.composer.text == "first\n\nsecond"
        assert "the journal cannot be written" in str(app.query_one("#composer--note").render())


async def test_history_keeps_the_draft_and_changed_old_texts() -> None:
    app = CardApp(history=["one", "two\nlines"])
    async with app.run_test() as pilot:
        await type_text(pilot, "dra")
        await pilot.press("up")
        assert app.composer.text == "two\nlines"
        await pilot.press("up")
        assert app.composer.text == "one"
        await pilot.press("up")
        assert app.composer.text == "one"
        await pilot.press("down", "down", "down")
        assert app.composer.text == "dra"
        await pilot.press("up", "end", "x")
        await pilot.press("down", "down")
        assert app.composer.text == "twox\nlines", "a changed old text is the new draft"


async def test_a_sent_text_is_the_newest_in_the_history_once() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        for _ in range(2):
            await type_text(pilot, "again")
            await pilot.press("enter")
        await pilot.press("up")
        assert app.composer.text == "again"
        assert app.composer.history == ["again"]


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("/stop", "/stop"),
        ("/bounds +10", "/bounds +10"),
        ("/recovery off", "/recovery off"),
        ("/usr/bin is full", ("prompt", "/usr/bin is full")),
        (" /stop", ("prompt", "/stop")),
        ("!git status", "!git status"),
    ],
)
async def test_commands_shell_lines_and_texts_are_told_apart(typed: str, sent: object) -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await paste(app, pilot, typed)
        await pilot.press("escape", "enter")
        await pilot.pause()
        assert shown(app.got) == [sent]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("/stpo", "There is no command /stpo; did you mean /stop?"),
        ("/recovery maybe", "/recovery takes on or off, not 'maybe'."),
        ("/quit now", "/quit takes no arguments."),
        ("!", "Type a shell command after !"),
    ],
)
async def test_what_cannot_be_sent_stays_and_says_why(typed: str, words: str) -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await paste(app, pilot, typed)
        await pilot.press("escape", "enter")
        await pilot.pause()
        assert app.got == []
        assert app.composer.text == typed
        note = app.query_one("#composer--note")
        assert words in str(note.render())
        await pilot.press("x")
        assert note.has_class("-empty"), "the note goes when one types on"


async def test_esc_and_page_keys_belong_to_the_screen() -> None:
    app = CardApp()
    for key in ("escape", "pageup", "end"):
        app.bind(key, "helped")
    async with app.run_test() as pilot:
        await pilot.press("escape", "pageup", "end")
        assert app.helped == 3
        assert not app.composer.input.check_action("copy", ())
        await pilot.press("w", "shift+left")
        assert app.composer.input.check_action("copy", ()), "with something selected ctrl+c copies"


# Keys that a card wants ------------------------------------------------------------------------------------


async def test_a_letter_alone_reaches_the_card_and_leaves_the_composer_empty() -> None:
    app = CardApp([WAIT])
    async with app.run_test() as pilot:
        await pilot.pause()
        app.rest()
        await pilot.press("s")
        assert app.composer.text in ("s", "")
        await pilot.pause(0.05)
        assert shown(app.got) == ["SkipWait"]
        assert app.composer.text == ""


async def test_a_letter_that_begins_a_sentence_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ComposerInput, "LONE_KEY_S", 0.2)
    app = CardApp([WAIT])
    async with app.run_test() as pilot:
        await pilot.pause()
        app.rest()
        await type_text(pilot, "skip the tests")
        await pilot.pause(0.25)
        assert app.composer.text == "skip the tests"
        assert app.got == []


async def test_no_card_takes_a_key_within_a_second_of_typing() -> None:
    app = CardApp([WAIT])
    async with app.run_test() as pilot:
        await pilot.pause()
        app.rest()
        await pilot.press("q", "backspace")
        app.rest(0.9)
        await pilot.press("s")
        await pilot.pause(0.03)
        assert app.got == [] and app.composer.text == "s"
        await pilot.press("backspace")
        app.rest(1.0)
        await pilot.press("s")
        await pilot.pause(0.03)
        assert [type(m) for m in app.got] == [SkipWait]


async def test_no_card_takes_a_key_while_the_composer_holds_text() -> None:
    app = CardApp([WAIT])
    async with app.run_test() as pilot:
        await pilot.pause()
        app.rest()
        await pilot.press("q")
        app.rest()
        await pilot.press("s")
        await pilot.pause(0.03)
        assert app.got == [] and app.composer.text == "qs"
        assert not app.card.reachable


async def test_a_key_of_the_program_works_alone_too() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await pilot.press("question_mark")
        await pilot.pause(0.03)
        assert app.helped == 1 and app.composer.text == ""
        await pilot.press("w", "question_mark")
        await pilot.pause(0.03)
        assert app.helped == 1 and app.composer.text == "w?"


@pytest.mark.parametrize("key", ["tab", "ctrl+up"])
async def test_tab_goes_to_the_card_and_back_and_letters_are_not_lost(key: str) -> None:
    app = CardApp([WAIT])
    async with app.run_test() as pilot:
        await pilot.pause()
        app.rest()
        await pilot.press("q", key)
        assert app.focused is app.card
        await pilot.press("tab")
        assert app.focused is app.composer.input
        await pilot.press(key, "z")
        assert app.focused is app.composer.input
        assert app.composer.text == "qz", "a letter that the card does not know goes on in the text"


async def test_keys_of_a_burst_are_obeyed_in_the_order_they_were_pressed() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        burst = [*"helo", "backspace", *"lo", "ctrl+j", *"x", "backspace", *"y", "enter", *"next"]
        for key in burst:
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert shown(app.got) == [("prompt", "hello\ny")]
        assert app.composer.text == "next"


async def test_a_card_that_comes_over_typed_text_says_how_to_get_there() -> None:
    app = CardApp()
    async with app.run_test() as pilot:
        await pilot.press("q")
        app.host.show([WAIT])
        await pilot.pause()
        assert not app.card.reachable, "enter would send the text, not choose on the card"
