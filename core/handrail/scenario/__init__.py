"""Runs as files: read a scenario, play it, check its expectations."""

from handrail.scenario.check import CheckReport, check
from handrail.scenario.file import Scenario, load
from handrail.scenario.play import play, session_for

__all__ = ["CheckReport", "Scenario", "check", "load", "play", "session_for"]
