"""Sums of a blast radius: by agent, session and tool, and which agents are affected where (rules
S262–S265)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from observatory.features.cascade.cascade import BlastRadius, ForwardWalk
from observatory.features.graph.types_spread import FORWARDED, HELD, Ints, ObjectArray
from observatory.features.graph.types_step_table import grouped, is_among

Row = dict[str, Any]
# session, agent, state, status, tool, is strong, first step, count, cost
Alike = tuple[int, int, int, str | None, str | None, bool, int, int, float]


def blast_totals(cascade: ForwardWalk, found: BlastRadius) -> Row:
    """The originating step is not counted as its own side effect."""
    agents: dict[int, Row] = {}
    tools: dict[tuple[str, str], Row] = {}
    spend, sessions = {"strong": 0.0, "weak": 0.0}, set()
    counted = {"success": "succeeded", "pending": "pending", "failure": "failed"}
    for session_no, agent_no, state, status, tool, is_sure, first, steps, cost in _step_groups(
        cascade, found
    ):
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
            # A held message has had no effect yet, whatever status it reports.
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


def _step_groups(cascade: ForwardWalk, found: BlastRadius) -> Iterator[Alike]:
    """Groups of steps with equal properties: the first of them, their count and cost. Summing a hundred
    groups is faster than as many thousand steps. The tool of the originating step is left out."""
    steps = cascade.steps.known(found.depth)
    tools = np.where(steps.seq == cascade.origin, None, steps.tool)  # type: ignore[call-overload]
    status, tool = _coded(steps.status), _coded(tools)
    sure = is_among(steps.seq, found.strong)
    firsts, groups, counts = grouped(
        steps.session_no, steps.agent_no, steps.state, status, tool, sure.astype(np.int64)
    )
    costs = np.bincount(groups, steps.cost, len(firsts))
    columns = (steps.session_no, steps.agent_no, steps.state, steps.status, tools, sure, steps.seq)
    return zip(*(column[firsts].tolist() for column in columns), counts.tolist(), costs.tolist(), strict=True)


def _coded(values: ObjectArray) -> Ints:
    """A number for each distinct value."""
    codes = {value: code for code, value in enumerate(dict.fromkeys(values.tolist()))}
    return np.fromiter(map(codes.__getitem__, values.tolist()), np.int64, len(values))


def _agent(strength: str, first: int) -> Row:
    return {"strength": strength, "sessions": set(), "steps": 0, "cost": 0.0, "first": first}


def affected_agents(cascade: ForwardWalk, found: BlastRadius) -> tuple[set[int], dict[int, set[int]]]:
    """The affected agents, and the sessions each is affected in."""
    steps = cascade.steps.known(found.depth)
    holders = {*cascade.received(found), *np.unique(steps.agent_no).tolist()} - {0}
    sessions_by_agent: dict[int, set[int]] = {}
    delivered = (steps.recipient_no != 0) & (steps.state == FORWARDED)
    for agents, session_numbers in (
        (steps.agent_no, steps.session_no),
        (steps.recipient_no[delivered], steps.session_no[delivered]),
    ):
        pairs, _, _ = grouped(agents, session_numbers)
        for agent_no, session_no in zip(agents[pairs].tolist(), session_numbers[pairs].tolist(), strict=True):
            sessions_by_agent.setdefault(agent_no, set()).add(session_no)
    return holders, sessions_by_agent


def fully_paused(
    sessions_by_agent: Mapping[int, Collection[int]], paused: Collection[tuple[int, int]]
) -> set[int]:
    """Agents that are paused in every session they speak in. `paused`: (session, agent) pairs."""
    return {
        agent_no
        for agent_no, sessions in sessions_by_agent.items()
        if agent_no and sessions and all((session_no, agent_no) in paused for session_no in sessions)
    }
