"""Tools: what the model may do.

The built-in tools by name, and `tool`, which makes one of any typed async function. Everything is imported on first
use, so that `import handrail.tools` is cheap.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from handrail.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from handrail.tools.base import Preview as Preview
    from handrail.tools.base import Tool as Tool
    from handrail.tools.base import ToolContext as ToolContext
    from handrail.tools.base import ToolError as ToolError
    from handrail.tools.base import ToolResult as ToolResult
    from handrail.tools.function import tool as tool
    from handrail.tools.sandbox import Sandbox

__all__ = [
    "BUILTIN",
    "Preview",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "UnknownTool",
    "builtin_tools",
    "tool",
]

_BASE = ("Preview", "Tool", "ToolContext", "ToolError", "ToolResult")
_HOMES = {**dict.fromkeys(_BASE, "base"), "tool": "function"}


class UnknownTool(ConfigError, ValueError):
    """There is no built-in tool of that name."""


def _make(module: str, name: str, **options: Any) -> Tool:
    made: Tool = getattr(importlib.import_module(f"{__name__}.{module}"), name)(**options)
    return made


BUILTIN: Mapping[str, Callable[..., Tool]] = MappingProxyType(
    {
        name: partial(_make, name, f"{name.capitalize()}Tool")
        for name in ("read", "write", "edit", "bash", "grep", "find", "ls")
    }
)
"""Each built-in tool by its name: call it to get one."""


def builtin_tools(names: Iterable[str] = tuple(BUILTIN), *, sandbox: Sandbox | None = None) -> list[Tool]:
    """The built-in tools of these names, in this order; without names all of them. Commands run in `sandbox`, if one is
    given. Raises UnknownTool."""
    wanted = list(names)
    for name in wanted:
        if name not in BUILTIN:
            hint = did_you_mean(name, BUILTIN)
            everything = "" if hint.startswith(" It may be") else f" The tools are: {', '.join(BUILTIN)}."
            raise UnknownTool(f"there is no tool '{name}'.{hint}{everything}")
    return [BUILTIN[name](**({"sandbox": sandbox} if name == "bash" else {})) for name in wanted]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
