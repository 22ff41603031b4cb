"""What somebody reads who checks the whole log alone: events in their exact bytes, and every checkpoint.

Events are served one a line, as they are stored: the bytes that were hashed, not a word beside them, so that
a browser hashes what it reads and parses nothing twice. Pages are bounded; the reader counts the lines.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response, Router, get
from litestar.params import QueryParameter

from observatory.features.transparency.routes import holding, text_of
from observatory.features.transparency.types_federation import FederationRows
from observatory.features.transparency.types_log import Checkpoint
from observatory.http.answers import MAX_SEQUENCE, Cursor, Limit, json, make_cursor, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns

MOST = 5_000
Number = Annotated[int, QueryParameter(ge=0, le=MAX_SEQUENCE, description="Only past this number.")]
Lines = Annotated[int, QueryParameter(ge=1, le=MOST, description="How many lines at most (1–5,000).")]
Over = Annotated[
    int | None,
    QueryParameter(ge=1, le=MAX_SEQUENCE, description="Only the oldest that holds the event of this number."),
]


@get(
    "/audit/records",
    summary="Audit events in their exact bytes, one a line, oldest first",
    operation_id="audit_records",
)
async def audit_records(
    request: Call, house: Here, after: Number = 0, limit: Lines = 1_000
) -> Response[bytes]:
    """Fewer lines than asked for: there are no more. RFC 8785 text holds no line break of its own."""
    tenant_id = (await need(request, house, "read")).tenant_id
    found = await house.store.events(tenant_id, EventFilter(after=after), limit, newest_first=False)
    content = b"".join([event.record + b"\n" for event in found])
    return Response(content, media_type="application/x-ndjson")


@get("/audit/checkpoints", summary="Signed checkpoints, newest first", operation_id="list_checkpoints")
async def list_checkpoints(
    request: Call, house: Here, over: Over = None, cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    """Each as it was signed, with the lines of the witnesses that cosigned it."""
    tenant_id = (await need(request, house, "read")).tenant_id
    store = house.store
    assert isinstance(store, FederationRows)  # a promise of every store
    if over is not None:
        first = await holding(store.first_over(tenant_id, over))
        found = [] if first is None else [first]
    else:
        found = await holding(store.checkpoints(tenant_id, read_cursor(cursor), limit + 1))
    more = make_cursor(found[limit - 1].size) if len(found) > limit else None
    return json({"items": await _items(house, tenant_id, found[:limit]), "next_cursor": more})


async def _items(house: House, tenant_id: str, found: list[Checkpoint]) -> list[dict[str, Any]]:
    sizes = [one.size for one in found]
    rows = await house.store.rows(tenant_id, "cosignatures", size=sizes) if sizes else []
    rows.sort(key=lambda row: str(row["name"]))
    return [_item(one, [row for row in rows if row["size"] == one.size]) for one in found]


def _item(found: Checkpoint, cosigned: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "size": found.size,
        "root": text_of(found.root),
        "signed_at": from_ns(found.signed_ns),
        "checkpoint": found.note.decode() + "".join(row["line"] for row in cosigned),
        "witnesses": [
            {"name": row["name"], "seen_at": from_ns(row["seen_s"] * 1_000_000_000)} for row in cosigned
        ],
    }


audit_reading = Router(
    path="/v1", route_handlers=[audit_records, list_checkpoints], tags=["Forensic Inspector"]
)
