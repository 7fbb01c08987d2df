"""How the tests are run: on every core, without the slow ones unless asked for, properties in two sizes."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

MOST_WORKERS = 8
"""Every worker collects all the tests itself; from here on that costs more than another core saves."""

# How long one example takes says something about the machine, not about the code: no deadline.
settings.register_profile(
    "quick", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=500)
settings.load_profile("quick")  # before --hypothesis-profile, which chooses another


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Workers for `-n auto`: one a core. None at all where they would only cost: one core, or single files."""
    named = [str(arg).partition("::")[0] for arg in config.args]
    if all(Path(name).suffix == ".py" for name in named):
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if cores == 1 else min(cores, MOST_WORKERS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked `slow`, unless `-m` speaks of them."""
    if "slow" in config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


def pytest_collection_finish() -> None:
    """Spare the garbage collector what the imports left: it would look through all of that again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def peers(pytestconfig: pytest.Config) -> Path:
    """The folder where servers of others are installed; it outlives a run, and all workers share it."""
    return pytestconfig.cache.mkdir("peers")  # type: ignore[union-attr]
