"""Compaction: a summary replaces older turns, the newest stay whole (rule R14). Pure functions.

Sizes are estimates, except where a reply stated the real size of its context. `recover.Compactor` uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handrail import events as ev
from handrail.loop.context import Stamp
from handrail.messages import AssistantMessage, Image, Message, Text, ToolMessage, Usage, UserMessage
from handrail.providers.base import ModelInfo, Request

CHARS = 4
IMAGE_TOKENS = 1_500


def tokens(message: Message) -> int:
    """An estimate of the tokens of a message."""
    total = 4
    for block in message.content:
        if isinstance(block, Image):
            total += IMAGE_TOKENS
        else:
            text = block.raw if hasattr(block, "raw") else block.text
            total += len(text) // CHARS + 1
    return total


def estimate(request: Request, message: AssistantMessage) -> Usage | None:
    """The likely usage of a reply whose provider gave none, so that bounds still work. None for a reply without
    content: a refused request costs nothing."""
    if not message.content:
        return None
    asked = len(request.system) // CHARS + sum(tokens(m) for m in request.messages)
    return Usage(asked, tokens(message))


KEEP_SHARE = 0.25  # of the window, for the newest turns
KEEP_TOKENS = 20_000  # where the window is unknown
_CLIP = 4_000  # characters of one tool result in the text to summarise

_SYSTEM = (
    "You summarise the work of an agent so that it can go on without the older messages. Write plainly and keep: what "
    "the person asked for, in their words; decisions and their reasons; files, commands and facts that matter, "
    "exactly; what failed; what is still to do. Do not invent anything and do not continue the work."
)
_INTRO = "[Summary of the older messages, which are left out.]"


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The first `older` messages become a summary, the rest stays. `before` and `rest` are token estimates."""

    older: int
    kept: int
    before: int
    rest: int


def overfull(messages: Sequence[Message], window: int | None, cap: int | None) -> bool:
    """Whether the next request will not fit: the size of the last reply, plus what was added since."""
    if window is None:
        return False
    after = 0
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and message.usage is not None:
            reserve = min(cap or 0, window // 10)
            return message.usage.context + message.usage.output + after > window - reserve
        after += tokens(message)
    return False


def plan(messages: Sequence[Message], window: int | None) -> CompactionPlan:
    """What to summarise. It cuts only where a turn begins, so that a call and its result stay together."""
    starts = [i for i, m in enumerate(messages) if not isinstance(m, ToolMessage)]
    sizes = [tokens(m) for m in messages]
    total = sum(sizes)
    budget = min(int(window * KEEP_SHARE) if window else KEEP_TOKENS, total // 2)
    cut = len(messages)
    for start in reversed(starts):
        newest = cut == len(messages) and start > 0
        if start == 0 or not (newest or sum(sizes[start:]) <= budget):
            break
        cut = start
    return CompactionPlan(cut, len(messages) - cut, total, sum(sizes[cut:]))


def request(older: Sequence[Message], model: ModelInfo) -> Request:
    """The request for a summary of `older`: one message of plain text, no tools."""
    work = "\n\n".join(_as_text(m) for m in older)
    if model.window is not None:
        work = _middle_out(work, int(model.window * 0.6) * CHARS)
    text = f"Summarise this work so far:\n\n<work>\n{work}\n</work>"
    return Request((UserMessage((Text(text),), origin="note"),), _SYSTEM, (), model.max_output)


def finished(plan: CompactionPlan, summary: str, stamp: Stamp) -> ev.CompactionFinished:
    """The event that puts the summary in place. Its size is measured without our own introduction."""
    text = f"{_INTRO}\n\n{summary.strip()}"
    after = plan.rest + len(summary.strip()) // CHARS
    return ev.CompactionFinished(
        **stamp, ok=True, summary=text, kept=plan.kept, before=plan.before, after=after
    )


def _as_text(message: Message) -> str:
    if isinstance(message, UserMessage):
        return f"person: {message.text}"
    if isinstance(message, ToolMessage):
        return f"result of {message.name}: {_middle_out(message.text, _CLIP)}"
    calls = "".join(f"\ncalls {c.name} {_middle_out(c.raw, _CLIP)}" for c in message.calls)
    return f"agent: {message.text}{calls}"


def _middle_out(text: str, cap: int) -> str:
    if len(text) <= cap:
        return text
    return f"{text[: cap * 6 // 10]}\n[…]\n{text[-(cap * 4 // 10) :]}"
