"""A checkpoint with what witnesses put under it: their lines follow ours, as C2SP's notes are read."""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.transparency.types_federation import FederationRows
from observatory.features.transparency.types_log import Checkpoint, LogRows
from observatory.http.app_state import House
from observatory.protocol.clock import from_ns


async def _lines(house: House, tenant_id: str, size: int) -> list[dict[str, Any]]:
    rows = await house.store.rows(tenant_id, "cosignatures", size=size)
    return sorted(rows, key=lambda row: str(row["name"]))


async def cosigned(house: House, tenant_id: str, found: Checkpoint) -> Checkpoint:
    lines = "".join(row["line"] for row in await _lines(house, tenant_id, found.size))
    return msgspec.structs.replace(found, note=found.note + lines.encode()) if lines else found


async def newest_cosigned(house: House, tenant_id: str) -> Checkpoint | None:
    """The newest checkpoint that any witness cosigned, with all their lines."""
    store = house.store
    assert isinstance(store, FederationRows) and isinstance(store, LogRows)  # promises of every store
    size = await store.cosigned(tenant_id)
    found = await store.checkpoint(tenant_id, size) if size else None
    if found is None or found.size != size:  # restored to before it was signed
        return None
    return await cosigned(house, tenant_id, found)


async def witnessed(house: House, tenant_id: str) -> dict[str, Any] | None:
    """The same as `GET /v1/audit/log` shows it."""
    found = await newest_cosigned(house, tenant_id)
    if found is None:
        return None
    lines = await _lines(house, tenant_id, found.size)
    return {
        "size": found.size,
        "checkpoint": found.note.decode(),
        "witnesses": [
            {"name": row["name"], "seen_at": from_ns(row["seen_s"] * 1_000_000_000)} for row in lines
        ],
    }
