"""The start of a run says how commands are held, or that they are not."""

from __future__ import annotations

import io

import pytest

from handrail import events as ev
from handrail_tui.lines.json_lines import Out
from handrail_tui.lines.plain import Plain


@pytest.mark.parametrize(
    ("approve", "sandbox", "said"),
    [
        ("ask", "sandbox: only the working folder is writable, no network", "no network"),
        ("all", "", "no sandbox: commands may read, change and send whatever you can"),
        ("ask", "", None),
    ],
)
def test_the_start_says_what_is_not_protected(approve: str, sandbox: str, said: str | None) -> None:
    stream = io.StringIO()
    started = ev.RunStarted(
        session="s", prompt="Go.", model="m", cwd="/w", tools=("bash",), approve=approve, sandbox=sandbox
    )
    Plain(Out(stream))(started)
    assert (said or "approvals: ask") in stream.getvalue()
    assert ("sandbox" in stream.getvalue()) == (said is not None)
