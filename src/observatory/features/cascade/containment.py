"""Whom to pause so that a cascade goes no further, with the commands ready to be sent (rules S265–S266)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Any
from urllib.parse import quote

from observatory.features.cascade.blast_radius import held, muted
from observatory.features.cascade.cascade import Cascade, Tainted
from observatory.features.cascade.min_cut import MOST_AGENTS, Containment, contain
from observatory.features.facts.types_answers import Names
from observatory.features.sessions.rows import rooms as rooms_of
from observatory.http.answers import MAX_SEQUENCE
from observatory.http.app_state import House
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
MINUTE = 60_000_000_000
MOST_NAMED = 5  # agents named in one reason
MOST_LISTED = 200
EXACT = (
    "The fewest agents that hold it whose pause keeps it from everybody who does not: a minimum vertex cut "
    "over causes and messages between agents since `edges_since`, and over uses of the holders' facts."
)
ROUGH = (
    f"More than {MOST_AGENTS} agents: these are all holders that an edge leads on from; whether fewer would "
    "do was not worked out."
)
SMALLER = (
    "Fewer pauses, but those of these agents that do not hold it yet will get it; it stops with them, "
    "because what a paused agent says is held."
)


async def contained(house: House, who: Principal, cascade: Cascade, found: Tainted, minutes: int) -> Row:
    tenant_id = who.tenant_id
    last = house.clock() // MINUTE
    since = last - minutes
    holders, rooms = await asyncio.to_thread(held, cascade, found)
    sums = await house.derived.edge_sums(tenant_id, since, last + 1)
    counts: dict[tuple[int, int], int] = {}
    for one in sums:
        counts[one.from_no, one.to_no] = counts.get((one.from_no, one.to_no), 0) + one.messages
    first = await house.derived.first_since(tenant_id, since * MINUTE)
    if first is not None:
        for a, b, uses in await house.derived.taken_from(tenant_id, holders, first):
            counts[a, b] = counts.get((a, b), 0) + uses
    # Where each would have to be paused: also the sessions it spoke in lately.
    spoke = await rooms_of(house).spoken_in(
        tenant_id, {*rooms, *holders, *(b for _, b in counts)} - {0}, MAX_SEQUENCE if first is None else first
    )
    for number, session_no, has_spoken, _ in spoke:
        if has_spoken:  # a pause where it says nothing any more halts nobody
            rooms.setdefault(number, set()).add(session_no)
    paused = {(session_no, number) for number, session_no, _, is_paused in spoke if is_paused}
    halted = await _halted(house, tenant_id, rooms, paused)
    cut = await asyncio.to_thread(contain, holders, counts.keys(), halted)
    names = Names()
    shown = sorted(cut.reached)[:MOST_LISTED]
    already = sorted(halted & (holders | {b for a, b in counts if a in holders}))
    agents = {*cut.pause, *(cut.smaller or ()), *shown, *already}
    agents |= {other for one in cut.reaches.values() for other in one[:MOST_NAMED]}
    picked = {*cut.pause, *(cut.smaller or ())}
    await names.learn(house, tenant_id, agents, {s for a in picked for s in rooms.get(a, ())})

    def told(pick: Collection[int], note: str) -> Row:
        return {
            "agents": [
                {
                    "agent_id": names.agents.get(number),
                    "holds_it": number in holders,
                    "reason": _reason(names, cut, counts, number, holders),
                }
                for number in pick
            ],
            "pause": list(_commands(names, pick, rooms, paused)),
            "note": note,
        }

    chosen = await asyncio.to_thread(told, cut.pause, EXACT if cut.exact else ROUGH)
    fewer = None if cut.smaller is None else await asyncio.to_thread(told, cut.smaller, SMALLER)
    return chosen | {
        "exact": cut.exact,
        "contained": not cut.pause,
        "edges_since": from_ns(since * MINUTE),
        "reached": [names.agents.get(number) for number in shown],
        "reached_count": len(cut.reached),
        "already_halted": [names.agents.get(number) for number in already][:MOST_LISTED],
        "smaller": fewer,
    }


async def _halted(
    house: House, tenant_id: str, rooms: dict[int, set[int]], paused: set[tuple[int, int]]
) -> set[int]:
    """Agents that are evicted, or paused wherever they speak."""
    halted: set[int] = set()
    numbers = sorted(rooms.keys() - {0})
    for start in range(0, len(numbers), 500):
        rows = await house.store.rows(tenant_id, "agents", agent_no=numbers[start : start + 500])
        halted |= {row["agent_no"] for row in rows if row["evicted_ns"] is not None}
    return halted | muted(rooms, paused)


def _reason(
    names: Names, cut: Containment, counts: dict[tuple[int, int], int], number: int, holders: Collection[int]
) -> str:
    if number not in holders:
        sources = sorted(a for a, others in cut.reaches.items() if number in others)
        return f"does not hold it yet; {len(sources)} agents that do send to it, and it would pass it on"
    others = cut.reaches.get(number, ())
    listed = ", ".join(names.agents.get(other) or "?" for other in others[:MOST_NAMED])
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    messages = sum(counts[number, other] for other in others)
    return (
        f"holds it, and its output goes to {listed}{more}, who do not ({messages} times since `edges_since`)"
    )


def _commands(
    names: Names, pick: Iterable[int], rooms: dict[int, set[int]], paused: set[tuple[int, int]]
) -> Iterable[Row]:
    for number in pick:
        for session_no in sorted(rooms.get(number, ())):
            session_id, agent_id = names.sessions.get(session_no), names.agents.get(number)
            if session_id is None or agent_id is None or (session_no, number) in paused:
                continue
            yield {
                "command": "pause",
                "session_id": session_id,
                "agent_id": agent_id,
                "path": f"/v1/sessions/{quote(session_id, safe='')}/pause",
                "body": {"agent_id": agent_id},
            }
