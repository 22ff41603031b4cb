"""How doors read a session whole: rows in one query, then decoding and folding in a thread of their own.

The event loop only waits: a session of 10,000 steps is a few hundred milliseconds of work that must not
stand between an agent and its acknowledgement. Two are read at a time, neither of more than 64 MB.
"""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from observatory.features.graph.graph import Graph
from observatory.features.sessions.types import Playback, Played, seen_of
from observatory.http.answers import Refusal
from observatory.http.app_state import House
from observatory.protocol.identity import canonical_uuid

# Beyond it the oldest steps of a session are left out, and the answer says so.
MOST_STEPS = 20_000
MOST_BYTES = 64 * 1024 * 1024
AT_ONCE = 2  # sessions read whole
MOST_UNKNOWN = 4_000
Row = dict[str, Any]
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class Loaded(msgspec.Struct):
    session: Row
    graph: Graph
    truncated: bool
    paused: list[str]
    undecided: list[str] | None


def playback(house: House) -> Playback:
    store = house.store
    assert isinstance(store, Playback)  # a promise of every store
    return store


async def session_row(house: House, tenant_id: str, session_id: str) -> Row:
    wanted = canonical_uuid(session_id) or session_id
    rows = await house.store.rows(tenant_id, "sessions", session_id=wanted)
    if not rows:
        raise Refusal(404, "not_found", "no session of this tenant has that id")
    return rows[0]


def turn() -> asyncio.Semaphore:
    """Held by whoever reads a session whole."""
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))


async def newest(
    store: Playback, tenant_id: str, session: Row, most: int, most_bytes: int
) -> tuple[list[Played], bool]:
    """A session's newest messages, and whether older ones were left out."""
    start = await store.cut(tenant_id, session, most, most_bytes)
    span = session if start is None else session | {"first_seq": start}
    rows = await store.play(tenant_id, span, most + 1)
    return rows[-most:], start is not None or len(rows) > most


async def load(house: House, tenant_id: str, session: Row, is_glance: bool = False) -> Loaded:
    """The session as it is now; what it names outside of itself is looked up once. With a glance its steps
    hold what nodes show, not the rest of their logs."""
    async with turn():
        return await _load(house, tenant_id, session, is_glance)


async def _load(house: House, tenant_id: str, session: Row, is_glance: bool) -> Loaded:
    store, here = playback(house), {"session_no": session["session_no"]}
    rows, truncated = await newest(store, tenant_id, session, MOST_STEPS, MOST_BYTES)
    members = await house.store.rows(tenant_id, "members", **here)
    commands = await house.store.rows(tenant_id, "interventions", **here)
    numbers = sorted({row["agent_no"] for row in (*members, *commands)})
    agents = await house.store.rows(tenant_id, "agents", agent_no=numbers) if numbers else []
    settings = house.settings
    graph = Graph(settings.low_confidence, settings.orphan_wait_s)
    unknown = await asyncio.to_thread(_fill, graph, tenant_id, session, rows, commands, agents, is_glance)
    if unknown:
        graph.elsewhere(await store.steps_named(tenant_id, sorted(unknown)[:MOST_UNKNOWN]))
    names = {row["agent_no"]: row["agent_id"] for row in agents}
    paused = [names[row["agent_no"]] for row in members if row["paused_ns"] and row["agent_no"] in names]
    return Loaded(session, graph, truncated, paused, await _undecided(house, tenant_id, graph))


def _fill(
    graph: Graph,
    tenant_id: str,
    session: Row,
    rows: list[Played],
    commands: list[Row],
    agents: list[Row],
    is_glance: bool,
) -> set[str]:
    """In a thread; what parents were named that are no steps of this session."""
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


async def _undecided(house: House, tenant_id: str, graph: Graph) -> list[str] | None:
    """Of the decisions asked for here and not answered here, those that are still open."""
    asked = sorted(graph.open_requests())
    if not asked:
        return []
    rows = await house.store.rows(tenant_id, "decisions", decision_id=asked, state="pending")
    return [row["decision_id"] for row in rows]
