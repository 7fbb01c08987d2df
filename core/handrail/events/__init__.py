"""What happens in a run: the closed list of events. Screen, printed lines and journal are all made from these.

Every event has `type`, `at` (seconds since the epoch; RFC 3339 in UTC in JSON) and `turn` (the request it belongs to,
counted from 1; None outside a turn). The list only ever grows; `run_started.schema` is its version.

Text in events is raw, control characters included. Whatever draws it must clean it first (rule L11).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from handrail.events._calls import Submission as Submission
from handrail.events._calls import ToolBatchFinished as ToolBatchFinished
from handrail.events._calls import ToolBatchStarted as ToolBatchStarted
from handrail.events._calls import ToolFinished as ToolFinished
from handrail.events._calls import ToolProgress as ToolProgress
from handrail.events._calls import ToolsChanged as ToolsChanged
from handrail.events._calls import ToolStarted as ToolStarted
from handrail.events._people import ApprovalAnswered as ApprovalAnswered
from handrail.events._people import ApprovalRequested as ApprovalRequested
from handrail.events._people import HumanAnswered as HumanAnswered
from handrail.events._people import HumanRequested as HumanRequested
from handrail.events._people import QueueChanged as QueueChanged
from handrail.events._people import Steered as Steered
from handrail.events._recovery import BudgetSpent as BudgetSpent
from handrail.events._recovery import CheckpointMade as CheckpointMade
from handrail.events._recovery import CompactionFinished as CompactionFinished
from handrail.events._recovery import CompactionStarted as CompactionStarted
from handrail.events._recovery import Decided as Decided
from handrail.events._recovery import NoProgress as NoProgress
from handrail.events._recovery import WaitEnded as WaitEnded
from handrail.events._recovery import WaitHow as WaitHow
from handrail.events._recovery import WaitStarted as WaitStarted
from handrail.events._runs import SCHEMA as SCHEMA
from handrail.events._runs import MessageDelta as MessageDelta
from handrail.events._runs import MessageFinished as MessageFinished
from handrail.events._runs import MessageStarted as MessageStarted
from handrail.events._runs import Notice as Notice
from handrail.events._runs import RunFinished as RunFinished
from handrail.events._runs import RunInterrupted as RunInterrupted
from handrail.events._runs import RunStarted as RunStarted
from handrail.events._runs import SettingsChanged as SettingsChanged
from handrail.events._runs import TurnFinished as TurnFinished
from handrail.events._runs import TurnStarted as TurnStarted
from handrail.events.parts import CallInfo as CallInfo
from handrail.events.parts import DecisionKind as DecisionKind
from handrail.events.parts import FieldError as FieldError
from handrail.events.parts import FieldKind as FieldKind
from handrail.events.parts import FormField as FormField
from handrail.events.parts import HumanKind as HumanKind
from handrail.events.parts import Instruction as Instruction
from handrail.events.parts import Ledger as Ledger
from handrail.events.parts import Moment as Moment
from handrail.events.parts import Outcome as Outcome
from handrail.events.parts import QueuedMessage as QueuedMessage
from handrail.events.parts import Reason as Reason

Event: TypeAlias = (
    RunStarted
    | TurnStarted
    | MessageStarted
    | MessageDelta
    | MessageFinished
    | ToolBatchStarted
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ToolBatchFinished
    | ToolsChanged
    | TurnFinished
    | Submission
    | Decided
    | CheckpointMade
    | WaitStarted
    | WaitEnded
    | HumanRequested
    | HumanAnswered
    | ApprovalRequested
    | ApprovalAnswered
    | QueueChanged
    | Steered
    | SettingsChanged
    | CompactionStarted
    | CompactionFinished
    | BudgetSpent
    | NoProgress
    | Notice
    | RunFinished
    | RunInterrupted
)
RunEnded: TypeAlias = RunFinished | RunInterrupted
Listener: TypeAlias = Callable[[Event], object]
