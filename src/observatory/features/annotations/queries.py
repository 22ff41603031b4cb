"""Derived-store reads for reviews: steps whose confidence is below a threshold, newest first."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import select

from observatory.derived.tables import steps
from observatory.features.graph.queries_session import playback
from observatory.features.graph.types_labels import INTENT
from observatory.features.graph.types_session import LowConfidenceReads, SessionMessage
from observatory.http.app_state import AppState
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.decision_log import DecisionLog
from observatory.store.fetches import Fetches


class ReviewReads(Fetches):
    async def doubts(self, tenant_id: str, below: float, before: int, limit: int) -> list[int]:
        """Numbers before one, whatever the state of the steps and whether they were reviewed."""
        query = (
            select(steps.c.seq)
            .where(steps.c.tenant_id == tenant_id, steps.c.confidence < below, steps.c.seq < before)
            .order_by(steps.c.seq.desc())
            .limit(limit)
        )
        return [row[0] for row in await self.fetch(tenant_id, query)]


async def open_reviews(app: AppState, who: Principal, before: int | None, limit: int) -> list[int]:
    """Folded steps come from the derived store, newer ones from the archive itself."""
    tenant_id, below = who.tenant_id, app.settings.low_confidence
    head, _ = await app.store.head(tenant_id)
    folded = (await app.derived.progress(tenant_id)).seq
    edge = min(folded + 1, before or folded + 1)
    after = max(folded, head - MAX_UNFOLDED)
    found = await playback(app).low_confidence(tenant_id, below, after, before, limit)
    while len(found) < limit:
        some = await app.derived.queries(LowConfidenceReads).doubts(tenant_id, below, edge, limit)
        if not some:
            break
        found += await unreviewed(app, who, some)
        edge = some[-1]
    return found[:limit]


async def review_items(app: AppState, who: Principal, numbers: list[int]) -> list[dict[str, Any]]:
    """In three queries, whatever the number; in the order of the numbers."""
    if not numbers:
        return []
    found = await playback(app).played(who.tenant_id, numbers)
    rows = await app.store.rows(who.tenant_id, "reviews", sequence_number=numbers)
    reviewed = {row["sequence_number"]: row for row in rows}
    session_numbers = sorted({session_no for session_no, _ in found.values()})
    sessions = await app.store.rows(who.tenant_id, "sessions", session_no=session_numbers)
    ids = {row["session_no"]: row["session_id"] for row in sessions}
    return [
        review_item(ids[found[one][0]], found[one][1], reviewed.get(one)) for one in numbers if one in found
    ]


DERIVED_QUERIES = (ReviewReads,)


# How many of the newest messages, not folded yet, are scanned.
MAX_UNFOLDED = 50_000


async def unreviewed(app: AppState, who: Principal, numbers: list[int]) -> list[int]:
    """Those that were forwarded and not reviewed."""
    rows = await app.store.rows(who.tenant_id, "reviews", sequence_number=numbers)
    reviewed = {row["sequence_number"] for row in rows}
    held = await app.store.rows(who.tenant_id, "holds", sequence_number=numbers)
    not_released = {row["sequence_number"] for row in held if row["state"] != "released"}
    numbers_left = [number for number in numbers if number not in reviewed and number not in not_released]
    found = await playback(app).played(who.tenant_id, numbers_left)
    return [number for number in numbers_left if number in found and found[number][1].state == "forwarded"]


def review_item(session_id: str, row: SessionMessage, review: dict[str, Any] | None) -> dict[str, Any]:
    log = decode_log(row.raw) if row.raw is not None and row.message_type == "decision_log" else None
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


decode_log = msgspec.json.Decoder(DecisionLog).decode
