"""The causal graph of one session: steps as nodes, declared parents as edges, interventions as diamonds.

Law (rulings 18, 19, 25): several roots and several parents; a step with an unknown parent waits for it, then
is attached to the session's first root, flagged; a cycle refuses the edge, never the step. The graph is a
function of what was added and of the moment asked for: adding in any order and any batches gives the same
nodes and edges (rules S204–S213). They are built in layout.py.
A node's `version` is the highest number that changed what it shows; its `branch_cost` is left out of that,
because it is the sum of `cost` over all steps whose `parent` path leads to it, and any reader can fold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from observatory.derived.seen import FoldMessage
from observatory.features.graph.badge import AgentActivity, badge_of
from observatory.features.graph.layout import FoldedGraph, GraphDrawing
from observatory.features.graph.types_labels import (
    GraphEdge,
    StepNode,
    as_row,
    is_terminal,
    outcome_of,
    step_node,
)
from observatory.protocol import messages as m

SECOND = 1_000_000_000
WAIT_S = 30
LOW_CONFIDENCE = 0.5
Row = dict[str, Any]


class SessionGraph:
    """Keeps what was added; computes nodes and edges when asked, once for each change."""

    def __init__(self, low_confidence: float = LOW_CONFIDENCE, wait_s: int = WAIT_S) -> None:
        self._low, self._wait_ns = low_confidence, wait_s * SECOND
        self._seen: dict[int, FoldMessage] = {}
        self._faces: dict[int, StepNode] = {}
        self._holds: dict[int, Row] = {}
        self._commands: dict[int, Row] = {}
        self._elsewhere: dict[str, str] = {}
        self._folded: FoldedGraph | None = None
        self._drawn: tuple[frozenset[int], GraphDrawing] | None = None

    def add(self, seen: FoldMessage, version: int = 0) -> None:
        """Adds a step, or its new state or content; `version`: the event that changed it, if not its own."""
        seq = seen.seq
        if version < seq:
            version = seq
        known = self._faces.get(seq)
        if known is not None and known.version > version:
            return
        self._seen[seq], self._faces[seq] = seen, step_node(seen, self._low, version)
        self._folded = self._drawn = None

    def hold(self, row: Mapping[str, Any]) -> None:
        """Adds a row of `holds`: why a step is or was held, and the state of its gate."""
        self._holds[row["sequence_number"]] = dict(row)
        self._forget()

    def intervene(self, row: Mapping[str, Any]) -> None:
        """Adds a row of `interventions`, with the name of its agent as `agent_id`."""
        self._commands[row["sequence_number"]] = dict(row)
        self._forget()

    def elsewhere(self, found: Mapping[str, str]) -> None:
        """Parents that are steps outside this graph: name → session. They are not waited for."""
        self._elsewhere.update(found)
        self._forget()

    def clear(self) -> None:
        """Empties the graph. Items go one by one, so that other threads can run."""
        self._forget()
        while self._seen:
            self._seen.popitem()
        while self._faces:
            self._faces.popitem()
        self._holds.clear()
        self._commands.clear()

    def _forget(self) -> None:
        self._folded = self._drawn = None

    # --- reads ---

    @property
    def version(self) -> int:
        """The highest number that changed anything here."""
        released = (row.get("released_seq") or 0 for row in self._holds.values())
        faces = [face.version for face in self._faces.values()]
        return max((*faces, *self._commands, *released), default=0)

    def steps(self) -> list[FoldMessage]:
        return [self._seen[seq] for seq in sorted(self._seen)]

    def unknown_parents(self) -> set[str]:
        """Names no step of this graph has, except those passed to `elsewhere`."""
        missing = self._fold().causal_graph.missing.values()
        return {name for names in missing for name in names if not name.startswith("span:")}

    def drawn(self, now_ns: int) -> GraphDrawing:
        """Nodes and edges in shared structs; callers must not change them."""
        due = frozenset(self._attached(now_ns))
        if self._drawn is None or self._drawn[0] != due:
            self._drawn = (due, self._fold().drawn(self._faces, self._holds, self._commands, due))
        return self._drawn[1]

    def nodes(self, now_ns: int) -> list[Row]:
        """In sequence order, interventions among them."""
        return [as_row(node) for node in self.drawn(now_ns).nodes]

    def edges(self, now_ns: int) -> list[Row]:
        return [_row(edge) for edge in self.drawn(now_ns).edges]

    def refused(self) -> list[Row]:
        """Edges that would have closed a cycle."""
        folded = self._fold()
        return [
            {"from": folded.names[parent], "to": folded.names[child], "kind": "cycle"}
            for parent, child in folded.causal_graph.refused
        ]

    def roots(self, now_ns: int) -> list[str]:
        return [node.id for node in self.drawn(now_ns).steps if node.is_root]

    def changed(self, since_version: int, now_ns: int, since_ns: int | None = None) -> Row:
        nodes, edges, _ = self.drawn_since(since_version, now_ns, since_ns)
        return {"nodes": [as_row(node) for node in nodes], "edges": [_row(edge) for edge in edges]}

    def drawn_since(self, since_version: int, now_ns: int, since_ns: int | None = None) -> GraphDrawing:
        """Nodes that changed after a version, and *every* edge into each of them: they replace those known.

        Some changes have no number: a wait that timed out, a command acknowledged or reversed. Those after
        `since_ns` are included; without it all of them.
        """
        since_ns = 0 if since_ns is None else since_ns
        nodes, edges, steps = self.drawn(now_ns)
        due = [seq for seq in self._attached(now_ns) if self._seen[seq].at_ns + self._wait_ns > since_ns]
        by_clock = self._fold().below(due)  # their depth changed too
        for row in self._commands.values():
            moments = [row.get(name) or 0 for name in ("acknowledged_ns", "confirmed_ns", "reversed_ns")]
            if max(moments) > since_ns:
                by_clock.add(row["intervention_id"])
        fresh = [node for node in nodes if node.version > since_version or node.id in by_clock]
        ids = {node.id for node in fresh}
        return GraphDrawing(fresh, [edge for edge in edges if edge.to in ids], steps)

    def agents(
        self, now_ns: int, paused: Iterable[str] = (), undecided: Iterable[str] | None = None
    ) -> list[Row]:
        """The agents that acted here, and what each does now. `undecided`: decisions still open, if known."""
        paused_agents, asked = set(paused), self.open_requests()
        open_ids = set(asked) if undecided is None else set(undecided)
        by_agent: dict[str, list[FoldMessage]] = {}
        for seen in self._fold().steps:
            mine = by_agent.get(seen.agent_id)
            if mine is None:
                mine = by_agent[seen.agent_id] = []
            mine.append(seen)
        rows = []
        for agent_id, mine in by_agent.items():
            # A heartbeat is no step, unless there is nothing else.
            last = next((seen for seen in reversed(mine) if seen.message_type != "heartbeat"), mine[0])
            tool, status = outcome_of(last)
            held = sum(1 for seen in mine if seen.state == "held")
            open_requests = sum(
                1 for decision, who in asked.items() if who == agent_id and decision in open_ids
            )
            doing = AgentActivity(
                is_terminal(last),
                status,
                tool,
                last.state,
                last.at_ns,
                agent_id in paused_agents,
                held,
                open_requests,
            )
            rows.append(self._agent(agent_id, mine, last, badge_of(doing, now_ns)))
        return rows

    def _agent(
        self, agent_id: str, mine: list[FoldMessage], last: FoldMessage, badge: tuple[str, int]
    ) -> Row:
        cost, faces = self._fold().costs.cost, self._faces
        return {
            "agent_id": agent_id,
            "agent_type": next((seen.agent_type for seen in reversed(mine) if seen.agent_type), None),
            "steps": len(mine),
            "cost": round(sum([cost[seen.seq] for seen in mine]), 9),
            "tokens": sum([faces[seen.seq].tokens or 0 for seen in mine]),
            "badge": badge[0],
            "badge_rule": badge[1],
            "last_step": last.name,
        }

    def open_requests(self) -> dict[str, str]:
        """Decisions requested and not answered in this session: decision id → the agent that asked."""
        asked: dict[str, str] = {}
        answered: set[str] = set()
        for seen in [seen for seen in self._seen.values() if seen.envelope is not None]:
            payload = None if seen.envelope is None else seen.envelope.payload
            if isinstance(payload, m.DecisionRequest):
                asked[payload.decision_id] = seen.agent_id
            elif isinstance(payload, m.DecisionResponse):
                answered.add(payload.decision_id)
        return {decision: who for decision, who in asked.items() if decision not in answered}

    def summary(self, now_ns: int) -> Row:
        (_, edges, nodes), causal_graph = self.drawn(now_ns), self._fold().causal_graph
        return {
            "steps": len(nodes),
            "interventions": len(self._commands),
            "edges": len(edges),
            "roots": sum([node.is_root for node in nodes]),
            "forks": sum([len(children) > 1 for children in causal_graph.down]),
            "joins": sum([len(parents) > 1 for parents in causal_graph.up]),
            "orphans": sum([node.orphan for node in nodes]),
            "cycles_refused": len(causal_graph.refused),
            "terminal": sum([node.is_terminal for node in nodes]),
            "failures": [node.status for node in nodes].count("failure"),
            "low_confidence": sum([node.low_confidence for node in nodes]),
            "held": [node.state for node in nodes].count("held"),
            "depth": max([node.depth for node in nodes], default=0),
            "tokens": sum([node.tokens or 0 for node in nodes]),
            "cost": round(sum([node.cost for node in nodes]), 9),
        }

    # --- how nodes and edges are computed ---

    def _fold(self) -> FoldedGraph:
        if self._folded is None:
            self._folded = FoldedGraph(self.steps(), self._elsewhere)
        return self._folded

    def _attached(self, now_ns: int) -> list[int]:
        """Orphans whose wait is over, by number."""
        folded = self._fold()
        due = (folded.order[place] for place in folded.orphans if place != folded.anchor)
        return [seq for seq in due if self._seen[seq].at_ns + self._wait_ns <= now_ns]


def _row(edge: GraphEdge) -> Row:
    return {"from": edge.source, "to": edge.to, "kind": edge.kind}


def branch_costs(nodes: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """`branch_cost` of every step, from `cost` and `parent` alone: computed by readers of deltas (S210)."""
    steps = {node["id"]: node for node in nodes if node["kind"] == "step"}
    total = {name: float(node["cost"]) for name, node in steps.items()}
    for name in sorted(steps, key=lambda one: -int(steps[one]["depth"])):
        parent = steps[name]["parent"]
        if parent is not None:
            total[parent] += total[name]
    return {name: round(cost, 9) for name, cost in total.items()}
