"""One command a file. `handrail_tui.cli` imports each when it is asked for."""
