"""Everything a person can do, in one table: it makes the keys, the footer, help, the palette and the slash commands.

An action is named by its id, `place.name`; settings remap its keys by that id. To add one to a run: a row here, and
`act_NAME` in `controller.run`. To add a key to a widget: a row here, and `action_NAME` in the widget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a person can do.

    `keys` are the default keys, separated by commas; none: it has no key. `label` stands behind the key.
    `where` names the widget that holds the keys (default: the first part of the id), `do` the Textual action that a
    key runs (default: the second part). `show` puts it into the footer, `place` orders the footer, `display` is how
    the key is written there.

    `title` lists it in the command palette, where `palette_args` are its arguments. `slash` is its slash command,
    `argument` a hint at what that takes, `choices` all that the argument may be, each with its help; `each` lists
    every choice in the palette, `at_home` makes the command work on the home screen too. `help` explains it in the
    palette and in the list of slash commands.
    """

    id: str
    keys: str = ""
    label: str = ""
    where: str = ""
    do: str = ""
    show: bool = True
    place: int = 0
    display: str = ""
    priority: bool = False
    title: str = ""
    palette_args: str = ""
    help: str = ""
    slash: str = ""
    argument: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    each: bool = False
    at_home: bool = False

    @property
    def scope(self) -> str:
        """The widget or screen that holds its keys."""
        return self.where or self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """What it is called within its place."""
        return self.id.partition(".")[2]

    @property
    def runs(self) -> str:
        """The Textual action that its keys run. Those of a run go to the controller."""
        return self.do or (f"perform({self.name!r})" if self.scope == "run" else self.name)


def _hidden(id: str, keys: str, label: str, **more: str) -> Action:
    """An action with a key that the footer leaves out."""
    return Action(id, keys, label, show=False, **more)  # type: ignore[arg-type]


