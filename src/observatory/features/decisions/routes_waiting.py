"""The approvals inbox in one request: open gates, pending decisions, and steps that need review (S310).

Nearest deadline first, then risk, then the oldest. Each item lists what the caller may do, or why not; the
action routes check again. Text is read from what would be forwarded and never stored here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter

from observatory.errors import StoreError
from observatory.features.annotations.queries import open_reviews, review_items
from observatory.features.archive.queries_content import read_contents
from observatory.features.decisions.routes import RISKS
from observatory.features.decisions.stage import options_of
from observatory.features.graph.queries_session import playback
from observatory.features.graph.types_labels import INTENT
from observatory.features.sessions.queries_rows import agents_of
from observatory.http.answers import json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.authentication import allows
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal
from observatory.plural import plural
from observatory.protocol.clock import from_ns
from observatory.protocol.messages import DecisionOption, RiskLevel

MAX_GATES = 1_000  # counted; a longer list is of no use
MAX_REVIEWS = 100
Kind = Literal["gate", "decision", "review"]
KINDS: tuple[Kind, ...] = ("gate", "decision", "review")
Row = dict[str, Any]


class AllowedAction(msgspec.Struct, kw_only=True):
    verb: Literal["approve", "edit", "reject", "respond", "cancel", "review"]
    allowed: bool
    why: str | None


class WaitingCounts(msgspec.Struct, kw_only=True):
    """Reviews are counted up to 100; `reviews_more` says that there are more."""

    gates: int
    decisions: int
    reviews: int
    total: int
    reviews_more: bool


class WaitingItem(msgspec.Struct, kw_only=True):
    """`recipient`: for a gate, the message's recipient; for a decision, the user who is asked."""

    kind: Kind
    id: str
    session_id: str
    agent_id: str | None
    title: str | None
    why: str
    risk: RiskLevel | None
    deadline: str | None
    on_expiry: Literal["deny", "approve", "auto", "expire"] | None
    held_at: str
    sequence_number: int
    message_id: str | None
    message_type: str | None
    tool: str | None
    action_digest: str | None
    rewritten: bool
    quorum: int
    approvals: list[str]
    requested_by: str | None
    key_maker: str | None
    recipient: str | None
    confidence: float | None
    options: list[DecisionOption] | None
    can: list[AllowedAction]


class WaitingAnswer(msgspec.Struct, kw_only=True):
    as_of: str
    counts: WaitingCounts
    items: list[WaitingItem]


class _Cognition(msgspec.Struct):
    intent: str | None = None
    confidence_score: float | None = None


class _Action(msgspec.Struct):
    tool_call: str | None = None


class _Payload(msgspec.Struct):
    title: str | None = None
    description: str | None = None
    content: str | None = None
    action_type: str | None = None
    options: list[DecisionOption] | None = None


class InboxContent(msgspec.Struct):
    """The parts of a message that the inbox shows."""

    cognition: _Cognition | None = None
    action: _Action | None = None
    payload: _Payload | None = None

    @property
    def title(self) -> str | None:
        payload = self.payload or _Payload()
        text = self.cognition.intent if self.cognition is not None else payload.title or payload.content
        return None if text is None else " ".join(text[: 4 * INTENT].split())[:INTENT]

    @property
    def risk(self) -> RiskLevel | None:
        options = (self.payload.options if self.payload is not None else None) or []
        risks = [one.risk_level for one in options if one.risk_level is not None]
        return max(risks, key=RISKS.index, default=None)


class WaitingList(NamedTuple):
    counts: Row
    items: list[Row]


@get("/waiting", summary="List what waits for a person, the most urgent first", operation_id="list_waiting")
async def list_waiting(
    request: Call,
    app: Here,
    kind: FromQuery[Kind | None] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=500, description="Maximum number of items.")] = 100,
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    found = await list_waiting_items(app, who, limit, KINDS if kind is None else (kind,))
    items = [item | {"can": _can(app, who, item)} for item in found.items]
    return json({"as_of": from_ns(app.clock()), "counts": found.counts, "items": items})


