"""The events of a run as lines of text: for pipes, logs and screen readers.

Lines of Handrail start at the margin; text of a model, a tool or a provider is indented, so that it cannot imitate
them. All text is cleaned (rule L11); nothing is ever repainted.
"""

from __future__ import annotations

from typing import Any, Final

import click

from handrail import events as ev
from handrail.forms import described
from handrail.messages import Failure
from handrail.tools.sandbox import UNPROTECTED
from handrail.tools.submit import SubmitTool
from handrail_tui.lines.json_lines import Out, safe_json
from handrail_tui.lines.streamed import ThinkingSummary, WholeLines
from handrail_tui.view import wording
from handrail_tui.view.text import (
    Tail,
    clean_for_terminal,
    count,
    countdown,
    cut_lines,
    join,
    local_time,
    money,
    one_line,
    plural,
    reveal,
    seconds,
)

_INDENT: Final = "  "
_DIFF_LINES: Final = 80
_OUTPUT_LINES: Final = 10


class Plain:
    """A listener that writes events as lines. `color` allows colour and bold; they carry no meaning of their own."""

    def __init__(self, out: Out, *, color: bool = False) -> None:
        self._out, self._color = out, color
        self._text = WholeLines(lambda line: out.line(_INDENT + line if line else ""))
        self._thinking = ThinkingSummary()
        self._failed = ""
        self._max_turns = 0
        self._titles: dict[str, str] = {}
        self._effects: dict[str, str] = {}
        self._diffs_seen: set[str] = set()
        self._asked: set[str] = set()

    def __call__(self, event: ev.Event) -> None:
        getattr(self, event.type)(event)

    # the shape of a line

    def _say(self, words: str, style: dict[str, Any] | None = None) -> None:
        """A line of Handrail, at the margin: whatever is in it, it stays one line."""
        words = one_line(words, 2_000)
        self._out.line(click.style(words, **style) if style and self._color else words)

    def _quote(self, text: str, limit: int | None = None) -> None:
        """Foreign text, indented; with `limit` only its first lines, and how many more there are."""
        lines = cut_lines(clean_for_terminal(text)).rstrip("\n").split("\n")
        for line in lines[:limit]:
            self._out.line(_INDENT + line if line else "")
        if limit is not None and len(lines) > limit:
            self._out.line(f"{_INDENT}… {plural(len(lines) - limit, 'more line')}")

    # the run

    def run_started(self, event: ev.RunStarted) -> None:
        self._max_turns = event.max_turns
        verb = "resuming" if event.resumed else "run"
        self._say(join([f"{verb} {event.session}".strip(), event.model, event.cwd], " · "), _HEADING)
        self._say(f"bounds: {', '.join(_bounds(event))}")
        self._say(f"tools: {', '.join(event.tools) or 'none'}; approvals: {event.approve}")
        if event.sandbox:
            self._say(event.sandbox)
        elif event.approve == "all" and "bash" in event.tools:
            self._say(f"no sandbox: {UNPROTECTED}")
        if event.instructions:
            self._say(f"instructions: {', '.join(i.path for i in event.instructions)}")
        if not event.resumed:
            self._say("you:", _HEADING)
            self._quote(event.prompt)
        if event.context is not None:
            self._say(f"with {plural(len(event.context), 'character')} of piped input")

    def turn_started(self, event: ev.TurnStarted) -> None:
        of = f" of {self._max_turns}" if self._max_turns else ""
        parts = [f"turn {event.turn or 0}{of}"]
        if event.purpose == "summary":
            parts.append("summary of older messages")
        if event.attempt > 1:
            parts.append(f"attempt {event.attempt}")
        if event.checkpoint:
            parts.append("continuing a cut reply")
        self._out.line()
        self._say(", ".join(parts), _HEADING)

    def message_started(self, event: ev.MessageStarted) -> None:
        self._text.begin()
        self._thinking = ThinkingSummary()

    def message_delta(self, event: ev.MessageDelta) -> None:
        if event.kind == "thinking":
            self._thinking.add(event.text, event.at)
            return
        self._fold_thinking()
        if event.kind == "text":
            self._text.feed(event.text)

    def message_finished(self, event: ev.MessageFinished) -> None:
        message = event.message
        if not self._thinking.seen:
            self._thinking.add(message.thinking, event.at)
        self._fold_thinking()
        if not self._text.seen and message.text:
            self._text.feed(message.text)
        self._text.end()
        self._failed = message.failure.text if message.failure else ""
        if message.stop_reason == "error" and message.failure is not None:
            self._say(f"the request failed: {_failure(message.failure)}", _WRONG)
        elif words := wording.reply_end(message.stop_reason, message.stop_detail):
            self._say(f"the reply ended early: {words}", _WRONG)

    def _fold_thinking(self) -> None:
        if words := self._thinking.take():
            self._say(words, _QUIET)

    def turn_finished(self, event: ev.TurnFinished) -> None:
        parts = [f"{count(event.usage.total)} tokens so far"]
        if event.seconds:
            parts.insert(0, f"turn took {seconds(event.seconds)}")
        if event.cost:
            parts.append(money(event.cost))
        if event.context is not None and event.context >= 0.005:
            parts.append(f"context {event.context:.0%} full")
        self._say(", ".join(parts), _QUIET)

    def run_finished(self, event: ev.RunFinished) -> None:
        self._out.line()
        words, tone = wording.outcome(event)
        cost = money(event.cost) if event.cost else ""
        self._say(
            join([words, wording.totals(event), cost], " · "), _WRONG if tone == "rejected" else _HEADING
        )
        if event.outcome == "submitted":
            self._say("value:")
            self._quote(safe_json(event.value, indent=2))
        if event.bound:
            self._say(f"limit reached: {event.bound}")
        if event.error and event.outcome not in ("cancelled", "human-required"):
            self._say("error:")
            self._quote(wording.provider_message(event.error), 20)
        if event.until is not None:
            self._say(f"the limit ends at {local_time(event.until, event.at)}")
        if event.question is not None and event.question.id not in self._asked:
            self._question(event.question)
        if event.session and event.outcome not in ("completed", "submitted"):
            self._say(f"session {event.session}")

    def run_interrupted(self, event: ev.RunInterrupted) -> None:
        self._text.end()
        by = f" by {event.signal}" if event.signal else ""
        session = f"; session {event.session}" if event.session else ""
        self._say(f"interrupted{by}; everything so far is saved{session}", _HEADING)

    # tools

    def tool_batch_started(self, event: ev.ToolBatchStarted) -> None:
        self._titles.update({call.id: _call(call.name, call.title) for call in event.calls})
        if len(event.calls) > 1:
            order = ", one at a time" if event.sequential else ""
            self._say(f"batch of {len(event.calls)} calls{order}")

    def tool_started(self, event: ev.ToolStarted) -> None:
        title = self._titles.setdefault(event.call_id, _call(event.name, event.title))
        self._effects[event.call_id] = event.effect
        if event.effect != "read":
            self._say(f"started: {title}")

    def tool_progress(self, event: ev.ToolProgress) -> None:
        """Not shown: the end of the output comes with the result."""

    def tool_finished(self, event: ev.ToolFinished) -> None:
        if event.name == SubmitTool.name:
            return  # `submission` has said how it was judged
        title = self._titles.pop(event.call_id, event.name)
        effect = self._effects.pop(event.call_id, "read")
        word = "skipped" if not event.executed else "error" if event.is_error else "ok"
        took = f"{seconds(event.seconds)}" if event.executed else ""
        said = join([event.summary, took], ", ")
        self._say(f"{word}: {title}" + (f" ({said})" if said else ""), _WRONG if event.is_error else None)
        if event.is_error:
            self._quote(event.text, _OUTPUT_LINES)
        elif event.diff and event.call_id not in self._diffs_seen:
            self._quote(event.diff, _DIFF_LINES)
        elif effect == "run":
            tail = Tail()
            tail.feed(event.text)
            self._quote("\n".join(tail.last(_OUTPUT_LINES)))
        self._diffs_seen.discard(event.call_id)

    def tool_batch_finished(self, event: ev.ToolBatchFinished) -> None:
        if event.votes and event.of > 1:
            goes = "ends" if event.ends else "continues"
            self._say(f"{event.votes} of {event.of} results would end the run; it {goes}")

    def submission(self, event: ev.Submission) -> None:
        if event.accepted:
            self._say("submission accepted")
            return
        self._say(f"submission rejected, {event.attempt} of {event.of}:", _WRONG)
        for error in event.errors:
            self._quote(f"{error.path or 'value'}: {error.message}")

    # recovery

    def decided(self, event: ev.Decided) -> None:
        if event.decision == "finish" and event.reason in ("completed", "submitted"):
            return
        self._say(join([f"decided: {event.decision}", wording.decision(event), event.why], ": "), _DECISION)

    def checkpoint_made(self, event: ev.CheckpointMade) -> None:
        kept = plural(event.quoted, "character")
        of = f" of {count(event.of)}" if event.of > event.quoted else ""
        self._say(f"sent with the next request: {kept}{of} of the unfinished reply")

    def wait_started(self, event: ev.WaitStarted) -> None:
        if event.seconds <= 0:
            return
        poll = f", poll {event.poll} of {event.polls}" if event.poll and event.polls else ""
        reason = wording.reason(event.reason) if event.reason else event.decision
        self._say(
            f"waiting {countdown(event.seconds)}, until {local_time(event.until, event.at)}: {reason}{poll}"
        )
        if event.words and event.words != self._failed:
            self._quote(wording.provider_message(event.words), 5)

    def wait_ended(self, event: ev.WaitEnded) -> None:
        if event.how == "postponed":
            self._say("the wait was prolonged")
        elif event.how != "elapsed":
            self._say(f"the wait ended early: {event.how.replace('_', ' ')}")

    def budget_spent(self, event: ev.BudgetSpent) -> None:
        self._say(wording.allowance_used_up(event), _WRONG)

    def no_progress(self, event: ev.NoProgress) -> None:
        self._say(wording.no_progress(event.what, event.name, event.times), _WRONG)

    def compaction_started(self, event: ev.CompactionStarted) -> None:
        self._say(join([f"summarising {plural(event.messages, 'older message')}", event.why], ": "))

    def compaction_finished(self, event: ev.CompactionFinished) -> None:
        if event.ok:
            self._say(f"summarised: {count(event.before)} tokens became {count(event.after)}")
        else:
            self._say(f"not summarised: {event.why}", _WRONG)

    def tools_changed(self, event: ev.ToolsChanged) -> None:
        self._say(f"tools: {wording.tools_changed(event)}", _WRONG if event.state == "failed" else None)

    # people

    def human_requested(self, event: ev.HumanRequested) -> None:
        self._asked.add(event.id)
        self._out.line()
        self._question(event)

    def _question(self, event: ev.HumanRequested) -> None:
        self._say(f"NEEDS YOU: {event.kind}", _LOUD)
        self._quote(event.needed)
        if event.where:
            self._quote(f"where: {event.where}")
        if event.tried:
            self._quote(f"tried: {event.tried}")
        for line in described(event.fields):
            self._quote(f"- {one_line(line, 500)}")

    def human_answered(self, event: ev.HumanAnswered) -> None:
        if event.how == "nobody":
            self._say(wording.answer(event.how))
            return
        said = "(secret)" if event.secret else event.text
        self._say(join([f"you: {wording.answer(event.how)}", said], ": "), _HEADING)

    def approval_requested(self, event: ev.ApprovalRequested) -> None:
        """The whole call, with hidden characters revealed: a person decides on this."""
        title = reveal(event.title)
        self._say(join([f"needs approval: {_call(event.tool, title)}", event.why], ": "), _LOUD)
        for text in (title if len(one_line(title)) < len(title) else "", event.detail, event.diff):
            for line in reveal(text or "").splitlines():
                self._out.line(_INDENT + line)
        if event.diff:
            self._diffs_seen.add(event.call_id)

    def approval_answered(self, event: ev.ApprovalAnswered) -> None:
        words = wording.approval(event.how)
        if event.how == "nobody":
            words += "; use --approve edits or --approve all to allow it in advance"
        pattern = event.pattern if event.how == "session" else ""
        self._say(join([words, pattern or "", event.text], ": "))

    def queue_changed(self, event: ev.QueueChanged) -> None:
        for message in event.returned:
            self._say("not sent, returned to you:")
            self._quote(message.text)

    def steered(self, event: ev.Steered) -> None:
        self._say("you, while it works:" if event.kind == "steer" else "you, next task:", _HEADING)
        self._quote(event.text)

    def settings_changed(self, event: ev.SettingsChanged) -> None:
        names = ("model", "max_turns", "deadline_s", "max_total_tokens", "max_cost", "recovery", "approve")
        changed = {n: getattr(event, n) for n in names if getattr(event, n) is not None}
        self._max_turns = event.max_turns or self._max_turns
        self._say("changed: " + ", ".join(f"{n} = {v}" for n, v in changed.items()))

    def notice(self, event: ev.Notice) -> None:
        word = {"info": "note", "warning": "warning", "error": "error"}[event.level]
        self._say(f"{word}: {event.text}", _WRONG if event.level == "error" else None)


_HEADING: Final = {"bold": True}
_QUIET: Final = {"dim": True}
_WRONG: Final = {"fg": "red"}
_DECISION: Final = {"fg": "magenta"}
_LOUD: Final = {"fg": "yellow", "bold": True}


def _call(name: str, title: str) -> str:
    """`read src/cart.py`; a title that says the name already is enough."""
    title = one_line(title)
    return title if title == name or title.startswith(f"{name} ") else join([name, title], " ")


def _bounds(event: ev.RunStarted) -> list[str]:
    parts = [plural(event.max_turns, "turn")]
    if event.output is not None:
        parts.append(f"{event.max_attempts} rejected submissions")
    if event.deadline_s:
        parts.append(f"{countdown(event.deadline_s)} of time")
    if event.max_total_tokens:
        parts.append(f"{count(event.max_total_tokens)} tokens")
    if event.max_cost:
        parts.append(money(event.max_cost))
    return parts


def _failure(failure: Failure) -> str:
    status = f"HTTP {failure.status}" if failure.status else ""
    return join([status, one_line(wording.provider_message(failure.text), 500)], ": ")
