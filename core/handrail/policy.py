"""The numbers of a run, validated: the bounds of the loop and the recovery policy.

An invalid number is refused when it is set, before anything is spent (rules L2, R11).
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

_PARTS: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)


def parse_duration(text: str) -> float:
    """Seconds from `30m`, `6h`, `1h30m`, `45s`, `2d`, or a plain number of seconds. Raises ValueError."""
    word = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", word, re.ASCII):
        return float(word)
    match = _PARTS.fullmatch(word)
    if not word or match is None:
        raise ValueError(f"'{text}' is not a duration: write 30m, 6h, 1h30m, or a number of seconds")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Delay: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Approve: TypeAlias = Literal["ask", "edits", "all"]
Effort: TypeAlias = Literal["off", "low", "medium", "high"]


class _Policy(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Bounds(_Policy):
    """How far a run may go (rules L1 to L3). None: that bound is off.

    `max_turns` counts requests, `max_attempts` invalid submissions, `deadline_s` seconds of wall clock without waits
    for limits and people, `max_total_tokens` all tokens including cached ones, `max_cost` US dollars.
    """

    max_turns: Annotated[int, Field(gt=0)] = 50
    max_attempts: Annotated[int, Field(gt=0)] = 3
    deadline_s: Seconds | None = None
    max_total_tokens: Annotated[int, Field(gt=0)] | None = None
    max_cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class RecoveryPolicy(_Policy):
    """What recovery may spend (rules R and U).

    `max_resumes` is the allowance of continues and resumes together for one user request (R11; "unlimited" lifts it),
    `stream_retries` that of resumes among them; `retries` and `retry_base_s` are the fast retries (R4: base, twice,
    four times); `resume_delays_s` the staged delays (the last one repeats); `checkpoint_max_chars` the quoted code
    points (R9, 0: no checkpoint); `max_wait_s` the longest wait for a limit (U5, 0: never wait); `poll_s`,
    `max_polls` and `poll_window_s` the interval, number and total time of polls without guidance (U3); `hard_cap` the
    requests of recovery in one unbroken failure (R11).
    """

    enabled: bool = True
    max_resumes: Annotated[int, Field(ge=0)] | Literal["unlimited"] = 8
    stream_retries: Annotated[int, Field(ge=0)] = 6
    retries: Annotated[int, Field(ge=0)] = 3
    retry_base_s: Delay = 2.0
    resume_delays_s: Annotated[tuple[Delay, ...], Field(min_length=1, strict=False)] = (
        5.0,
        5.0,
        5.0,
        10.0,
        10.0,
        10.0,
    )
    long_hint_s: Delay = 60.0
    checkpoint_max_chars: Annotated[int, Field(ge=0, le=64_000)] = 12_000
    tool_tail: bool = True
    compaction: bool = True
    max_wait_s: Delay = 6 * 3600.0
    poll_s: Seconds = 15 * 60.0
    max_polls: Annotated[int, Field(ge=0)] = 20
    poll_window_s: Delay = 5 * 3600.0
    max_guided_waits: Annotated[int, Field(ge=0)] = 12
    hard_cap: Annotated[int, Field(ge=0)] = 24
    no_progress: bool = True
    idle_timeout_s: Seconds = 180.0


NO_RECOVERY = RecoveryPolicy(enabled=False)
