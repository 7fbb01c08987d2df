"""Without the extra `mcp` these tests are skipped."""

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

from mcp_bench import nasty as nasty
