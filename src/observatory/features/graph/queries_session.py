"""Loads a whole session for an endpoint: rows in one query, then decoding and folding in a thread.

The event loop only waits: a session of 10,000 steps is a few hundred milliseconds of work that must not
delay an agent's acknowledgement. Two are read at a time, neither of more than 64 MB.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from observatory.features.graph.graph import SessionGraph
from observatory.features.graph.types_session import SessionMessage, SessionPlayback, seen_of
from observatory.http.answers import Refusal
from observatory.http.app_state import AppState
from observatory.http.limits import session_read_slot
from observatory.pipeline.ports import MessageFilter, StoredMessage
from observatory.pipeline.state import Principal
from observatory.protocol.identity import canonical_uuid

# Beyond these bounds the oldest steps of a session are left out, and the answer says so.
MAX_STEPS = 20_000
MAX_BYTES = 64 * 1024 * 1024
MAX_UNKNOWN = 4_000
Row = dict[str, Any]


class LoadedSession(msgspec.Struct):
    session: Row
    graph: SessionGraph
    truncated: bool
    paused: list[str]
    undecided: list[str] | None


def playback(app: AppState) -> SessionPlayback:
    store = app.store
    assert isinstance(store, SessionPlayback)  # every store implements it
    return store


async def session_row(app: AppState, tenant_id: str, session_id: str) -> Row:
    canonical_id = canonical_uuid(session_id) or session_id
    rows = await app.store.rows(tenant_id, "sessions", session_id=canonical_id)
    if not rows:
        raise Refusal(404, "not_found", "no session of this tenant has that id")
    return rows[0]


async def newest(
    store: SessionPlayback, tenant_id: str, session: Row, most: int, most_bytes: int
) -> tuple[list[SessionMessage], bool]:
    """A session's newest messages, and whether older ones were left out."""
    start = await store.cut(tenant_id, session, most, most_bytes)
    span = session if start is None else session | {"first_seq": start}
    rows = await store.play(tenant_id, span, most + 1)
    return rows[-most:], start is not None or len(rows) > most


async def load(app: AppState, tenant_id: str, session: Row, is_glance: bool = False) -> LoadedSession:
    """The session as it is now; names outside of it are looked up once. With `is_glance` its steps have what
    nodes show, not the rest of their logs."""
    async with session_read_slot():
        return await _load(app, tenant_id, session, is_glance)


async def _load(app: AppState, tenant_id: str, session: Row, is_glance: bool) -> LoadedSession:
    store, here = playback(app), {"session_no": session["session_no"]}
    rows, truncated = await newest(store, tenant_id, session, MAX_STEPS, MAX_BYTES)
    members = await app.store.rows(tenant_id, "members", **here)
    commands = await app.store.rows(tenant_id, "interventions", **here)
    numbers = sorted({row["agent_no"] for row in (*members, *commands)})
    agents = await app.store.rows(tenant_id, "agents", agent_no=numbers) if numbers else []
    settings = app.settings
    graph = SessionGraph(settings.low_confidence, settings.orphan_wait_s)
    unknown = await asyncio.to_thread(_fill, graph, tenant_id, session, rows, commands, agents, is_glance)
    if unknown:
        graph.elsewhere(await store.steps_named(tenant_id, sorted(unknown)[:MAX_UNKNOWN]))
    names = {row["agent_no"]: row["agent_id"] for row in agents}
    paused = [names[row["agent_no"]] for row in members if row["paused_ns"] and row["agent_no"] in names]
    return LoadedSession(session, graph, truncated, paused, await _undecided(app, tenant_id, graph))


def _fill(
    graph: SessionGraph,
    tenant_id: str,
    session: Row,
    rows: list[SessionMessage],
    commands: list[Row],
    agents: list[Row],
    is_glance: bool,
) -> set[str]:
    """Runs in a thread; returns the parents named that are no steps of this session."""
    by_entity = {row["entity_id"]: row for row in agents}
    for row in rows:
        graph.add(seen_of(row, tenant_id, session, by_entity, is_glance), row.rewrite_seq or 0)
        if row.gate is not None:
            graph.hold(
                {
                    "sequence_number": row.seq,
                    "gate": row.gate,
                    "reason": row.reason,
                    "released_seq": row.released_seq,
                }
            )
    names = {row["agent_no"]: row["agent_id"] for row in agents}
    for command in commands:
        graph.intervene(command | {"agent_id": names.get(command["agent_no"])})
    return graph.unknown_parents()


async def _undecided(app: AppState, tenant_id: str, graph: SessionGraph) -> list[str] | None:
    """Of the decisions asked for here and not answered here, those that are still open."""
    requested = sorted(graph.open_requests())
    if not requested:
        return []
    rows = await app.store.rows(tenant_id, "decisions", decision_id=requested, state="pending")
    return [row["decision_id"] for row in rows]


async def archived_step(app: AppState, who: Principal, session_id: str, step: str) -> StoredMessage:
    """The message of this session named by step id, message id or number."""
    for text in (canonical_uuid(step) or step, f"{session_id}/{step}"):
        found = await app.store.message(who.tenant_id, text)
        if found is not None and found.session_id == session_id:
            return found
    if step.isascii() and step.isdigit() and len(step) <= 12:
        by_number = await message_numbered(app, who, int(step))
        if by_number is not None and by_number.session_id == session_id:
            return by_number
    raise Refusal(404, "not_found", "no step or message of this session has that id")


async def message_numbered(app: AppState, who: Principal, number: int) -> StoredMessage | None:
    where = MessageFilter(after=number - 1, before=number + 1)
    found = await app.store.messages(who.tenant_id, where, 1, newest_first=False)
    return found[0] if found else None
