"""The review queue: steps whose agent was not sure of itself, until a person has looked (rules S222–S224)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.annotations import commands as annotating
from observatory.features.annotations.commands import Outcome, Subject
from observatory.features.annotations.routes import numbered
from observatory.features.graph.labels import INTENT
from observatory.features.graph.loader import playback
from observatory.features.sessions.types import Played
from observatory.http.answers import MAX_SEQUENCE, Cursor, Limit, Refusal, json, page, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.decision_log import DecisionLog

# How much of the archive is looked through that the analyst has not come to yet.
MOST_UNFOLDED = 50_000
_log = msgspec.json.Decoder(DecisionLog).decode


class Review(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    verdict: Outcome
    note: Annotated[str, msgspec.Meta(max_length=4_096)] | None = None


@get(
    "/reviews",
    summary="Steps of low confidence nobody has looked at, or those looked at, newest first",
    operation_id="list_reviews",
)
async def list_reviews(
    request: Call,
    house: Here,
    in_state: Annotated[Literal["open", "done"], QueryParameter(name="state")] = "open",
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await need(request, house, "read")
    before = read_cursor(cursor)
    numbers = await (open_reviews if in_state == "open" else _done)(house, who, before, limit + 1)
    items = await review_items(house, who, numbers[:limit])
    last = numbers[limit - 1] if len(numbers) > limit else None
    answer = page([*items, *numbers[limit:]], limit, last)
    return json(answer | {"threshold": house.settings.low_confidence})


@post(
    "/reviews/{sequence_number:str}",
    summary="Say what a look at a step found",
    status_code=200,
    operation_id="review_step",
)
async def review_step(
    request: Call, house: Here, sequence_number: FromPath[str], data: JSONBody[Review]
) -> Response[bytes]:
    who = await need(request, house, "approve")
    is_number = sequence_number.isascii() and sequence_number.isdigit() and len(sequence_number) <= 13
    number = int(sequence_number) if is_number else 0
    found = await numbered(house, who, number) if 0 < number <= MAX_SEQUENCE else None
    if found is None:
        raise Refusal(404, "not_found", "no message of this tenant has that number")
    sessions = await house.store.rows(who.tenant_id, "sessions", session_id=found.session_id)
    about = Subject(number, found.message_id, found.session_id, sessions[0]["session_no"])
    await house.command(annotating.review(who, about, data.verdict, data.note, house.clock()))
    (item,) = await review_items(house, who, [number])
    return json(item)


async def open_reviews(house: House, who: Principal, before: int | None, limit: int) -> list[int]:
    """What the analyst has folded out of its store, what it has not out of the archive itself."""
    tenant_id, below = who.tenant_id, house.settings.low_confidence
    head, _ = await house.store.head(tenant_id)
    folded = (await house.derived.progress(tenant_id)).seq
    edge = min(folded + 1, before or folded + 1)
    after = max(folded, head - MOST_UNFOLDED)
    found = await playback(house).low_confidence(tenant_id, below, after, before, limit)
    while len(found) < limit:
        some = await house.derived.doubts(tenant_id, below, edge, limit)
        if not some:
            break
        found += await _unseen(house, who, some)
        edge = some[-1]
    return found[:limit]


async def _unseen(house: House, who: Principal, numbers: list[int]) -> list[int]:
    """Those that were forwarded and nobody has reviewed."""
    rows = await house.store.rows(who.tenant_id, "reviews", sequence_number=numbers)
    done = {row["sequence_number"] for row in rows}
    held = await house.store.rows(who.tenant_id, "holds", sequence_number=numbers)
    back = {row["sequence_number"] for row in held if row["state"] != "released"}
    left = [number for number in numbers if number not in done and number not in back]
    found = await playback(house).played(who.tenant_id, left)
    return [number for number in left if number in found and found[number][1].state == "forwarded"]


async def _done(house: House, who: Principal, before: int | None, limit: int) -> list[int]:
    rows = await house.store.rows(who.tenant_id, "reviews")
    numbers = sorted((row["sequence_number"] for row in rows), reverse=True)
    return [number for number in numbers if before is None or number < before][:limit]


async def review_items(house: House, who: Principal, numbers: list[int]) -> list[dict[str, Any]]:
    """In three queries, however many; in the order of the numbers."""
    if not numbers:
        return []
    found = await playback(house).played(who.tenant_id, numbers)
    rows = await house.store.rows(who.tenant_id, "reviews", sequence_number=numbers)
    reviewed = {row["sequence_number"]: row for row in rows}
    places = sorted({session_no for session_no, _ in found.values()})
    sessions = await house.store.rows(who.tenant_id, "sessions", session_no=places)
    ids = {row["session_no"]: row["session_id"] for row in sessions}
    return [_shown(ids[found[one][0]], found[one][1], reviewed.get(one)) for one in numbers if one in found]


def _shown(session_id: str, row: Played, review: dict[str, Any] | None) -> dict[str, Any]:
    log = _log(row.raw) if row.raw is not None and row.message_type == "decision_log" else None
    thought = None if log is None else log.cognition
    return {
        "sequence_number": row.seq,
        "message_id": row.message_id,
        "session_id": session_id,
        "step_id": row.step_id,
        "state": row.state,
        "at": row.at,
        "agent_id": None if log is None else log.identity.agent_id,
        "tool": None if log is None else log.action.tool_call,
        "status": None if log is None else log.action.status,
        "intent": None if thought is None else thought.intent[:INTENT],
        "confidence": None if thought is None else thought.confidence_score,
        "verdict": None if review is None else review["verdict"],
        "note": None if review is None else review["note"],
        "reviewed_by": None if review is None else review["reviewed_by"],
        "reviewed_at": None if review is None else from_ns(review["reviewed_ns"]),
    }


reviews = Router(path="/v1", route_handlers=[list_reviews, review_step], tags=["Session Cluster Manager"])
