"""Runs as files: read a scenario, play it, check its expectations."""

from handrail.scenario._check import CheckReport, check
from handrail.scenario._file import Scenario, load
from handrail.scenario._held import would_run
from handrail.scenario.play import play, session_for

__all__ = ["CheckReport", "Scenario", "check", "load", "play", "session_for", "would_run"]
