"""The topic `fleet`: agents as nodes, edges, groups and clusters, and the signs of their states (S288).

Nodes follow the rules of the map (projections/topology.py) over rows of the registry: those that new
messages touched at once, all of them once a second. Rates, edges and places come from minute counters, read
beside the ticks every five seconds, or less often when that is dear; throughput and forks every second
(live_pulse.py). What is told is rounded, and no age is told in words, so that a record changes when something
happened and not because time passes. Above `COMPACT` agents a node has only what the map draws.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, NamedTuple

from observatory.api.fleet import GONE_NS, SAMPLED
from observatory.api.house import House
from observatory.api.live_pulse import Pulse
from observatory.api.live_reading import touches
from observatory.api.regions import places_of
from observatory.api.standing import Around, around, facts_of
from observatory.daemons.feed_channel import Key, Look, Record
from observatory.errors import StoreError
from observatory.insight.traffic import EdgeSum
from observatory.ports import EdgeCount
from observatory.projections import edges as traffic
from observatory.projections import fleet as drawn
from observatory.projections.regions import Place
from observatory.projections.scene import MINUTE, MOST_EDGES
from observatory.projections.topology import COLOURS, judge

COMPACT = 300
MOST_TOUCHED = 2_000  # numbers since the last look; beyond it everybody is read
SLOW_S, SLOW_REST = 5.0, 10
# The pulse is begun so often; a look waits for it so long, what takes longer is told by the next. It waits
# but little: whatever a look takes it rests for many times as long.
BEAT_S, PATIENCE_S = 1.0, 0.025
FEW_EDGES = 2_000  # so many are judged anew every second
# Reasons without ages: when it was heard last is told by times.
REASONS = {
    1: "evicted",
    2: "silent: its heartbeat is overdue",
    9: "sent a message within the last 30 s",
    10: "sends nothing",
}
DRAWN = ("kind", "id", "agent_type", "cluster_id", "state", "rule", "liveness", "messages", "last_seen_at")
Row = dict[str, Any]


class Slow(NamedTuple):
    """What is a moment behind."""

    flow: dict[int, dict[str, float]]
    counts: list[EdgeCount]
    latencies: list[tuple[int, int, int]]
    sums: list[EdgeSum]
    places: dict[str, Place]


class FleetSource:
    def __init__(self, house: House, tenant_id: str, compact: int = COMPACT) -> None:
        self._house, self._tenant_id, self._compact = house, tenant_id, compact
        self._agents: dict[int, Row] = {}
        self._pulses: dict[int, Row] = {}
        self._around = Around({}, {}, [])
        self._nodes: dict[int, Row] = {}
        self._slow = Slow({}, [], [], [], {})
        self._reading: asyncio.Task[Slow] | None = None
        self._asking: asyncio.Task[Around] | None = None
        self._slow_due = self._slow_began = 0.0
        self._pulse = Pulse(house, tenant_id)
        self._beating: asyncio.Task[list[Record]] | None = None
        self._beat: list[Record] = []
        self._beat_due = 0.0
        self._seen = 0
        self._was_compact, self._has_news = False, True

    async def look(self, head: int, now_ns: int, again: bool) -> Look:
        self._renew(now_ns)
        before = {number: node["state"] for number, node in self._nodes.items()}
        again = again or head - self._seen > MOST_TOUCHED or not self._agents
        numbers = await (self._all(now_ns) if again else self._some(head))
        gone: list[Key] = []
        if again:
            left = [node for number, node in self._nodes.items() if number not in self._agents]
            gone = [("node", node["id"]) for node in left]
            self._nodes = {number: node for number, node in self._nodes.items() if number in self._agents}
        compact = len(self._agents) > self._compact
        for number in numbers:
            self._nodes[number] = self._node(self._agents[number], now_ns)
        if compact != self._was_compact:
            numbers, self._was_compact = set(self._nodes), compact
        items = [_told(self._nodes[number], compact) for number in numbers]
        moved = again or any(before.get(number) != self._nodes[number]["state"] for number in numbers)
        if moved:
            items += self._groups()
        felt, self._beat = self._beat, await self._feel(now_ns, again)
        items += self._beat
        if felt is not self._beat:
            there = {record["id"] for record in self._beat}
            gone += [(record["kind"], record["id"]) for record in felt if record["id"] not in there]
        # Only what is read whole can tell what is gone; many edges are judged when there is news of them.
        whole = again and (self._has_news or len(self._slow.counts) + len(self._slow.sums) <= FEW_EDGES)
        if whole:
            self._has_news = False
            items += await asyncio.to_thread(self._edges, now_ns)
            items += [{"kind": "sign", "id": state, **drawn.sign(state)} for state in COLOURS]
        self._seen = head
        return Look(items, gone, whole)

    async def close(self) -> None:
        for task in (self._reading, self._asking, self._beating):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    # --- rows ---

    async def _all(self, now_ns: int) -> set[int]:
        (rows, pulses), self._around = await asyncio.gather(
            touches(self._house).everyone(self._tenant_id), around(self._house, self._tenant_id)
        )
        self._agents = {
            row["agent_no"]: row for row in rows if (row["evicted_ns"] or now_ns) > now_ns - GONE_NS
        }
        self._pulses = {row["agent_no"]: row for row in pulses}
        return set(self._agents)

    async def _some(self, head: int) -> set[int]:
        """Those that new messages touched, and those whose alarms or halts are others than before."""
        rows = await touches(self._house).agents_touched(self._tenant_id, self._seen, head)
        known, found = self._around, self._newest()
        numbers = {row["agent_no"] for row in rows}
        self._agents |= {row["agent_no"]: row for row in rows}
        if found.switches != known.switches:
            numbers |= set(self._agents)
        for mine, theirs in ((found.alarms, known.alarms), (found.halts, known.halts)):
            numbers |= {number for number in {*mine, *theirs} if mine.get(number) != theirs.get(number)}
        self._around = found
        return {number for number in numbers if number in self._agents}

    def _newest(self) -> Around:
        """Read beside the ticks, one after the other: several queries, and seldom any news in them."""
        asked, found = self._asking, self._around
        if asked is None or asked.done():
            self._asking = asyncio.create_task(around(self._house, self._tenant_id))
            if asked is not None and asked.exception() is None:
                found = asked.result()
        return found

    async def _feel(self, now_ns: int, again: bool) -> list[Record]:
        """The newest pulse: begun once a second, taken when it is there."""
        now = asyncio.get_running_loop().time()
        if self._beating is None and (again or now >= self._beat_due):
            self._beating, self._beat_due = self._begun(now_ns), now + BEAT_S
        if self._beating is not None:
            await asyncio.wait({self._beating}, timeout=PATIENCE_S if again else 0)
            if self._beating.done():
                beaten, self._beating = self._beating, None
                if not isinstance(beaten.exception(), StoreError):
                    return beaten.result()
        return self._beat

    def _begun(self, now_ns: int) -> asyncio.Task[list[Record]]:
        return asyncio.create_task(self._pulse.read(now_ns, self._agents))

    def _renew(self, now_ns: int) -> None:
        """Minute counters are read beside the ticks: a slow one holds up no node."""
        now, reading = asyncio.get_running_loop().time(), self._reading
        if reading is not None and reading.done():
            self._reading = None
            took = now - self._slow_began
            self._slow_due = now + max(SLOW_S, SLOW_REST * took)
            if reading.exception() is None:
                self._slow, self._has_news = reading.result(), True
            elif not isinstance(reading.exception(), StoreError):
                reading.result()
        elif reading is None and now >= self._slow_due:
            self._slow_began = now
            self._reading = asyncio.create_task(self._read(now_ns))

    async def _read(self, now_ns: int) -> Slow:
        house, tenant_id, minute = self._house, self._tenant_id, now_ns // MINUTE
        since_ns = now_ns - traffic.SINCE_S * traffic.SECOND
        recent_ns = now_ns - traffic.RECENT_S * traffic.SECOND
        flow: dict[int, dict[str, float]] = {}
        for one in await house.derived.agent_minutes(tenant_id, minute - 1, minute):
            mine = flow.setdefault(one.agent_no, {})
            for name in ("messages", "failures", "cost"):
                value = float(getattr(one, name))
                both = (value, 0.0) if one.minute == minute else (0.0, value)
                mine[name] = mine.get(name, 0.0) + traffic.sliding(*both, now_ns)
        sums = await house.derived.edge_sums(tenant_id, since_ns // MINUTE, minute)
        return Slow(
            flow,
            await house.store.edges(tenant_id, since_ns, recent_ns),
            await house.store.latencies(tenant_id, since_ns, SAMPLED // 4),
            [one for one in sums if one.kind == "causal"],
            (await places_of(house, tenant_id))[0],
        )

    # --- records ---

    def _node(self, agent: Row, now_ns: int) -> Row:
        window_s = self._house.settings.violation_window_s
        number = agent["agent_no"]
        facts = facts_of(agent, self._pulses.get(number), self._around, now_ns)
        judged = judge(facts, now_ns, window_s)
        reason = REASONS.get(judged.rule, judged.reason)
        alarms = drawn.alarms_of(facts, now_ns, window_s)
        flow = self._slow.flow.get(number, {})
        made = drawn.node(agent, judged._replace(reason=reason), facts.liveness, flow, alarms)
        return made | {"kind": "node", "messages": agent["messages"]}

    def _groups(self) -> list[Record]:
        shown, places = self._nodes.values(), self._slow.places
        made = [*drawn.groups(shown, "group", places), *drawn.groups(shown, "cluster", places)]
        return [{"kind": group["level"]} | _rounded(group) for group in made]

    def _edges(self, now_ns: int) -> list[Record]:
        slow = self._slow
        found = traffic.flows(slow.counts, slow.latencies, slow.sums, self._nodes, now_ns)
        return [
            {"kind": "edge", "id": f"{edge['from']} → {edge['to'] or edge['address']}"}
            | _rounded(edge | {"messages": int(coarse(edge["messages"]))})
            for edge in found[:MOST_EDGES]
        ]


def _told(node: Row, compact: bool) -> Record:
    if not compact:
        return _rounded(node)
    made = {name: node[name] for name in DRAWN} | {"rate_per_s": coarse(node["rate_per_s"])}
    if node["rule"] < 9:
        made |= {"reason": node["reason"], "alarms": node["alarms"]}
    return made


def _rounded(record: Row) -> Record:
    """Without what is told by another member, and with figures that do not tremble."""
    made = {name: value for name, value in record.items() if name not in ("messages_60s", "level")}
    for name in ("rate_per_s", "internal_per_s", "failures_60s", "cost_per_min"):
        if name in made:
            made[name] = coarse(made[name])
    for name in ("latency_p50_ms", "latency_p95_ms", "latency_mean_ms"):
        if made.get(name) is not None:
            made[name] = coarse(made[name])
    return made


STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)


def coarse(value: float) -> float:
    """The nearest of 1, 1.5, 2, 3, 5, 7, 10, 15, …: a figure on the map, not in the books."""
    if value <= 0 or not math.isfinite(value):
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    return round(min(STEPS, key=lambda step: abs(step - value / unit)) * unit, 9)
