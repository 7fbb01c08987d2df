"""Agents that are not ours and not the tests', from npm, against a provider on loopback: no network but the first
download."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from npm import npm_program

from handrail.agents.registry import AgentEntry, known


@dataclass(frozen=True)
class Real:
    """An agent's package, and a call by which it writes a file when the model asks for it."""

    package: str
    tool: str
    arguments: str


REAL: Mapping[str, Real] = {
    "claude": Real(
        "@agentclientprotocol/claude-agent-acp@0.49.0",
        "Write",
        '{"file_path": "%s/a.txt", "content": "hello\\n"}',
    ),
    "codex": Real(
        "@zed-industries/codex-acp@0.16.0",
        "shell_command",
        '{"command": "echo hello > %s/a.txt", "sandbox_permissions": "require_escalated", "justification": "to write"}',
    ),
}


def real_agent(name: str, home: Path) -> AgentEntry:
    """The agent; `home` keeps it. Skips the test where it cannot be had."""
    entry = known()[name]
    program = npm_program(home, REAL[name].package, entry.command[0])
    return replace(entry, command=(str(program), *entry.command[1:]))


def environment(home: Path, url: str) -> dict[str, str]:
    """A bare environment whose providers are at `url`."""
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CODEX_HOME": str(home),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",  # it refuses to work for root elsewhere
        "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_API_KEY": "sk-test-0123456789",
        "OPENAI_BASE_URL": f"{url}/v1",
    }
