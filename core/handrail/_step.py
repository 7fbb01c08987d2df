"""`step()`: text in, a schema-valid value out, or StepFailed. No third outcome (rules S1 to S10)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any, Required, TypeAlias, TypedDict, TypeVar, Unpack, overload

from typing_extensions import TypeForm

from handrail import events as ev
from handrail.clock import Clock
from handrail.errors import described
from handrail.instructions import prompt
from handrail.loop.projection import answer_message
from handrail.mask import key_values
from handrail.messages import (
    AssistantMessage,
    Content,
    Failure,
    Message,
    Text,
    ToolMessage,
    Usage,
    UserMessage,
)
from handrail.output.types import make_output
from handrail.policy import NO_RECOVERY, Approve, Bounds, RecoveryPolicy
from handrail.providers.base import Provider
from handrail.session import Session
from handrail.tools.approval import Mode
from handrail.tools.base import Tool

T = TypeVar("T")
Human: TypeAlias = Callable[[ev.HumanRequested], "str | Awaitable[str | None] | None"]
"""Answers a question in words; None: the person cannot."""
Approver: TypeAlias = Callable[[ev.ApprovalRequested], "bool | Awaitable[bool]"]
"""Decides whether a call may run."""


class StepFailed(Exception):
    """A step that ended without a value (rule S8).

    `kind` is the first that applies of: invalid-submissions, cancelled, human-required, budget, turn-limit,
    usage-limit, provider, no-submit. `errors` are those of the last invalid submission, `failure` and `class_` the
    provider's last failure and its class, `bound` the bound that was hit, `question` what a person was needed for,
    `until` the moment (seconds since the epoch) at which a usage limit ends. `transcript` holds all
    messages, including broken replies.
    """

    def __init__(self, finished: ev.RunFinished, log: _Log) -> None:
        self.kind: ev.Outcome = finished.outcome
        self.turns = finished.turns
        self.attempts = finished.attempts
        self.errors = log.errors
        self.failure = log.failure
        self.class_ = finished.class_
        self.bound = finished.bound
        self.until = finished.until
        self.question = finished.question
        self.usage: Usage = finished.usage
        self.cost = finished.cost
        self.transcript: tuple[Message, ...] = log.transcript
        words = f": {finished.error}" if finished.error else ""
        turns = "1 turn" if self.turns == 1 else f"{self.turns} turns"
        super().__init__(f"{self.kind} after {turns}{words}")


class StepOptions(TypedDict, total=False):
    """The keyword arguments of `step` and `step_sync`; `step` says what they mean."""

    model: Required[Provider | str]
    tools: Iterable[Tool]
    max_turns: int
    max_attempts: int
    deadline_s: float | None
    max_total_tokens: int | None
    max_cost: float | None
    recovery: RecoveryPolicy | bool
    approve: Approve | Approver | None
    human: Human | None
    system: str | None
    cwd: Path | None
    max_output: int | None
    on_event: ev.Listener | None
    clock: Clock | None


@overload
async def step(prompt: str, output: Mapping[str, Any], **options: Unpack[StepOptions]) -> Any: ...
@overload
async def step(prompt: str, output: TypeForm[T], **options: Unpack[StepOptions]) -> T: ...
async def step(
    prompt: str,
    output: Any,
    *,
    model: Provider | str,
    tools: Iterable[Tool] = (),
    max_turns: int = 8,
    max_attempts: int = 3,
    deadline_s: float | None = None,
    max_total_tokens: int | None = None,
    max_cost: float | None = None,
    recovery: RecoveryPolicy | bool = False,
    approve: Approve | Approver | None = None,
    human: Human | None = None,
    system: str | None = None,
    cwd: Path | None = None,
    max_output: int | None = None,
    on_event: ev.Listener | None = None,
    clock: Clock | None = None,
) -> Any:
    """Give `prompt` to a model and return a value of the type `output`, or raise StepFailed.

        class Verdict(BaseModel):
            flaky: bool
            cause: str

        verdict = await step("Is tests/checkout flaky? Look.", Verdict, model="openai/gpt-5-mini", tools=[read])

    The model can only finish by submitting a value; what it submits is validated strictly ("5" is not 5) and what is
    returned is the validated object. The shape is checked, not the truth: a schema-valid value can still be wrong.

    `output`: a pydantic model, dataclass, TypedDict (typing_extensions' on Python 3.11), union, `list[int]`, Literal,
    anything that pydantic can describe, or a JSON Schema as a mapping; a root that is not an object is wrapped for
    the model and unwrapped for you.
    `model`: `"provider/name"`, its key taken from the environment, or a Provider.
    `tools`: from the decorator `handrail.tool`, or `handrail.tools.builtin_tools(["read", "grep"])`. They run without
    approval, unless `approve` is a mode (ask, edits, all) or a function that decides about one call.
    `max_turns` counts requests to the model, `max_attempts` invalid submissions; `deadline_s` is in seconds,
    `max_total_tokens` in tokens, `max_cost` in US dollars (refused when the model's price is unknown).
    `recovery`: False: a broken request or an empty reply ends the step. True, or a RecoveryPolicy: retries, continues
    and waits under the same bounds; a wait for a usage limit may take hours.
    `human`: answers what only a person can do; the tool `ask_human` is offered only with it.
    `system` replaces our system prompt; how to report what only a person can do stays beside it. `cwd` is the folder
    that tools work in. `on_event` hears every event; what it raises is logged and changes nothing.

    Raises StepFailed (see its `kind`); ValueError, before any request, for bounds that are not positive, two tools of
    one name, a tool named `submit` or `ask_human`, a type that JSON cannot describe; ConfigError for a model that
    cannot be reached from here. CancelledError passes through when your own task is cancelled.
    """
    policy = (
        recovery if isinstance(recovery, RecoveryPolicy) else RecoveryPolicy() if recovery else NO_RECOVERY
    )
    mode: Mode = "unasked" if approve is None else "ask" if callable(approve) else approve
    approver = approve if callable(approve) else None
    provider, secrets = _provider(model, clock)
    session = Session(
        provider,
        tools=tools,
        cwd=cwd,
        instructions=_instructions(system),
        bounds=Bounds(
            max_turns=max_turns,
            max_attempts=max_attempts,
            deadline_s=deadline_s,
            max_total_tokens=max_total_tokens,
            max_cost=max_cost,
        ),
        recovery=policy,
        approve=mode,
        output=make_output(output),
        clock=clock,
        attended=lambda asked: (
            human is not None if isinstance(asked, ev.HumanRequested) else approver is not None
        ),
        ask_human=human is not None,
        max_output=max_output,
        secrets=secrets,
    )
    log = _Log()
    session.listen(log)
    caller = _Caller(session, human, approver)
    if on_event is not None:
        session.listen(_guarded(on_event))
    try:
        finished = await session.run(prompt)
    finally:
        await caller.close()
    assert isinstance(
        finished, ev.RunFinished
    )  # only the program's exit interrupts a run, and a step has none
    if finished.outcome != "submitted":
        raise StepFailed(finished, log)
    return session.value


@overload
def step_sync(prompt: str, output: Mapping[str, Any], **options: Unpack[StepOptions]) -> Any: ...
@overload
def step_sync(prompt: str, output: TypeForm[T], **options: Unpack[StepOptions]) -> T: ...
def step_sync(prompt: str, output: Any, **options: Unpack[StepOptions]) -> Any:
    """`step` for programs without an event loop; takes the same arguments.

    Raises RuntimeError inside a running event loop: use `await step(…)` there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(step(prompt, output, **options))
    raise RuntimeError("step_sync cannot run inside an event loop; use `await step(…)`")


class _Log:
    """Collects what StepFailed reports about a run."""

    def __init__(self) -> None:
        self.errors: tuple[ev.FieldError, ...] = ()
        self.failure: Failure | None = None
        self._said: list[UserMessage | AssistantMessage] = []
        self._results: dict[str, ToolMessage] = {}
        self._asked: dict[str, ev.HumanRequested] = {}

    @property
    def transcript(self) -> tuple[Message, ...]:
        """All messages; results follow their reply in call order (rule L5)."""
        said: list[Message] = []
        for message in self._said:
            said.append(message)
            if isinstance(message, AssistantMessage):
                said += [self._results[call.id] for call in message.calls if call.id in self._results]
        return tuple(said)

    def __call__(self, event: ev.Event) -> None:
        if isinstance(event, ev.RunStarted):
            self._said.append(UserMessage((Text(event.prompt),)))
        elif isinstance(event, ev.MessageFinished):
            self._said.append(event.message)
            self.failure = event.message.failure or self.failure
        elif isinstance(event, ev.ToolFinished):
            content: tuple[Content, ...] = (Text(event.text), *event.images)
            self._results[event.call_id] = ToolMessage(event.call_id, event.name, content, event.is_error)
        elif isinstance(event, ev.Submission) and not event.accepted:
            self.errors = event.errors
        elif isinstance(event, ev.HumanRequested):
            self._asked[event.id] = event
        elif isinstance(event, ev.HumanAnswered):
            answer = answer_message(self._asked[event.id], event)
            self._said += [answer] if answer else []


class _Caller:
    """Lets the caller's functions answer the run's questions."""

    def __init__(self, session: Session, human: Human | None, approver: Approver | None) -> None:
        self._session, self._human, self._approver = session, human, approver
        self._tasks: set[asyncio.Task[None]] = set()
        session.listen(self._on_event)

    def _on_event(self, event: ev.Event) -> None:
        if isinstance(event, ev.HumanRequested) and self._human is not None:
            self._start(self._answer(event, self._human))
        elif isinstance(event, ev.ApprovalRequested) and self._approver is not None:
            self._start(self._decide(event, self._approver))

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, asked: ev.HumanRequested, human: Human) -> None:
        with self._session.clock.busy():
            words = await _result(lambda: human(asked))
        if isinstance(words, BaseException):
            self._session.answer(asked.id, "declined", described(words))
        elif words is None:
            self._session.answer(asked.id, "declined")
        else:
            self._session.answer(asked.id, "answered", str(words))

    async def _decide(self, asked: ev.ApprovalRequested, approver: Approver) -> None:
        with self._session.clock.busy():
            yes = await _result(lambda: approver(asked))
        if isinstance(yes, BaseException):
            self._session.approve(asked.id, "deny", described(yes))
        else:
            self._session.approve(asked.id, "once" if yes else "deny")

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _result(call: Callable[[], Any]) -> Any:
    """The result of the caller's function, or the exception that it raised."""
    try:
        result = call()
        return await result if isawaitable(result) else result
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return error
    except BaseException as error:
        return error


def _guarded(listener: ev.Listener) -> ev.Listener:
    """`listener`, without the power to end the step: what it raises is logged once, and it hears the rest."""
    told = False

    def guarded(event: ev.Event) -> None:
        nonlocal told
        try:
            listener(event)
        except BaseException as error:
            if not told:
                logging.getLogger("handrail").error(
                    "on_event raised %s; the step continues", described(error)
                )
            told = True

    return guarded


def _provider(model: Provider | str, clock: Clock | None) -> tuple[Provider, tuple[str, ...]]:
    """The provider, and the keys that no event may show (rule J5)."""
    from handrail.providers.catalog import key_variables, make_provider, resolve

    keys = key_values(os.environ, key_variables())
    if not isinstance(model, str):
        return model, tuple(keys)
    resolved = resolve(model, environ=os.environ)
    return make_provider(resolved, clock), (*keys, *filter(None, [resolved.api_key]))


def _instructions(system: str | None) -> tuple[ev.Instruction, ...]:
    first = ev.Instruction("the caller", system) if system is not None else prompt("step")
    return first, prompt("people")
