"""What is told of a whole blast: by agent, session and tool, and who holds it where (rules S262–S265)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from observatory.features.cascade.cascade import Cascade, Tainted
from observatory.features.graph.step_table import among, grouped
from observatory.features.graph.types_spread import FORWARDED, HELD, Ints, Words

Row = dict[str, Any]
# session, agent, state, status, tool, whether they are strong, first step, how many, cost
Alike = tuple[int, int, int, str | None, str | None, bool, int, int, float]


def summed(cascade: Cascade, found: Tainted) -> Row:
    """The step asked about is no side effect of itself."""
    agents: dict[int, Row] = {}
    tools: dict[tuple[str, str], Row] = {}
    spend, sessions = {"strong": 0.0, "weak": 0.0}, set()
    counted = {"success": "succeeded", "pending": "pending", "failure": "failed"}
    for session_no, agent_no, state, status, tool, is_sure, first, steps, cost in _alike(cascade, found):
        sure = "strong" if is_sure else "weak"
        spend[sure] += cost
        sessions.add(session_no)
        if agent_no:
            one = agents.get(agent_no)
            if one is None:
                one = agents[agent_no] = _agent(sure, first)
            if is_sure and one["strength"] == "weak":
                one["strength"], one["first"] = "strong", first
            elif sure == one["strength"]:
                one["first"] = min(one["first"], first)
            one["sessions"].add(session_no)
            one["steps"] += steps
            one["cost"] += cost
        if tool is not None and state in (FORWARDED, HELD):
            did = tools.get((tool, sure))
            if did is None:
                did = {"succeeded": 0, "pending": 0, "failed": 0, "other": 0, "first": first}
                tools[tool, sure] = did
            did["first"] = min(did["first"], first)
            # What is held went nowhere yet, whatever it says of itself.
            did["pending" if state == HELD else counted.get(status or "", "other")] += steps
    for number, seq in cascade.received(found).items():
        if number not in agents:
            agents[number] = _agent("received", seq) | {"sessions": {cascade.row(seq).session_no}}
    return {
        "agents": agents,
        "tools": tools,
        "spend": spend,
        "sessions": sessions,
        "facts": cascade.facts(found),
    }


def _alike(cascade: Cascade, found: Tainted) -> Iterator[Alike]:
    """Steps alike in these: the first of them, how many, and their cost. A hundred such groups are summed
    faster than as many thousand steps. The tool of the step asked about is left out."""
    steps = cascade.steps.known(found.depth)
    tools = np.where(steps.seq == cascade.origin, None, steps.tool)  # type: ignore[call-overload]
    status, tool = _coded(steps.status), _coded(tools)
    sure = among(steps.seq, found.strong)
    firsts, groups, counts = grouped(
        steps.session_no, steps.agent_no, steps.state, status, tool, sure.astype(np.int64)
    )
    costs = np.bincount(groups, steps.cost, len(firsts))
    columns = (steps.session_no, steps.agent_no, steps.state, steps.status, tools, sure, steps.seq)
    return zip(*(column[firsts].tolist() for column in columns), counts.tolist(), costs.tolist(), strict=True)


def _coded(words: Words) -> Ints:
    """A number for each word."""
    codes = {word: code for code, word in enumerate(dict.fromkeys(words.tolist()))}
    return np.fromiter(map(codes.__getitem__, words.tolist()), np.int64, len(words))


def _agent(strength: str, first: int) -> Row:
    return {"strength": strength, "sessions": set(), "steps": 0, "cost": 0.0, "first": first}


def held(cascade: Cascade, found: Tainted) -> tuple[set[int], dict[int, set[int]]]:
    """Agents that hold it, and the sessions each holds it in."""
    steps = cascade.steps.known(found.depth)
    holders = {*cascade.received(found), *np.unique(steps.agent_no).tolist()} - {0}
    rooms: dict[int, set[int]] = {}
    told = (steps.recipient_no != 0) & (steps.state == FORWARDED)
    for agents, places in (
        (steps.agent_no, steps.session_no),
        (steps.recipient_no[told], steps.session_no[told]),
    ):
        pairs, _, _ = grouped(agents, places)
        for agent_no, session_no in zip(agents[pairs].tolist(), places[pairs].tolist(), strict=True):
            rooms.setdefault(agent_no, set()).add(session_no)
    return holders, rooms


def muted(rooms: Mapping[int, Collection[int]], paused: Collection[tuple[int, int]]) -> set[int]:
    """Of agents and the sessions they speak in, those that are paused (session, agent) in all of them."""
    return {
        agent_no
        for agent_no, sessions in rooms.items()
        if agent_no and sessions and all((session_no, agent_no) in paused for session_no in sessions)
    }
