"""Throughput and forks on the topic `fleet`: the current rate, and steps that just forked (S308).

Children are read on from the last number read, so a poll costs only what is new. A fork is reported once two
steps name the same parent within a minute, and removed a minute after the last of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from observatory.errors import StoreError
from observatory.features.fleet.panels import SECOND
from observatory.features.fleet.routes_panels import flow_of
from observatory.features.fleet.types_traffic import ChildStep, Fork, MapReads
from observatory.http.app_state import AppState
from observatory.protocol.clock import from_ns
from observatory.runtime.feed_channel import Record

WINDOW_S = 60
MAX_CHILDREN = 5_000  # read at a time
MAX_FORKS, FAN = 50, 50
KNOWN = 5_000  # names of sessions remembered
Row = dict[str, Any]


class ThroughputReader:
    def __init__(self, app: AppState, tenant_id: str) -> None:
        self._app, self._tenant_id = app, tenant_id
        self._after = 0
        self._children: dict[int, list[ChildStep]] = {}  # of the last minute, by the key of their parent
        self._split: dict[int, Fork] = {}
        self._sessions: dict[int, str] = {}

    async def read(self, now_ns: int, agents: Mapping[int, Row]) -> list[Record]:
        """All current records of these kinds; `agents` are rows of the registry."""
        found, _ = await flow_of(self._app, self._tenant_id, now_ns, WINDOW_S)
        sums = found.sums(now_ns, WINDOW_S)
        made: list[Record] = [
            {
                "kind": "throughput",
                "id": "now",
                "rate_per_s": found.rate(now_ns),
                "messages_60s": sums["messages"],
                "failures_60s": sums["failures"],
                "violations_60s": sums["violations"],
                "cost_per_min": round(sums["cost"], 6),
            }
        ]
        with suppress(StoreError):  # derived store unavailable: parents are unknown
            await self._read_on(now_ns)
            made += self._forks(agents)
        return made

    async def _read_on(self, now_ns: int) -> None:
        app, tenant_id, since_ns = self._app, self._tenant_id, now_ns - WINDOW_S * SECOND
        folded = (await app.derived.progress(tenant_id)).seq
        if folded < self._after:  # the fold was restarted
            self._after, self._children, self._split = 0, {}, {}
        for child in await app.derived.queries(MapReads).children_since(
            tenant_id, self._after, since_ns, MAX_CHILDREN
        ):
            self._children.setdefault(child.parent_key, []).append(child)
            self._after = max(self._after, child.seq)
        left = {
            key: [one for one in children if one.at_ns >= since_ns]
            for key, children in self._children.items()
        }
        self._children = {key: children for key, children in left.items() if children}
        wide = {key for key, children in self._children.items() if len(children) > 1}
        self._split = {key: step for key, step in self._split.items() if key in wide}
        if new := wide - self._split.keys():
            self._split |= await app.derived.queries(MapReads).split_at(tenant_id, new)
        if len(self._sessions) > KNOWN:
            self._sessions.clear()
        unnamed = {step.session_no for step in self._split.values()} - self._sessions.keys()
        if unnamed:
            rows = await app.store.rows(tenant_id, "sessions", session_no=sorted(unnamed)[:MAX_CHILDREN])
            self._sessions |= {row["session_no"]: row["session_id"] for row in rows}

    def _forks(self, agents: Mapping[int, Row]) -> list[Record]:
        made = []
        for key, step in self._split.items():
            children = [one for one in self._children[key] if one.seq != step.seq]
            if len(children) < 2:
                continue
            names = dict.fromkeys(
                agents[one.agent_no]["agent_id"] for one in children if one.agent_no in agents
            )
            sender = agents.get(step.agent_no)
            made.append(
                {
                    "kind": "fork",
                    "id": str(step.seq),
                    "agent_id": None if sender is None else sender["agent_id"],
                    "to": list(names)[:FAN],
                    "children": len(children),
                    "session_id": self._sessions.get(step.session_no),
                    "sequence_number": step.seq,
                    "at": from_ns(max(one.at_ns for one in children)),
                }
            )
        return sorted(made, key=lambda one: str(one["at"]), reverse=True)[:MAX_FORKS]
