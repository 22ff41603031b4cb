"""The review queue: steps of low confidence, until a person has reviewed them (rules S222–S224)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.annotations import commands as annotating
from observatory.features.annotations.commands import AnnotatedMessage
from observatory.features.annotations.queries import open_reviews, review_items
from observatory.features.graph.queries_session import message_numbered
from observatory.features.graph.types_annotations import Outcome
from observatory.http.answers import MAX_SEQUENCE, Cursor, Limit, Refusal, json, page, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal


class Review(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    verdict: Outcome
    note: Annotated[str, msgspec.Meta(max_length=4_096)] | None = None


@get(
    "/reviews",
    summary="List steps of low confidence that need review, or reviewed ones, newest first",
    operation_id="list_reviews",
)
async def list_reviews(
    request: Call,
    app: Here,
    in_state: Annotated[Literal["open", "done"], QueryParameter(name="state")] = "open",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    before = read_cursor(cursor)
    numbers = await (open_reviews if in_state == "open" else _done)(app, who, before, limit + 1)
    items = await review_items(app, who, numbers[:limit])
    last = numbers[limit - 1] if len(numbers) > limit else None
    answer = page([*items, *numbers[limit:]], limit, last)
    return json(answer | {"threshold": app.settings.low_confidence})


@post(
    "/reviews/{sequence_number:str}",
    summary="Review a step",
    status_code=200,
    operation_id="review_step",
)
async def review_step(
    request: Call, app: Here, sequence_number: FromPath[str], data: JSONBody[Review]
) -> Response[bytes]:
    who = await require_permission(request, app, "approve")
    is_number = sequence_number.isascii() and sequence_number.isdigit() and len(sequence_number) <= 13
    number = int(sequence_number) if is_number else 0
    found = await message_numbered(app, who, number) if 0 < number <= MAX_SEQUENCE else None
    if found is None:
        raise Refusal(404, "not_found", "no message of this tenant has that number")
    sessions = await app.store.rows(who.tenant_id, "sessions", session_id=found.session_id)
    about = AnnotatedMessage(number, found.message_id, found.session_id, sessions[0]["session_no"])
    await app.command(annotating.review(who, about, data.verdict, data.note, app.clock()))
    (item,) = await review_items(app, who, [number])
    return json(item)


async def _done(app: AppState, who: Principal, before: int | None, limit: int) -> list[int]:
    rows = await app.store.rows(who.tenant_id, "reviews")
    numbers = sorted((row["sequence_number"] for row in rows), reverse=True)
    return [number for number in numbers if before is None or number < before][:limit]


reviews = Router(path="/v1", route_handlers=[list_reviews, review_step], tags=["Session Cluster Manager"])
