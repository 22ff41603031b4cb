"""The smallest set of agents whose pause contains a cascade (rules S265–S266).

Agents are vertices, observed edges are how output passes from one to the next. A holder is an agent that has
the tainted output; the set is a minimum vertex cut between holders and the agents they reach that do not have
it yet, found as a maximum flow in which every agent is split in two with a capacity of one. Holders may be
cut. Paused and evicted agents are cut already. Pure, and exact: the property test compares with every subset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

MAX_AGENTS: Final = 200  # limit of an exact result
FAR: Final = 1 << 40  # capacity of what cannot be cut

Edges = Collection[tuple[int, int]]


class Containment(NamedTuple):
    """`pause` keeps it from every agent that does not have it.

    `smaller` is a smaller set, when there is one, that halts some of the next agents instead: they will get
    it, and it stops there. None when it was not computed.
    """

    pause: tuple[int, ...]
    reached: frozenset[int]  # agents that would get it: not holders, by any number of edges
    reaches: Mapping[int, tuple[int, ...]]  # holder -> next ones that do not have it
    exact: bool
    smaller: tuple[int, ...] | None


def contain(
    holders: Collection[int], edges: Edges, halted: Collection[int] = (), most: int = MAX_AGENTS
) -> Containment:
    stopped = set(halted)
    sources = set(holders) - stopped
    open_edges = {(a, b) for a, b in edges if a != b and a not in stopped and b not in stopped}
    reached = frozenset(_reached(sources, open_edges) - sources)
    reaches: dict[int, list[int]] = {}
    for a, b in sorted(open_edges):
        if a in sources and b in reached:
            reaches.setdefault(a, []).append(b)
    next_agents = {agent: tuple(others) for agent, others in reaches.items()}
    if len(sources) + len(reached) > most:
        return Containment(tuple(sorted(next_agents)), reached, next_agents, False, None)
    pause = tuple(sorted(smallest_cut(open_edges, sources, reached, sources)))
    of_all = tuple(sorted(smallest_cut(open_edges, sources, reached, sources | reached)))
    smaller = of_all if len(of_all) < len(pause) else None
    return Containment(pause, reached, next_agents, True, smaller)


def _reached(sources: Iterable[int], edges: Iterable[tuple[int, int]]) -> set[int]:
    after: dict[int, list[int]] = {}
    for a, b in edges:
        after.setdefault(a, []).append(b)
    found, queue = set(sources), deque(sources)
    while queue:
        for other in after.get(queue.popleft(), ()):
            if other not in found:
                found.add(other)
                queue.append(other)
    return found


def smallest_cut(
    edges: Edges, sources: Collection[int], sinks: Collection[int], allowed_agents: Collection[int]
) -> set[int]:
    """The fewest of `allowed_agents` on every path from a source to a sink, those nearest the sources.

    Menger: as many as there are disjoint paths. Sources and sinks have no member in common; ValueError when
    some path contains none of `allowed_agents`.
    """
    net = _Net()
    start, end = ("start", 0), ("end", 0)
    allowed = set(allowed_agents)
    for agent in {*sources, *sinks, *(agent for edge in edges for agent in edge)}:
        net.capacity(("in", agent), ("out", agent), 1 if agent in allowed else FAR)
    for a, b in edges:
        net.capacity(("out", a), ("in", b), FAR)
    for agent in sources:
        net.capacity(start, ("in", agent), FAR)
    for agent in sinks:
        net.capacity(("out", agent), end, FAR)
    if net.flow(start, end) >= FAR:
        raise ValueError("some path from a source to a sink cannot be cut")
    side = net.side(start)
    return {agent for agent in allowed if ("in", agent) in side and ("out", agent) not in side}


Vertex = tuple[str, int]


class _Net:
    """Dinic's maximum flow: levels breadth first, then augmenting paths along them."""

    def __init__(self) -> None:
        self._next: dict[Vertex, list[int]] = {}
        self._to: list[Vertex] = []
        self._left: list[int] = []

    def capacity(self, a: Vertex, b: Vertex, units: int) -> None:
        for here, there, capacity in ((a, b, units), (b, a, 0)):
            self._next.setdefault(here, []).append(len(self._to))
            self._to.append(there)
            self._left.append(capacity)

    def flow(self, start: Vertex, end: Vertex) -> int:
        total = 0
        while end in (levels := self._levels(start)):
            tried = dict.fromkeys(levels, 0)
            while path := self._path(start, end, levels, tried):
                least = min(self._left[edge] for edge in path)
                for edge in path:
                    self._left[edge] -= least
                    self._left[edge ^ 1] += least
                total += least
                if total >= FAR:
                    return total
        return total

    def side(self, start: Vertex) -> set[Vertex]:
        """What can still be reached: the near side of the cut."""
        return set(self._levels(start))

    def _levels(self, start: Vertex) -> dict[Vertex, int]:
        levels, queue = {start: 0}, deque([start])
        while queue:
            here = queue.popleft()
            for edge in self._next.get(here, ()):
                there = self._to[edge]
                if self._left[edge] and there not in levels:
                    levels[there] = levels[here] + 1
                    queue.append(there)
        return levels

    def _path(
        self, start: Vertex, end: Vertex, levels: dict[Vertex, int], tried: dict[Vertex, int]
    ) -> list[int]:
        """One more augmenting path, edge by edge; empty when there is none. Dead ends are not retried."""
        path: list[int] = []
        here = start
        while here != end:
            edges = self._next.get(here, [])
            while tried[here] < len(edges):
                edge = edges[tried[here]]
                there = self._to[edge]
                if self._left[edge] and levels.get(there) == levels[here] + 1:
                    path.append(edge)
                    here = there
                    break
                tried[here] += 1
            else:
                if not path:
                    return []
                back = path.pop()
                here = self._to[back ^ 1]
                tried[here] += 1
        return path
