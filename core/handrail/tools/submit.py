"""The tool `submit`: the only way for a model to finish a step (rule S1).

The loop judges submissions itself, before any other tool of the batch (rules L6, S3 to S6); so this tool only
has messages for the model, and no `run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handrail.events import FieldError
from handrail.output.json_schema import VALUE
from handrail.output.types import Output
from handrail.providers.base import ToolSpec
from handrail.tools.base import ToolResult

DESCRIPTION = """\
Hand in the final answer. This is the only way to finish: text outside this call is not an answer.
Call it once, alone, when the work is done, with the whole answer as arguments that fit the schema exactly: \
numbers as numbers, nothing left out, nothing added.
If it is rejected, the result names each field that is wrong. Mend those fields and hand in the whole answer \
again; the number of tries is limited."""

WRAPPED = f"The answer stands under the one property `{VALUE}`."


class SubmitTool:
    """`submit`, with the schema of the answer as its parameters."""

    name = "submit"

    def __init__(self, output: Output[Any]) -> None:
        self.output = output
        self.description = f"{DESCRIPTION}\n{WRAPPED}" if output.wrapped else DESCRIPTION

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(self.name, self.description, self.output.parameters)

    @staticmethod
    def accepted() -> ToolResult:
        """The result of a valid submission: it votes for the end of the loop (rules S3, S6)."""
        return ToolResult("accepted", terminate=True, summary="accepted")

    @staticmethod
    def rejected(errors: Sequence[FieldError], left: int) -> ToolResult:
        """The result of an invalid submission, field by field; `left` tries remain (rule S4)."""
        lines = [f"- {e.path}: {e.message}" if e.path else f"- {e.message}" for e in errors]
        tries = "1 attempt left" if left == 1 else f"{left} attempts left"
        last = f"Correct that and call submit again: {tries}." if left > 0 else "No attempts left."
        text = "\n".join(["rejected: the answer does not fit the schema.", *lines, last])
        return ToolResult(text, is_error=True, summary=f"rejected: {len(errors)} wrong")
