"""The list of models: filtered, chosen, left again (rule U8)."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App
from textual.widgets import OptionList

from handrail.errors import ConfigError
from handrail_tui.screens.models import ModelsScreen
from handrail_tui.sessions.models import UsableModel
from handrail_tui.widgets import theming

MODELS = [
    UsableModel("anthropic/claude-sonnet", "key: ANTHROPIC_API_KEY", ("window 200k",)),
    UsableModel("openai/gpt-5-mini", "key: OPENAI_API_KEY"),
    UsableModel("evil/[/red]\x1b[2J", "on this machine"),
]


class Over(App[None]):
    def __init__(self, find: Any = lambda: MODELS) -> None:
        super().__init__()
        self.used: list[str] = []
        self.models = ModelsScreen("openai/gpt-5-mini", self._use, find)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theming.defaults()

    def _use(self, name: str) -> str:
        self.used.append(name)
        return name

    def on_mount(self) -> None:
        self.push_screen(self.models)


@pytest.mark.parametrize(
    ("keys", "used"),
    [
        (["enter"], ["openai/gpt-5-mini"]),  # the marked one is the one in use
        (["up", "enter"], ["anthropic/claude-sonnet"]),
        ([*"sonn", "enter"], ["anthropic/claude-sonnet"]),
        ([*"my/own", "enter"], ["my/own"]),
        (["escape"], []),
    ],
)
async def test_U8_a_model_is_chosen_or_not(keys: list[str], used: list[str]) -> None:
    app = Over()
    async with app.run_test(size=(100, 30)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.press(*keys)
        await pilot.pause()
        assert app.used == used and app.screen is not app.models


async def test_what_servers_call_their_models_is_shown_as_text() -> None:
    app = Over()
    async with app.run_test(size=(100, 30)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.press(*"evil")
        option = app.models.query_one(OptionList).get_option_at_index(0)
        assert str(option.prompt) == "  evil/[/red]   on this machine"


async def test_settings_that_cannot_be_read_are_named() -> None:
    def broken() -> list[UsableModel]:
        raise ConfigError("settings.toml line 3: unknown key")

    app = Over(broken)
    async with app.run_test(size=(100, 30)):
        await app.workers.wait_for_complete()
        assert "line 3" in str(app.models.query_one("#models--note").render())
