"""Annotations of steps: free text, a label, a kind of failure (rules S219–S221).

Operators, approvers and admins write; every reader sees them. Withdrawing one hides it; the record keeps that
it existed, and the hash of its text.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody

from observatory.features.annotations import commands as annotating
from observatory.features.annotations.commands import TAXONOMY, AnnotatedMessage, AnnotationText
from observatory.features.graph.queries_session import archived_step, playback, session_row
from observatory.features.graph.types_annotations import annotation_fields
from observatory.http.answers import Cursor, Limit, Refusal, encode_cursor, json, read_id_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.authentication import allows
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal

MAX_TEXT_BYTES = 4_096


class NewAnnotation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`category` is one of those that `GET /v1/annotations/categories` lists."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT_BYTES)]
    label: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None = None
    category: str | None = None


@get(
    "/annotations/categories",
    summary="List kinds of failure for annotations",
    operation_id="annotation_categories",
)
async def annotation_categories(request: Call, app: Here) -> Response[bytes]:
    await require_permission(request, app, "read")
    items = [{"category": name, "family": row[0], "meaning": row[1]} for name, row in TAXONOMY.items()]
    return json({"items": items, "next_cursor": None})


@post(
    "/sessions/{session_id:str}/steps/{step:str}/annotations",
    summary="Annotate a step",
    operation_id="annotate_step",
)
async def annotate_step(
    request: Call, app: Here, session_id: FromPath[str], step: FromPath[str], data: JSONBody[NewAnnotation]
) -> Response[bytes]:
    who = await require_permission(request, app, "approve")
    if len(data.text.encode()) > MAX_TEXT_BYTES:
        raise Refusal(422, "too_long", "text: an annotation has at most 4,096 bytes")
    if data.category is not None and data.category not in TAXONOMY:
        raise Refusal(422, "bad_category", f"category: one of {', '.join(TAXONOMY)}")
    session = await session_row(app, who.tenant_id, session_id)
    found = await archived_step(app, who, session["session_id"], step)
    about = AnnotatedMessage(found.sequence_number, found.message_id, found.session_id, session["session_no"])
    note = AnnotationText(data.label, data.category, data.text)
    verdict = await app.command(annotating.annotate(who, about, note, app.clock()))
    rows = await app.store.rows(who.tenant_id, "annotations", annotation_id=verdict.answer["annotation_id"])
    return json(annotation_fields(rows[0], found.session_id, found.step_id), 201)


@get(
    "/sessions/{session_id:str}/annotations",
    summary="List annotations of a session, newest first",
    operation_id="session_annotations",
)
async def session_annotations(
    request: Call, app: Here, session_id: FromPath[str], cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    session = await session_row(app, who.tenant_id, session_id)
    return await _page(app, who, {"session_no": session["session_no"]}, cursor, limit)


@get(
    "/annotations",
    summary="List annotations of this tenant, newest first",
    operation_id="list_annotations",
)
async def list_annotations(
    request: Call,
    app: Here,
    category: FromQuery[str | None] = None,
    label: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    filters = {"category": category, "label": label}
    where = {name: value for name, value in filters.items() if value is not None}
    return await _page(app, who, where, cursor, limit)


@delete(
    "/annotations/{annotation_id:str}",
    summary="Withdraw an annotation",
    status_code=200,
    operation_id="remove_annotation",
)
async def remove_annotation(request: Call, app: Here, annotation_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "approve")
    operates = allows(who, "operate")
    act = annotating.withdraw(who, annotation_id, app.clock(), operates=operates)
    verdict = await app.command(act)
    return json(verdict.answer, verdict.code)


async def _page(
    app: AppState, who: Principal, where: dict[str, Any], cursor: str | None, limit: int
) -> Response[bytes]:
    before = read_id_cursor(cursor, "ann_")
    rows = await playback(app).annotations_page(who.tenant_id, where, before, limit + 1)
    shown, more = rows[:limit], len(rows) > limit
    numbers = sorted({row["session_no"] for row in shown})
    found = await app.store.rows(who.tenant_id, "sessions", session_no=numbers) if numbers else []
    sessions = {row["session_no"]: row["session_id"] for row in found}
    items = [annotation_fields(row, sessions[row["session_no"]], None) for row in shown]
    return json(
        {"items": items, "next_cursor": encode_cursor(shown[-1]["annotation_id"].encode()) if more else None}
    )


annotations_router = Router(
    path="/v1",
    route_handlers=[
        annotation_categories,
        annotate_step,
        session_annotations,
        list_annotations,
        remove_annotation,
    ],
    tags=["Session Cluster Manager"],
)
