"""A value as a tree that opens where one looks: a large one costs no more than what is open."""

from __future__ import annotations

import json
from typing import Any

from rich.style import Style
from rich.text import Text
from textual.color import Color
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from handrail_tui.view.text import one_line, plural
from handrail_tui.widgets.bindings import bindings

MOST_CHILDREN = 200
"""Children of one node that are shown; how many more there are stands below them."""
_OPEN_UP_TO = 12
"""A value with no more parts than this is open from the start."""


class ValueTree(Tree[Any]):
    """A JSON value. Strings in quotes, numbers and words bare, containers with how much they hold."""

    BINDINGS = bindings("value")

    def __init__(self, value: Any) -> None:
        super().__init__(_label("value", value), data=value, classes="card--tree")
        self.value = value
        self.guide_depth = 2
        self.show_root = not _children(value)

    def on_mount(self) -> None:
        self._fill(self.root)
        self.root.expand()
        if sum(_parts(value) for _, value in _children(self.value)) <= _OPEN_UP_TO:
            for node in self.root.children:
                self._fill(node)
                node.expand()

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Any]) -> None:
        event.stop()
        self._fill(event.node)

    def _fill(self, node: TreeNode[Any]) -> None:
        if node.children:
            return
        children = _children(node.data)
        width = min(24, max((len(name) for name, _ in children[:MOST_CHILDREN]), default=0))
        for name, value in children[:MOST_CHILDREN]:
            node.add(_label(name.ljust(width), value), value, allow_expand=bool(_children(value)))
        if len(children) > MOST_CHILDREN:
            more = plural(len(children) - MOST_CHILDREN, "more part", "more parts")
            node.add_leaf(Text(f"… {more}; c copies all"), None)

    def render_label(self, node: TreeNode[Any], base_style: Style, style: Style) -> Text:
        """The label in the colours of the theme; foreign text is never markup."""
        variables = self.app.theme_variables
        label = node.label.copy() if isinstance(node.label, Text) else Text(str(node.label))
        name, _, _ = label.plain.partition("  ")
        prefix = ("▾ " if node.is_expanded else "▸ ") if node.allow_expand else "  "
        label.stylize(_color(variables, "tool"), 0, len(name))
        return Text.assemble((prefix, base_style), label)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(json.dumps(self.value, ensure_ascii=False, indent=2, default=str))
        self.notify("The value is in the clipboard, as JSON", markup=False)


def _color(variables: dict[str, str], name: str) -> Style:
    color = Color.parse(variables.get(name, "ansi_default"))
    return Style(color=color.rich_color)


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(one_line(str(key), 60), child) for key, child in value.items()]
    if isinstance(value, list | tuple):
        return [(str(index), child) for index, child in enumerate(value)]
    return []


def _parts(value: Any) -> int:
    return 1 + len(_children(value))


def _label(name: str, value: Any) -> Text:
    if isinstance(value, dict):
        shown = plural(len(value), "field") if value else "{}"
    elif isinstance(value, list | tuple):
        shown = plural(len(value), "item") if value else "[]"
    elif isinstance(value, str):
        shown = f"“{one_line(value, 400)}”"
    else:
        shown = one_line(json.dumps(value, default=str), 400)
    return Text(f"{name}  {shown}")
