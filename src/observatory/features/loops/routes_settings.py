"""`/v1/settings/detectors`: detector settings, readable with the read permission, set by operators."""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get, put
from litestar.params import JSONBody

from observatory.features.loops import commands
from observatory.http.answers import json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission
from observatory.http.setting_rows import setting_row
from observatory.pipeline.tenant_settings import DETECTORS
from observatory.protocol.tenant_config import DetectorSettings


class DetectorAnswer(DetectorSettings, frozen=True, kw_only=True):
    """The settings in force; `updated_by` is null while they are the defaults."""

    updated_at: str | None = None
    updated_by: str | None = None


@get("/settings/detectors", summary="Get the detectors' settings", operation_id="get_detectors")
async def get_detectors(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    return json(await setting_row(app, principal.tenant_id, DETECTORS, DetectorSettings))


@put("/settings/detectors", summary="Change the detectors' settings", operation_id="put_detectors")
async def put_detectors(request: Call, app: Here, data: JSONBody[dict[str, Any]]) -> Response[bytes]:
    """Omitted members stay as they are; null restores the default. Effective from the next message."""
    principal = await require_permission(request, app, "operate")
    verdict = await app.command(commands.change(principal, data, app.clock()))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await setting_row(app, principal.tenant_id, DETECTORS, DetectorSettings))


detectors = Router(path="/v1", route_handlers=[get_detectors, put_detectors], tags=["Policy Engine"])
