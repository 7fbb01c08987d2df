"""Ask for a verdict, not for prose. Needs a key in OPENAI_API_KEY, or another model; see `handrail models`."""

from pydantic import BaseModel

from handrail import StepFailed, step_sync, tool


class Verdict(BaseModel):
    flaky: bool
    cause: str


@tool
async def last_runs(test: str) -> str:
    """The last runs of a test, oldest first."""
    return f"{test}: pass, pass, FAIL (timeout after 2.0 s), pass"


try:
    verdict = step_sync("Is checkout flaky? Look.", Verdict, model="openai/gpt-5-mini", tools=[last_runs])
except StepFailed as failed:
    print("no verdict:", failed)
else:
    print("flaky:" if verdict.flaky else "steady:", verdict.cause)
