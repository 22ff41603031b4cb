"""Detects drift: conflicting live beliefs, and agents that behave unlike others of their type.

Rules S257–S260: a belief is live when it is the last one its agent stated on that subject in that session (or
in that cluster). A conflict is two agents of one session or one cluster whose live values cannot both be
true. Nothing is resolved here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log2, sqrt
from statistics import median
from typing import Final, NamedTuple

from observatory.features.facts.types import FactRow, StatedBelief
from observatory.features.facts.types_beliefs import compatible

FEWEST_CALLS: Final = 20  # of an agent, for a comparison
FEWEST_PEERS: Final = 2  # others of its type with at least that many calls
DISTANCE: Final = 0.5  # Jensen–Shannon distance, from 0 (equal) to 1 (nothing in common)
MAX_SIDES: Final = 50  # per conflict


class ConflictSide(NamedTuple):
    value: str
    holders: list[FactRow]  # the statement of each agent


class Conflict(NamedTuple):
    subject_key: int
    subject: str
    scope: tuple[str, int | str]  # ("session", number) or ("cluster", id)
    sides: list[ConflictSide]
    rest: list[ConflictSide]  # beyond the maximum number of sides, a value each


def conflicts(stated: Iterable[StatedBelief]) -> list[Conflict]:
    """Newest first; a conflict within a session is reported once, not again for its cluster."""
    by_subject: dict[int, list[StatedBelief]] = {}
    for one in stated:
        if one.fact.subject_key is not None and one.fact.agent_no:
            by_subject.setdefault(one.fact.subject_key, []).append(one)
    found: list[Conflict] = []
    for subject_key, beliefs in by_subject.items():
        reported: dict[int, list[set[int]]] = {}  # agent -> agents of each conflict it is part of
        for kind in ("session", "cluster"):
            for place, live in _live(beliefs, kind).items():
                if len(live) < 2:
                    continue
                sides, rest = _sides(live.values())
                if len(sides) < 2 or (kind == "cluster" and _is_reported(live.keys(), reported)):
                    continue
                agents = set(live)
                for agent_no in agents:
                    reported.setdefault(agent_no, []).append(agents)
                newest = max(live.values(), key=lambda one: one.last_seq).fact
                found.append(Conflict(subject_key, newest.subject or "", (kind, place), sides, rest))
    return sorted(
        found, key=lambda one: -max(row.fact_id for side in (*one.sides, *one.rest) for row in side.holders)
    )


def _is_reported(agents: Iterable[int], reported: Mapping[int, list[set[int]]]) -> bool:
    """Whether one reported conflict includes all of them; checked for the agent with the fewest conflicts."""
    all_agents = set(agents)
    fewest = min((reported.get(agent_no, []) for agent_no in all_agents), key=len)
    return any(all_agents <= others for others in fewest)


def _live(beliefs: Sequence[StatedBelief], kind: str) -> dict[int | str, dict[int, StatedBelief]]:
    """place -> agent -> the belief it stated last there."""
    found: dict[int | str, dict[int, StatedBelief]] = {}
    for one in beliefs:
        place = one.fact.session_no if kind == "session" else one.fact.cluster_id
        if not place:
            continue
        live = found.setdefault(place, {})
        before = live.get(one.fact.agent_no)
        if before is None or (one.last_seq, one.fact.fact_id) > (before.last_seq, before.fact.fact_id):
            live[one.fact.agent_no] = one
    return found


def _sides(live: Iterable[StatedBelief]) -> tuple[list[ConflictSide], list[ConflictSide]]:
    """Grouped by value, compatible values together; the side with most agents first.

    With too many values, those that most agents hold become the sides; the rest is returned separately.
    """
    by_value: dict[str, list[FactRow]] = {}
    for one in sorted(live, key=lambda one: one.fact.fact_id):
        by_value.setdefault(one.fact.value or "", []).append(one.fact)
    values = list(by_value.items())
    if len(values) > MAX_SIDES:
        values.sort(key=lambda pair: -len(pair[1]))
    sides: list[ConflictSide] = []
    rest: list[ConflictSide] = []
    for value, holders in values:
        side = next((side for side in sides if compatible(side.value, value)), None)
        if side is not None:
            side.holders.extend(holders)
        else:
            (sides if len(sides) < MAX_SIDES else rest).append(ConflictSide(value, holders))
    for side in sides:
        side.holders.sort()
    return sorted(sides, key=lambda side: -len(side.holders)), rest


class ToolDivergence(NamedTuple):
    agent_no: int
    agent_type: str
    distance: float
    calls: int
    peers: int
    mine: dict[str, float]
    usual: dict[str, float]


def divergences(
    used: Iterable[tuple[int, str, int]], types: Mapping[int, str | None], beyond: float = DISTANCE
) -> list[ToolDivergence]:
    """Agents whose tool usage is unlike that of others of their type, furthest first."""
    counts: dict[int, dict[str, int]] = {}
    for agent_no, tool, calls in used:
        counts.setdefault(agent_no, {})[tool] = calls
    by_type: dict[str, list[int]] = {}
    for agent_no, tools in counts.items():
        agent_type = types.get(agent_no)
        if agent_type is not None and sum(tools.values()) >= FEWEST_CALLS:
            by_type.setdefault(agent_type, []).append(agent_no)
    found: list[ToolDivergence] = []
    for agent_type, agents in by_type.items():
        if len(agents) <= FEWEST_PEERS:
            continue
        shares = {agent_no: _shares(counts[agent_no]) for agent_no in agents}
        usual = _usual(list(shares.values()))
        for agent_no in agents:
            distance = jensen_shannon(shares[agent_no], usual)
            if distance > beyond:
                calls = sum(counts[agent_no].values())
                found.append(
                    ToolDivergence(
                        agent_no, agent_type, distance, calls, len(agents) - 1, shares[agent_no], usual
                    )
                )
    return sorted(found, key=lambda one: (-one.distance, one.agent_no))


def jensen_shannon(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    """The distance (square root of the divergence in bits) of two distributions, from 0 to 1."""
    total, other = 0.0, 1.0
    for name, p in left.items():
        q = right.get(name, 0.0)
        middle = (p + q) / 2
        total += (p * log2(p / middle) if p else 0.0) + (q * log2(q / middle) if q else 0.0)
        other -= q
    total += other if other > 1e-12 else 0.0  # what only the right one has adds its full share
    return sqrt(min(1.0, max(0.0, total / 2)))


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}


def _usual(shares: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The usual distribution of a type: the median share of each tool, so that no outlier skews it."""
    having: dict[str, list[float]] = {}
    for one in shares:
        for name, share in one.items():
            having.setdefault(name, []).append(share)
    middle = {
        name: median([*some, *(0.0 for _ in range(len(shares) - len(some)))])
        for name, some in having.items()
        if 2 * len(some) >= len(shares)  # the median of a tool used by fewer than half is zero
    }
    total = sum(middle.values())
    if not total:  # no tool is used by half of them: use the mean
        return {name: sum(some) / len(shares) for name, some in having.items()}
    return {name: share / total for name, share in middle.items() if share}
