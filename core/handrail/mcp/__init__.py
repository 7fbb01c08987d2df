"""Tools of other people's servers (MCP), as tools of ours. docs/mcp.md says what a person has of it.

Nothing here is imported unless a server is configured, and the SDK (extra `mcp`) only when one starts, in a thread.
"""

from handrail.mcp.servers import Servers as Servers
from handrail.mcp.tool import ServerTool as ServerTool

__all__ = ["ServerTool", "Servers"]
