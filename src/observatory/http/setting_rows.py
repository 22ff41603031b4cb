"""A tenant's settings as they are stored and shown, for the routes under `/v1/settings`."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from observatory.http.app_state import House
from observatory.protocol.clock import from_ns

Kind = TypeVar("Kind", bound=msgspec.Struct)
Row = dict[str, Any]


async def stored(house: House, tenant_id: str, name: str, kind: type[Kind]) -> tuple[Kind, Row | None]:
    """The settings in force and their row, which is None while they are the defaults."""
    rows = await house.store.rows(tenant_id, "knobs", name=name)
    if not rows:
        return kind(), None
    return msgspec.json.decode(rows[0]["value"], type=kind), rows[0]


async def shown(house: House, tenant_id: str, name: str, kind: type[Kind]) -> Row:
    """With who set them, and when."""
    settings, row = await stored(house, tenant_id, name, kind)
    found: Row = msgspec.to_builtins(settings)
    return found | {
        "updated_at": None if row is None else from_ns(row["updated_ns"]),
        "updated_by": None if row is None else row["updated_by"],
    }
