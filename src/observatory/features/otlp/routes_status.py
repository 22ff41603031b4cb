"""What others' telemetry brought, and what of it no step holds."""

from __future__ import annotations

from litestar import Response, Router, get

from observatory.features.otlp.counters import Seen, told_of
from observatory.http.answers import json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import need


@get("/otlp", summary="What came by OTLP, and which attributes no step holds", operation_id="otlp_status")
async def otlp_status(request: Call, house: Here) -> Response[bytes]:
    who = await need(request, house, "read")
    return json(told_of(house.otlp_seen.get(who.tenant_id) or Seen(), house.settings.otlp_grpc or None))


otlp_router = Router(path="/v1", route_handlers=[otlp_status], tags=["OTLP"])
