"""`/v1/settings/decisions`: which options agents may name for a deadline (S1122)."""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get, put
from litestar.params import JSONBody

from observatory.features.decisions import commands_settings as acts
from observatory.features.decisions.types import DECISION_SETTINGS
from observatory.http.answers import json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission
from observatory.http.setting_rows import setting_row
from observatory.protocol.tenant_config import DecisionSettings


class DecisionSettingsAnswer(DecisionSettings, frozen=True, kw_only=True):
    """The settings in force; `updated_by` is null while they are the defaults."""

    updated_at: str | None = None
    updated_by: str | None = None


@get(
    "/settings/decisions",
    summary="Get the settings for automatic decisions",
    operation_id="get_decision_settings",
)
async def get_decision_settings(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    return json(await setting_row(app, principal.tenant_id, DECISION_SETTINGS, DecisionSettings))


@put(
    "/settings/decisions",
    summary="Change the settings for automatic decisions",
    operation_id="put_decision_settings",
)
async def put_decision_settings(request: Call, app: Here, data: JSONBody[dict[str, Any]]) -> Response[bytes]:
    """Omitted settings stay; null restores the default. Applies from the next request on."""
    principal = await require_permission(request, app, "operate")
    verdict = await app.command(acts.change(principal, data, app.clock()))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await setting_row(app, principal.tenant_id, DECISION_SETTINGS, DecisionSettings))


decision_settings_router = Router(
    path="/v1", route_handlers=[get_decision_settings, put_decision_settings], tags=["Decisions"]
)
