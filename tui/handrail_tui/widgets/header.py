"""The first line: the program, the task, the model, the folder."""

from __future__ import annotations

from pathlib import PurePath

from textual.content import Content
from textual.widget import Widget

from handrail_tui.view.state import ViewState
from handrail_tui.view.text import cut
from handrail_tui.widgets.transcript_rows import styled


class RunHeader(Widget):
    """Drawn from the state. What does not fit goes from the right: the folder, the provider, the model."""

    DEFAULT_CSS = "RunHeader { height: 1; width: 1fr; background: $panel; color: $foreground; padding: 0 2; }"

    def __init__(self, view: ViewState, home: str = "", *, id: str | None = None) -> None:
        """`home` is the person's home folder, shown as `~`."""
        super().__init__(id=id)
        self.view, self._home = view, home
        self.column = 0
        """Cells of the status column, so that the model stands above it; 0 when there is none."""

    def render(self) -> Content:
        width, header = self.content_size.width, self.view.header
        model, folder = header.model, _folder(header.cwd, self._home)
        name = styled(("handrail", "bold $accent"))
        if self.column and width > self.column + 30:
            room = self.column - 4
            model = cut(model, room)
            folder = _tail(folder, room - len(model) - 3)
            right = styled(model, (f"   {folder}" if folder else "", "$dim"))
            right = right.pad_right(room - right.cell_length)
        else:
            room = max(0, width - len("handrail") - 14)
            short = model.partition("/")[2] or model
            words = next((w for w in (f"{short}  {folder}", short) if len(w) <= room * 2 // 3), "")
            right = styled((words.strip(), "$dim"))
        held = ("  sandbox", "$waiting") if header.sandbox else ("", "")
        served = ", ".join(f"{name} {number}" for name, number in header.servers.items())
        tools = f"   tools: {len(header.tools)} + {served}" if served else ""
        left = name + styled(held, (f"  {header.title}", "$dim"), (tools, "$faint"))
        left = left.truncate(max(8, width - right.cell_length - 2), ellipsis=True)
        return left + " " * max(1, width - left.cell_length - right.cell_length) + right


def _tail(path: str, room: int) -> str:
    """The last folders of `path`; nothing when only a scrap would be left."""
    if len(path) <= room:
        return path
    rest = path[max(0, len(path) - room + 1) :]
    at = rest.find("/")
    return "…" + (rest[at:] if at >= 0 else rest) if room >= 8 else ""


def _folder(path: str, home: str) -> str:
    """The folder as a person writes it: `~/code/shop`."""
    if home and PurePath(path).is_relative_to(home):
        rest = PurePath(path).relative_to(home).as_posix()
        return "~" if rest == "." else f"~/{rest}"
    return path
