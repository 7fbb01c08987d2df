"""`handrail agents`: the agents of others that `run --agent` knows, and how to get them."""

from __future__ import annotations

import os
from pathlib import Path

import click

from handrail.agents.registry import AgentEntry, known
from handrail.toml import short_path
from handrail_tui.view.text import one_line


@click.command()
def agents() -> int:
    """List the agents of others: which are installed, where, and how to get the rest.

    Any other command that speaks the Agent Client Protocol works too: --agent "my-agent --acp".

    \b
    handrail agents
    handrail run --agent claude "fix the flaky test"
    """
    for entry in known().values():
        where = entry.path
        state = click.style(f"{'ok' if where else 'missing':<8}", fg="green" if where else "yellow")
        click.echo(f"{state} {entry.name:<10} {entry.title:<13} {one_line(described(entry), 200)}")
    return 0


def described(entry: AgentEntry) -> str:
    """Where an agent is and whether its requests are counted, or how to get it."""
    where = entry.path
    if where is None:
        return entry.install
    counted = "bounds hold before each request" if entry.behind_gateway(os.environ) else _uncounted(entry)
    return f"{short_path(Path(where))}; {counted}"


def _uncounted(entry: AgentEntry) -> str:
    if entry.provider is not None and entry.gateway_needs:
        return f"bounds hold after the fact; before each request with {' or '.join(entry.gateway_needs)}"
    return "bounds hold after the fact: its requests cannot be led through the gateway"
