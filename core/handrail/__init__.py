"""Handrail: a bounded agent loop, recovery that can be seen, people in the loop.

`step` gives text in, a schema-valid value out; `Session` runs a task under a person's eyes.
What is exported here is imported when it is first used, so that `import handrail` costs nothing.
"""

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

_HOMES = {
    "Bounds": "policy",
    "ConfigError": "errors",
    "NO_RECOVERY": "policy",
    "RecoveryPolicy": "policy",
    "events": "",
    "messages": "",
}

__all__ = ["NO_RECOVERY", "Bounds", "ConfigError", "RecoveryPolicy", "__version__", "events", "messages"]


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
