"""HTTP routes of saved views: named search queries, private or shared (rules S280, S281)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, JSONBody

from observatory.features.search import commands as viewing
from observatory.features.search.query_language import LONGEST
from observatory.http.answers import Cursor, Limit, Refusal, encode_cursor, json, read_id_cursor
from observatory.http.app_state import Call, Here
from observatory.http.authentication import allows
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.rules import Title

Row = dict[str, Any]


class NewView(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`query` is what `GET /v1/search` takes as `q`. Only operators share views."""

    name: Title
    query: Annotated[
        str,
        msgspec.Meta(
            max_length=LONGEST,
            pattern=r"^[^\x00]*$(?!\n)",
            extra={"expects": "at most 4096 characters without U+0000"},
        ),
    ]
    shared: bool = False


@post("/views", summary="Save a search query under a name", operation_id="save_view")
async def save_view(request: Call, app: Here, data: JSONBody[NewView]) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    if data.shared and not allows(who, "operate"):
        raise Refusal(403, "not_allowed", "views are shared by operators and admins; save it as your own")
    verdict = await app.command(viewing.save(who, data.name, data.query, data.shared, app.clock()))
    return json(_item(verdict.answer, who) if verdict.code == 201 else verdict.answer, verdict.code)


@get("/views", summary="Your views and shared ones, newest first", operation_id="list_views")
async def list_views(request: Call, app: Here, cursor: Cursor = None, limit: Limit = 100) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    before = read_id_cursor(cursor, "viw_")
    rows = await app.store.rows(who.tenant_id, "saved_views", removed_ns=None)
    visible = [row for row in rows if row["shared"] or row["owner_id"] == who.entity_id]
    # Ids are UUIDv7: they sort by creation time.
    visible.sort(key=lambda row: str(row["view_id"]), reverse=True)
    remaining = [row for row in visible if before is None or row["view_id"] < before]
    more = len(remaining) > limit
    items = [_item(row, who) for row in remaining[:limit]]
    return json(
        {"items": items, "next_cursor": encode_cursor(items[-1]["view_id"].encode()) if more else None}
    )


@delete("/views/{view_id:str}", summary="Remove a view", status_code=200, operation_id="remove_view")
async def remove_view(request: Call, app: Here, view_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    rows = await app.store.rows(who.tenant_id, "saved_views", view_id=view_id)
    if not rows:
        raise Refusal(404, "not_found", "no view that you can see has that id")
    operates = allows(who, "operate")
    act = viewing.remove(who, rows[0]["owner_id"], view_id, app.clock(), operates=operates)
    verdict = await app.command(act)
    return json(verdict.answer, verdict.code)


def _item(row: Row, who: Principal) -> Row:
    return {
        "view_id": row["view_id"],
        "name": row["name"],
        "query": row["query"],
        "shared": bool(row["shared"]),
        "owner_id": row["owner_id"],
        "mine": row["owner_id"] == who.entity_id,
        "created_at": from_ns(row["created_ns"]),
    }


views = Router(path="/v1", route_handlers=[save_view, list_views, remove_view], tags=["Forensic Inspector"])
