"""Raw audit records for independent verification: events in their exact bytes, and every signed checkpoint.

Events are served one per line as stored: exactly the bytes that were hashed, so that a browser can hash what
it reads without parsing it twice. Pages are bounded; the reader counts the lines.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response, Router, get
from litestar.params import QueryParameter

from observatory.features.transparency.queries_checkpoints import or_broken_log, text_of
from observatory.features.transparency.types_federation import FederationRows
from observatory.features.transparency.types_log import StoredCheckpoint
from observatory.http.answers import MAX_SEQUENCE, Cursor, Limit, json, make_cursor, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns

MAX_LINES = 5_000
Number = Annotated[int, QueryParameter(ge=0, le=MAX_SEQUENCE, description="Only past this number.")]
Lines = Annotated[int, QueryParameter(ge=1, le=MAX_LINES, description="Maximum number of lines (1–5,000).")]
Over = Annotated[
    int | None,
    QueryParameter(ge=1, le=MAX_SEQUENCE, description="Only the oldest that covers this event number."),
]


@get(
    "/audit/records",
    summary="Read audit events in their exact bytes, one per line, oldest first",
    operation_id="audit_records",
)
async def audit_records(request: Call, app: Here, after: Number = 0, limit: Lines = 1_000) -> Response[bytes]:
    """Fewer lines than requested means there are no more. RFC 8785 text contains no line breaks."""
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    found = await app.store.events(tenant_id, EventFilter(after=after), limit, newest_first=False)
    content = b"".join([event.record + b"\n" for event in found])
    return Response(content, media_type="application/x-ndjson")


@get("/audit/checkpoints", summary="List signed checkpoints, newest first", operation_id="list_checkpoints")
async def list_checkpoints(
    request: Call, app: Here, over: Over = None, cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    """Each as it was signed, with the signature lines of its witnesses."""
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    store = app.store
    assert isinstance(store, FederationRows)  # every store implements it
    if over is not None:
        first = await or_broken_log(store.first_over(tenant_id, over))
        found = [] if first is None else [first]
    else:
        found = await or_broken_log(store.checkpoints(tenant_id, read_cursor(cursor), limit + 1))
    more = make_cursor(found[limit - 1].size) if len(found) > limit else None
    return json({"items": await _items(app, tenant_id, found[:limit]), "next_cursor": more})


async def _items(app: AppState, tenant_id: str, found: list[StoredCheckpoint]) -> list[dict[str, Any]]:
    sizes = [one.size for one in found]
    rows = await app.store.rows(tenant_id, "cosignatures", size=sizes) if sizes else []
    rows.sort(key=lambda row: str(row["name"]))
    return [_item(one, [row for row in rows if row["size"] == one.size]) for one in found]


def _item(found: StoredCheckpoint, cosigned: list[dict[str, Any]]) -> dict[str, Any]:
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
