"""`GET /v1/insight/status`: how far the derived data (search, maps, costs) is behind the record."""

from __future__ import annotations

from litestar import Response, Router, get

from observatory.features.insight.queries import status_of
from observatory.http.answers import json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission


@get("/insight/status", summary="How far derived data is behind the record", operation_id="insight_status")
async def insight_status(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    return json(await status_of(app, principal.tenant_id))


insight = Router(path="/v1", route_handlers=[insight_status], tags=["Insight"])
