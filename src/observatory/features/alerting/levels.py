"""What stands now, as alert rules ask for it: silence, queues, circuits, money, gates, the log and more.

Law: it only reads, one or two indexed questions for a condition, and only where a rule asks. What has no
reading is nought. Silence counts only while this gateway listened: one that comes back after an hour finds
neither its whole fleet silent nor anybody recovered. Evicted agents are silent for a while yet, then they are
gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from observatory.features.alerting.evaluation import Reading, Readings
from observatory.features.alerting.types_rows import AlertingRows, QuietAgent, Waiting
from observatory.features.alerting.types_rules import AlertRule, Condition, Scope, plain
from observatory.features.costs.heatmap import MINUTE_NS, SHORT_MIN, burn
from observatory.features.fleet.types_traffic import Costs, Dimension, Key
from observatory.features.registry.stage import TIMES
from observatory.features.transparency.log_opening import Refusal
from observatory.features.transparency.types_log import LogRows
from observatory.protocol.clock import to_ns

SECOND = 1_000_000_000
GONE_NS = 3_600 * SECOND  # an evicted agent alarms so long
MISSED_NS = 300 * SECOND  # and is missing from its capability so long: then the map has settled
MOST = 1_000  # silent agents, and spenders, that are looked at
LATE_S = 10.0  # a gateway without the key is no trouble while another signs
Certified = Callable[[str, int], Awaitable[Readings]]


class Levels:
    def __init__(
        self,
        store: Any,
        costs: Costs,
        refused: Mapping[str, Refusal],
        started_ns: int,
        certified: Certified | None = None,
    ) -> None:
        """`refused`: whose log the sealer does not sign, and why, as it stands at any time. `certified`: how
        the tenant's certificates stand."""
        assert isinstance(store, AlertingRows) and isinstance(store, LogRows)
        self._rows: AlertingRows = store
        self._log: LogRows = store
        self._costs, self._refused, self._started_ns = costs, refused, started_ns
        self._certified = certified

    async def read(
        self, tenant_id: str, condition: Condition, scope: Scope, least: float, now_ns: int
    ) -> Readings:
        """By subject. `least`: the lowest threshold that is asked for. StoreError when it cannot be told."""
        if condition == "silence":
            return await self._silence(tenant_id, int(least * SECOND), now_ns)
        if condition == "silent_agents":
            return await self._missing(tenant_id, scope, now_ns)
        if condition == "queue_depth":
            return _depths(await self._rows.queues(tenant_id), scope)
        if condition == "breaker":
            circuits = await self._rows.rows(tenant_id, "breakers")
            return {f"capability:{row['capability']}": _circuit(row) for row in circuits}
        if condition == "burn_rate":
            return await self._burning(tenant_id, scope, now_ns)
        if condition == "gate_age":
            return {"tenant": await self._waiting(tenant_id, now_ns)}
        if condition == "dead_letters_waiting":
            return {"tenant": Reading(await self._rows.letters_waiting(tenant_id))}
        if condition == "certificate":
            return {} if self._certified is None else await self._certified(tenant_id, now_ns)
        return {"tenant": await self._lag(tenant_id, now_ns)}

    def knows(self, rule: AlertRule, now_ns: int) -> bool:
        """Whether this gateway has listened long enough to say who is silent, and who is not any more."""
        listened_ns = self._listened_ns(now_ns)
        if rule.condition == "silence":
            return listened_ns >= rule.threshold * SECOND
        return rule.condition != "silent_agents" or listened_ns >= TIMES.check_ns

    def _listened_ns(self, now_ns: int) -> int:
        """By a clock that was set back to before the start it is counted anew."""
        self._started_ns = min(self._started_ns, now_ns)
        return now_ns - self._started_ns

    async def calm(self, tenant_id: str, session_ids: list[str]) -> set[str]:
        """Of these sessions, those in no alarm any more, by either detector."""
        rows = await self._rows.rows(tenant_id, "sessions", session_id=session_ids) if session_ids else []
        return {row["session_id"] for row in rows if row["severity"] == "normal" and row["loop_ns"] is None}

    async def _quiet(self, tenant_id: str, for_ns: int, gone_ns: int, now_ns: int) -> list[QuietAgent]:
        if self._listened_ns(now_ns) < for_ns:
            return []
        return await self._rows.quiet_agents(tenant_id, now_ns - for_ns, now_ns - gone_ns, MOST)

    async def _silence(self, tenant_id: str, for_ns: int, now_ns: int) -> Readings:
        found: Readings = {}
        for agent in await self._quiet(tenant_id, max(for_ns, SECOND), GONE_NS, now_ns):
            since_ns = agent.heartbeat_ns
            if agent.evicted_ns is None:
                since_ns = max(since_ns, self._started_ns)
            state = "silent" if agent.evicted_ns is None else "evicted"
            found[f"agent:{agent.agent_id}"] = Reading(
                max(0, now_ns - since_ns) // SECOND, {"state": state, "cluster": agent.cluster_id or ""}
            )
        return found

    async def _missing(self, tenant_id: str, scope: Scope, now_ns: int) -> Readings:
        counts: dict[str, int] = {}
        for agent in await self._quiet(tenant_id, TIMES.check_ns, MISSED_NS, now_ns):
            name = agent.agent_type if scope == "capability" else agent.cluster_id
            subject = "tenant" if scope == "tenant" else f"{scope}:{name}"
            if scope == "tenant" or name:
                counts[subject] = counts.get(subject, 0) + 1
        return {subject: Reading(count) for subject, count in counts.items()}

    async def _burning(self, tenant_id: str, scope: Scope, now_ns: int) -> Readings:
        minute = now_ns // MINUTE_NS
        first = minute - SHORT_MIN
        if scope == "tenant":
            sums = await self._costs.column_sums(tenant_id, first, minute, 1)
            return {"tenant": Reading(burn(sums, now_ns, SHORT_MIN))}
        by: Dimension = "cluster" if scope == "cluster" else "agent" if scope == "agent" else "session"
        spent = await self._costs.spent_by(tenant_id, by, first, minute, MOST)
        series: dict[Key, dict[int, float]] = {row.key: {} for row in spent if row.cost > 0}
        if not series:
            return {}
        for key, at, cost in await self._costs.cells(tenant_id, by, list(series), first, minute):
            series[key][at] = cost
        names = await self._names(tenant_id, by, list(series))
        return {
            f"{scope}:{names[key]}": Reading(burn(line, now_ns, SHORT_MIN))
            for key, line in series.items()
            if key in names
        }

    async def _names(self, tenant_id: str, by: Dimension, keys: list[Key]) -> dict[Key, str]:
        if by == "cluster":
            return {key: str(key) for key in keys if key}
        table, number, name = (
            ("agents", "agent_no", "agent_id") if by == "agent" else ("sessions", "session_no", "session_id")
        )
        rows = await self._rows.rows(tenant_id, table, **{number: keys})
        return {row[number]: row[name] for row in rows}

    async def _waiting(self, tenant_id: str, now_ns: int) -> Reading:
        found = await self._rows.unanswered(tenant_id)
        oldest = [ns for ns in (found.oldest_gate_ns, found.oldest_decision_ns) if ns is not None]
        if not oldest:
            return Reading(0)
        figures = {"gates": str(found.gates), "decisions": str(found.decisions)}
        return Reading(max(0, now_ns - min(oldest)) // SECOND, figures)

    async def _lag(self, tenant_id: str, now_ns: int) -> Reading:
        """How long the oldest unsigned event has waited, as the panel of the log tells it."""
        kept = await self._log.checkpoint(tenant_id)
        size = 0 if kept is None else kept.size
        head, _ = await self._log.head(tenant_id)
        age_s = 0.0
        if head > size:
            first = await self._log.event(tenant_id, size + 1)
            if first is not None:
                observed = to_ns(msgspec.json.decode(first.record)["observed_timestamp"])
                age_s = max(0.0, (now_ns - observed) / SECOND)
        refused = self._refused.get(tenant_id)
        certain = refused is not None and (refused.kind != "key" or age_s > LATE_S)
        figures = {"unsigned": str(max(0, head - size)), "signed": str(size)}
        if refused is not None and certain:
            figures["refused"] = refused.sentence
        return Reading(float(plain(age_s)), figures, certain)


def _circuit(row: Mapping[str, Any]) -> Reading:
    return Reading(0 if row["state"] == "closed" else 1, {"state": row["state"]})


def _depths(waiting: list[Waiting], scope: Scope) -> Readings:
    """By what was addressed, if a type or a cluster was; else by whose it is."""
    counts: dict[str, int] = {}
    for one in waiting:
        kind, _, name = (one.address or "").partition(":")
        if scope == "capability":
            found = name if kind == "type" else one.agent_type
        else:
            found = name if kind == "cluster" else one.cluster_id
        subject = "tenant" if scope == "tenant" else f"{scope}:{found}"
        if scope == "tenant" or found:
            counts[subject] = counts.get(subject, 0) + one.messages
    return {subject: Reading(count) for subject, count in counts.items()}
