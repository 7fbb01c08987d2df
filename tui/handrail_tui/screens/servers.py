"""The MCP servers of a run: their state, what each may do; one can be switched off and on while the run continues."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from handrail.tools.base import Tool
from handrail.tools.source import ServerStatus, ToolSource, own_name
from handrail_tui.view.text import join, one_line, plural
from handrail_tui.widgets.bindings import bindings
from handrail_tui.widgets.footer import KeyLine
from handrail_tui.widgets.transcript_rows import styled

_LOOK_S: Final = 0.25
_COLOURS: Final = {"ready": "$accepted", "failed": "$rejected", "off": "$faint"}


class _ServerList(OptionList):
    BINDINGS = bindings("servers.list")


class ServersScreen(ModalScreen[None]):
    """Shows the servers as they are now."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")
    BINDINGS = bindings("servers")

    def __init__(self, source: ToolSource) -> None:
        super().__init__()
        self._source = source
        self._shown: list[Content] = []
        self._statuses: list[ServerStatus] = []

    def compose(self) -> ComposeResult:
        head = styled(("Servers", "bold $accent"), ("   a change counts from the next request on", "$dim"))
        yield Static(head, classes="servers--head")
        yield _ServerList(classes="servers--list")
        yield KeyLine(self)

    def on_mount(self) -> None:
        self._look()
        self._list.focus()
        self.set_interval(_LOOK_S, self._look)

    @property
    def _list(self) -> _ServerList:
        return self.query_one(_ServerList)

    def _look(self) -> None:
        """Bring the list in line with the servers."""
        self._statuses = list(self._source.statuses())
        rows = [_row(status) for status in self._statuses]
        if rows == self._shown:
            return
        at = self._list.highlighted or 0
        self._shown = rows
        self._list.clear_options()
        self._list.add_options(Option(row) for row in rows)
        if rows:
            self._list.highlighted = min(at, len(rows) - 1)

    def action_switch(self) -> None:
        """Switch the marked server on or off."""
        at = self._list.highlighted
        if at is not None and at < len(self._statuses):
            status = self._statuses[at]
            self._source.switch(status.name, status.state in ("off", "failed"))
            self._look()

    def action_leave(self) -> None:
        """Back to the run."""
        self.dismiss(None)


def _row(status: ServerStatus) -> Content:
    count = plural(len(status.tools), "tool") if status.state == "ready" else ""
    about = join([status.state, count, one_line(status.version, 60), status.protocol], " · ")
    lines = [
        styled(
            (one_line(status.name, 40), "bold $foreground"),
            (f"   {about}", _COLOURS.get(status.state, "$waiting")),
        ),
        styled((one_line(status.why or status.where, 200), "$dim")),
    ]
    asking = [own_name(tool.name) for tool in status.tools if _asks(tool)]
    free = [own_name(tool.name) for tool in status.tools if not _asks(tool)]
    for words, names in (("asks first: ", asking), ("does not ask: ", free)):
        if names:
            lines.append(styled((f"  {words}", "$dim"), (one_line(", ".join(names), 400), "$foreground")))
    if status.left_out:
        left_out = "; ".join(f"{name}: {why}" for name, why in status.left_out)
        lines.append(styled((f"  left out: {one_line(left_out, 400)}", "$waiting")))
    if status.log is not None:
        lines.append(styled((f"  its noise: {one_line(str(status.log), 200)}", "$faint")))
    return Content("\n").join(lines)


def _asks(tool: Tool) -> bool:
    return tool.effect != "read" and tool.approve != "all"
