"""A tenant's settings as stored and as returned by the routes under `/v1/settings`."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from observatory.http.app_state import AppState
from observatory.pipeline.tenant_settings import DETECTORS
from observatory.protocol.clock import from_ns
from observatory.protocol.tenant_config import DetectorSettings

Kind = TypeVar("Kind", bound=msgspec.Struct)
Row = dict[str, Any]


async def stored_setting(
    app: AppState, tenant_id: str, name: str, kind: type[Kind]
) -> tuple[Kind, Row | None]:
    """The settings in force and their row, which is None while they are the defaults."""
    rows = await app.store.rows(tenant_id, "knobs", name=name)
    if not rows:
        return kind(), None
    return msgspec.json.decode(rows[0]["value"], type=kind), rows[0]


async def setting_row(app: AppState, tenant_id: str, name: str, kind: type[Kind]) -> Row:
    """The settings with who set them, and when."""
    settings, row = await stored_setting(app, tenant_id, name, kind)
    item: Row = msgspec.to_builtins(settings)
    return item | {
        "updated_at": None if row is None else from_ns(row["updated_ns"]),
        "updated_by": None if row is None else row["updated_by"],
    }


async def detectors_of(app: AppState, tenant_id: str) -> DetectorSettings:
    return (await stored_setting(app, tenant_id, DETECTORS, DetectorSettings))[0]
