"""How large a message is, where no provider told: an estimate in tokens, four characters each."""

from __future__ import annotations

from handrail.messages import AssistantMessage, Image, Message, Usage
from handrail.providers.base import Request

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
    """What a reply may have used whose provider did not say, so that bounds still bite; None for one that said
    nothing at all, since what was refused is not charged."""
    if not message.content:
        return None
    asked = len(request.system) // CHARS + sum(tokens(m) for m in request.messages)
    return Usage(asked, tokens(message))
