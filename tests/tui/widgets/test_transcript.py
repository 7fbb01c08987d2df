"""The transcript: rows, folding, following the end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stories import Story, batch_done, flaky, second_attempt
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from handrail import events as ev
from handrail.clock import EPOCH
from handrail.events import CallInfo, FieldError
from handrail.messages import Text
from handrail_tui.view.items import BatchItem, CallItem, ReplyBlock, TurnItem
from handrail_tui.view.state import ViewState
from handrail_tui.widgets import theming
from handrail_tui.widgets._batch import batch_rows, votes_words
from handrail_tui.widgets._reply_markdown import markdown_lines
from handrail_tui.widgets._transcript_values import value_lines
from handrail_tui.widgets._turn import TurnRows
from handrail_tui.widgets.reply import ReplyRows
from handrail_tui.widgets.transcript import Transcript
from handrail_tui.widgets.transcript_rows import Look, Row


def plain(rows: list[Row]) -> str:
    return "\n".join(row.content.plain.rstrip() for row in rows)


def fold(story: Story) -> ViewState:
    state = ViewState()
    for event in story.events:
        state.apply(event)
    return state


def turn_text(story: Story, look: Look | None = None) -> str:
    turn = next(item for item in reversed(fold(story).items) if isinstance(item, TurnItem))
    return plain(TurnRows(turn).rows(look or Look(80, story.at, has_output=True), current=True))


# Rows -------------------------------------------------------------------------------------------------------


def test_L7_the_votes_are_told_in_words() -> None:
    def words(votes: int | None, of: int, ends: bool) -> str:
        return votes_words(BatchItem(0.0, votes=votes, of=of, ends=ends))

    assert words(None, 3, False) == ""
    assert words(0, 3, False) == ""
    assert words(1, 3, False) == "1 of 3 would end the loop; the other calls continue"
    assert words(2, 2, True) == "all 2 end the loop"
    assert words(1, 1, True) == "this call ends the loop"


def test_a_running_call_shows_the_end_of_its_output_and_its_time() -> None:
    text = turn_text(flaky(), Look(80, EPOCH + 500, has_output=True))
    assert "● bash  pytest -q tests/checkout" in text
    assert "...........F............" in text
    assert "✓ grep  cart_total  7 matches in 3 files" in text
    assert "0.05 s" in text


def test_a_thought_folds_by_itself_and_says_how_much_it_hides() -> None:
    story = flaky()
    assert "▸ thought for 2.2 s, 34 lines" in turn_text(story)
    assert "Two tasks refresh the cache.\n" not in turn_text(story)
    opened = turn_text(story, Look(80, story.at, thinking=True))
    assert "▾ thought" in opened
    assert opened.count("refresh the cache.") >= 30


def test_a_broken_attempt_is_one_dim_line_that_opens() -> None:
    story = second_attempt(batch_done(flaky()))
    turn = next(item for item in reversed(fold(story).items) if isinstance(item, TurnItem))
    rows = TurnRows(turn).rows(Look(80, story.at), current=True)
    assert "▸ request 4, the words so far were kept: “I will make the total lazy" in plain(rows)
    look = Look(80, story.at, toggled={turn.attempts[0]})
    assert "so that nothing" in plain(TurnRows(turn).rows(look, current=True))


def test_S4_a_rejected_submission_shows_its_fields_and_an_accepted_one_its_value() -> None:
    story = Story().start().request(1).reply(Text("x")).batch(("submit", ""), ("submit", ""))
    errors = (FieldError("cause", "Field required"), FieldError("", "Not an object"))
    story.add(ev.Submission, accepted=False, call_id="c1.0", attempt=1, of=3, errors=errors)
    story.add(ev.Submission, accepted=True, call_id="c1.1", value={"cause": "a race", "lines": [3, None]})
    text = turn_text(story)
    for words in (
        "rejected 1 of 3",
        "cause: Field required",
        "Not an object",
        "accepted",
        "cause: a race",
        "1: null",
    ):
        assert words in text


def test_an_error_shows_its_first_lines_unasked_and_a_good_result_does_not() -> None:
    call = CallItem(
        "1", "bash", "make", state="error", text="\n".join(f"line {n}" for n in range(9)), lines=9
    )
    rows = plain(batch_rows(BatchItem(0.0, [call], seconds=1.0), Look(80, 1.0), current=True))
    assert "line 3" in rows
    assert "line 4" not in rows
    assert "5 more lines" in rows
    call.state = "ok"
    assert "line 0" not in plain(batch_rows(BatchItem(0.0, [call], seconds=1.0), Look(80, 1.0), current=True))
    opened = Look(80, 1.0, toggled={call})
    assert "line 8" in plain(batch_rows(BatchItem(0.0, [call], seconds=1.0), opened, current=True))


def test_a_finished_batch_of_many_calls_folds_once_it_is_not_the_newest() -> None:
    calls = [CallItem(str(n), "read" if n else "grep", f"f{n}", state="ok") for n in range(7)]
    batch = BatchItem(0.0, calls, seconds=2.0)
    assert len(batch_rows(batch, Look(80, 9.0), current=True)) == 8
    rows = batch_rows(batch, Look(80, 9.0), current=False)
    assert plain(rows) == "  ▌ ▸ batch of 7  2.0 s  grep, read 6"
    assert len(batch_rows(batch, Look(80, 9.0, toggled={batch}), current=False)) == 8


def test_a_short_diff_is_shown_and_a_long_one_folds() -> None:
    def edit(lines: int) -> str:
        body = "".join(f"+line {n}\n" for n in range(lines))
        diff = f"--- a/x\n+++ b/x\n@@ -0,0 +1,{lines} @@\n{body}"
        call = CallItem("1", "edit", "x", state="ok", diff=diff, text="done")
        return plain(batch_rows(BatchItem(0.0, [call], seconds=0.1), Look(80, 1.0), current=True))

    assert "+ line 3" in edit(4)
    assert "+ line 3" not in edit(40)


def test_no_row_is_wider_than_the_transcript() -> None:
    story = second_attempt(batch_done(flaky()))
    for width in (10, 17, 40, 80):
        for item in fold(story).items:
            if isinstance(item, TurnItem):
                rows = TurnRows(item).rows(Look(width, story.at, thinking=True), current=True)
                assert max(row.content.cell_length for row in rows) <= max(width, 24)


def test_a_value_is_a_tree_that_is_cut_where_it_is_endless() -> None:
    deep: Any = 1
    for _ in range(40):
        deep = {"x": deep}
    assert len(value_lines(deep)) < 10
    lines = value_lines({"rows": list(range(1_000))})
    assert len(lines) == 52
    assert lines[-1].plain.strip() == "950 more"


# Replies ----------------------------------------------------------------------------------------------------

MARKDOWN = """# Title

