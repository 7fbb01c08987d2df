"""Handrail: a bounded agent loop, recovery that can be seen, people in the loop.

`step` gives text in, a schema-valid value out; `Session` runs a task under a person's eyes.
What is exported here is imported when it is first used, so that `import handrail` costs nothing.
"""

import sys

from handrail._version import __version__

# Read by type checkers as True. The real one would import `typing` for everybody.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from handrail import events as events
    from handrail import messages as messages
    from handrail.errors import ConfigError as ConfigError
    from handrail.policy import NO_RECOVERY as NO_RECOVERY
    from handrail.policy import Bounds as Bounds
    from handrail.policy import RecoveryPolicy as RecoveryPolicy
    from handrail.session import Session as Session
    from handrail.step import StepFailed as StepFailed
    from handrail.step import step as step
    from handrail.step import step_sync as step_sync
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
    "StepFailed": "step",
    "Tool": "tools",
    "ToolContext": "tools",
    "ToolError": "tools",
    "ToolResult": "tools",
    "builtin_tools": "tools",
    "events": "",
    "messages": "",
    "step": "step",
    "step_sync": "step",
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


class _Package(type(sys)):  # type: ignore[misc]  # ModuleType, without importing `types`
    def __setattr__(self, name: str, value: object) -> None:
        # Importing the submodule `handrail.step` must not hide the function of that name.
        if not (name == "step" and isinstance(value, type(sys))):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
