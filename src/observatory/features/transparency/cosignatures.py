"""Checkpoints with the cosignature lines of their witnesses, in the format of C2SP notes."""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.transparency.types_federation import FederationRows
from observatory.features.transparency.types_log import LogRows, StoredCheckpoint
from observatory.http.app_state import AppState
from observatory.protocol.clock import from_ns


async def _lines(app: AppState, tenant_id: str, size: int) -> list[dict[str, Any]]:
    rows = await app.store.rows(tenant_id, "cosignatures", size=size)
    return sorted(rows, key=lambda row: str(row["name"]))


async def cosigned(app: AppState, tenant_id: str, checkpoint: StoredCheckpoint) -> StoredCheckpoint:
    lines = "".join(row["line"] for row in await _lines(app, tenant_id, checkpoint.size))
    return msgspec.structs.replace(checkpoint, note=checkpoint.note + lines.encode()) if lines else checkpoint


async def newest_cosigned(app: AppState, tenant_id: str) -> StoredCheckpoint | None:
    """The newest checkpoint that any witness cosigned, with all their lines."""
    store = app.store
    assert isinstance(store, FederationRows) and isinstance(store, LogRows)  # every store implements both
    size = await store.cosigned(tenant_id)
    checkpoint = await store.checkpoint(tenant_id, size) if size else None
    if checkpoint is None or checkpoint.size != size:  # restored to before it was signed
        return None
    return await cosigned(app, tenant_id, checkpoint)


async def witnessed(app: AppState, tenant_id: str) -> dict[str, Any] | None:
    """The newest witnessed checkpoint in the form of `GET /v1/audit/log`."""
    checkpoint = await newest_cosigned(app, tenant_id)
    if checkpoint is None:
        return None
    lines = await _lines(app, tenant_id, checkpoint.size)
    return {
        "size": checkpoint.size,
        "checkpoint": checkpoint.note.decode(),
        "witnesses": [
            {"name": row["name"], "seen_at": from_ns(row["seen_s"] * 1_000_000_000)} for row in lines
        ],
    }
