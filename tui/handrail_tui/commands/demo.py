"""`handrail demo`: try Handrail without a key and without a network."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail.errors import ConfigError, did_you_mean
from handrail_tui.commands._options import check_output, output_options
from handrail_tui.lines.exit_codes import CANCELLED, OK, of_signal
from handrail_tui.view.text import one_line

if TYPE_CHECKING:
    from handrail.events import Event
    from handrail.scenario import Scenario


@click.command()
@click.argument("name", required=False, metavar="[NAME | FILE]")
@click.option(
    "--speed", type=click.FloatRange(0, min_open=True), default=1.0, metavar="N", help="Play N times as fast."
)
@click.option("--list", "only_list", is_flag=True, help="Only list the demos.")
@output_options
def demo(name: str | None, speed: float, only_list: bool, plain: bool, as_json: bool) -> int:
    """Play a scenario: no key, no network, nothing outside a temporary folder.

    On a terminal it plays on the screen. Waits take at most 10 s, and you may answer, steer and stop; a question
    left open for half a minute is answered by the scenario. Without a terminal, or with --json, the run is printed at
    once. Without NAME you choose from a gallery.

    \b
    handrail demo
    handrail demo --list
    handrail demo --speed 4 first-run
    handrail demo --json my-scenario.toml
    """
    from handrail import scenario
    from handrail_tui.sessions import headless
    from handrail_tui.sessions.demo import builtin_demos

    check_output(plain, as_json)
    demos = builtin_demos()
    if only_list:
        _show(demos)
        return OK
    watched = headless.OutputMode.on_screen() and not as_json
    if watched and not name and not plain:
        return _gallery(demos, speed)
    file = _find(name, demos) if name else _choose(demos, watched)
    return _play(scenario.load(file), speed if watched else None, plain, as_json)


def _play(chosen: Scenario, speed: float | None, plain: bool, as_json: bool) -> int:
    """Play it at `speed`, at once where it is None."""
    from handrail_tui.commands._screen import show_session
    from handrail_tui.sessions import headless
    from handrail_tui.sessions.demo import demo_session
    from handrail_tui.sessions.scenario_trust import is_trusted

    mode = headless.OutputMode.of(json=as_json, stream=sys.stdout)
    with demo_session(chosen, speed, trusted=is_trusted(chosen)) as prepared:
        if speed is not None and not plain:
            return _code(show_session(prepared))
        return _code(asyncio.run(headless.play(prepared, mode)))


def _gallery(demos: dict[str, Path], speed: float) -> int:
    """Choose demos on the screen."""
    from handrail import settings
    from handrail_tui.commands._screen import show_screen
    from handrail_tui.screens.demos import DemosScreen

    code, last = show_screen(DemosScreen(demos, speed), settings.load(Path.cwd()).settings)
    return code or _code(last)


def _code(last: Event | None) -> int:
    """The exit code: a demo that was shown is a success, however its run ended."""
    if last is not None and last.type == "run_interrupted":
        return of_signal(last.signal)
    stopped = (
        last is not None and last.type == "run_finished" and last.outcome == "cancelled" and last.stopped
    )
    return CANCELLED if stopped else OK


def _find(name: str, demos: dict[str, Path]) -> Path:
    if name in demos:
        return demos[name]
    path = Path(name)
    if path.exists() or path.suffix == ".toml":
        return path
    raise ConfigError(f"there is no demo or file '{name}'.{did_you_mean(name, demos)}")


def _choose(demos: dict[str, Path], watched: bool) -> Path:
    """The demo whose number is typed; without a terminal, the first one."""
    paths = list(demos.values())
    if not watched or len(paths) == 1:
        return paths[0]
    _show(demos)
    number = click.prompt("\nWhich one", type=click.IntRange(1, len(paths)), default=1)
    return paths[int(number) - 1]


def _show(demos: dict[str, Path]) -> None:
    from handrail import scenario

    for number, (name, path) in enumerate(demos.items(), 1):
        one = scenario.load(path)
        click.echo(f"{number:>2}  {name:<18} {one_line(one.title, 60)}")
        click.echo(f"    {'':<18} {one_line(one.about, 200)}")
