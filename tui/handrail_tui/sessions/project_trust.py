"""Asking whether a project is trusted, and saying what is ignored while it is not."""

from __future__ import annotations

from pathlib import Path

import click

from handrail import instructions, settings, trust
from handrail.server_files import project_files
from handrail.toml import short_path
from handrail_tui.lines import faults
from handrail_tui.view.text import one_line


def ask_for_trust(cwd: Path) -> None:
    """On a terminal: ask once whether to trust a project that has instructions or settings which need trust."""
    root = trust.project_root(cwd)
    loaded = settings.load(cwd)
    if trust.is_trusted(root, also=loaded.settings.trusted) or trust.is_refused(root):
        return
    if parts := _needing_trust(cwd, loaded):
        words = f"{short_path(root)} contains {parts}, used only if you trust this folder. Trust it?"
        if click.confirm(one_line(words, 500), default=False, err=True):
            trust.trust(root)
        else:
            trust.distrust(root)


def warn_untrusted(cwd: Path, loaded: settings.LoadedSettings) -> None:
    """Say on stderr what is ignored because the project is not trusted."""
    if parts := _needing_trust(cwd, loaded):
        faults.say(f"note: ignoring {parts} of this project, which is not trusted: handrail config trust")


def _needing_trust(cwd: Path, loaded: settings.LoadedSettings) -> str:
    """What would be used if the project were trusted, in words."""
    parts = sorted({path.name for path in [*instructions.find(cwd), *project_files(cwd)]})
    if loaded.held_back:
        parts.append(f"{settings.PROJECT_FILE} ({', '.join(loaded.held_back)})")
    return " and ".join(parts)
