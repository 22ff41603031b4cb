"""The topics `session:dag:{id}`: one session's graph as it grows (S290).

New steps are read by number; holds, commands, members and open decisions when the session's row changed, and
once a second. If content is reverted to an earlier version, the graph is built again. `branch_cost` is left
to the reader, who computes it from `cost` and `parent` (S210): else every step would change all above it.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

from observatory.features.graph.graph import SessionGraph
from observatory.features.graph.queries_session import MAX_STEPS, MAX_UNKNOWN, newest, playback
from observatory.features.graph.types_session import SessionMessage, seen_of
from observatory.http.app_state import AppState
from observatory.http.limits import session_read_slot
from observatory.runtime.feed_channel import Record, SourceChanges

SLACK = 1_000  # this many steps above the limit are kept before the oldest are left out
MAX_BYTES = 32 * 1024 * 1024  # half of what an endpoint reads: a graph that is followed stays in memory
SLACK_BYTES = MAX_BYTES // 4
Row = dict[str, Any]


class DagSource:
    def __init__(self, app: AppState, tenant_id: str, session_id: str, most: int = MAX_STEPS) -> None:
        self._app, self._tenant_id, self._session_id = app, tenant_id, session_id
        self._most = most
        self._reset()

    def _reset(self) -> None:
        settings = self._app.settings
        self._graph = SessionGraph(settings.low_confidence, settings.orphan_wait_s)
        self._session: Row | None = None
        self._last = self._steps = self._bytes = 0
        self._truncated = False
        self._holds: dict[int, Row] = {}
        self._commands: dict[int, Row] = {}
        self._agents: dict[int, Row] = {}
        self._paused: list[str] = []
        self._open: list[str] = []

    async def look(self, head: int, now_ns: int, again: bool) -> SourceChanges:
        rows = await self._app.store.rows(self._tenant_id, "sessions", session_id=self._session_id)
        if not rows:  # it may be created later
            self._reset()
            return SourceChanges([], whole=True)
        session = rows[0]
        if not again and session == self._session:
            return SourceChanges([])
        await self._renew(session)
        self._session = session
        return SourceChanges(await asyncio.to_thread(self._records, now_ns), whole=True)

    async def close(self) -> None: ...

    async def _renew(self, session: Row) -> None:
        store, here = self._app.store, {"session_no": session["session_no"]}
        holds = {row["sequence_number"]: row for row in await store.rows(self._tenant_id, "holds", **here)}
        is_over = self._steps > self._most + SLACK or self._bytes > MAX_BYTES + SLACK_BYTES
        if is_over or any(
            (row["rewrite_seq"] or 0) > (holds.get(number, {}).get("rewrite_seq") or 0)
            for number, row in self._holds.items()
        ):
            self._reset()
        commands = await store.rows(self._tenant_id, "interventions", **here)
        members = await store.rows(self._tenant_id, "members", **here)
        await self._load_agents([row["agent_no"] for row in (*members, *commands)])
        changed = [number for number, row in holds.items() if row != self._holds.get(number)]
        await self._steps_of(session, [number for number in changed if number <= self._last])
        self._holds = holds
        for row in commands:
            if row != self._commands.get(row["sequence_number"]):
                self._commands[row["sequence_number"]] = row
                agent = self._agents.get(row["agent_no"], {})
                self._graph.intervene(row | {"agent_id": agent.get("agent_id")})
        await self._resolve_elsewhere()
        self._paused = [
            self._agents[row["agent_no"]]["agent_id"]
            for row in members
            if row["paused_ns"] and row["agent_no"] in self._agents
        ]
        requested, still = sorted(self._graph.open_requests()), []
        if requested:
            still = await store.rows(self._tenant_id, "decisions", decision_id=requested, state="pending")
        self._open = [row["decision_id"] for row in still]

    async def _load_agents(self, numbers: list[int]) -> None:
        new = sorted({number for number in numbers if number not in self._agents})
        if new:
            for row in await self._app.store.rows(self._tenant_id, "agents", agent_no=new):
                self._agents[row["agent_no"]] = row

    async def _steps_of(self, session: Row, again: list[int]) -> None:
        """Reads new steps, and again those in `again`, whose hold changed."""
        store = playback(self._app)
        known = await store.played(self._tenant_id, again) if again else {}
        span = session | {"first_seq": max(session["first_seq"], self._last + 1)}
        async with nullcontext() if self._last else session_read_slot():
            rows, is_cut = await newest(store, self._tenant_id, span, self._most, MAX_BYTES)
            self._truncated = self._truncated or is_cut
            self._steps += len(rows)
            self._bytes += sum(len(row.raw) for row in rows if row.raw is not None)
            rows += [row for _, row in known.values()]
            if rows:
                self._last = max(self._last, max(row.seq for row in rows))
                await asyncio.to_thread(self._fill, session, rows)

    def _fill(self, session: Row, rows: list[SessionMessage]) -> None:
        by_entity = {row["entity_id"]: row for row in self._agents.values()}
        for row in rows:
            seen = seen_of(row, self._tenant_id, session, by_entity, is_glance=True)
            self._graph.add(seen, row.rewrite_seq or 0)
            if row.gate is not None:
                self._graph.hold(
                    {
                        "sequence_number": row.seq,
                        "gate": row.gate,
                        "reason": row.reason,
                        "released_seq": row.released_seq,
                    }
                )

    async def _resolve_elsewhere(self) -> None:
        """Parents named that are no steps here: looked up again as long as they are unknown."""
        unknown = self._graph.unknown_parents()
        if unknown:
            found = await playback(self._app).steps_named(self._tenant_id, sorted(unknown)[:MAX_UNKNOWN])
            if found:
                self._graph.elsewhere(found)

    def _records(self, now_ns: int) -> list[Record]:
        graph = self._graph
        nodes = graph.nodes(now_ns)
        for node in nodes:
            node.pop("branch_cost", None)
        agents = graph.agents(now_ns, self._paused, self._open)
        summary = {"truncated": self._truncated, **graph.summary(now_ns)}
        return [
            *nodes,
            *(_link("link", edge) for edge in graph.edges(now_ns)),
            *(_link("refused", edge) for edge in graph.refused()),
            *({"kind": "agent", "id": agent["agent_id"], **agent} for agent in agents),
            {"kind": "summary", "id": self._session_id, **summary},
        ]


def _link(kind: str, edge: Row) -> Record:
    start, end = edge["from"], edge["to"]
    return {"kind": kind, "id": f"{start} → {end}", "from": start, "to": end, "relation": edge["kind"]}
