"""Status of OTLP ingest over HTTP: counts, and attributes without a counterpart in a step."""

from __future__ import annotations

from litestar import Response, Router, get

from observatory.features.otlp.counters import OtlpCounters, ReceivedCounts, otlp_answer
from observatory.http.answers import json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission


@get("/otlp", summary="Status of OTLP ingest, with unmapped attributes", operation_id="otlp_status")
async def otlp_status(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    return json(
        otlp_answer(
            app.service(OtlpCounters).get(principal.tenant_id) or ReceivedCounts(),
            app.settings.otlp_grpc or None,
        )
    )


otlp_router = Router(path="/v1", route_handlers=[otlp_status], tags=["OTLP"])
