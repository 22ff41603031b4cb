"""Lays out a session's graph: its steps as nodes in sequence order, and the edges between them.

Pure, and a function of what was added (graph.py): the edges come from causal_graph.py, the labels of a step
from labels.py, its cost from costs/costs.py; here they are combined in one pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from observatory.derived.seen import FoldMessage
from observatory.features.graph.causal_graph import CausalGraph
from observatory.features.graph.types_costs import step_costs
from observatory.features.graph.types_labels import GraphEdge, InterventionNode, StepNode, intervention_node

Row = dict[str, Any]
GATES = ("none", "open", "approved")


class GraphDrawing(NamedTuple):
    nodes: list[StepNode | InterventionNode]  # in sequence order
    edges: list[GraphEdge]
    steps: list[StepNode]


class FoldedGraph:
    """Steps in sequence order with what follows from all of them; each is identified by its place."""

    def __init__(self, steps: list[FoldMessage], elsewhere: Mapping[str, str]) -> None:
        self.steps = steps
        self.order = [seen.seq for seen in steps]
        self.names = [seen.name for seen in steps]
        self.causal_graph = CausalGraph(steps, elsewhere)
        self.orphans = frozenset(self.causal_graph.orphans())
        self.anchor, self._anchored = self.causal_graph.anchor(self.orphans)
        self.costs = step_costs(steps)

    def drawn(
        self,
        faces: Mapping[int, StepNode],
        holds: Mapping[int, Row],
        commands: Mapping[int, Row],
        due: Collection[int],
    ) -> GraphDrawing:
        """`due` are the orphans, by number, whose wait is over."""
        names, orphans, anchor = self.names, self.orphans, self.anchor
        attached = {one: anchor for one in orphans if anchor is not None and self.order[one] in due}
        depth, moved, order = self.causal_graph.levels(attached, orphans, self._anchored)
        ups = self.causal_graph.up
        if attached:
            ups = [[attached[place]] if place in attached else up for place, up in enumerate(ups)]
        parents = [up[0] if up else None for up in ups]
        cost = [round(one, 9) for one in self.costs.cost.values()]  # by place: both in sequence order
        branch = [round(one, 9) for one in self._branches(parents, order)]
        nodes: list[StepNode] = []
        # With 10,000 steps every line here is about 1 ms: what few steps have is added afterwards.
        for seq, parent, deep, own, below in zip(self.order, parents, depth, cost, branch, strict=True):
            node: StepNode = faces[seq].__copy__()  # type: ignore[attr-defined]
            node.cost, node.branch_cost, node.depth = own, below, deep
            if parent is None:
                node.is_root = True
            else:
                node.parent = names[parent]
            nodes.append(node)
        for place in orphans:
            nodes[place].orphan, nodes[place].is_root = True, place == anchor
        for place, flags in self._flags(attached).items():
            nodes[place].flags = flags
        self._add_holds(nodes, holds)
        self._set_versions(nodes, faces, moved)
        return self._with_diamonds(commands, nodes, self._edges(ups, attached))

    def _add_holds(self, nodes: list[StepNode], holds: Mapping[int, Row]) -> None:
        """Adds the reason of a hold and the state of its gate."""
        for node in nodes if holds else ():
            hold = holds.get(node.sequence_number)
            if hold is not None:
                node.gate, node.held_because = GATES[hold["gate"]], hold["reason"]
                node.version = max(node.version, hold.get("released_seq") or 0)

    def _set_versions(self, nodes: list[StepNode], faces: Mapping[int, StepNode], moved: list[int]) -> None:
        """The version is at least the number that changed a path to it, or the figure before its own."""
        for place in [place for place, at in enumerate(moved) if at != place]:
            nodes[place].version = max(nodes[place].version, self.order[moved[place]])
        # On arrival the step before is older than this one: only later changes count.
        late = {node.sequence_number for node in faces.values() if node.version > node.sequence_number}
        if late:
            previous = self.costs.previous
            for node in nodes:
                before = previous.get(node.sequence_number)
                if before in late:
                    node.version = max(node.version, faces[before].version)

    def _edges(self, ups: list[list[int]], attached: Collection[int]) -> list[GraphEdge]:
        """In the order of the steps they lead to."""
        names, kinds = self.names, self.causal_graph.kinds()
        for place in attached:
            kinds[place] = "attached"
        return [
            GraphEdge(names[up], name, "late" if up > place and place not in attached else kind)
            for place, (some, name, kind) in enumerate(zip(ups, names, kinds, strict=True))
            for up in some
        ]

    def _branches(self, parents: list[int | None], order: list[int]) -> list[float]:
        """What each step and all below it cost."""
        branch = list(self.costs.cost.values())  # by place: both are in sequence order
        for place in reversed(order):
            parent = parents[place]
            if parent is not None:
                branch[parent] += branch[place]
        return branch

    def below(self, numbers: Iterable[int]) -> set[str]:
        """The names of these steps and of all their descendants."""
        numbers_wanted = set(numbers)
        left = (
            [place for place, seq in enumerate(self.order) if seq in numbers_wanted] if numbers_wanted else []
        )
        found = set(left)
        while left:
            for child in self.causal_graph.down[left.pop()]:
                if child not in found:
                    found.add(child)
                    left.append(child)
        return {self.names[place] for place in found}

    def _flags(self, attached: Collection[int]) -> dict[int, list[str]]:
        """Flags for anything unusual, never the only sign of it; only for the few steps that have any."""
        causal_graph, steps = self.causal_graph, self.steps
        fell = self.costs.fell
        places_by_flag: dict[str, Iterable[int]] = {
            "attached": attached,
            "waiting_for_parent": (one for one in self.orphans if one not in attached and one != self.anchor),
            "parent_unknown": causal_graph.missing,
            "parent_elsewhere": causal_graph.outside,
            "cycle_refused": {child for _, child in causal_graph.refused},
            "cost_decreased": (place for place, seq in enumerate(self.order) if seq in fell) if fell else (),
            "rewritten": (place for place, seen in enumerate(steps) if seen.revised),
            "shredded": (
                place for place, seen in enumerate(steps) if seen.log is None and seen.envelope is None
            ),
        }
        flags: dict[int, list[str]] = {}
        for flag, places in places_by_flag.items():
            for place in places:
                flags.setdefault(place, []).append(flag)
        return flags

    def _with_diamonds(
        self, commands: Mapping[int, Row], steps: list[StepNode], edges: list[GraphEdge]
    ) -> GraphDrawing:
        """Attaches each to the step it concerned: the message named, else the agent's last step before it."""
        nodes: list[StepNode | InterventionNode] = [*steps]
        if not commands:
            return GraphDrawing(nodes, edges, steps)
        by_number = dict(zip(self.order, self.names, strict=True))
        for number in sorted(commands):
            row = commands[number]
            nodes.append(intervention_node(row))
            at = by_number.get(row.get("message_seq") or 0)
            if at is None:
                earlier = [seen for seen in self.steps if seen.seq < number]
                mine = [seen for seen in earlier if seen.agent_id == row.get("agent_id")]
                at = (mine or earlier)[-1].name if mine or earlier else None
            if at is not None:
                edges.append(GraphEdge(at, row["intervention_id"], "intervention"))
        nodes.sort(key=lambda node: node.sequence_number)
        return GraphDrawing(nodes, edges, steps)
