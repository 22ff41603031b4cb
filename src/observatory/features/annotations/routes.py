"""What people note about steps: free text, a label, a kind of failure (rules S219–S221).

Operators, approvers and admins write, everybody who reads sees. Taking one back hides it; the record keeps
that it was there, and the hash of what it said.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody

from observatory.features.annotations import commands as annotating
from observatory.features.annotations.commands import TAXONOMY, Note, Subject
from observatory.features.graph.loader import playback, session_row
from observatory.http.answers import Cursor, Limit, Refusal, json, read_id_cursor, sealed
from observatory.http.app_state import Call, Here, House
from observatory.http.authentication import allows
from observatory.http.permissions import need
from observatory.pipeline.ports import MessageFilter, StoredMessage
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_uuid
from observatory.runtime.seen import Seen

MOST_BYTES = 4_096


class NewAnnotation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`category` is one of those that `GET /v1/annotations/categories` lists."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_BYTES)]
    label: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None = None
    category: str | None = None


@get(
    "/annotations/categories",
    summary="Kinds of failure an annotation can name",
    operation_id="annotation_categories",
)
async def annotation_categories(request: Call, house: Here) -> Response[bytes]:
    await need(request, house, "read")
    items = [{"category": name, "family": row[0], "meaning": row[1]} for name, row in TAXONOMY.items()]
    return json({"items": items, "next_cursor": None})


@post(
    "/sessions/{session_id:str}/steps/{step:str}/annotations",
    summary="Note something about a step",
    operation_id="annotate_step",
)
async def annotate_step(
    request: Call, house: Here, session_id: FromPath[str], step: FromPath[str], data: JSONBody[NewAnnotation]
) -> Response[bytes]:
    who = await need(request, house, "approve")
    if len(data.text.encode()) > MOST_BYTES:
        raise Refusal(422, "too_long", "text: an annotation has at most 4,096 bytes")
    if data.category is not None and data.category not in TAXONOMY:
        raise Refusal(422, "bad_category", f"category: one of {', '.join(TAXONOMY)}")
    session = await session_row(house, who.tenant_id, session_id)
    found = await archived(house, who, session["session_id"], step)
    about = Subject(found.sequence_number, found.message_id, found.session_id, session["session_no"])
    note = Note(data.label, data.category, data.text)
    verdict = await house.command(annotating.annotate(who, about, note, house.clock()))
    rows = await house.store.rows(who.tenant_id, "annotations", annotation_id=verdict.answer["annotation_id"])
    return json(_item(rows[0], found.session_id, found.step_id), 201)


@get(
    "/sessions/{session_id:str}/annotations",
    summary="What was noted in a session, newest first",
    operation_id="session_annotations",
)
async def session_annotations(
    request: Call, house: Here, session_id: FromPath[str], cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    who = await need(request, house, "read")
    session = await session_row(house, who.tenant_id, session_id)
    return await _page(house, who, {"session_no": session["session_no"]}, cursor, limit)


@get(
    "/annotations",
    summary="What was noted in this tenant, newest first",
    operation_id="list_annotations",
)
async def list_annotations(
    request: Call,
    house: Here,
    category: FromQuery[str | None] = None,
    label: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await need(request, house, "read")
    wanted = {"category": category, "label": label}
    where = {name: value for name, value in wanted.items() if value is not None}
    return await _page(house, who, where, cursor, limit)


@delete(
    "/annotations/{annotation_id:str}",
    summary="Take an annotation back",
    status_code=200,
    operation_id="remove_annotation",
)
async def remove_annotation(request: Call, house: Here, annotation_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "approve")
    operates = allows(who, "operate")
    act = annotating.take_back(who, annotation_id, house.clock(), operates=operates)
    verdict = await house.command(act)
    return json(verdict.answer, verdict.code)


async def archived(house: House, who: Principal, session_id: str, step: str) -> StoredMessage:
    """The message meant, in this session: by step id, message id or number."""
    for text in (canonical_uuid(step) or step, f"{session_id}/{step}"):
        found = await house.store.message(who.tenant_id, text)
        if found is not None and found.session_id == session_id:
            return found
    if step.isascii() and step.isdigit() and len(step) <= 12:
        by_number = await numbered(house, who, int(step))
        if by_number is not None and by_number.session_id == session_id:
            return by_number
    raise Refusal(404, "not_found", "no step or message of this session has that id")


async def numbered(house: House, who: Principal, number: int) -> StoredMessage | None:
    where = MessageFilter(after=number - 1, before=number + 1)
    found = await house.store.messages(who.tenant_id, where, 1, newest_first=False)
    return found[0] if found else None


async def _page(
    house: House, who: Principal, where: dict[str, Any], cursor: str | None, limit: int
) -> Response[bytes]:
    before = read_id_cursor(cursor, "ann_")
    rows = await playback(house).annotations_page(who.tenant_id, where, before, limit + 1)
    shown, more = rows[:limit], len(rows) > limit
    numbers = sorted({row["session_no"] for row in shown})
    found = await house.store.rows(who.tenant_id, "sessions", session_no=numbers) if numbers else []
    sessions = {row["session_no"]: row["session_id"] for row in found}
    items = [_item(row, sessions[row["session_no"]], None) for row in shown]
    return json(
        {"items": items, "next_cursor": sealed(shown[-1]["annotation_id"].encode()) if more else None}
    )


def annotation_item(row: dict[str, Any], seen: Seen) -> dict[str, Any]:
    return _item(row, seen.session_id, seen.step_id)


def _item(row: dict[str, Any], session_id: str, step_id: str | None) -> dict[str, Any]:
    return {
        "annotation_id": row["annotation_id"],
        "session_id": session_id,
        "sequence_number": row["sequence_number"],
        "step_id": step_id,
        "author_id": row["author_id"],
        "label": row["label"],
        "category": row["category"],
        "text": row["text"],
        "created_at": from_ns(row["created_ns"]),
    }


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
