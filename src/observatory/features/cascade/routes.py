"""Blast radius and root causes of a step: how far its output spread, which agents to pause, and where a
failure may come from (rules S262–S269).

Computed on request from the folded rows of the sessions involved; heavy work runs in a thread. Nothing is
paused here: the response contains the commands, a person sends them.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable
from typing import Annotated, Any

from litestar import Response, Router, get
from litestar.params import FromPath, QueryParameter

from observatory.features.cascade.blast_radius import blast_totals
from observatory.features.cascade.cascade import BlastRadius, ForwardWalk
from observatory.features.cascade.containment import containment_plan
from observatory.features.cascade.root_cause import NEAR_MINUTES, POINTS, Ancestry, ExternalSigns
from observatory.features.cascade.types_rows import CascadeRows, LocatedStep
from observatory.features.facts.types import FactReads, fact_name
from observatory.features.facts.types_answers import NameLookup
from observatory.features.graph.queries_walk import MAX_ROUNDS, follow
from observatory.features.graph.types_spread import STATES, SpreadReads
from observatory.http.answers import MAX_SEQUENCE, Cursor, Limit, Refusal, json, make_cursor, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_uuid
from observatory.protocol.steps import step_name

Row = dict[str, Any]
MAX_STEPS = 200_000  # read for one response; beyond it `truncated` is set
MAX_ANCESTORS = 50_000
MAX_LISTED = 200  # facts, sessions of one response
LONGEST_PATH = 50
MINUTE = 60_000_000_000
BLAST_NOTE = (
    "Reached over declared causes, memory and messages. Weak steps are possibly affected: a parent the "
    "gateway inferred, a similar text, or the addressed agent's next step."
)
CAUSES_NOTE = "Ranked by signs in the record; a rank is no proof. Start with the first ones."
Session = Annotated[
    str | None,
    QueryParameter(
        description="The session of a step id that is not a UUID: such an id is unique only there."
    ),
]


@get(
    "/steps/{step:str}/blast",
    summary="Blast radius of a step, and the minimal set of agents to pause",
    operation_id="step_blast",
)
async def step_blast(
    request: Call,
    app: Here,
    step: FromPath[str],
    session: Session = None,
    minutes: Annotated[
        int,
        QueryParameter(ge=1, le=43_200, description="How many minutes of edges between agents to include."),
    ] = 1_440,
    cursor: Cursor = None,
    limit: Limit = 200,
) -> Response[bytes]:
    """Steps in order of their numbers; all other members cover the whole blast radius, not the page."""
    who = await require_permission(request, app, "read")
    after = read_cursor(cursor) or 0
    spot = await locate_step(app, who, step, session)
    cascade, truncated = await cascade_of(app, who, spot)
    found = await asyncio.to_thread(cascade.settle)
    prompted = await _blast(app, who, cascade, found, after, limit)
    prompted["containment"] = await containment_plan(app, who, cascade, found, minutes)
    return json(prompted | {"truncated": truncated, "note": BLAST_NOTE})


@get(
    "/steps/{step:str}/causes",
    summary="Ranked possible causes of a step's failure",
    operation_id="step_causes",
)
async def step_causes(
    request: Call, app: Here, step: FromPath[str], session: Session = None
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    spot = await locate_step(app, who, step, session)
    return json(await _causes(app, who, spot))


async def locate_step(app: AppState, who: Principal, step: str, session: str | None) -> LocatedStep:
    """By sequence number, message id, step id (a UUID, or with its session) or name."""
    number: int | None = None
    if step.isascii() and step.isdigit() and len(step) <= 13:
        number = int(step)
    else:
        named = step_name(canonical_uuid(session) or session, step) if session else step
        message = await app.store.message(who.tenant_id, named)
        if message is None and session:
            message = await app.store.message(who.tenant_id, step)
        number = None if message is None else message.sequence_number
    if number is None or not 0 < number <= MAX_SEQUENCE:
        detail = "no step or message of this tenant has that id; a step id that is not a UUID needs ?session="
        raise Refusal(404, "not_found", detail)
    found = await app.derived.queries(CascadeRows).spots(who.tenant_id, numbers=[number])
    if not found:
        raise Refusal(404, "not_found", "no step of this tenant has that number, or it is not folded yet")
    return found[0]


async def cascade_of(app: AppState, who: Principal, spot: LocatedStep) -> tuple[ForwardWalk, bool]:
    """Session by session as it spreads. A child may have arrived shortly before its parent."""
    found, derived = ForwardWalk(spot.seq, spot.session_no), app.derived.queries(SpreadReads)
    early = spot.at_ns - app.settings.orphan_wait_s * 1_000_000_000
    after = min(
        spot.seq, await app.derived.queries(CascadeRows).first_since(who.tenant_id, early) or spot.seq
    )
    truncated = await follow(found, derived, derived.downstream, who.tenant_id, after, MAX_STEPS)
    return found, truncated


async def _blast(
    app: AppState, who: Principal, cascade: ForwardWalk, found: BlastRadius, after: int, limit: int
) -> Row:
    order = await asyncio.to_thread(sorted, found.depth)
    first = bisect_right(order, after)
    page = order[first : first + limit + 1]
    shown, more = page[:limit], len(page) > limit
    sums = await asyncio.to_thread(blast_totals, cascade, found)
    evidence = await asyncio.to_thread(cascade.evidence, found, shown)
    names, row_of = NameLookup(), cascade.row
    facts = sums["facts"]
    rows = await app.derived.queries(FactReads).facts_by_id(who.tenant_id, facts[:MAX_LISTED])
    places = sorted(sums["sessions"])
    await names.learn(app, who.tenant_id, sums["agents"], places)
    seqs = {edge.from_seq for edges in evidence.values() for edge in edges} | {cascade.origin, *shown}
    firsts = [one["first"] for one in (*sums["agents"].values(), *sums["tools"].values())]
    await names.name_steps(app, who.tenant_id, seqs | set(firsts) | {row.seq for row in rows.values()})

    def place(seq: int) -> Row:
        row = row_of(seq)
        return names.place(seq, row.agent_no, row.session_no, row.at_ns)

    def strength(seq: int) -> str:
        return "strong" if seq in found.strong else "weak"

    def response() -> Row:
        agents = sorted(sums["agents"].items(), key=lambda pair: (pair[1]["first"], pair[0]))
        tools = sorted(sums["tools"].items(), key=lambda pair: (-pair[1]["succeeded"], pair[0]))
        times = [row_of(order[0]).at_ns, row_of(cascade.origin).at_ns]
        return {
            "origin": place(cascade.origin),
            "first_at": from_ns(times[1]),
            "last_at": from_ns(max(times[1], row_of(order[-1]).at_ns)),
            "agents": [
                {
                    "agent_id": names.agents.get(number),
                    "strength": one["strength"],
                    "sessions": [
                        names.sessions.get(session_no, "") for session_no in sorted(one["sessions"])
                    ],
                    "steps": one["steps"],
                    "cost": round(one["cost"], 9),
                    "first": place(one["first"]),
                }
                for number, one in agents
            ],
            "sessions": [names.sessions.get(session_no, "") for session_no in places][:MAX_LISTED],
            "steps": [
                place(seq)
                | {
                    "strength": strength(seq),
                    "weight": found.weight[seq],
                    "depth": found.depth[seq],
                    "state": STATES[row_of(seq).state],
                    "status": row_of(seq).status,
                    "tool": row_of(seq).tool,
                    "cost": round(row_of(seq).cost, 9),
                    "evidence": [
                        {
                            "kind": edge.kind,
                            "weight": edge.weight,
                            "from_sequence_number": edge.from_seq,
                            "from_step": names.steps.get(edge.from_seq),
                            "fact_id": fact_name(edge.fact_id) if edge.fact_id else None,
                        }
                        for edge in evidence[seq]
                    ],
                }
                for seq in shown
            ],
            "next_cursor": make_cursor(shown[-1]) if more else None,
            "facts": [
                names.of(row)
                | {"fact_id": fact_name(number), "text": row.text, "strength": strength(row.seq)}
                for number, row in sorted(rows.items())
            ],
            "side_effects": [
                {"tool": tool, "strength": sure}
                | {name: one[name] for name in ("succeeded", "pending", "failed", "other")}
                | {"first": place(one["first"])}
                for (tool, sure), one in tools
            ],
            "spend": {name: round(sums["spend"][name], 9) for name in ("strong", "weak")},
            "counts": {
                "strong_steps": len(found.strong),
                "weak_steps": len(order) - len(found.strong),
                "agents": len(agents),
                "sessions": len(places),
                "facts": len(facts),
                "side_effects": sum(one["succeeded"] for _, one in tools),
                "deepest": max(found.depth.values()),
            },
        }

    return await asyncio.to_thread(response)  # there can be as many agents as steps


async def _causes(app: AppState, who: Principal, spot: LocatedStep) -> Row:
    found, remaining, cut = Ancestry(spot.seq, spot.session_no), MAX_ANCESTORS, False
    late = await app.derived.queries(CascadeRows).first_since(
        who.tenant_id, spot.at_ns + app.settings.orphan_wait_s * 1_000_000_000
    )
    until = max(spot.seq, late - 1) if late is not None else MAX_SEQUENCE
    for _ in range(MAX_ROUNDS):
        wanted = set(sorted(found.wanted)[:500])
        if wanted and remaining > 0:
            up = await app.derived.queries(CascadeRows).upstream(who.tenant_id, wanted, until, remaining)
            remaining, cut = remaining - len(up.steps), cut or up.cut
            await asyncio.to_thread(found.feed, up, wanted)
        elif found.unknown_keys or found.unknown_steps:
            spots = await app.derived.queries(CascadeRows).spots(
                who.tenant_id, numbers=found.unknown_steps, keys=found.unknown_keys
            )
            await asyncio.to_thread(found.place, spots)
        else:
            break
    known = await _known(app, who, found)
    ranked = await asyncio.to_thread(found.ranked, known)
    names, steps = NameLookup(), found.steps
    prompted = {seq for one in ranked for seq, _ in _short(one.path)} | {spot.seq}
    await names.learn(
        app,
        who.tenant_id,
        {steps[seq].agent_no for seq in prompted},
        {steps[seq].session_no for seq in prompted},
    )
    await names.name_steps(app, who.tenant_id, prompted)

    def place(seq: int) -> Row:
        return names.place(seq, steps[seq].agent_no, steps[seq].session_no, steps[seq].at_ns)

    return {
        "step": place(spot.seq),
        "items": [
            place(one.seq)
            | {
                "rank": rank,
                "score": one.score,
                "distance": one.distance,
                "status": steps[one.seq].status,
                "tool": steps[one.seq].tool,
                "reasons": [
                    {"sign": sign, "text": text, "points": POINTS[sign]} for sign, text in one.reasons
                ],
                "path": [place(seq) | {"onward": kind or None} for seq, kind in _short(one.path)],
                "path_cut": len(one.path) > LONGEST_PATH,
            }
            for rank, one in enumerate(ranked, 1)
        ],
        "ancestors": len(found.distance) - 1,
        "truncated": cut or bool(found.wanted),
        "note": CAUSES_NOTE,
    }


def _short(path: tuple[tuple[int, str], ...]) -> tuple[tuple[int, str], ...]:
    """Both ends of a long path."""
    half = LONGEST_PATH // 2
    return path if len(path) <= LONGEST_PATH else path[:half] + path[-half:]


async def _known(app: AppState, who: Principal, found: Ancestry) -> ExternalSigns:
    """Signs recorded elsewhere: marks, commands and alerts."""
    marks = await app.store.rows(who.tenant_id, "fact_marks")
    false_steps = {row["fact_id"] >> 18: row["marked_by"] for row in marks if row["undone_ns"] is None}
    sessions = sorted(found.loaded)
    rows: list[Row] = []
    for start in range(0, len(sessions), 500):
        rows += await app.store.rows(who.tenant_id, "interventions", session_no=sessions[start : start + 500])
    standing = [row for row in rows if row["reversed_ns"] is None]
    commands = {
        row["message_seq"]: row["command"]
        for row in standing
        if row["message_seq"] and row["command"] in ("rewrite", "edit")
    }
    prompts = [row for row in standing if row["command"] == "inject"]
    prompted = await asyncio.to_thread(_next_after, found, prompts)
    agents, first_ns, last_ns = await asyncio.to_thread(_spanned, found)
    troubles = await app.derived.queries(CascadeRows).troubles(
        who.tenant_id, agents, first_ns // MINUTE - NEAR_MINUTES, last_ns // MINUTE
    )
    return ExternalSigns(
        false_steps,
        commands,
        prompted,
        {(minute, agent): (violations, alerts) for minute, agent, violations, alerts in troubles},
        app.settings.low_confidence,
    )


def _next_after(found: Ancestry, prompts: Iterable[Row]) -> set[int]:
    """The first ancestors of an agent in a session after it was sent a prompt there."""
    turns: dict[tuple[int, int], list[int]] = {}
    for seq in sorted(found.distance.keys() & found.steps.keys()):
        step = found.steps[seq]
        turns.setdefault((step.session_no, step.agent_no), []).append(seq)
    prompted: set[int] = set()
    for row in prompts:
        mine = turns.get((row["session_no"], row["agent_no"]), [])
        place = bisect_right(mine, row["sequence_number"])
        prompted.update(mine[place : place + 1])
    return prompted


def _spanned(found: Ancestry) -> tuple[set[int], int, int]:
    """Agents of all ancestors, and the first and last time."""
    reached = [found.steps[seq] for seq in found.distance if seq in found.steps]
    times = [row.at_ns for row in reached]
    return {row.agent_no for row in reached}, min(times, default=0), max(times, default=0)


cascade_router = Router(path="/v1", route_handlers=[step_blast, step_causes], tags=["Insight"])