async def list_waiting_items(
    app: AppState,
    who: Principal,
    limit: int,
    kinds: Collection[str] = KINDS,
    reviews: list[Row] | None = None,
) -> WaitingList:
    """All kinds are counted; only `kinds` are listed. `reviews`: those read a moment ago."""
    tenant_id = who.tenant_id
    gates = await app.store.holds_page(tenant_id, None, MAX_GATES, True)
    asked = await app.store.rows(tenant_id, "decisions", state="pending")
    doubts = await reviews_of(app, who) if reviews is None else reviews
    counts = {
        "gates": len(gates),
        "decisions": len(asked),
        "reviews": min(len(doubts), MAX_REVIEWS),
        "total": len(gates) + len(asked) + min(len(doubts), MAX_REVIEWS),
        "reviews_more": len(doubts) > MAX_REVIEWS,
    }
    first = sorted(
        [*(gates if "gate" in kinds else ()), *(asked if "decision" in kinds else ())], key=_urgency
    )[:limit]
    items = await _listed(app, tenant_id, first)
    if "review" in kinds:
        items += [_review(one) for one in doubts[: min(limit, MAX_REVIEWS)]]
    return WaitingList(counts, sorted(items, key=_order)[:limit])


async def reviews_of(app: AppState, who: Principal) -> list[Row]:
    """One more than is counted, to know whether there are more. Empty when the derived store is unavailable:
    gates and decisions are still listed."""
    with suppress(StoreError):
        numbers = await open_reviews(app, who, None, MAX_REVIEWS + 1)
        return await review_items(app, who, numbers)
    return []


def _urgency(row: Row) -> tuple[int, int]:
    return row["deadline_ns"] or 1 << 62, row.get("held_ns") or row["created_ns"]


def _order(item: Row) -> tuple[str, int, str]:
    risk = -1 if item["risk"] is None else RISKS.index(item["risk"])
    return item["deadline"] or "~", -risk, item["held_at"]


async def _listed(app: AppState, tenant_id: str, rows: list[Row]) -> list[Row]:
    gates = [row for row in rows if "held_ns" in row]
    asked = [row for row in rows if "held_ns" not in row]
    numbers = [row["sequence_number"] for row in gates] + [row["request_seq"] for row in asked]
    words = await read_contents(app, tenant_id, numbers, lambda _, raw: inbox_content(raw))
    rewritten = [row["rewrite_seq"] for row in gates if row["rewrite_seq"] is not None]
    for row in await app.store.rows(tenant_id, "rewrites", sequence_number=rewritten) if rewritten else ():
        words[row["message_seq"]] = inbox_content(None if row["raw"] is None else bytes(row["raw"]))
    # The event that opened a gate follows its message's own event and has the reasons.
    opened = await playback(app).records(tenant_id, [row["sequence_number"] + 1 for row in gates])
    found = sorted({row["session_no"] for row in rows})
    sessions = await app.store.rows(tenant_id, "sessions", session_no=found) if found else []
    session_ids = {row["session_no"]: row["session_id"] for row in sessions}
    agents = await agents_of(app, tenant_id, {row["agent_no"] for row in rows})
    names = await _names(app, tenant_id, {row["recipient"] for row in gates if row["recipient"]})
    messages = await playback(app).played(tenant_id, [row["request_seq"] for row in asked])
    items = []
    for row in gates:
        content, number = words.get(row["sequence_number"], InboxContent()), row["sequence_number"]
        why = _why(opened.get(number + 1), row)
        place = (session_ids.get(row["session_no"], ""), agents.get(row["agent_no"], {}).get("agent_id"))
        items.append(_gate(row, content, why, place, names.get(row["recipient"], row["recipient"])))
    for row in asked:
        content = words.get(row["request_seq"], InboxContent())
        place = (session_ids.get(row["session_no"], ""), agents.get(row["agent_no"], {}).get("agent_id"))
        known = messages.get(row["request_seq"])
        items.append(_decision(row, content, place, None if known is None else known[1].message_id))
    return items


async def _names(app: AppState, tenant_id: str, recipients: Iterable[str]) -> dict[str, str]:
    """Agents by their entity ids; addresses stay as they are."""
    wanted = sorted(one for one in recipients if one.startswith("agt_"))
    rows = await app.store.rows(tenant_id, "agents", entity_id=wanted) if wanted else []
    return {row["entity_id"]: row["agent_id"] for row in rows}


def inbox_content(raw: bytes | None) -> InboxContent:
    try:
        return InboxContent() if raw is None else msgspec.json.decode(raw, type=InboxContent)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # archived content that cannot be decoded any more
        return InboxContent()


def _why(record: bytes | None, row: Row) -> str:
    body: Row = {} if record is None else msgspec.json.decode(record)["body"]
    reasons = body.get("reasons") or []
    reason_texts = (
        [one["detail"] for one in reasons if one.get("detail")]
        if body.get("event_type") == "gate_opened"
        else []
    )
    return "; ".join(reason_texts) or f"held for a person: {row['reason']}"


