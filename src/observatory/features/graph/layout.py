"""A session's graph drawn: its steps as nodes in sequence order, and the edges between them.

Pure, and a function of what was added (dag.py): how steps hang together is in weave.py, what a step shows of
itself in faces.py, what it cost in costs.py; here they come together, in one pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from observatory.features.costs.costs import step_costs
from observatory.features.graph.causal_graph import Weave
from observatory.features.graph.labels import Diamond, Edge, Node, diamond_of
from observatory.runtime.seen import Seen

Row = dict[str, Any]
GATES = ("none", "open", "approved")


class Drawn(NamedTuple):
    nodes: list[Node | Diamond]  # in sequence order
    edges: list[Edge]
    steps: list[Node]


class Folded:
    """Steps in sequence order with what follows from the whole of them; each is named by its place."""

    def __init__(self, steps: list[Seen], elsewhere: Mapping[str, str]) -> None:
        self.steps = steps
        self.order = [seen.seq for seen in steps]
        self.names = [seen.name for seen in steps]
        self.weave = Weave(steps, elsewhere)
        self.orphans = frozenset(self.weave.orphans())
        self.anchor, self._anchored = self.weave.anchor(self.orphans)
        self.costs = step_costs(steps)

    def drawn(
        self,
        faces: Mapping[int, Node],
        holds: Mapping[int, Row],
        commands: Mapping[int, Row],
        due: Collection[int],
    ) -> Drawn:
        """`due` are the orphans, by number, whose wait is over."""
        names, orphans, anchor = self.names, self.orphans, self.anchor
        attached = {one: anchor for one in orphans if anchor is not None and self.order[one] in due}
        depth, moved, line = self.weave.levels(attached, orphans, self._anchored)
        ups = self.weave.up
        if attached:
            ups = [[attached[place]] if place in attached else up for place, up in enumerate(ups)]
        parents = [up[0] if up else None for up in ups]
        cost = [round(one, 9) for one in self.costs.cost.values()]  # by place: both in sequence order
        branch = [round(one, 9) for one in self._branches(parents, line)]
        nodes: list[Node] = []
        # Of 10,000 steps every line here is about 1 ms: what few steps have is put on them afterwards.
        for seq, parent, deep, own, below in zip(self.order, parents, depth, cost, branch, strict=True):
            node: Node = faces[seq].__copy__()  # type: ignore[attr-defined]
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
        self._hold(nodes, holds)
        self._date(nodes, faces, moved)
        return self._with_diamonds(commands, nodes, self._edges(ups, attached))

    def _hold(self, nodes: list[Node], holds: Mapping[int, Row]) -> None:
        """What is or was held says why, and how far its gate is."""
        for node in nodes if holds else ():
            hold = holds.get(node.sequence_number)
            if hold is not None:
                node.gate, node.held_because = GATES[hold["gate"]], hold["reason"]
                node.version = max(node.version, hold.get("released_seq") or 0)

    def _date(self, nodes: list[Node], faces: Mapping[int, Node], moved: list[int]) -> None:
        """The version is at least the number that changed a way to the step, or the figure before its own."""
        for place in [place for place, at in enumerate(moved) if at != place]:
            nodes[place].version = max(nodes[place].version, self.order[moved[place]])
        # As it came, the step before is older than this one: only what was changed since counts.
        late = {node.sequence_number for node in faces.values() if node.version > node.sequence_number}
        if late:
            previous = self.costs.previous
            for node in nodes:
                before = previous.get(node.sequence_number)
                if before in late:
                    node.version = max(node.version, faces[before].version)

    def _edges(self, ups: list[list[int]], attached: Collection[int]) -> list[Edge]:
        """In the order of the steps they lead to."""
        names, kinds = self.names, self.weave.kinds()
        for place in attached:
            kinds[place] = "attached"
        return [
            Edge(names[up], name, "late" if up > place and place not in attached else kind)
            for place, (some, name, kind) in enumerate(zip(ups, names, kinds, strict=True))
            for up in some
        ]

    def _branches(self, parents: list[int | None], line: list[int]) -> list[float]:
        """What each step and all below it cost."""
        branch = list(self.costs.cost.values())  # by place: both are in sequence order
        for place in reversed(line):
            parent = parents[place]
            if parent is not None:
                branch[parent] += branch[place]
        return branch

    def below(self, numbers: Iterable[int]) -> set[str]:
        """The names of these steps and of all their descendants."""
        wanted = set(numbers)
        left = [place for place, seq in enumerate(self.order) if seq in wanted] if wanted else []
        found = set(left)
        while left:
            for child in self.weave.down[left.pop()]:
                if child not in found:
                    found.add(child)
                    left.append(child)
        return {self.names[place] for place in found}

    def _flags(self, attached: Collection[int]) -> dict[int, list[str]]:
        """Words for what is out of the ordinary, in no case the only sign of it; of the few that have any."""
        weave, steps = self.weave, self.steps
        fell = self.costs.fell
        told: dict[str, Iterable[int]] = {
            "attached": attached,
            "waiting_for_parent": (one for one in self.orphans if one not in attached and one != self.anchor),
            "parent_unknown": weave.missing,
            "parent_elsewhere": weave.outside,
            "cycle_refused": {child for _, child in weave.refused},
            "cost_decreased": (place for place, seq in enumerate(self.order) if seq in fell) if fell else (),
            "rewritten": (place for place, seen in enumerate(steps) if seen.revised),
            "shredded": (
                place for place, seen in enumerate(steps) if seen.log is None and seen.envelope is None
            ),
        }
        flags: dict[int, list[str]] = {}
        for word, places in told.items():
            for place in places:
                flags.setdefault(place, []).append(word)
        return flags

    def _with_diamonds(self, commands: Mapping[int, Row], steps: list[Node], edges: list[Edge]) -> Drawn:
        """Each hangs at the step it concerned: the message named, else the agent's last step before it."""
        nodes: list[Node | Diamond] = [*steps]
        if not commands:
            return Drawn(nodes, edges, steps)
        by_number = dict(zip(self.order, self.names, strict=True))
        for number in sorted(commands):
            row = commands[number]
            nodes.append(diamond_of(row))
            at = by_number.get(row.get("message_seq") or 0)
            if at is None:
                earlier = [seen for seen in self.steps if seen.seq < number]
                mine = [seen for seen in earlier if seen.agent_id == row.get("agent_id")]
                at = (mine or earlier)[-1].name if mine or earlier else None
            if at is not None:
                edges.append(Edge(at, row["intervention_id"], "intervention"))
        nodes.sort(key=lambda node: node.sequence_number)
        return Drawn(nodes, edges, steps)
