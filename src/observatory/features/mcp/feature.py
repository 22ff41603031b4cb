"""What mcp registers with the gateway."""

from __future__ import annotations

from typing import Any

from observatory.features.mcp.routes import PATH, McpEndpoint
from observatory.features.mcp.server import McpServer
from observatory.http.app_state import AppState
from observatory.http.feature import Endpoints, Feature, HttpEndpoint
from observatory.http.ingest import Ingest


def endpoints(app: AppState, asgi: Any, _: Ingest) -> Endpoints:
    return Endpoints(http=[HttpEndpoint(path=PATH, call=McpEndpoint(app, asgi))])


async def start(app: AppState) -> None:
    server = app.add(McpServer(app.command, app.clock))
    app.workers["mcp"] = server.run


FEATURE = Feature(
    endpoints=endpoints,
    start=start,
)
