"""Every test has its own home folder, and no keys from the environment."""

from cli_home import home, program

__all__ = ["home", "program"]
