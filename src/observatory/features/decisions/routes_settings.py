"""`/v1/settings/decisions`: how far agents may name what is decided for them at a deadline (S1122)."""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get, put
from litestar.params import JSONBody

from observatory.features.decisions import commands_settings as acts
from observatory.http.answers import json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import need
from observatory.http.setting_rows import shown
from observatory.protocol.rulebook import DecisionSettings


class DecisionSettingsAnswer(DecisionSettings, frozen=True, kw_only=True):
    """The settings in force; who set them is null while they are the defaults."""

    updated_at: str | None = None
    updated_by: str | None = None


@get("/settings/decisions", summary="What the gateway may decide", operation_id="get_decision_settings")
async def get_decision_settings(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    return json(await shown(house, principal.tenant_id, acts.NAME, DecisionSettings))


@put("/settings/decisions", summary="Change what it may decide", operation_id="put_decision_settings")
async def put_decision_settings(
    request: Call, house: Here, data: JSONBody[dict[str, Any]]
) -> Response[bytes]:
    """What is left out stays as it is; null takes the default. It counts for the next request."""
    principal = await need(request, house, "operate")
    verdict = await house.command(acts.change(principal, data, house.clock()))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await shown(house, principal.tenant_id, acts.NAME, DecisionSettings))


decision_settings_router = Router(
    path="/v1", route_handlers=[get_decision_settings, put_decision_settings], tags=["Decisions"]
)
