"""`/v1/settings/detectors`: what the detectors go by, read by everyone who reads, set by operators."""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get, put
from litestar.params import JSONBody

from observatory.features.loops import commands as acts
from observatory.http.answers import json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.http.setting_rows import shown, stored
from observatory.protocol.rulebook import DetectorSettings


class DetectorAnswer(DetectorSettings, frozen=True, kw_only=True):
    """The settings in force; who set them is null while they are the defaults."""

    updated_at: str | None = None
    updated_by: str | None = None


async def detectors_of(house: House, tenant_id: str) -> DetectorSettings:
    return (await stored(house, tenant_id, acts.NAME, DetectorSettings))[0]


@get("/settings/detectors", summary="What the detectors go by", operation_id="get_detectors")
async def get_detectors(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    return json(await shown(house, principal.tenant_id, acts.NAME, DetectorSettings))


@put("/settings/detectors", summary="Change what the detectors go by", operation_id="put_detectors")
async def put_detectors(request: Call, house: Here, data: JSONBody[dict[str, Any]]) -> Response[bytes]:
    """What is left out stays as it is; null takes the default. It counts for the next message."""
    principal = await need(request, house, "operate")
    verdict = await house.command(acts.change(principal, data, house.clock()))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await shown(house, principal.tenant_id, acts.NAME, DetectorSettings))


detectors = Router(path="/v1", route_handlers=[get_detectors, put_detectors], tags=["Policy Engine"])
