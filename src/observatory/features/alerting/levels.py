"""Current levels for alert rules: silence, queues, circuits, spending, pending answers, the log and more.

Invariant: read only, one or two indexed queries per condition, and only for conditions some rule uses. What
has no reading is zero. Silence counts only while this gateway was listening: after an outage it reports
neither its whole fleet as silent nor any agent as recovered. Evicted agents stay silent for a while, then
they are dropped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from observatory.features.alerting.types_readings import LevelReading, LevelReadings
from observatory.features.alerting.types_rows import AlertingRows, QueuedMessages, QuietAgent
from observatory.features.alerting.types_rules import AlertRule, Condition, Scope, decimal_text
from observatory.features.costs.types_burn import MINUTE_NS, SHORT_MIN, burn
from observatory.features.fleet.types_traffic import Dimension, Key, SpendingReads
from observatory.features.transparency.types_log import LogRefusal, LogRows
from observatory.pipeline.agents import TIMES
from observatory.protocol.clock import to_ns

SECOND = 1_000_000_000
GONE_NS = 3_600 * SECOND  # how long an evicted agent keeps firing
MISSED_NS = 300 * SECOND  # how long it counts as missing from its capability: then the registry has settled
MAX_ROWS = 1_000  # silent agents and spenders read
LATE_S = 10.0  # a gateway without the key is no problem while another signs
Certified = Callable[[str, int], Awaitable[LevelReadings]]


class AlertLevels:
    def __init__(
        self,
        store: Any,
        costs: SpendingReads,
        refused: Mapping[str, LogRefusal],
        started_ns: int,
        certified: Certified | None = None,
    ) -> None:
        """`refused`: tenants whose log the sealer does not sign, and why, kept current. `certified`: reads
        the state of the tenant's certificates."""
        assert isinstance(store, AlertingRows) and isinstance(store, LogRows)
        self._rows: AlertingRows = store
        self._log: LogRows = store
        self._costs, self._refused, self._started_ns = costs, refused, started_ns
        self._certified = certified

    async def read(
        self, tenant_id: str, condition: Condition, scope: Scope, least: float, now_ns: int
    ) -> LevelReadings:
        """By subject. `least`: the lowest threshold in use. StoreError when the level cannot be read."""
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
            return {"tenant": LevelReading(await self._rows.letters_waiting(tenant_id))}
        if condition == "certificate":
            return {} if self._certified is None else await self._certified(tenant_id, now_ns)
        return {"tenant": await self._lag(tenant_id, now_ns)}

    def knows(self, rule: AlertRule, now_ns: int) -> bool:
        """Whether this gateway has listened long enough to judge who is silent and who has recovered."""
        listened_ns = self._listened_ns(now_ns)
        if rule.condition == "silence":
            return listened_ns >= rule.threshold * SECOND
        return rule.condition != "silent_agents" or listened_ns >= TIMES.check_ns

    def _listened_ns(self, now_ns: int) -> int:
        """A clock set back to before the start restarts the count."""
        self._started_ns = min(self._started_ns, now_ns)
        return now_ns - self._started_ns

    async def calm(self, tenant_id: str, session_ids: list[str]) -> set[str]:
        """Of these sessions, those no detector reports as looping any more."""
        rows = await self._rows.rows(tenant_id, "sessions", session_id=session_ids) if session_ids else []
        return {row["session_id"] for row in rows if row["severity"] == "normal" and row["loop_ns"] is None}

    async def _quiet(self, tenant_id: str, for_ns: int, gone_ns: int, now_ns: int) -> list[QuietAgent]:
        if self._listened_ns(now_ns) < for_ns:
            return []
        return await self._rows.quiet_agents(tenant_id, now_ns - for_ns, now_ns - gone_ns, MAX_ROWS)

    async def _silence(self, tenant_id: str, for_ns: int, now_ns: int) -> LevelReadings:
        levels: LevelReadings = {}
        for agent in await self._quiet(tenant_id, max(for_ns, SECOND), GONE_NS, now_ns):
            since_ns = agent.heartbeat_ns
            if agent.evicted_ns is None:
                since_ns = max(since_ns, self._started_ns)
            state = "silent" if agent.evicted_ns is None else "evicted"
            levels[f"agent:{agent.agent_id}"] = LevelReading(
                max(0, now_ns - since_ns) // SECOND, {"state": state, "cluster": agent.cluster_id or ""}
            )
        return levels

    async def _missing(self, tenant_id: str, scope: Scope, now_ns: int) -> LevelReadings:
        counts: dict[str, int] = {}
        for agent in await self._quiet(tenant_id, TIMES.check_ns, MISSED_NS, now_ns):
            name = agent.agent_type if scope == "capability" else agent.cluster_id
            subject = "tenant" if scope == "tenant" else f"{scope}:{name}"
            if scope == "tenant" or name:
                counts[subject] = counts.get(subject, 0) + 1
        return {subject: LevelReading(count) for subject, count in counts.items()}

    async def _burning(self, tenant_id: str, scope: Scope, now_ns: int) -> LevelReadings:
        minute = now_ns // MINUTE_NS
        first = minute - SHORT_MIN
        if scope == "tenant":
            sums = await self._costs.column_sums(tenant_id, first, minute, 1)
            return {"tenant": LevelReading(burn(sums, now_ns, SHORT_MIN))}
        by: Dimension = "cluster" if scope == "cluster" else "agent" if scope == "agent" else "session"
        spent = await self._costs.spent_by(tenant_id, by, first, minute, MAX_ROWS)
        series: dict[Key, dict[int, float]] = {row.key: {} for row in spent if row.cost > 0}
        if not series:
            return {}
        for key, at, cost in await self._costs.cells(tenant_id, by, list(series), first, minute):
            series[key][at] = cost
        names = await self._names(tenant_id, by, list(series))
        return {
            f"{scope}:{names[key]}": LevelReading(burn(line, now_ns, SHORT_MIN))
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

    async def _waiting(self, tenant_id: str, now_ns: int) -> LevelReading:
        levels = await self._rows.unanswered(tenant_id)
        oldest = [ns for ns in (levels.oldest_gate_ns, levels.oldest_decision_ns) if ns is not None]
        if not oldest:
            return LevelReading(0)
        figures = {"gates": str(levels.gates), "decisions": str(levels.decisions)}
        return LevelReading(max(0, now_ns - min(oldest)) // SECOND, figures)

    async def _lag(self, tenant_id: str, now_ns: int) -> LevelReading:
        """How long the oldest unsigned event has waited, as the log panel shows it."""
        checkpoint = await self._log.checkpoint(tenant_id)
        size = 0 if checkpoint is None else checkpoint.size
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
        return LevelReading(float(decimal_text(age_s)), figures, certain)


def _circuit(row: Mapping[str, Any]) -> LevelReading:
    return LevelReading(0 if row["state"] == "closed" else 1, {"state": row["state"]})


def _depths(waiting: list[QueuedMessages], scope: Scope) -> LevelReadings:
    """By the type or cluster addressed, if there was one; else by the agent's own."""
    counts: dict[str, int] = {}
    for one in waiting:
        kind, _, name = (one.address or "").partition(":")
        if scope == "capability":
            levels = name if kind == "type" else one.agent_type
        else:
            levels = name if kind == "cluster" else one.cluster_id
        subject = "tenant" if scope == "tenant" else f"{scope}:{levels}"
        if scope == "tenant" or levels:
            counts[subject] = counts.get(subject, 0) + one.messages
    return {subject: LevelReading(count) for subject, count in counts.items()}
