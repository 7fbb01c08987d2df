"""A stored session as Markdown, for people to read and to share.

Text of Handrail starts at the margin. Text of a model or a person is quoted, output of tools is fenced, so that neither
can imitate it. Nothing in the page loads anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from handrail import events as ev
from handrail.clock import to_rfc3339
from handrail.messages import AssistantMessage
from handrail.session.records import JournalContents
from handrail_tui.lines.json_lines import safe_json, to_json
from handrail_tui.view import wording
from handrail_tui.view.text import clean_for_terminal, join, one_line, seconds

_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_MARKUP: Final = re.compile(r"!\[|<(?=[A-Za-z/!?])")


def as_page(contents: JournalContents) -> str:
    """A journal as Markdown."""
    events = list(contents.events())
    prompts = [e.prompt for e in events if isinstance(e, ev.RunStarted)]
    session = contents.header.session if contents.header else ""
    return markdown(events, title=one_line(prompts[0], 80) if prompts else "", session=session)


def as_lines(contents: JournalContents) -> str:
    """A journal as the lines that `run --json` writes."""
    return "".join(f"{to_json(event)}\n" for event in contents.events())


def markdown(events: Iterable[ev.Event], *, title: str, session: str) -> str:
    """The page."""
    head = f"# {_inline(title or 'A session')}\n\nSession `{one_line(session, 40)}`"
    page = _Page()
    parts = [head, *(part for event in events for part in page.parts(event))]
    return "\n\n".join(parts) + "\n"


class _Page:
    def __init__(self) -> None:
        self._started: dict[str, ev.ToolStarted] = {}

    def parts(self, event: ev.Event) -> Iterator[str]:
        """The paragraphs of an event; none for events that a reader does not need."""
        match event:
            case ev.RunStarted(resumed=True):
                yield f"*Resumed at {to_rfc3339(event.at)}.*"
            case ev.RunStarted():
                yield f"## You, {to_rfc3339(event.at)}"
                approve = f"approvals: {_inline(event.approve)}"
                yield f"Model {_inline(event.model)}, in `{one_line(event.cwd, 200)}`, {approve}."
                yield quoted(event.prompt)
                if event.context:
                    yield f"With this input:\n\n{fenced(event.context)}"
            case ev.Steered():
                yield f"## You, {'while it works' if event.kind == 'steer' else 'next task'}\n\n{quoted(event.text)}"
            case ev.MessageFinished(purpose="task"):
                yield from self._reply(event)
            case ev.ToolStarted():
                self._started[event.call_id] = event
            case ev.ToolFinished():
                yield self._result(event)
            case ev.Submission():
                words = "accepted" if event.accepted else f"rejected, {event.attempt} of {event.of}"
                yield join(
                    [f"**Submission {words}.**", *(_inline(f"{e.path}: {e.message}") for e in event.errors)]
                )
            case ev.Decided() if event.decision != "finish":
                words = join([event.decision, wording.decision(event)], ", ")
                yield f"**Decided: {_inline(words)}.** {_inline(event.why)}"
            case ev.HumanRequested():
                where = f" ({_inline(event.where)})" if event.where else ""
                yield f"**Needs you: {event.kind}{where}.**\n\n{quoted(event.needed)}"
            case ev.HumanAnswered():
                said = "(secret)" if event.secret else event.text
                yield f"**You: {wording.answer(event.how)}.**{_who(event)}" + (
                    f"\n\n{quoted(said)}" if said else ""
                )
            case ev.ApprovalRequested():
                yield f"**Needs approval:** {_inline(join([event.tool, event.title]))}"
            case ev.ApprovalAnswered():
                pattern = f" Pattern: `{one_line(event.pattern, 500)}`." if event.pattern else ""
                yield f"**You: {wording.approval(event.how)}.**{_who(event)}{pattern} {_inline(event.text)}".rstrip()
            case ev.SettingsChanged(approve=str(mode)):
                yield f"**Approvals from here on: {_inline(mode)}.**{_who(event)}"
            case ev.CompactionFinished(ok=True):
                yield f"**Older messages were replaced by a summary.**\n\n{quoted(event.summary)}"
            case ev.Notice():
                yield f"*{_inline(event.text)}*"
            case ev.RunFinished():
                yield from _end(event)
            case ev.RunInterrupted():
                yield f"*Interrupted at {to_rfc3339(event.at)}.*"

    def _reply(self, event: ev.MessageFinished) -> Iterator[str]:
        message = event.message
        yield f"## Turn {event.turn or '?'}, {_inline(message.model)}, {seconds(event.seconds)}"
        if message.thinking.strip():
            yield f"Thinking:\n\n{fenced(message.thinking)}"
        if message.text.strip():
            yield quoted(message.text)
        yield from _fault(message)
        for call in message.calls:
            yield f"Call `{one_line(call.name, 80)}`:\n\n{fenced(call.raw, 'json')}"

    def _result(self, event: ev.ToolFinished) -> str:
        started = self._started.get(event.call_id)
        words = join([one_line(event.name, 80), one_line(started.title if started else "", 200)])
        allowed = f"allowed: {one_line(started.allowed, 200)}" if started and started.allowed else ""
        mark = join(["failed" if event.is_error else one_line(event.summary, 60), _inline(allowed)], ", ")
        body = fenced(event.diff, "diff") if event.diff else fenced(event.text)
        return f"Result of {_inline(words)}{f' ({mark})' if mark else ''}:\n\n{body}"


def _who(event: ev.HumanAnswered | ev.ApprovalAnswered | ev.SettingsChanged) -> str:
    """Who said it, and when (rule H6)."""
    return f" {_inline(join([event.by, to_rfc3339(event.at)], ', '))}."


def _fault(message: AssistantMessage) -> Iterator[str]:
    if message.failure is not None:
        yield f"**The request failed:** {_inline(message.failure.text)}"
    elif words := wording.reply_end(message.stop_reason):
        yield f"**The reply ended early: {words}.**"


def _end(event: ev.RunFinished) -> Iterator[str]:
    yield f"## {wording.outcome(event)[0]}, {wording.totals(event)}"
    if event.error:
        yield _inline(event.error)
    if event.outcome == "submitted":
        yield fenced(safe_json(event.value, indent=2), "json")


def quoted(text: str) -> str:
    """Foreign text as a quotation: its Markdown stays, images and HTML are escaped."""
    lines, inside = [], False
    for line in clean_for_terminal(text).strip("\n").split("\n"):
        if _FENCE.match(line):
            inside = not inside
        lines.append(f"> {line if inside else _MARKUP.sub(_harmless, line)}".rstrip())
    return "\n".join(lines)


def fenced(text: str, language: str = "") -> str:
    """Foreign text unchanged, in a fence that it cannot close."""
    body = clean_for_terminal(text).rstrip("\n")
    longest = max((len(run) for run in re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def _inline(text: str) -> str:
    """Foreign text within a line of Handrail."""
    return _MARKUP.sub(_harmless, re.sub(r"([\\`*_#\[\]])", r"\\\1", one_line(text, 2_000)))


def _harmless(found: re.Match[str]) -> str:
    return "!\\[" if found[0] == "![" else "&lt;"