_RUN = (
    Action(
        "run.stop",
        "escape",
        "stop",
        place=1,
        title="Stop",
        slash="stop",
        help="stop the run and keep what was said",
    ),
    Action(
        "run.model",
        slash="model",
        at_home=True,
        argument="[provider/name]",
        help="change the model, from the next request on",
    ),
    Action(
        "run.bounds",
        title="Ten more turns",
        palette_args="+10",
        slash="bounds",
        argument="[+N]",
        help="show or raise the turn limit; +10 allows ten more turns",
    ),
    Action(
        "run.approve",
        title="Approve",
        slash="approve",
        argument="ask|edits|all",
        help="which tool calls ask first: all of them, all but edits, none",
        choices={"ask": "everything asks first", "edits": "edits run, the rest asks", "all": "nothing asks"},
        each=True,
    ),
    Action(
        "run.recovery",
        title="Recovery",
        slash="recovery",
        argument="on|off",
        help="recovery from broken replies and limits",
        choices={
            "on": "recover from broken replies and limits",
            "off": "no recovery from broken replies and limits",
        },
        each=True,
    ),
    Action("run.compact", title="Compact", slash="compact", help="summarise older turns now"),
    Action(
        "run.queue",
        title="Queue",
        slash="queue",
        help="edit, reorder or withdraw queued messages",
    ),
    Action(
        "run.mcp",
        title="Servers",
        slash="mcp",
        argument="[on|off NAME]",
        help="MCP servers: their state and tools; switch one on or off",
    ),
    Action("run.another_model", title="Model", help="change the model, from the next request on"),
    Action("run.take_back", title="Take back", help="edit the newest queued message"),
    Action(
        "run.changes",
        "ctrl+g",
        "changes",
        place=8,
        title="Changes",
        slash="changes",
        help="files the run changed, their diffs, undo of a turn",
    ),
    Action(
        "run.search",
        "ctrl+f",
        "find",
        place=9,
        priority=True,
        title="Find",
        slash="search",
        help="search the transcript",
    ),
    Action(
        "run.sessions",
        "ctrl+o",
        "back",
        place=7,
        title="Sessions",
        slash="sessions",
        help="back to the list of sessions",
    ),
    Action(
        "run.decisions",
        "ctrl+r",
        "decisions",
        place=3,
        title="Decisions",
        slash="decisions",
        help="each decision with its evidence",
    ),
    Action("run.thinking", "ctrl+t", "thinking", place=4, title="Thinking", help="open or fold all thinking"),
    Action("run.theme", slash="theme", at_home=True, argument="[name]", help="choose the colours"),
    Action(
        "run.export",
        slash="export",
        argument="md|jsonl",
        help="write the session to a file",
        choices={"md": "Markdown", "jsonl": "JSON lines"},
    ),
    Action(
        "run.help",
        "f1",
        "help",
        place=5,
        display="?",
        title="Help",
        slash="help",
        at_home=True,
        help="keys and commands",
    ),
    Action(
        "run.quit",
        "ctrl+q",
        "quit",
        place=6,
        title="Quit",
        slash="quit",
        at_home=True,
        help="leave; the run can be resumed",
    ),
    Action("run.palette", "ctrl+p", "palette", place=2),
    _hidden("run.interrupt", "ctrl+c", "stop, then quit"),
    _hidden("run.page_up", "pageup", "page up", do="transcript('page', -1)"),
    _hidden("run.page_down", "pagedown", "page down", do="transcript('page', 1)"),
    _hidden("run.top", "home,ctrl+home", "beginning", do="transcript('top')"),
    _hidden("run.follow", "end,ctrl+end", "end: newest", do="transcript('follow')"),
)
_REPLAY = (
    Action("replay.leave", "escape,q", "back"),
    Action("replay.play", "space", "play, pause"),
    Action("replay.turn_before", "left", "prev turn", do="turn(-1)", display="←"),
    Action("replay.next_turn", "right", "next turn", do="turn(1)", display="→"),
    Action("replay.faster", "plus,equals_sign", "faster", do="faster(1)", display="+"),
    Action("replay.slower", "minus", "slower", do="faster(-1)", display="-"),
    _hidden("replay.up", "up", "up", do="transcript('line', -1)"),
    _hidden("replay.down", "down", "down", do="transcript('line', 1)"),
    _hidden("replay.beginning", "0", "from the beginning", do="seek_home"),
    _hidden("replay.interrupt", "ctrl+c", "quit", do="perform('quit')"),
)
_TRANSCRIPT = (
    _hidden("transcript.up", "up", "up", do="line(-1)"),
    _hidden("transcript.down", "down", "down", do="line(1)"),
    _hidden("transcript.page_up", "pageup", "page up", do="page(-1)"),
    _hidden("transcript.page_down", "pagedown", "page down", do="page(1)"),
    _hidden("transcript.top", "home", "beginning"),
    _hidden("transcript.follow", "end", "end"),
    _hidden("transcript.next_fold", "right", "next fold", do="fold(1)"),
    _hidden("transcript.previous_fold", "left", "previous fold", do="fold(-1)"),
    _hidden("transcript.open", "enter", "open, close"),
)
_SEARCH = (
    Action("search.next", "enter,down", "next", do="go(1)"),
    Action("search.previous", "up,shift+enter", "previous", do="go(-1)", display="↑"),
    Action("search.close", "escape,ctrl+f", "close", do="leave", priority=True),
)
_COMPOSER = (
    _hidden("composer.send", "enter", "send"),
    # Terminals that cannot tell alt+enter or ctrl+enter from enter have ctrl+s.
    _hidden("composer.follow_up", "alt+enter,ctrl+enter,ctrl+s", "send after this task", do="send_later"),
    _hidden("composer.new_line", "ctrl+j,shift+enter", "new line"),
    _hidden("composer.tab", "tab", "complete, or go to the card"),
    _hidden("composer.card", "ctrl+up", "go to the card", do="to_card"),
    _hidden("composer.close", "escape", "close the list", do="close_completions"),
)
_HOME = (
    _hidden("home.palette", "ctrl+p", "palette"),
    Action("home.help", "f1,question_mark", "help", display="?"),
    Action("home.back", "escape", "to the list"),
    Action("home.quit", "ctrl+q", "quit"),
    _hidden("home.interrupt", "ctrl+c", "quit", do="quit"),
    Action("sessions.open", "enter", "open", do="select"),
    Action("sessions.new", "n", "new run", do="screen.new"),
    Action("sessions.demos", "d", "demos", do="screen.demos"),
    Action("sessions.filter", "slash", "filter", do="screen.filter"),
    Action("sessions.replay", "r", "replay", do="screen.replay"),
    Action("sessions.fork", "f", "fork", do="screen.fork"),
    Action("sessions.export", "e", "export", do="screen.export"),
    Action("sessions.delete", "delete,x", "delete", do="screen.delete", display="x"),
)
_DEMOS = (
    Action("demos.play", "enter", "play", where="demos.list", do="select"),
    Action("demos.faster", "plus,right", "faster", do="speed(1)", display="+"),
    Action("demos.slower", "minus,left", "slower", do="speed(-1)", display="-"),
    Action("demos.back", "escape,q", "back"),
    _hidden("demos.quit", "ctrl+q,ctrl+c", "quit"),
)
_OVERLAYS = (
    Action("changes.undo", "u", "undo last turn"),
    _hidden("changes.page_down", "pagedown", "page down", do="detail('page_down')"),
    _hidden("changes.page_up", "pageup", "page up", do="detail('page_up')"),
    Action("changes.back", "escape,ctrl+g,q", "back", do="dismiss"),
    Action("decisions.back", "escape,ctrl+r,q", "back", do="dismiss"),
    _hidden("decisions.page_up", "pageup", "page up", do="detail('page_up')"),
    _hidden("decisions.page_down", "pagedown", "page down", do="detail('page_down')"),
    Action("help.back", "escape,q,f1,question_mark", "back", do="dismiss"),
    Action("themes.back", "escape", "cancel"),
    Action("models.use", "enter", "use it", priority=True),
    Action("models.next", "down", "next", do="mark(1)", display="↓", priority=True),
    Action("models.previous", "up", "previous", do="mark(-1)", display="↑", priority=True),
    Action("models.back", "escape", "back"),
    Action(
        "servers.switch",
        "enter,space",
        "on or off",
        where="servers.list",
        do="screen.switch",
        display="enter",
    ),
    Action("servers.back", "escape,q", "back", do="leave"),
    Action("queue.edit", "enter,e", "edit", where="queue.list", do="screen.edit", display="enter"),
    Action(
        "queue.earlier", "ctrl+up,K", "earlier", where="queue.list", do="screen.move(-1)", display="ctrl+↑"
    ),
    Action("queue.later", "ctrl+down,J", "later", where="queue.list", do="screen.move(1)", display="ctrl+↓"),
    Action("queue.withdraw", "delete,x", "withdraw", where="queue.list", do="screen.withdraw", display="x"),
    Action("queue.save", "enter", "save", where="queue.text", do="screen.save", priority=True),
    Action(
        "queue.new_line",
        "ctrl+j,shift+enter",
        "new line",
        where="queue.text",
        do="screen.new_line",
        display="ctrl+j",
    ),
    Action("queue.cancel", "escape", "cancel", where="queue.text", do="screen.leave"),
    Action("queue.back", "escape,q", "back", do="leave"),
)
_CARDS = (
    Action("human.done", "enter", "done, with a note"),
    Action("human.answer", "a", "answer"),
    Action("human.cannot", "c", "can't"),
    Action("human.open", "o", "open the link"),
    Action("human.stop", "x", "stop"),
    _hidden("human.secret", "ctrl+s", "secret on/off"),
    Action("form.fill", "enter", "fill it in"),
    Action("form.cannot", "c", "decline"),
    Action("form.cancel", "p", "put away"),
    Action("form.stop", "x", "stop"),
    Action("approve.once", "enter,y", "once"),
    Action("approve.session", "s", "always this session"),
    Action("approve.deny", "n", "deny"),
    Action("approve.deny_with", "d", "deny and say why"),
    Action("wait.skip", "s", "ask now"),
    Action("wait.later", "l", "later…"),
    Action("wait.model", "m", "another model"),
    Action("wait.stop", "x", "stop"),
    Action("retry.now", "s", "now"),
    Action("retry.stop", "x", "stop"),
    Action("stalled.wait", "enter,g", "keep waiting"),
    Action("stalled.retry", "r", "retry"),
    Action("stalled.stop", "x", "stop"),
    Action("bound.more", "m", "more"),
    Action("bound.other", "plus", "another amount"),
    Action("bound.finish", "f", "finish"),
    Action("failed.retry", "r", "try again"),
    Action("failed.model", "m", "another model"),
    Action("failed.key", "k", "edit the key"),
    Action("failed.finish", "x", "leave it"),
    Action("finished.copy", "c", "copy"),
    Action("finished.close", "x", "close"),
    Action("value.copy", "c", "copy as JSON"),
    Action("card.input.back", "escape", "back", where="card.input", do="give_up"),
)

ACTIONS: Final = (
    *_RUN,
    *_REPLAY,
    *_TRANSCRIPT,
    *_SEARCH,
    *_COMPOSER,
    *_HOME,
    *_DEMOS,
    *_OVERLAYS,
    *_CARDS,
)
SLASH: Final[dict[str, Action]] = {action.slash: action for action in ACTIONS if action.slash}
"""The slash commands by name, in the order in which they are listed."""

HOME_SLASH: Final = tuple(name for name, action in SLASH.items() if action.at_home)
"""The slash commands of the home screen."""


def in_scope(scope: str) -> list[Action]:
    """The actions whose keys `scope` holds, in the order of the footer."""
    found = [action for action in ACTIONS if action.keys and action.scope == scope]
    return sorted(found, key=lambda action: (not action.show, action.place))


def palette() -> list[Action]:
    """The actions of a run that the command palette lists."""
    return [action for action in _RUN if action.title]
