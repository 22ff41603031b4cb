"""The topic `fleet`: agents as nodes, edges, groups and clusters, and the signs of their states (S288).

Nodes follow the rules of the map (types_node_states.py) over rows of the registry: agents that new messages
touched at once, all of them once a second, read concurrently with the polls and judged in portions,
so that they delay no message. Rates, edges and places come from minute counters, read concurrently every five
seconds, or less often when that is expensive; throughput and forks every second (live_throughput.py). Figures
are rounded and texts contain no ages, so that a record changes when something happened and not because time
passes. Above `COMPACT` agents a node has only what the map draws.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from observatory.derived.live_rows import Rows
from observatory.errors import StoreError
from observatory.features.fleet import map as drawn
from observatory.features.fleet import types_edges as traffic
from observatory.features.fleet.layout import MAX_EDGES, MINUTE
from observatory.features.fleet.live_records import coarse, node_record, rounded
from observatory.features.fleet.live_throughput import ThroughputReader
from observatory.features.fleet.queries_halted import FleetConditions, facts_of, read_conditions
from observatory.features.fleet.regions import ClusterPlace
from observatory.features.fleet.routes import GONE_NS, SAMPLED
from observatory.features.fleet.routes_regions import places_of
from observatory.features.fleet.types_node_states import COLOURS, judge
from observatory.features.fleet.types_traffic import EdgeSum, MapReads
from observatory.http.app_state import AppState
from observatory.http.live_reads import touches
from observatory.pipeline.ports import TrafficEdge
from observatory.runtime.feed_channel import Key, Record, SourceChanges

COMPACT = 300
MAX_TOUCHED = 2_000  # numbers since the last poll; beyond it all agents are read
SLOW_S, SLOW_REST = 5.0, 10
# Throughput is read this often; a poll waits for it at most this long, what takes longer is sent by the next.
# The wait is short: after a poll the topic rests for many times as long as the poll took.
BEAT_S, PATIENCE_S = 1.0, 0.025
FEW_EDGES = 2_000  # up to this many are judged again every second
PORTION = 500  # nodes judged per poll in addition to those that messages touched: about seven milliseconds
AGED_NS = 900_000_000  # nodes judged longer ago are judged again: time alone changes states
# Reasons without ages: clients compute those from the times.
REASONS = {
    1: "evicted",
    2: "silent: its heartbeat is overdue",
    9: "sent a message within the last 30 s",
    10: "sends nothing",
}
Row = dict[str, Any]


class Slow(NamedTuple):
    """Data read every few seconds."""

    flow: dict[int, dict[str, float]]
    counts: list[TrafficEdge]
    latencies: list[tuple[int, int, int]]
    sums: list[EdgeSum]
    places: dict[str, ClusterPlace]


class FleetSource:
    def __init__(self, app: AppState, tenant_id: str, compact: int = COMPACT) -> None:
        self._app, self._tenant_id, self._compact = app, tenant_id, compact
        self._agents: dict[int, Row] = {}
        self._pulses: dict[int, Row] = {}
        self._conditions = FleetConditions({}, {}, [])
        self._nodes: dict[int, Row] = {}
        self._slow = Slow({}, [], [], [], {})
        self._slow_task: asyncio.Task[Slow] | None = None
        self._conditions_task: asyncio.Task[FleetConditions] | None = None
        self._slow_due = self._slow_began = 0.0
        self._throughput_reader = ThroughputReader(app, tenant_id)
        self._throughput_task: asyncio.Task[list[Record]] | None = None
        self._throughput: list[Record] = []
        self._throughput_due = 0.0
        self._seen: int | None = None  # None: the next poll sends everything
        self._agents_task: asyncio.Task[tuple[Rows, Rows]] | None = None  # all agents, read concurrently
        self._fresh: set[int] = set()  # touched since then: their rows here are newer
        self._stale: dict[int, None] = {}  # to be judged again, the most urgent first
        self._judged: dict[int, int] = {}
        self._drawn: dict[str, set[Key]] = {}  # groups and edges as they were last sent
        self._gone: set[Key] = set()  # those that are gone since
        self._was_compact, self._has_news = False, True

    async def look(self, head: int, now_ns: int, again: bool) -> SourceChanges:
        seen, self._seen = self._seen, None
        self._renew(now_ns)
        numbers: set[int] = set()
        everyone: tuple[Rows, Rows] | None
        if whole := seen is None or head - seen > MAX_TOUCHED or not self._agents:
            everyone = await self._read_all()
        else:
            numbers, everyone = await self._read_touched(seen, head, again)
        is_quiet = whole or head == seen  # no message is delayed by what is read here
        gone = [] if everyone is None else self._replace_agents(*everyone, now_ns)
        if whole:
            numbers = set(self._agents)
        left = [number for number in self._stale if number in self._agents and number not in numbers]
        portion = left if is_quiet else left[:PORTION]
        self._stale = dict.fromkeys(left[len(portion) :])
        items = self._judge({*numbers, *portion}, now_ns, everyone is not None)
        before, self._throughput = self._throughput, await self._newest_throughput(now_ns, again, is_quiet)
        items += self._throughput
        if before is not self._throughput:
            there = {record["id"] for record in self._throughput}
            gone += [(record["kind"], record["id"]) for record in before if record["id"] not in there]
        # When there are many edges, they are judged only after a new read.
        few = len(self._slow.counts) + len(self._slow.sums) <= FEW_EDGES
        if whole or (everyone is not None and (self._has_news or few)):
            self._has_news = False
            items += self._remember("edge", await asyncio.to_thread(self._edges, now_ns))
        if whole:
            items += [{"kind": "sign", "id": state, **drawn.sign(state)} for state in COLOURS]
        gone += self._take_gone()
        self._seen = head
        return SourceChanges(items, gone, whole, soon=self._agents_task is not None or bool(self._stale))

    async def close(self) -> None:
        await _cancel(self._slow_task, self._conditions_task, self._throughput_task, self._agents_task)

    # --- rows ---

    async def _read_all(self) -> tuple[Rows, Rows]:
        await _cancel(self._agents_task, self._conditions_task)
        self._agents_task = self._conditions_task = None
        self._fresh.clear()
        self._conditions = await read_conditions(self._app, self._tenant_id)
        return await touches(self._app).everyone(self._tenant_id)

    async def _read_touched(
        self, seen: int, head: int, again: bool
    ) -> tuple[set[int], tuple[Rows, Rows] | None]:
        """Agents that new messages touched, and those whose alarms or halts have changed.

        And all agents, once a second, when that read is done: with many agents it takes longer than a tick.
        """
        if again and self._agents_task is None:
            self._fresh.clear()
            self._agents_task = asyncio.create_task(touches(self._app).everyone(self._tenant_id))
        rows: Rows = []
        if head != seen:
            rows = await touches(self._app).agents_touched(self._tenant_id, seen, head)
            found = self._latest_conditions()
        else:
            found = await self._fresh_conditions() if again else self._conditions
        everyone, counting = None, self._agents_task
        if counting is not None and (head == seen or counting.done()):
            everyone = await counting
            self._agents_task = None
        numbers = {row["agent_no"] for row in rows} | self._differing(found)
        self._agents |= {row["agent_no"]: row for row in rows}
        self._fresh |= {row["agent_no"] for row in rows}
        self._conditions = found
        return {number for number in numbers if number in self._agents}, everyone

    def _replace_agents(self, rows: Rows, pulses: Rows, now_ns: int) -> list[Key]:
        """Replaces all known agents except those touched meanwhile; returns nodes that are gone."""
        before, old_pulses, fresh = self._agents, self._pulses, self._fresh
        there = {row["agent_no"]: row for row in rows if (row["evicted_ns"] or now_ns) > now_ns - GONE_NS}
        self._agents = there | {number: before[number] for number in fresh if number in before}
        self._pulses = {row["agent_no"]: row for row in pulses}
        changed = [
            number
            for number, row in self._agents.items()
            if before.get(number) != row or old_pulses.get(number) != self._pulses.get(number)
        ]
        aged = [number for number in self._agents if not 0 <= now_ns - self._judged.get(number, 0) < AGED_NS]
        self._stale = dict.fromkeys(changed) | self._stale | dict.fromkeys(aged)
        left = {number: node for number, node in self._nodes.items() if number not in self._agents}
        for number in left:
            del self._nodes[number]
            self._judged.pop(number, None)
        return [("node", node["id"]) for node in left.values()]

    def _differing(self, found: FleetConditions) -> set[int]:
        known = self._conditions
        numbers = set(self._agents) if found.switches != known.switches else set()
        for mine, theirs in ((found.alarms, known.alarms), (found.halts, known.halts)):
            numbers |= {number for number in {*mine, *theirs} if mine.get(number) != theirs.get(number)}
        return numbers

    def _latest_conditions(self) -> FleetConditions:
        """The newest conditions, read concurrently, one read at a time: several queries, seldom news."""
        task, found = self._conditions_task, self._conditions
        if task is None or task.done():
            self._conditions_task = asyncio.create_task(read_conditions(self._app, self._tenant_id))
            if task is not None and task.exception() is None:
                found = task.result()
        return found

    async def _fresh_conditions(self) -> FleetConditions:
        """Waits for the read already under way: applied after this one, it would be older data."""
        task, self._conditions_task = self._conditions_task, None
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)
        return await read_conditions(self._app, self._tenant_id)

    async def _newest_throughput(self, now_ns: int, again: bool, is_quiet: bool) -> list[Record]:
        """The newest throughput: read once a second, taken when it is there."""
        now = asyncio.get_running_loop().time()
        if self._throughput_task is None and (again or now >= self._throughput_due):
            self._throughput_task, self._throughput_due = self._start_throughput(now_ns), now + BEAT_S
        if self._throughput_task is not None:
            await asyncio.wait({self._throughput_task}, timeout=PATIENCE_S if again and is_quiet else 0)
            if self._throughput_task.done():
                task, self._throughput_task = self._throughput_task, None
                if not isinstance(task.exception(), StoreError):
                    return task.result()
        return self._throughput

    def _start_throughput(self, now_ns: int) -> asyncio.Task[list[Record]]:
        return asyncio.create_task(self._throughput_reader.read(now_ns, self._agents))

    def _renew(self, now_ns: int) -> None:
        """Reads minute counters concurrently: a slow read delays no node."""
        now, reading = asyncio.get_running_loop().time(), self._slow_task
        if reading is not None and reading.done():
            self._slow_task = None
            took = now - self._slow_began
            self._slow_due = now + max(SLOW_S, SLOW_REST * took)
            if reading.exception() is None:
                self._slow, self._has_news = reading.result(), True
                self._stale |= dict.fromkeys(self._agents)
            elif not isinstance(reading.exception(), StoreError):
                reading.result()
        elif reading is None and now >= self._slow_due:
            self._slow_began = now
            self._slow_task = asyncio.create_task(self._read(now_ns))

    async def _read(self, now_ns: int) -> Slow:
        app, tenant_id, minute = self._app, self._tenant_id, now_ns // MINUTE
        since_ns = now_ns - traffic.SINCE_S * traffic.SECOND
        recent_ns = now_ns - traffic.RECENT_S * traffic.SECOND
        flow: dict[int, dict[str, float]] = {}
        for one in await app.derived.queries(MapReads).agent_minutes(tenant_id, minute - 1, minute):
            mine = flow.setdefault(one.agent_no, {})
            for name in ("messages", "failures", "cost"):
                value = float(getattr(one, name))
                both = (value, 0.0) if one.minute == minute else (0.0, value)
                mine[name] = mine.get(name, 0.0) + traffic.sliding(*both, now_ns)
        sums = await app.derived.queries(MapReads).edge_sums(tenant_id, since_ns // MINUTE, minute)
        return Slow(
            flow,
            await app.store.edges(tenant_id, since_ns, recent_ns),
            await app.store.latencies(tenant_id, since_ns, SAMPLED // 4),
            [one for one in sums if one.kind == "causal"],
            (await places_of(app, tenant_id))[0],
        )

    # --- records ---

    def _judge(self, numbers: set[int], now_ns: int, is_counted: bool) -> list[Record]:
        """Records of these nodes, and of the groups if any state has changed."""
        compact, moved = len(self._agents) > self._compact, is_counted
        for number in numbers:
            known = self._nodes.get(number)
            self._nodes[number] = self._node(self._agents[number], now_ns)
            self._judged[number] = now_ns
            moved = moved or known is None or known["state"] != self._nodes[number]["state"]
        if compact != self._was_compact:
            numbers, self._was_compact = set(self._nodes), compact
        items = [node_record(self._nodes[number], compact) for number in numbers]
        return items + self._remember("group", self._groups()) if moved else items

    def _node(self, agent: Row, now_ns: int) -> Row:
        window_s = self._app.settings.violation_window_s
        number = agent["agent_no"]
        facts = facts_of(agent, self._pulses.get(number), self._conditions, now_ns)
        judged = judge(facts, now_ns, window_s)
        reason = REASONS.get(judged.rule, judged.reason)
        alarms = drawn.alarms_of(facts, now_ns, window_s)
        flow = self._slow.flow.get(number, {})
        made = drawn.node(agent, judged._replace(reason=reason), facts.liveness, flow, alarms)
        return made | {"kind": "node", "messages": agent["messages"]}

    def _remember(self, of: str, records: list[Record]) -> list[Record]:
        """Remembers the keys sent, so that those no longer present are reported as gone."""
        now: set[Key] = {(record["kind"], record["id"]) for record in records}
        self._gone |= self._drawn.get(of, set()) - now
        self._drawn[of] = now
        return records

    def _take_gone(self) -> list[Key]:
        over, self._gone = self._gone, set()
        return list(over)

    def _groups(self) -> list[Record]:
        shown, places = self._nodes.values(), self._slow.places
        made = [*drawn.groups(shown, "group", places), *drawn.groups(shown, "cluster", places)]
        return [{"kind": group["level"]} | rounded(group) for group in made]

    def _edges(self, now_ns: int) -> list[Record]:
        slow = self._slow
        found = traffic.flows(slow.counts, slow.latencies, slow.sums, self._nodes, now_ns)
        return [
            {"kind": "edge", "id": f"{edge['from']} → {edge['to'] or edge['address']}"}
            | rounded(edge | {"messages": int(coarse(edge["messages"]))})
            for edge in found[:MAX_EDGES]
        ]


async def _cancel(*tasks: asyncio.Task[Any] | None) -> None:
    for task in tasks:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
