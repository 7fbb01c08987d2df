"""The table of decisions in docs/recovery.md is what the code decides."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from handrail.policy import RecoveryPolicy

DOCS = Path(__file__).parents[2] / "docs"


def load_table():
    spec = importlib.util.spec_from_file_location("recovery_table", DOCS / "make" / "recovery_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_R2_the_page_says_what_the_code_decides():
    assert (DOCS / "recovery.md").read_text("utf-8") == load_table().page(), (
        "run: python docs/make/recovery_table.py"
    )


def test_every_setting_that_the_page_names_is_there():
    import re

    page = (DOCS / "recovery.md").read_text("utf-8")
    rows = page.split("## What it may cost")[1].split("## While it waits")[0]
    named = set(re.findall(r"`([a-z_]+)`", rows)) - {"max_turns"}
    assert named and named <= set(RecoveryPolicy.model_fields)
