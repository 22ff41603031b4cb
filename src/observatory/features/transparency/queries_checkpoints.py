"""Reads of the transparency log: its newest checkpoint, its keys, and the answer for a broken log."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable
from typing import Any, TypeVar

from observatory.features.transparency.cosignatures import cosigned
from observatory.features.transparency.types_log import LogBroken, LogRows, StoredCheckpoint
from observatory.features.transparency.worker import Sealer
from observatory.http.answers import Refusal
from observatory.http.app_state import AppState
from observatory.ledger import note
from observatory.protocol.clock import from_ns


def rows_of(app: AppState) -> LogRows:
    store = app.store
    assert isinstance(store, LogRows)  # every store implements it
    return store


def text_of(value: bytes) -> str:
    return b64encode(value).decode()


async def or_broken_log(read: Awaitable[T]) -> T:
    """Await a read of the log; missing hashes are answered as a broken log."""
    try:
        return await read
    except (LogBroken, ValueError) as error:
        raise broken_log() from error


async def signed(app: AppState, tenant_id: str, size: int) -> StoredCheckpoint:
    """The newest checkpoint; waits a moment if it does not cover `size` yet."""
    rows, left_s = rows_of(app), WAIT_S
    while True:
        checkpoint = await or_broken_log(rows.checkpoint(tenant_id))
        if checkpoint is not None and checkpoint.size >= size:
            return await cosigned(app, tenant_id, checkpoint)
        refused = app.service(Sealer).refused.get(tenant_id)
        if refused is not None and refused.kind != "key":  # else another gateway may be signing
            raise Refusal(409, "not_sealed", f"the log is not signed: {refused.sentence}")
        if left_s <= 0:
            detail = "this is not under a signed checkpoint yet; it is sealed within a second, try again"
            raise Refusal(409, "not_sealed", detail)
        await asyncio.sleep(LOOK_S)
        left_s -= LOOK_S


async def vkeys_of(app: AppState, tenant_id: str) -> list[dict[str, Any]]:
    """Every key that signed this log, oldest first; the last one is current."""
    origin, rows = (
        await app.service(Sealer).origin(tenant_id),
        await app.store.rows(tenant_id, "log_keys"),
    )
    rows.sort(key=lambda row: int(row["since"]))
    return [
        {
            "vkey": note.vkey(origin, bytes(row["public_key"])),
            "since_sequence": row["since"],
            "created_at": from_ns(row["created_ns"]),
            "current": row is rows[-1],
        }
        for row in rows
    ]


T = TypeVar("T")


WAIT_S, LOOK_S = 2.0, 0.05


def broken_log() -> Refusal:
    detail = "the stored log does not match what was signed; POST /v1/audit/verify reports where it breaks"
    return Refusal(500, "log_broken", detail)
