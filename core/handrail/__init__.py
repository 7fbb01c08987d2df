"""Handrail: a bounded agent loop with visible recovery and a person in the loop.

`step` turns a prompt into a schema-valid value; `Session` runs a task that a person supervises.
Every name is imported when it is first used, so that `import handrail` is nearly free.
"""

from handrail._version import __version__

# Type checkers read this as True. The constant of `typing` would cost every program its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from handrail import events as events
    from handrail import messages as messages
    from handrail._step import StepFailed as StepFailed
    from handrail._step import step as step
    from handrail._step import step_sync as step_sync
    from handrail.errors import ConfigError as ConfigError
    from handrail.policy import NO_RECOVERY as NO_RECOVERY
    from handrail.policy import Bounds as Bounds
    from handrail.policy import RecoveryPolicy as RecoveryPolicy
    from handrail.session import Session as Session
    from handrail.tools import Tool as Tool
    from handrail.tools import ToolContext as ToolContext
    from handrail.tools import ToolError as ToolError
    from handrail.tools import ToolResult as ToolResult
    from handrail.tools import builtin_tools as builtin_tools
    from handrail.tools import tool as tool

_HOMES = {
    "Bounds": "policy",
    "ConfigError": "errors",
    "NO_RECOVERY": "policy",
    "RecoveryPolicy": "policy",
    "Session": "session",
    "StepFailed": "_step",
    "Tool": "tools",
    "ToolContext": "tools",
    "ToolError": "tools",
    "ToolResult": "tools",
    "builtin_tools": "tools",
    "events": "",
    "messages": "",
    "step": "_step",
    "step_sync": "_step",
    "tool": "tools",
}

__all__ = [
    "NO_RECOVERY",
    "Bounds",
    "ConfigError",
    "RecoveryPolicy",
    "Session",
    "StepFailed",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "__version__",
    "builtin_tools",
    "events",
    "messages",
    "step",
    "step_sync",
    "tool",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'handrail' has no attribute '{name}'")
    from importlib import import_module

    found = import_module(f"handrail.{home or name}")
    value: object = getattr(found, name) if home else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
