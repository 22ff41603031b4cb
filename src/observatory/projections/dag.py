"""The causal graph of one session: steps as nodes, declared parents as edges, interventions as diamonds.

Law (rulings 18, 19, 25): several roots and several parents; an unknown parent is waited for, then the step
hangs at the session's first root, flagged; a circle refuses the edge, never the step. The graph is a function
of what was added and of the moment asked for: adding in any order and any batches gives the same nodes and
edges (rules S204–S213). How steps hang together is in weave.py, what a step shows of itself in faces.py.
A node's `version` is the highest number that changed what it shows; its `branch_cost` is left out of that,
because it is the sum of `cost` over all whose line of `parent`s leads to it and any reader can fold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from observatory.insight.seen import Seen
from observatory.projections.badge import Doing, badge_of
from observatory.projections.costs import Costs, step_costs
from observatory.projections.faces import Face, diamond_of, face_of, is_terminal, outcome_of
from observatory.projections.weave import Knot, Weave
from observatory.protocol import messages as m

SECOND = 1_000_000_000
WAIT_S = 30
LOW_CONFIDENCE = 0.5
Row = dict[str, Any]


class Graph:
    """Keeps what was added; works out nodes and edges when asked, once for each change."""

    def __init__(self, low_confidence: float = LOW_CONFIDENCE, wait_s: int = WAIT_S) -> None:
        self._low, self._wait_ns = low_confidence, wait_s * SECOND
        self._seen: dict[int, Seen] = {}
        self._faces: dict[int, Face] = {}
        self._holds: dict[int, Row] = {}
        self._commands: dict[int, Row] = {}
        self._elsewhere: dict[str, str] = {}
        self._folded: _Folded | None = None
        self._shown: tuple[frozenset[int], list[Face], list[Row]] | None = None

    def add(self, seen: Seen, version: int = 0) -> None:
        """A step, or its new state or content; `version` is the event that changed it, if not its own."""
        known = self._faces.get(seen.seq)
        if known is not None and known["version"] > max(version, seen.seq):
            return
        self._seen[seen.seq] = seen
        self._faces[seen.seq] = face = face_of(seen, self._low)
        face["version"] = max(version, seen.seq)
        self._forget()

    def hold(self, row: Mapping[str, Any]) -> None:
        """A row of `holds`: why a step waits or waited, and how far its gate is."""
        self._holds[row["sequence_number"]] = dict(row)
        self._forget()

    def intervene(self, row: Mapping[str, Any]) -> None:
        """A row of `interventions`, with the name of its agent as `agent_id`."""
        self._commands[row["sequence_number"]] = dict(row)
        self._forget()

    def elsewhere(self, found: Mapping[str, str]) -> None:
        """Parents that are steps outside of this graph: name → session. They are not waited for."""
        self._elsewhere.update(found)
        self._forget()

    def clear(self) -> None:
        """Nothing was added; for whoever is done with it."""
        self._seen.clear()
        self._faces.clear()
        self._holds.clear()
        self._commands.clear()
        self._forget()

    def _forget(self) -> None:
        self._folded = self._shown = None

    # --- what is asked ---

    @property
    def version(self) -> int:
        """The highest number that changed anything here."""
        released = (row.get("released_seq") or 0 for row in self._holds.values())
        faces = (face["version"] for face in self._faces.values())
        return max((*faces, *self._commands, *released), default=0)

    def steps(self) -> list[Seen]:
        return [self._seen[seq] for seq in sorted(self._seen)]

    def unknown_parents(self) -> set[str]:
        """Names no step of this graph has; what of them is a step elsewhere is told by `elsewhere`."""
        missing = self._fold().weave.missing
        return {name for names in missing for name in names if not name.startswith("span:")}

    def nodes(self, now_ns: int) -> list[Face]:
        """In sequence order, diamonds among them."""
        return self._show(now_ns)[0]

    def edges(self, now_ns: int) -> list[Row]:
        return self._show(now_ns)[1]

    def refused(self) -> list[Row]:
        """Edges that would have closed a circle."""
        folded = self._fold()
        return [
            {"from": folded.names[parent], "to": folded.names[child], "kind": "cycle"}
            for parent, child in folded.weave.refused
        ]

    def roots(self, now_ns: int) -> list[str]:
        return [node["id"] for node in self.nodes(now_ns) if node.get("is_root")]

    def changed(self, since_version: int, now_ns: int, since_ns: int | None = None) -> Row:
        """Nodes that changed after a version, and *every* edge into each of them: they replace those known.

        Some changes have no number: a wait that ran out, a command acknowledged or taken back. Those after
        `since_ns` are told; without it all that there are.
        """
        since_ns = 0 if since_ns is None else since_ns
        nodes, edges = self._show(now_ns)
        due = [seq for seq in self._attached(now_ns) if self._seen[seq].at_ns + self._wait_ns > since_ns]
        by_clock = self._fold().below(due)  # their depth changed too
        for row in self._commands.values():
            moments = [row.get(name) or 0 for name in ("acknowledged_ns", "confirmed_ns", "reversed_ns")]
            if max(moments) > since_ns:
                by_clock.add(row["intervention_id"])
        fresh = [node for node in nodes if node["version"] > since_version or node["id"] in by_clock]
        named = {node["id"] for node in fresh}
        return {"nodes": fresh, "edges": [edge for edge in edges if edge["to"] in named]}

    def agents(
        self, now_ns: int, paused: Iterable[str] = (), undecided: Iterable[str] | None = None
    ) -> list[Row]:
        """Who acted here, and what each is doing now. `undecided` are the decisions still open, if known."""
        held, stopped = self._held_by_agent(), set(paused)
        asked = self.open_requests()
        open_ids = set(asked) if undecided is None else set(undecided)
        told: dict[str, Row] = {}
        for seen in self.steps():
            mine = told.setdefault(
                seen.agent_id,
                {"agent_id": seen.agent_id, "agent_type": None, "steps": 0, "cost": 0.0, "tokens": 0},
            )
            mine["agent_type"] = seen.agent_type or mine["agent_type"]
            mine["steps"] += 1
            mine["cost"] += self._fold().costs.cost[seen.seq]
            mine["tokens"] += self._faces[seen.seq]["tokens"] or 0
            if seen.message_type != "heartbeat" or "last" not in mine:
                mine["last"] = seen
        for agent_id, mine in told.items():
            last: Seen = mine.pop("last")
            tool, status = outcome_of(last)
            waits = sum(1 for decision, who in asked.items() if who == agent_id and decision in open_ids)
            doing = Doing(
                is_terminal(last), status, tool, last.state, last.at_ns, agent_id in stopped,
                held.get(agent_id, 0), waits,
            )  # fmt: skip
            mine["badge"], mine["badge_rule"] = badge_of(doing, now_ns)
            mine["last_step"], mine["cost"] = last.name, round(mine["cost"], 9)
        return list(told.values())

    def open_requests(self) -> dict[str, str]:
        """Decisions asked for and not answered in this session: decision id → who asked."""
        asked: dict[str, str] = {}
        answered: set[str] = set()
        for seen in self._seen.values():
            payload = None if seen.envelope is None else seen.envelope.payload
            if isinstance(payload, m.DecisionRequest):
                asked[payload.decision_id] = seen.agent_id
            elif isinstance(payload, m.DecisionResponse):
                answered.add(payload.decision_id)
        return {decision: who for decision, who in asked.items() if decision not in answered}

    def summary(self, now_ns: int) -> Row:
        nodes = [node for node in self.nodes(now_ns) if node["kind"] == "step"]
        weave = self._fold().weave
        return {
            "steps": len(nodes),
            "interventions": len(self._commands),
            "edges": len(self.edges(now_ns)),
            "roots": sum(1 for node in nodes if node["is_root"]),
            "forks": sum(1 for children in weave.down if len(children) > 1),
            "joins": sum(1 for parents in weave.up if len(parents) > 1),
            "orphans": sum(1 for node in nodes if node["orphan"]),
            "cycles_refused": len(weave.refused),
            "terminal": sum(1 for node in nodes if node["is_terminal"]),
            "failures": sum(1 for node in nodes if node["status"] == "failure"),
            "low_confidence": sum(1 for node in nodes if node["low_confidence"]),
            "held": sum(1 for node in nodes if node["state"] == "held"),
            "depth": max((node["depth"] for node in nodes), default=0),
            "tokens": sum(node["tokens"] or 0 for node in nodes),
            "cost": round(sum(node["cost"] for node in nodes), 9),
        }

    # --- how it is worked out ---

    def _fold(self) -> _Folded:
        if self._folded is None:
            self._folded = _Folded(self.steps(), self._elsewhere)
        return self._folded

    def _held_by_agent(self) -> dict[str, int]:
        held: dict[str, int] = {}
        for seen in self._seen.values():
            if seen.state == "held":
                held[seen.agent_id] = held.get(seen.agent_id, 0) + 1
        return held

    def _attached(self, now_ns: int) -> list[int]:
        """Orphans whose wait is over, by number."""
        folded = self._fold()
        due = (folded.order[place] for place in folded.orphans if place != folded.anchor)
        return [seq for seq in due if self._seen[seq].at_ns + self._wait_ns <= now_ns]

    def _show(self, now_ns: int) -> tuple[list[Face], list[Row]]:
        due = frozenset(self._attached(now_ns))
        if self._shown is None or self._shown[0] != due:
            self._shown = (due, *self._fold().shown(self._faces, self._holds, self._commands, due))
        return self._shown[1], self._shown[2]


class _Folded:
    """Steps in sequence order with what follows from the whole of them."""

    def __init__(self, steps: list[Seen], elsewhere: Mapping[str, str]) -> None:
        knots = [
            Knot(seen.name, seen.parents, seen.parent_inferred, seen.span_id, seen.parent_span_id)
            for seen in steps
        ]
        self.steps, self._elsewhere = steps, elsewhere
        self.order = [seen.seq for seen in steps]
        self.names = [seen.name for seen in steps]
        self.weave = Weave(knots, elsewhere)
        self.orphans = frozenset(self.weave.orphans())
        self.anchor, self._anchored = self.weave.anchor(self.orphans)
        self.costs: Costs = step_costs(steps)

    def shown(
        self,
        faces: Mapping[int, Face],
        holds: Mapping[int, Row],
        commands: Mapping[int, Row],
        due: frozenset[int],
    ) -> tuple[list[Face], list[Row]]:
        weave, order, names = self.weave, self.order, self.names
        anchor = self.anchor
        attached = {place: anchor for place in self.orphans if anchor is not None and order[place] in due}
        depth, moved, line = weave.levels(attached, self.orphans, self._anchored)
        parents = [up[0] if up else attached.get(place) for place, up in enumerate(weave.up)]
        branch = [self.costs.cost[seq] for seq in order]
        for place in reversed(line):
            parent = parents[place]
            if parent is not None:
                branch[parent] += branch[place]
        circles = {child for _, child in weave.refused}
        nodes: list[Face] = []
        edges: list[Row] = []
        for place, seq in enumerate(order):
            face, hold, parent = faces[seq], holds.get(seq), parents[place]
            version = max(face["version"], order[moved[place]])
            before = self.costs.previous.get(seq)
            if before:
                version = max(version, faces[before]["version"])
            gate, reason = None, None
            if hold is not None:
                version = max(version, hold.get("released_seq") or 0)
                gate, reason = ("none", "open", "approved")[hold["gate"]], hold["reason"]
            orphan = place in self.orphans and place != anchor
            node = face.copy()
            node["version"] = version
            node["gate"], node["held_because"] = gate, reason
            node["cost"], node["branch_cost"] = round(self.costs.cost[seq], 9), round(branch[place], 9)
            node["parent"], node["depth"] = None if parent is None else names[parent], depth[place]
            node["is_root"], node["orphan"] = parent is None and not orphan, place in self.orphans
            node["flags"] = self._flags(place, place in attached, orphan, place in circles)
            nodes.append(node)
            edges += [
                {"from": names[up], "to": names[place], "kind": weave.kinds[up, place]}
                for up in weave.up[place]
            ]
            if place in attached:
                edges.append({"from": names[attached[place]], "to": names[place], "kind": "attached"})
        self._diamonds(commands, nodes, edges)
        return nodes, edges

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

    def _flags(self, place: int, attached: bool, orphan: bool, circle: bool) -> list[str]:
        """Words for what is out of the ordinary, in no case the only sign of it."""
        weave, seen = self.weave, self.steps[place]
        flags = []
        if attached:
            flags.append("attached")
        elif orphan:
            flags.append("waiting_for_parent")
        if weave.missing[place]:
            flags.append("parent_unknown")
        if weave.outside[place]:
            flags.append("parent_elsewhere")
        if circle:
            flags.append("cycle_refused")
        if seen.seq in self.costs.fell:
            flags.append("cost_decreased")
        if seen.revised:
            flags.append("rewritten")
        if seen.log is None and seen.envelope is None:
            flags.append("shredded")
        return flags

    def _diamonds(self, commands: Mapping[int, Row], nodes: list[Face], edges: list[Row]) -> None:
        """Each hangs at the step it concerned: the message named, else the agent's last step before it."""
        if not commands:
            return
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
                edges.append({"from": at, "to": row["intervention_id"], "kind": "intervention"})
        nodes.sort(key=lambda node: node["sequence_number"])


def branch_costs(nodes: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """`branch_cost` of every step, from `cost` and `parent` alone: what a reader of deltas folds (S210)."""
    steps = {node["id"]: node for node in nodes if node["kind"] == "step"}
    total = {name: float(node["cost"]) for name, node in steps.items()}
    for name in sorted(steps, key=lambda one: -int(steps[one]["depth"])):
        parent = steps[name]["parent"]
        if parent is not None:
            total[parent] += total[name]
    return {name: round(cost, 9) for name, cost in total.items()}
