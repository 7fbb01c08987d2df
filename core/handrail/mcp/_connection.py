"""One live connection to one server: the SDK's client, its lists, its calls, and what the server asks of us.

Entered and left by one task (the supervisor's); calls come from any.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import mcp_types as types
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from handrail._version import __version__
from handrail.mcp._border import Border
from handrail.messages import clean
from handrail.tools.output import one_line

MAX_PAGES: Final = 100
MAX_ENTRIES: Final = 1_000
MAX_INSTRUCTIONS: Final = 2_048
"""Bytes of a server's instructions in the system prompt."""

SESSION_GONE: Final = "Session terminated"
"""What the SDK says when an HTTP server does not know our session any more."""

for _name in ("mcp", "client", "httpx2", "httpcore2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())  # nothing of it may reach the terminal

CallAnswer: TypeAlias = types.CallToolResult | types.InputRequiredResult


class Host(Protocol):
    """What a server may ask of us."""

    @property
    def root(self) -> Path: ...

    async def elicit(self, params: types.ElicitRequestParams) -> types.ElicitResult: ...

    def changed(self, what: str) -> None: ...

    def said(self, line: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Lists:
    """What a server offers. `left_out` names tools that cannot be offered, and why."""

    tools: tuple[types.Tool, ...] = ()
    prompts: tuple[types.Prompt, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


class Connection:
    """A connection in use. `target` is what the SDK's client takes: a transport, or a server in this process."""

    def __init__(self, target: Any, host: Host, border: Border) -> None:
        self._host, self._border = host, border
        self.client = Client(
            target,
            client_info=types.Implementation(name="handrail", version=__version__),
            elicitation_callback=self._elicit,
            list_roots_callback=self._roots,
            logging_callback=self._log,
            message_handler=self._message,
            cache=None,
        )

    async def enter(self, stack: AsyncExitStack) -> None:
        """Shake hands. The deadline is the caller's."""
        await stack.enter_async_context(self.client)

    @property
    def modern(self) -> bool:
        """Whether the protocol is one in which a question survives a restart."""
        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def protocol(self) -> str:
        return self.client.protocol_version

    @property
    def version(self) -> str:
        """The server's own name and version."""
        info = self.client.server_info
        return one_line(clean(f"{info.name} {info.version}"), 80) if info is not None else ""

    @property
    def instructions(self) -> str:
        """What the server says of its use, cut at the bound between characters."""
        text = clean(self.client.instructions or "").strip().encode("utf-8", "replace")
        return text[:MAX_INSTRUCTIONS].decode("utf-8", "ignore")

    async def lists(self) -> Lists:
        """Everything that the server offers now."""
        offers, session = self.client.server_capabilities, self.client.session
        self._border.left_out.clear()
        tools = await self._all(session.list_tools, "tools") if offers.tools else []
        prompts = await self._all(session.list_prompts, "prompts") if offers.prompts else []
        resources = await self._all(session.list_resources, "resources") if offers.resources else []
        return Lists(tuple(tools), tuple(prompts), tuple(resources), dict(self._border.left_out))

    async def _all(self, fetch: Callable[..., Awaitable[Any]], key: str) -> list[Any]:
        entries: list[Any] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await fetch(params=params)
            entries += getattr(page, key)
            if not page.next_cursor or page.next_cursor == cursor or len(entries) >= MAX_ENTRIES:
                break
            cursor = page.next_cursor
        return entries[:MAX_ENTRIES]

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        progress: ProgressFnT,
        responses: dict[str, Any] | None = None,
        state: str | None = None,
    ) -> CallAnswer:
        """One request of a call. Cancelled: the server is told so. Raises MCPError and what validation raises."""

        async def send() -> CallAnswer:
            return await self.client.session.call_tool(
                name,
                arguments,
                progress_callback=progress,
                input_responses=responses,
                request_state=state,
                allow_input_required=True,
            )

        try:
            return await send()
        except MCPError as error:
            if error.code != types.HEADER_MISMATCH or not self.modern:
                raise
            await self.lists()  # its schema changed since it was listed
            return await send()

    async def watch(self) -> None:
        """Hear of changed lists where the protocol wants that asked for. Ends when the server ends the stream."""
        offers = self.client.server_capabilities
        if not self.modern or not (offers.tools and offers.tools.list_changed):
            return
        async with self.client.listen(
            tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
        ) as events:
            async for event in events:
                if isinstance(event, ToolsListChanged | PromptsListChanged | ResourcesListChanged):
                    self._host.changed(type(event).__name__)

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        return await self._host.elicit(params)

    async def _roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        return self.roots()

    def roots(self) -> types.ListRootsResult:
        """The working folder, and nothing else."""
        root = self._host.root
        return types.ListRootsResult(roots=[types.Root(uri=root.as_uri(), name=root.name or str(root))])  # type: ignore[arg-type]

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        self._host.said(f"[{params.level}] {params.data}")

    async def _message(self, message: types.ServerNotification | Exception) -> None:
        match message:
            case Exception():
                self._host.said(f"[wire] {message}")
            case (
                types.ToolListChangedNotification()
                | types.PromptListChangedNotification()
                | types.ResourceListChangedNotification()
            ):
                self._host.changed(message.method)
            case _:
                pass
