"""Keys of widgets and screens, made from the registry of actions."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from handrail_tui.controller.actions import in_scope


def bindings(scope: str) -> list[BindingType]:
    """The bindings of `scope`, with ids, so that settings can remap them."""
    return [
        Binding(
            action.keys,
            action.runs,
            action.label,
            show=action.show,
            id=action.id,
            key_display=action.display or None,
            priority=action.priority,
        )
        for action in in_scope(scope)
    ]
