"""What others' telemetry brought, and what of it no step holds."""

from __future__ import annotations

from litestar import Response, Router, get

from observatory.api.answers import json
from observatory.api.gate import need
from observatory.api.house import Call, Here
from observatory.api.otlp_seen import Seen, told_of


@get("/otlp", summary="What came by OTLP, and which attributes no step holds", operation_id="otlp_status")
async def otlp_status(request: Call, house: Here) -> Response[bytes]:
    who = await need(request, house, "read")
    return json(told_of(house.otlp_seen.get(who.tenant_id) or Seen(), house.settings.otlp_grpc or None))


otlp_router = Router(path="/v1", route_handlers=[otlp_status], tags=["OTLP"])
