"""The topic `fleet`: agents as nodes, edges, groups and clusters, and the signs of their states (S288).

Nodes follow the rules of the map (features/fleet/node_states.py) over rows of the registry: those that new
messages touched at once, all of them once a second, read beside the looks and judged in portions, so that
they keep no message waiting. Rates, edges and places come from minute counters, read
beside the ticks every five seconds, or less often when that is dear; throughput and forks every second
(live_pulse.py). What is told is rounded, and no age is told in words, so that a record changes when something
happened and not because time passes. Above `COMPACT` agents a node has only what the map draws.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from observatory.errors import StoreError
from observatory.features.fleet import edges as traffic
from observatory.features.fleet import map as drawn
from observatory.features.fleet.halted import Around, around, facts_of
from observatory.features.fleet.layout import MINUTE, MOST_EDGES
from observatory.features.fleet.live_records import coarse, rounded, told
from observatory.features.fleet.live_throughput import Pulse
from observatory.features.fleet.node_states import COLOURS, judge
from observatory.features.fleet.regions import Place
from observatory.features.fleet.routes import GONE_NS, SAMPLED
from observatory.features.fleet.routes_regions import places_of
from observatory.features.fleet.types_traffic import EdgeSum
from observatory.http.app_state import House
from observatory.http.live_reads import touches
from observatory.pipeline.ports import EdgeCount
from observatory.runtime.feed_channel import Key, Look, Record
from observatory.runtime.live_rows import Rows

COMPACT = 300
MOST_TOUCHED = 2_000  # numbers since the last look; beyond it everybody is read
SLOW_S, SLOW_REST = 5.0, 10
# The pulse is begun so often; a look waits for it so long, what takes longer is told by the next. It waits
# but little: whatever a look takes it rests for many times as long.
BEAT_S, PATIENCE_S = 1.0, 0.025
FEW_EDGES = 2_000  # so many are judged anew every second
PORTION = 500  # nodes judged at a look beside those that messages touched: some seven milliseconds
AGED_NS = 900_000_000  # who was judged longer ago is judged again: time alone changes states
# Reasons without ages: when it was heard last is told by times.
REASONS = {
    1: "evicted",
    2: "silent: its heartbeat is overdue",
    9: "sent a message within the last 30 s",
    10: "sends nothing",
}
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
        self._seen: int | None = None  # None: whatever was told, the next look tells everything
        self._counting: asyncio.Task[tuple[Rows, Rows]] | None = None  # everybody, read beside the looks
        self._fresh: set[int] = set()  # touched since then: known better
        self._stale: dict[int, None] = {}  # to be judged anew, the most urgent first
        self._judged: dict[int, int] = {}
        self._drawn: dict[str, set[Key]] = {}  # groups and edges as they were told last
        self._over: set[Key] = set()  # those that are gone since
        self._was_compact, self._has_news = False, True

    async def look(self, head: int, now_ns: int, again: bool) -> Look:
        seen, self._seen = self._seen, None
        self._renew(now_ns)
        numbers: set[int] = set()
        everyone: tuple[Rows, Rows] | None
        if whole := seen is None or head - seen > MOST_TOUCHED or not self._agents:
            everyone = await self._all()
        else:
            numbers, everyone = await self._some(seen, head, again)
        is_quiet = whole or head == seen  # no message waits for what is read here
        gone = [] if everyone is None else self._take(*everyone, now_ns)
        if whole:
            numbers = set(self._agents)
        left = [number for number in self._stale if number in self._agents and number not in numbers]
        portion = left if is_quiet else left[:PORTION]
        self._stale = dict.fromkeys(left[len(portion) :])
        items = self._judge({*numbers, *portion}, now_ns, everyone is not None)
        felt, self._beat = self._beat, await self._feel(now_ns, again, is_quiet)
        items += self._beat
        if felt is not self._beat:
            there = {record["id"] for record in self._beat}
            gone += [(record["kind"], record["id"]) for record in felt if record["id"] not in there]
        # Many edges are judged when there is news of them.
        few = len(self._slow.counts) + len(self._slow.sums) <= FEW_EDGES
        if whole or (everyone is not None and (self._has_news or few)):
            self._has_news = False
            items += self._among("edge", await asyncio.to_thread(self._edges, now_ns))
        if whole:
            items += [{"kind": "sign", "id": state, **drawn.sign(state)} for state in COLOURS]
        gone += self._left()
        self._seen = head
        return Look(items, gone, whole, soon=self._counting is not None or bool(self._stale))

    async def close(self) -> None:
        await _ended(self._reading, self._asking, self._beating, self._counting)

    # --- rows ---

    async def _all(self) -> tuple[Rows, Rows]:
        await _ended(self._counting, self._asking)
        self._counting = self._asking = None
        self._fresh.clear()
        self._around = await around(self._house, self._tenant_id)
        return await touches(self._house).everyone(self._tenant_id)

    async def _some(self, seen: int, head: int, again: bool) -> tuple[set[int], tuple[Rows, Rows] | None]:
        """Those that new messages touched, and those whose alarms or halts are others than before.

        And everybody, once a second, when that is read: with many agents it takes longer than a tick.
        """
        if again and self._counting is None:
            self._fresh.clear()
            self._counting = asyncio.create_task(touches(self._house).everyone(self._tenant_id))
        rows: Rows = []
        if head != seen:
            rows = await touches(self._house).agents_touched(self._tenant_id, seen, head)
            found = self._newest()
        else:
            found = await self._now() if again else self._around
        everyone, counting = None, self._counting
        if counting is not None and (head == seen or counting.done()):
            everyone = await counting
            self._counting = None
        numbers = {row["agent_no"] for row in rows} | self._differing(found)
        self._agents |= {row["agent_no"]: row for row in rows}
        self._fresh |= {row["agent_no"] for row in rows}
        self._around = found
        return {number for number in numbers if number in self._agents}, everyone

    def _take(self, rows: Rows, pulses: Rows, now_ns: int) -> list[Key]:
        """Everybody in place of who is known, but for those touched meanwhile; nodes that are gone."""
        before, felt, fresh = self._agents, self._pulses, self._fresh
        there = {row["agent_no"]: row for row in rows if (row["evicted_ns"] or now_ns) > now_ns - GONE_NS}
        self._agents = there | {number: before[number] for number in fresh if number in before}
        self._pulses = {row["agent_no"]: row for row in pulses}
        changed = [
            number
            for number, row in self._agents.items()
            if before.get(number) != row or felt.get(number) != self._pulses.get(number)
        ]
        aged = [number for number in self._agents if not 0 <= now_ns - self._judged.get(number, 0) < AGED_NS]
        self._stale = dict.fromkeys(changed) | self._stale | dict.fromkeys(aged)
        left = {number: node for number, node in self._nodes.items() if number not in self._agents}
        for number in left:
            del self._nodes[number]
            self._judged.pop(number, None)
        return [("node", node["id"]) for node in left.values()]

    def _differing(self, found: Around) -> set[int]:
        known = self._around
        numbers = set(self._agents) if found.switches != known.switches else set()
        for mine, theirs in ((found.alarms, known.alarms), (found.halts, known.halts)):
            numbers |= {number for number in {*mine, *theirs} if mine.get(number) != theirs.get(number)}
        return numbers

    def _newest(self) -> Around:
        """Read beside the ticks, one after the other: several queries, and seldom any news in them."""
        asked, found = self._asking, self._around
        if asked is None or asked.done():
            self._asking = asyncio.create_task(around(self._house, self._tenant_id))
            if asked is not None and asked.exception() is None:
                found = asked.result()
        return found

    async def _now(self) -> Around:
        """What was asked before is waited for: told after this, it would be the older word."""
        asked, self._asking = self._asking, None
        if asked is not None:
            await asyncio.gather(asked, return_exceptions=True)
        return await around(self._house, self._tenant_id)

    async def _feel(self, now_ns: int, again: bool, is_quiet: bool) -> list[Record]:
        """The newest pulse: begun once a second, taken when it is there."""
        now = asyncio.get_running_loop().time()
        if self._beating is None and (again or now >= self._beat_due):
            self._beating, self._beat_due = self._begun(now_ns), now + BEAT_S
        if self._beating is not None:
            await asyncio.wait({self._beating}, timeout=PATIENCE_S if again and is_quiet else 0)
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
                self._stale |= dict.fromkeys(self._agents)
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

    def _judge(self, numbers: set[int], now_ns: int, is_counted: bool) -> list[Record]:
        """Their nodes, and the groups if anybody stands otherwise than before."""
        compact, moved = len(self._agents) > self._compact, is_counted
        for number in numbers:
            known = self._nodes.get(number)
            self._nodes[number] = self._node(self._agents[number], now_ns)
            self._judged[number] = now_ns
            moved = moved or known is None or known["state"] != self._nodes[number]["state"]
        if compact != self._was_compact:
            numbers, self._was_compact = set(self._nodes), compact
        items = [told(self._nodes[number], compact) for number in numbers]
        return items + self._among("group", self._groups()) if moved else items

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

    def _among(self, of: str, records: list[Record]) -> list[Record]:
        """Remembered, so that what is no longer among them is told of."""
        now: set[Key] = {(record["kind"], record["id"]) for record in records}
        self._over |= self._drawn.get(of, set()) - now
        self._drawn[of] = now
        return records

    def _left(self) -> list[Key]:
        over, self._over = self._over, set()
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
            for edge in found[:MOST_EDGES]
        ]


async def _ended(*tasks: asyncio.Task[Any] | None) -> None:
    for task in tasks:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