A paragraph with `code`, **bold** and a [link](https://example.org/x).

- one
- two
  - nested

1. first
2. second

```python
def f(x):
    return [x]
```

> quoted

| a | b |
|---|---|
| 1 | two words |

[/] [/foo] <b>html</b>
"""


def test_markdown_keeps_every_word() -> None:
    text = "\n".join(line.plain for line in markdown_lines(MARKDOWN, 60))
    for words in (
        "Title",
        "code",
        "(https://example.org/x)",
        "• one",
        "nested",
        "2. second",
        "    return [x]",
    ):
        assert words in text
    for words in ("▎ quoted", "two words", "[/] [/foo] <b>html</b>"):
        assert words in text


@pytest.mark.parametrize("width", [9, 20, 60])
def test_markdown_stays_within_its_width(width: int) -> None:
    wide = max(line.cell_length for line in markdown_lines(MARKDOWN, width))
    assert wide <= max(width, 12)


@given(st.text(alphabet="ab `*_[]()#>-|1.\n\t~<&", max_size=120), st.integers(8, 40))
def test_no_markdown_breaks_it(text: str, width: int) -> None:
    markdown_lines(text, width)


@given(
    st.lists(
        st.sampled_from(["word ", "\n", "\n\n", "```\n", "- item\n", "`x`", "    in\n", "漢字"]), max_size=40
    )
)
def test_a_streamed_reply_ends_as_if_it_had_come_at_once(pieces: list[str]) -> None:
    streamed, whole = ReplyBlock("text", 0.0), ReplyBlock("text", 0.0)
    rows = ReplyRows(streamed, 30)
    for piece in pieces:
        streamed.add(piece)
        rows.update()
    whole.add("".join(pieces))
    streamed.close(1.0)
    whole.close(1.0)
    assert plain(rows.update()) == plain(ReplyRows(whole, 30).update())


def test_an_open_fence_is_plain_text_until_it_closes() -> None:
    block = ReplyBlock("text", 0.0)
    rows = ReplyRows(block, 40)
    block.add("```python\nx = 1\n\ny = 2\n")
    assert "```python" in plain(rows.update())
    block.add("```\n\nDone.")
    assert "```" not in plain(rows.update())
    assert "y = 2" in plain(rows.update())


def test_a_line_without_end_costs_its_last_row_only() -> None:
    block = ReplyBlock("text", 0.0)
    rows = ReplyRows(block, 42)
    for n in range(400):
        block.add(f"word{n} ")
        made = rows.update()
    kept = made[:20]
    block.add("more ")
    assert rows.update()[:20] == kept
    assert "word399 more" in plain(rows.update()).replace("\n  ", " ")


def test_rows_are_made_in_slices_when_there_is_no_time() -> None:
    block = ReplyBlock("text", 0.0)
    block.add("A paragraph of `words`.\n\n" * 2_000)
    block.close(1.0)
    rows = ReplyRows(block, 40)
    first = len(rows.update(until=0.0))
    assert rows.behind
    while rows.behind:
        rows.update(until=0.0)
    assert first < len(rows.update()) == 2 * 2_000 - 1


# The widget -------------------------------------------------------------------------------------------------


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield Transcript()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theming.defaults()

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)


class Feed:
    """A view and a transcript that shows it."""

    def __init__(self, app: Host, pilot: Pilot[Any]) -> None:
        self.view, self.transcript, self.pilot = ViewState(), app.transcript, pilot
        self.at = EPOCH

    async def send(self, *events: ev.Event) -> None:
        for event in events:
            change = self.view.apply(event)
            if change.item is not None:
                self.transcript.touch(change.item)
        self.transcript.paint(self.at)
        await self.pilot.pause()

    async def turns(self, count: int, first: int = 1) -> None:
        for n in range(first, first + count):
            await self.send(
                ev.TurnStarted(turn=n),
                ev.MessageDelta(turn=n, text=f"reply {n}\n\nsecond line {n}"),
                ev.TurnFinished(turn=n, seconds=1.0),
            )

    def top(self) -> str:
        """The first line that is seen."""
        return self.transcript.render_line(0).text.rstrip()


async def test_the_end_is_followed_by_default() -> None:
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        feed = Feed(app, pilot)
        await feed.turns(20)
        assert feed.transcript.is_vertical_scroll_end
        assert "second line 20" in feed.transcript.render_line(19).text


async def test_what_is_read_never_jumps_and_end_follows_again() -> None:
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        feed = Feed(app, pilot)
        await feed.turns(20)
        feed.transcript.focus()
        await pilot.press("pageup")
        assert not feed.transcript.following
        seen = feed.top()
        await feed.turns(5, first=21)
        assert feed.top() == seen
        await pilot.press("end")
        assert feed.transcript.following
        await feed.turns(1, first=26)
        assert "second line 26" in feed.transcript.render_line(19).text


async def test_what_is_read_stays_when_something_above_it_opens() -> None:
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        feed = Feed(app, pilot)
        calls = tuple(CallInfo(str(n), "read", f"f{n}") for n in range(8))
        await feed.send(ev.TurnStarted(turn=1), ev.ToolBatchStarted(turn=1, calls=calls))
        await feed.send(ev.ToolBatchFinished(turn=1, of=8, seconds=1.0))
        await feed.turns(20, first=2)
        feed.transcript.focus()
        await pilot.press("pageup")
        seen = feed.top()
        turn = next(item for item in feed.view.items if isinstance(item, TurnItem))
        assert turn.current.batch is not None
        feed.transcript.toggle(turn.current.batch)
        await pilot.pause()
        assert feed.top() == seen


async def test_the_number_of_new_rows_is_told_while_someone_reads_above() -> None:
    app = Host()
    told: list[tuple[bool, int]] = []

    class Listening(Host):
        def on_transcript_moved(self, event: Transcript.Moved) -> None:
            told.append((event.following, event.below))

    app = Listening()
    async with app.run_test(size=(60, 20)) as pilot:
        feed = Feed(app, pilot)
        await feed.turns(20)
        feed.transcript.focus()
        await pilot.press("home")
        await feed.turns(2, first=21)
        await pilot.pause()
    assert told[-1] == (False, 10)


async def test_another_width_keeps_the_item_that_is_read() -> None:
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        feed = Feed(app, pilot)
        await feed.turns(30)
        feed.transcript.focus()
        await pilot.press("home", "pagedown", "pagedown")
        turn = next(
            line
            for y in range(20)
            if (line := feed.transcript.render_line(y).text.strip()).startswith("turn")
        )
        await pilot.resize_terminal(30, 20)
        await pilot.pause(0.1)
        seen = "\n".join(feed.transcript.render_line(y).text for y in range(20))
        assert turn.split("  ")[0] in seen


async def test_a_click_opens_and_closes() -> None:
    app = Host()
    async with app.run_test(size=(60, 30)) as pilot:
        feed = Feed(app, pilot)
        await feed.send(
            ev.TurnStarted(turn=1, at=EPOCH),
            ev.MessageDelta(turn=1, at=EPOCH, kind="thinking", text="first thought\nsecond thought\n"),
            ev.MessageDelta(turn=1, at=EPOCH + 2, text="done"),
        )
        y = next(y for y in range(30) if "▸ thought" in feed.transcript.render_line(y).text)
        await pilot.click(Transcript, offset=(8, y))
        assert "second thought" in feed.transcript.plain()
        await pilot.click(Transcript, offset=(8, y))
        assert "second thought" not in feed.transcript.plain()


async def test_arrows_and_enter_open_without_a_mouse() -> None:
    app = Host()
    async with app.run_test(size=(60, 30)) as pilot:
        feed = Feed(app, pilot)
        await feed.send(
            ev.TurnStarted(turn=1, at=EPOCH),
            ev.MessageDelta(turn=1, at=EPOCH, kind="thinking", text="a thought\n"),
            ev.MessageDelta(turn=1, at=EPOCH + 2, text="done"),
        )
        feed.transcript.focus()
        await pilot.press("left", "enter")
        assert "a thought" in feed.transcript.plain()


async def test_rows_that_were_made_are_not_made_again_for_new_turns() -> None:
    app = Host()
    async with app.run_test(size=(60, 20)) as pilot:
        feed = Feed(app, pilot)
        await feed.turns(10)
        first = feed.transcript._sections[0].rows
        await feed.turns(3, first=11)
        assert feed.transcript._sections[0].rows is first
