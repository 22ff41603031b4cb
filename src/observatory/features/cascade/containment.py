"""Containment of a cascade: which agents to pause, with ready-to-send commands (rules S265–S266)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Any
from urllib.parse import quote

from observatory.features.cascade.blast_radius import affected_agents, fully_paused
from observatory.features.cascade.cascade import BlastRadius, ForwardWalk
from observatory.features.cascade.min_cut import MAX_AGENTS, Containment, contain
from observatory.features.cascade.types_rows import CascadeRows
from observatory.features.facts.types_answers import NameLookup
from observatory.features.fleet.types_traffic import MapReads
from observatory.features.sessions.queries_rows import membership_reads as session_reads
from observatory.http.answers import MAX_SEQUENCE
from observatory.http.app_state import AppState
from observatory.pipeline.state import Principal
from observatory.plural import plural
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
MINUTE = 60_000_000_000
MAX_NAMED = 5  # agents named in one reason
MAX_LISTED = 200
EXACT = (
    "Minimal cut set: the fewest affected agents whose pause protects all others: a minimum vertex cut "
    "over causes and messages between agents since `edges_since`, and over uses of affected agents' facts."
)
ROUGH = (
    f"More than {MAX_AGENTS} agents: these are all affected agents with outgoing edges; a smaller set was "
    "not computed."
)
SMALLER = (
    "Fewer pauses, but those of these agents that are not affected yet will be; it stops with them, "
    "because the messages of a paused agent are held."
)


async def containment_plan(
    app: AppState, who: Principal, cascade: ForwardWalk, found: BlastRadius, minutes: int
) -> Row:
    tenant_id = who.tenant_id
    last = app.clock() // MINUTE
    since = last - minutes
    holders, sessions_by_agent = await asyncio.to_thread(affected_agents, cascade, found)
    sums = await app.derived.queries(MapReads).edge_sums(tenant_id, since, last + 1)
    counts: dict[tuple[int, int], int] = {}
    for one in sums:
        counts[one.from_no, one.to_no] = counts.get((one.from_no, one.to_no), 0) + one.messages
    first = await app.derived.queries(CascadeRows).first_since(tenant_id, since * MINUTE)
    if first is not None:
        for a, b, uses in await app.derived.queries(CascadeRows).taken_from(tenant_id, holders, first):
            counts[a, b] = counts.get((a, b), 0) + uses
    # Where each would have to be paused: also the sessions it recently spoke in.
    spoke = await session_reads(app).spoken_in(
        tenant_id,
        {*sessions_by_agent, *holders, *(b for _, b in counts)} - {0},
        MAX_SEQUENCE if first is None else first,
    )
    for number, session_no, has_spoken, _ in spoke:
        if has_spoken:  # pausing it where it no longer speaks has no effect
            sessions_by_agent.setdefault(number, set()).add(session_no)
    paused = {(session_no, number) for number, session_no, _, is_paused in spoke if is_paused}
    halted = await _halted(app, tenant_id, sessions_by_agent, paused)
    cut = await asyncio.to_thread(contain, holders, counts.keys(), halted)
    names = NameLookup()
    shown = sorted(cut.reached)[:MAX_LISTED]
    already = sorted(halted & (holders | {b for a, b in counts if a in holders}))
    agents = {*cut.pause, *(cut.smaller or ()), *shown, *already}
    agents |= {other for one in cut.reaches.values() for other in one[:MAX_NAMED]}
    picked = {*cut.pause, *(cut.smaller or ())}
    await names.learn(app, tenant_id, agents, {s for a in picked for s in sessions_by_agent.get(a, ())})

    def option(pick: Collection[int], note: str) -> Row:
        return {
            "agents": [
                {
                    "agent_id": names.agents.get(number),
                    "holds_it": number in holders,
                    "reason": _reason(names, cut, counts, number, holders),
                }
                for number in pick
            ],
            "pause": list(_commands(names, pick, sessions_by_agent, paused)),
            "note": note,
        }

    chosen = await asyncio.to_thread(option, cut.pause, EXACT if cut.exact else ROUGH)
    fewer = None if cut.smaller is None else await asyncio.to_thread(option, cut.smaller, SMALLER)
    return chosen | {
        "exact": cut.exact,
        "contained": not cut.pause,
        "edges_since": from_ns(since * MINUTE),
        "reached": [names.agents.get(number) for number in shown],
        "reached_count": len(cut.reached),
        "already_halted": [names.agents.get(number) for number in already][:MAX_LISTED],
        "smaller": fewer,
    }


async def _halted(
    app: AppState, tenant_id: str, sessions_by_agent: dict[int, set[int]], paused: set[tuple[int, int]]
) -> set[int]:
    """Agents that are evicted, or paused wherever they speak."""
    halted: set[int] = set()
    numbers = sorted(sessions_by_agent.keys() - {0})
    for start in range(0, len(numbers), 500):
        rows = await app.store.rows(tenant_id, "agents", agent_no=numbers[start : start + 500])
        halted |= {row["agent_no"] for row in rows if row["evicted_ns"] is not None}
    return halted | fully_paused(sessions_by_agent, paused)


def _reason(
    names: NameLookup,
    cut: Containment,
    counts: dict[tuple[int, int], int],
    number: int,
    holders: Collection[int],
) -> str:
    if number not in holders:
        sources = sorted(a for a, others in cut.reaches.items() if number in others)
        return (
            f"not affected yet; {plural(len(sources), 'affected agent')} would reach it, and it passes it on"
        )
    others = cut.reaches.get(number, ())
    listed = ", ".join(names.agents.get(other) or "?" for other in others[:MAX_NAMED])
    more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
    messages = sum(counts[number, other] for other in others)
    return f"affected, and its output goes to unaffected {listed}{more} ({messages}× since `edges_since`)"


def _commands(
    names: NameLookup,
    pick: Iterable[int],
    sessions_by_agent: dict[int, set[int]],
    paused: set[tuple[int, int]],
) -> Iterable[Row]:
    for number in pick:
        for session_no in sorted(sessions_by_agent.get(number, ())):
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
