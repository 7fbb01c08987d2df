"""What makes tests of the screen brisk.

Textual's pilot looks whether the processor rests in steps of 20 ms, twice a key and at each pause. The keys of one
call are given in much finer steps here, pauses in finer ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from textual import _wait
from textual.app import App

_KEY_S = 1 / 400
_PAUSE_S = 1 / 120


@pytest.fixture(autouse=True)
def brisk_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    press = App._press_keys

    async def pressed(app: App[Any], keys: Iterable[str]) -> None:
        with pytest.MonkeyPatch.context() as finer:
            finer.setattr(_wait, "SLEEP_GRANULARITY", _KEY_S)
            finer.setattr(_wait, "SLEEP_IDLE", _KEY_S / 10)
            await press(app, keys)
        await _wait.wait_for_idle(0)

    monkeypatch.setattr(App, "_press_keys", pressed)
    monkeypatch.setattr(_wait, "SLEEP_GRANULARITY", _PAUSE_S)
    monkeypatch.setattr(_wait, "SLEEP_IDLE", _PAUSE_S / 20)