def _gate(
    row: Row, words: InboxContent, why: str, place: tuple[str, str | None], recipient: str | None
) -> Row:
    action, thought = words.action or _Action(), words.cognition or _Cognition()
    return {
        "kind": "gate",
        "id": row["message_id"],
        "session_id": place[0],
        "agent_id": place[1],
        "title": words.title,
        "why": why,
        "risk": words.risk,
        "deadline": None if row["deadline_ns"] is None else from_ns(row["deadline_ns"]),
        "on_expiry": row["on_expiry"] if row["deadline_ns"] is not None else None,
        "held_at": from_ns(row["held_ns"]),
        "sequence_number": row["sequence_number"],
        "message_id": row["message_id"],
        "message_type": row["message_type"],
        "tool": action.tool_call,
        "action_digest": "sha256:" + bytes(row["digest"]).hex(),
        "rewritten": row["rewrite_seq"] is not None,
        "quorum": row["quorum"],
        "approvals": msgspec.json.decode(row["approvals"]) if row["approvals"] else [],
        "requested_by": row["requested_by"],
        "key_maker": row["key_maker"],
        "recipient": recipient,
        "confidence": thought.confidence_score,
        "options": None,
    }


def _decision(row: Row, words: InboxContent, place: tuple[str, str | None], message_id: str | None) -> Row:
    payload, asked = words.payload or _Payload(), options_of(row)
    options = payload.options or [DecisionOption(option_id=one, label=one) for one in asked.option_ids]
    on_expiry = None if row["deadline_ns"] is None else "auto" if row["auto_option"] else "expire"
    return {
        "kind": "decision",
        "id": row["decision_id"],
        "session_id": place[0],
        "agent_id": place[1],
        "title": words.title,
        "why": payload.description
        or f"{place[1] or 'an agent'} asks to choose one of {plural(len(options), 'option')}",
        "risk": words.risk,
        "deadline": None if row["deadline_ns"] is None else from_ns(row["deadline_ns"]),
        "on_expiry": on_expiry,
        "held_at": from_ns(row["created_ns"]),
        "sequence_number": row["request_seq"],
        "message_id": message_id,
        "message_type": "decision_request",
        "tool": None,
        "action_digest": None,
        "rewritten": False,
        "quorum": 1,
        "approvals": [],
        "requested_by": asked.requested_by,
        "key_maker": asked.key_maker,
        "recipient": row["user_id"],
        "confidence": None,
        "options": options,
    }


def _review(one: Row) -> Row:
    known = one["confidence"] is not None
    confidence = f"confidence {one['confidence']:.0%}" if known else "no confidence"
    return {
        "kind": "review",
        "id": str(one["sequence_number"]),
        "session_id": one["session_id"],
        "agent_id": one["agent_id"],
        "title": one["intent"],
        "why": f"{one['agent_id'] or 'its agent'} reported {confidence}; forwarded, not reviewed yet",
        "risk": None,
        "deadline": None,
        "on_expiry": None,
        "held_at": one["at"],
        "sequence_number": one["sequence_number"],
        "message_id": one["message_id"],
        "message_type": "decision_log",
        "tool": one["tool"],
        "action_digest": None,
        "rewritten": False,
        "quorum": 1,
        "approvals": [],
        "requested_by": None,
        "key_maker": None,
        "recipient": None,
        "confidence": one["confidence"],
        "options": None,
    }


def _can(app: AppState, who: Principal, item: Row) -> list[Row]:
    """The allowed actions, as far as known now."""
    why: str | None = None
    if not allows(who, "approve"):
        why = f"the role {who.role}, or this key's scopes, cannot approve"
    elif item["kind"] != "review" and who.user_id is None:
        why = "only a person can answer; this key belongs to no user"
    elif item["kind"] != "review" and who.has_requested(item["requested_by"], item["key_maker"]):
        why = "you requested this, or created the agent key it came with; another person must answer"
    elif item["deadline"] is not None and item["deadline"] <= from_ns(app.clock()):
        why = "the deadline has passed"
    if item["kind"] == "review":
        return [_may("review", why)]
    if item["kind"] == "decision":
        cancel = None if allows(who, "operate") else f"the role {who.role} cannot cancel decisions"
        return [_may("respond", why), _may("cancel", cancel)]
    given = (
        "you have approved this already; another person must approve"
        if who.entity_id in item["approvals"]
        else None
    )
    return [_may("approve", why or given), _may("edit", why), _may("reject", why)]


def _may(verb: str, why: str | None) -> Row:
    return {"verb": verb, "allowed": why is None, "why": why}


waiting_router = Router(path="/v1", route_handlers=[list_waiting], tags=["Approvals"])
