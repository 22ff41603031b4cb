"""Burn rates, and when each cap will be reached: one request that also names the hottest branch and agent
(S239).

Rates are averages of the last five minutes and of the last hour. Every budget with spending includes the
hottest session and agent of its scope, the first few also the branch within that session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from litestar import Response, get

from observatory.features.budgets.queries import budget_items
from observatory.features.costs.branches import branches, hottest_branch
from observatory.features.costs.heatmap import money, outlook, rates, urgency
from observatory.features.costs.types_burn import LONG_MIN, MINUTE_NS, SHORT_MIN
from observatory.features.fleet.types_traffic import Dimension, Key, SpendingReads
from observatory.features.graph.queries_session import load
from observatory.http.answers import json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id

TOP = 10
# How many sessions are read for their branches, and the longest session read.
READ_WHOLE, LONGEST = 3, 5_000
Row = dict[str, Any]
Series = dict[Key, dict[int, float]]


@get("/costs/burn", summary="Burn rates, and when each cap will be reached", operation_id="cost_burn")
async def cost_burn(request: Call, app: Here) -> Response[bytes]:
    """`hard_in_s` is null while nothing is spent, 0 when the cap is reached; the most urgent budget first."""
    who = await require_permission(request, app, "read")
    tenant_id, now_ns = who.tenant_id, app.clock()
    report = _BurnReport(app, tenant_id, now_ns)
    await report.read()
    rows = await app.store.rows(tenant_id, "budgets", removed_ns=None)
    budgets = [
        (item, await report.series_of(item["scope"], item["spender"] or item["target"]))
        for item in await budget_items(app, who, rows)
    ]
    shown = sorted((outlook(item, series, now_ns) for item, series in budgets), key=urgency)
    for row in shown:
        row["hottest"] = await report.hottest(row["scope"], row["whose"]) if row["per_min_5m"] > 0 else None
    return json(
        {
            "as_of": from_ns(now_ns),
            "tenant": rates(report.everything, now_ns),
            "clusters": await report.top("cluster"),
            "sessions": await report.top("session"),
            "agents": await report.top("agent"),
            "budgets": shown,
        }
    )


class _BurnReport:
    """Spending of one tenant at one moment: series by minute, and names for numbers."""

    def __init__(self, app: AppState, tenant_id: str, now_ns: int) -> None:
        self._app, self._tenant_id, self._now_ns = app, tenant_id, now_ns
        self._minute = now_ns // MINUTE_NS
        self._since_ns = now_ns - SHORT_MIN * MINUTE_NS
        self.everything: Mapping[int, float] = {}
        self._agents: dict[int, Row] = {}
        self._branches: dict[int, Row | None] = {}

    async def read(self) -> None:
        first = self._minute - LONG_MIN
        self.everything = await self._app.derived.queries(SpendingReads).column_sums(
            self._tenant_id, first, self._minute, 1
        )
        agents = await self._app.store.rows(self._tenant_id, "agents")
        self._agents = {row["agent_no"]: row for row in agents}

    async def _series(self, by: Dimension, keys: list[Key]) -> Series:
        found: Series = {key: {} for key in keys}
        if keys:
            first = self._minute - LONG_MIN
            for key, minute, cost in await self._app.derived.queries(SpendingReads).cells(
                self._tenant_id, by, keys, first, self._minute
            ):
                found[key][minute] = cost
        return found

    async def top(self, by: Dimension) -> list[Row]:
        """The top spenders, the fastest first."""
        first = self._minute - SHORT_MIN
        spent = await self._app.derived.queries(SpendingReads).spent_by(
            self._tenant_id, by, first, self._minute, TOP
        )
        keys = [row.key for row in spent if row.cost > 0]
        series = await self._series(by, keys)
        names = await self._names(by, keys)
        made = [{"id": names.get(key), **rates(series[key], self._now_ns)} for key in keys]
        return sorted(made, key=lambda row: -row["per_min_5m"])

    async def _names(self, by: Dimension, keys: list[Key]) -> dict[Key, str]:
        if by == "agent":
            return {key: self._agents[key]["agent_id"] for key in keys if key in self._agents}
        if by != "session":
            return {key: str(key) for key in keys if key}
        rows = await self._app.store.rows(self._tenant_id, "sessions", session_no=keys) if keys else []
        return {row["session_no"]: row["session_id"] for row in rows}

    async def series_of(self, scope: str, target: str) -> Mapping[int, float]:
        """Spending of a budget's target, by minute."""
        if scope == "tenant":
            return self.everything
        if scope == "cluster":
            return (await self._series("cluster", [target]))[target]
        if scope == "agent":
            number = self._number(target)
            return {} if number is None else (await self._series("agent", [number]))[number]
        session = await self._session(session_id=target)
        return (
            {}
            if session is None
            else (await self._series("session", [session["session_no"]]))[session["session_no"]]
        )

    def _number(self, target: str) -> int | None:
        entity_id = agent_entity_id(self._tenant_id, target)
        return next((no for no, row in self._agents.items() if row["entity_id"] == entity_id), None)

    async def _session(self, **where: Any) -> Row | None:
        rows = await self._app.store.rows(self._tenant_id, "sessions", **where)
        return rows[0] if rows else None

    # --- the top spender of a scope ---

    async def hottest(self, scope: str, target: str) -> Row | None:
        """The session and agent that spent most of it in the last five minutes, and the branch."""
        found = await self._pair(scope, target)
        if found is None:
            return None
        session_no, agent_no, cost = found
        session = await self._session(session_no=session_no)
        if session is None:
            return None
        agent = self._agents.get(agent_no)
        return {
            "session_id": session["session_id"],
            "agent_id": None if agent is None else agent["agent_id"],
            "cost_5m": money(cost),
            "branch": await self._branch(session),
            "costs": f"/v1/sessions/{session['session_id']}/costs",
        }

    async def _pair(self, scope: str, target: str) -> tuple[int, int, float] | None:
        derived = self._app.derived
        if scope == "agent" or scope == "cluster":
            number = self._number(target) if scope == "agent" else await self._busiest_in(target)
            if number is None:
                return None
            pairs = await derived.queries(SpendingReads).spent_together(
                self._tenant_id, self._since_ns, agent_no=number
            )
        else:
            session_no = await self._top_session() if scope == "tenant" else None
            if scope == "session":
                session = await self._session(session_id=target)
                session_no = None if session is None else session["session_no"]
            if session_no is None:
                return None
            pairs = await derived.queries(SpendingReads).spent_together(
                self._tenant_id, self._since_ns, session_no=session_no
            )
        return pairs[0] if pairs else None

    async def _top_session(self) -> int | None:
        first = self._minute - SHORT_MIN
        rows = await self._app.derived.queries(SpendingReads).spent_by(
            self._tenant_id, "session", first, self._minute, 1
        )
        return int(rows[0].key) if rows else None

    async def _busiest_in(self, cluster_id: str) -> int | None:
        keys: list[Key] = [no for no, row in self._agents.items() if row["cluster_id"] == cluster_id]
        sums: dict[Key, float] = {}
        first = self._minute - SHORT_MIN
        for key, _, cost in await self._app.derived.queries(SpendingReads).cells(
            self._tenant_id, "agent", keys, first, self._minute
        ):
            sums[key] = sums.get(key, 0.0) + cost
        return int(max(sums, key=lambda key: (sums[key], key))) if sums else None

    async def _branch(self, session: Row) -> Row | None:
        """Read from the archive; None where that would be too much for one request."""
        number = session["session_no"]
        if number not in self._branches:
            if len(self._branches) >= READ_WHOLE or session["messages"] > LONGEST:
                return None
            loaded = await load(self._app, self._tenant_id, session, is_glance=True)
            self._branches[number] = await asyncio.to_thread(
                lambda: hottest_branch(branches(loaded.graph.nodes(self._now_ns), self._now_ns))
            )
        return self._branches[number]
