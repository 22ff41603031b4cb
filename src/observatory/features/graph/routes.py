"""A session's causal graph and the details of one step over HTTP (rules S204–S215).

Read from the archive, so always current. A graph's nodes are short; a whole step has its own endpoint.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get
from litestar.background_tasks import BackgroundTask
from litestar.enums import MediaType
from litestar.params import FromPath, QueryParameter

from observatory.derived.seen import FoldMessage
from observatory.features.graph.queries_session import LoadedSession, Row, load, session_row
from observatory.features.graph.types_annotations import annotation_item
from observatory.features.graph.types_step_details import detail
from observatory.features.thoughts.queries_seals import is_sealed
from observatory.http.answers import MAX_SEQUENCE, Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.protocol import clock
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_uuid


@get("/sessions/{session_id:str}/dag", summary="A session's causal graph", operation_id="session_dag")
async def session_dag(
    request: Call,
    app: Here,
    session_id: FromPath[str],
    after: Annotated[
        int | None,
        QueryParameter(
            ge=0,
            le=MAX_SEQUENCE,
            description="A `version`: only nodes changed since, with every edge into each of them.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        QueryParameter(
            description="`as_of` of the previous answer: includes changes made only by time since."
        ),
    ] = None,
) -> Response[bytes]:
    """Nodes in sequence order. With `after`, nodes and edges replace those the reader has."""
    principal = await require_permission(request, app, "read")
    since_ns = _time(since)
    session = await session_row(app, principal.tenant_id, session_id)
    loaded = await load(app, principal.tenant_id, session, is_glance=True)
    body = await asyncio.to_thread(_encoded, loaded, app.clock(), after, since_ns)
    # Freeing 10,000 steps takes as long as encoding them: in a thread, after the response was sent.
    clear = BackgroundTask(asyncio.to_thread, loaded.graph.clear)
    return Response(body, media_type=MediaType.JSON, background=clear)


def _encoded(loaded: LoadedSession, now_ns: int, after: int | None, since_ns: int | None) -> bytes:
    graph = loaded.graph
    drawing = graph.drawn(now_ns) if after is None else graph.drawn_since(after, now_ns, since_ns)
    return msgspec.json.encode(
        {
            "session_id": loaded.session["session_id"],
            "version": graph.version,
            "as_of": from_ns(now_ns),
            "after": after,
            "truncated": loaded.truncated,
            "nodes": drawing.nodes,
            "edges": drawing.edges,
            "refused_edges": graph.refused(),
            "roots": graph.roots(now_ns),
            "agents": graph.agents(now_ns, loaded.paused, loaded.undecided),
            "summary": graph.summary(now_ns),
        }
    )


def _time(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return clock.to_ns(text)
    except ValueError as error:
        raise Refusal(400, "bad_time", f"since: expected {clock.EXPECTED}") from error


@get(
    "/sessions/{session_id:str}/steps/{step:str}",
    summary="Everything recorded about one step",
    operation_id="session_step",
)
async def session_step(
    request: Call, app: Here, session_id: FromPath[str], step: FromPath[str]
) -> Response[bytes]:
    """By step id, message id or sequence number; if the step id contains a slash, use the message id."""
    principal = await require_permission(request, app, "read")
    session = await session_row(app, principal.tenant_id, session_id)
    loaded = await load(app, principal.tenant_id, session)
    seen = find(loaded, step)
    if seen is None:
        raise Refusal(404, "not_found", "no step or message of this session has that id")
    details = await asyncio.to_thread(detail, loaded.graph, seen, app.clock())
    return json(details | await _about(app, principal.tenant_id, seen))


def find(loaded: LoadedSession, step: str) -> FoldMessage | None:
    step_id = canonical_uuid(step) or step
    for seen in loaded.graph.steps():
        if step_id in (seen.step_id, seen.message_id, seen.name, str(seen.seq)):
            return seen
    return None


async def _about(app: AppState, tenant_id: str, seen: FoldMessage) -> dict[str, Any]:
    """What people and gates did with the step, and where its exact bytes are."""
    store, here = app.store, {"sequence_number": seen.seq}
    holds = await store.rows(tenant_id, "holds", **here)
    rewrites = await store.rows(tenant_id, "rewrites", message_seq=seen.seq)
    notes = await store.rows(tenant_id, "annotations", session_no=seen.session_no, **here)
    reviews = await store.rows(tenant_id, "reviews", **here)
    return {
        "hold": _hold(holds[0]) if holds else None,
        "rewrites": [_rewrite(row) for row in rewrites],
        "annotations": [annotation_item(row, seen) for row in notes if row["removed_ns"] is None],
        "review": _review(reviews[0]) if reviews else None,
        "sealed": await is_sealed(app, tenant_id, seen.session_id, seen.seq),
        "links": {
            "message": f"/v1/messages/{seen.message_id}",
            "exact_bytes": f"/v1/messages/{seen.message_id}?raw=true",
            "trail": f"/v1/audit/trace/{seen.session_id}",
        },
    }


def _hold(row: Row) -> Row:
    return {
        "state": row["state"],
        "cause": row["cause"],
        "reason": row["reason"],
        "gate": ("none", "open", "approved")[row["gate"]],
        "digest": "sha256:" + bytes(row["digest"]).hex(),
        "approvals": msgspec.json.decode(row["approvals"]) if row["approvals"] else [],
        "quorum": row["quorum"],
        "requested_by": row["requested_by"],
        "deadline": None if row["deadline_ns"] is None else from_ns(row["deadline_ns"]),
        "held_at": from_ns(row["held_ns"]),
        "ended_at": None if row["ended_ns"] is None else from_ns(row["ended_ns"]),
        "ended_by": row["ended_by"],
    }


def _rewrite(row: Row) -> Row:
    return {
        "sequence_number": row["sequence_number"],
        "digest": "sha256:" + bytes(row["digest"]).hex(),
        "created_at": from_ns(row["created_ns"]),
        "undone_at": None if row["undone_ns"] is None else from_ns(row["undone_ns"]),
    }


def _review(row: Row) -> Row:
    return {
        "verdict": row["verdict"],
        "note": row["note"],
        "reviewed_by": row["reviewed_by"],
        "reviewed_at": from_ns(row["reviewed_ns"]),
    }


dag = Router(path="/v1", route_handlers=[session_dag, session_step], tags=["Session Cluster Manager"])
