"""The causal graph of a session by place in sequence order: resolved parents, refused cycles, orphans, depth.

Pure, and a function of the set of steps alone: they are read in sequence order, never by a clock, so any
order of arrival and any batching gives the same answer (rules S204–S208). An edge is known when the later of
its two steps is archived; edges are taken in the order in which they become known, those of the new step
before those that waited for it. An edge that would close a cycle is refused, its step stays. Nothing here
recurses and no walk has a hop limit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

Kind = Literal["declared", "inferred", "span", "late", "attached", "intervention"]


class LinkedStep(Protocol):
    """The members of a step that decide its edges. `span_id` may be expensive: it is read only if some step
    names its parent by a span."""

    @property
    def name(self) -> str: ...
    @property
    def parents(self) -> tuple[str, ...]: ...
    @property
    def parent_inferred(self) -> bool: ...
    @property
    def span_id(self) -> str: ...
    @property
    def parent_span_id(self) -> str | None: ...


class NamedStep(NamedTuple):
    """A step of which nothing else is known."""

    name: str
    parents: tuple[str, ...]
    parent_inferred: bool
    span_id: str
    parent_span_id: str | None


class CausalGraph:
    """Steps by their place in sequence order. `up[i]` are the parents of `i`, in declared order."""

    def __init__(self, steps: Sequence[LinkedStep], elsewhere: Container[str] = frozenset()) -> None:
        size = len(steps)
        self.linked_steps = steps
        self.up: list[list[int]] = []
        self.down: list[list[int]] = [[] for _ in range(size)]
        self.refused: list[tuple[int, int]] = []  # (parent, child)
        # The place at whose arrival a step's edges were final: its own, or that of a refused parent.
        self.settled = list(range(size))
        # By place; only for the few steps that have any.
        self.missing: dict[int, tuple[str, ...]] = {}
        self.outside: dict[int, tuple[str, ...]] = {}
        self._add_edges(*self._resolve_parents(elsewhere))

    def kinds(self) -> list[Kind]:
        """Per step the kind of its edges from earlier ones; one from a later step is `late`."""
        return [
            "inferred" if one.parent_inferred else "declared" if one.parents else "span"
            for one in self.linked_steps
        ]

    def _resolve_parents(self, elsewhere: Container[str]) -> tuple[list[list[int]], dict[int, list[int]]]:
        """Per step the parents it names that exist; and, per parent that came later, the children that
        waited. A step that names itself waits too."""
        steps = self.linked_steps
        names = {steps[place].name: place for place in range(len(steps) - 1, -1, -1)}  # the first counts
        spans = self._spans()
        resolved: list[list[int]] = []
        waiting: dict[int, list[int]] = {}
        for place, one in enumerate(steps):
            parents_here: list[int] = []
            unresolved: list[str] = []
            parents = one.parents
            for name in parents:
                found = names.get(name)
                if found is None:
                    unresolved.append(name)
                elif found not in parents_here:
                    parents_here.append(found)
                    if found >= place:
                        waiting.setdefault(found, []).append(place)
            if spans is not None and not parents and one.parent_span_id is not None:
                found = _by_span(spans.get(one.parent_span_id, ()), place)
                if found is None:
                    unresolved.append(f"span:{one.parent_span_id}")
                else:
                    parents_here.append(found)
                    if found >= place:
                        waiting.setdefault(found, []).append(place)
            if unresolved:
                self._note_missing(place, unresolved, elsewhere)
            resolved.append(parents_here)
        return resolved, waiting

    def _spans(self) -> dict[str, list[int]] | None:
        """Places by span; None when no step names a parent by span."""
        steps = self.linked_steps
        if not any(one.parent_span_id is not None and not one.parents for one in steps):
            return None
        spans: dict[str, list[int]] = {}
        for place, one in enumerate(steps):
            spans.setdefault(one.span_id, []).append(place)
        return spans

    def _note_missing(self, place: int, unresolved: Iterable[str], elsewhere: Container[str]) -> None:
        missing = tuple(name for name in unresolved if name not in elsewhere)
        outside = tuple(name for name in unresolved if name in elsewhere)
        if missing:
            self.missing[place] = missing
        if outside:
            self.outside[place] = outside

    def _add_edges(self, resolved: list[list[int]], waiting: dict[int, list[int]]) -> None:
        up, down = self.up, self.down
        early = {child for children in waiting.values() for child in children}
        refused: set[tuple[int, int]] = set()
        for place, parents_here in enumerate(resolved):
            up.append(
                [parent for parent in parents_here if parent < place] if place in early else parents_here
            )
            for parent in up[place]:
                down[parent].append(place)
            for child in waiting.get(place, ()):
                # Only an edge to a step that came later can close a cycle.
                if child == place or self._is_above(child, place):
                    refused.add((place, child))
                else:
                    up[child].append(place)
                    down[place].append(child)
        for place in early:
            if len(up[place]) > 1:
                order = {parent: rank for rank, parent in enumerate(resolved[place])}
                up[place].sort(key=order.__getitem__)
        self.refused = sorted(refused, key=lambda edge: (max(edge), edge[1]))
        for parent, child in self.refused:
            self.settled[child] = max(self.settled[child], parent)

    def _is_above(self, upper: int, lower: int) -> bool:
        """Whether `upper` is an ancestor of `lower`: searched from both ends, so the shorter way decides."""
        above, below = [lower], [upper]
        seen_above, seen_below = {lower}, {upper}
        while above and below:
            for step in self.up[above.pop()]:
                if step == upper:
                    return True
                if step not in seen_above:
                    seen_above.add(step)
                    above.append(step)
            for step in self.down[below.pop()]:
                if step == lower:
                    return True
                if step not in seen_below:
                    seen_below.add(step)
                    below.append(step)
        return False

    def orphans(self) -> list[int]:
        """Steps that named parents, none of which exists."""
        return [place for place in self.missing if not self.up[place] and place not in self.outside]

    def anchor(self, orphans: Container[int]) -> tuple[int | None, int]:
        """Where orphans are attached: the first root, else the first orphan itself; and the place at whose
        arrival that was decided."""
        free = [place for place, parents in enumerate(self.up) if not parents]
        root = next((place for place in free if place not in orphans), None)
        if root is not None:
            return root, self.settled[root]
        if not free:
            return None, 0
        # Those before it had no parents either, until their parents came.
        return free[0], max([free[0], *(max(self.up[place]) for place in range(free[0]))])

    def levels(
        self, attached: Mapping[int, int], orphans: Iterable[int], anchored: int
    ) -> tuple[list[int], list[int], list[int]]:
        """Per step its depth (the longest path from a root), the last place that changed any path to it,
        and the order in which parents come before children."""
        size = len(self.linked_steps)
        depth, moved = [0] * size, list(self.settled)
        for place in orphans:
            moved[place] = max(moved[place], anchored)
        hanging: dict[int, list[int]] = {}
        for child, parent in attached.items():
            hanging.setdefault(parent, []).append(child)
        left = [len(parents) for parents in self.up]
        for child in attached:
            left[child] += 1
        order = [place for place in range(size) if not left[place]]
        down = self.down
        for place in order:  # grows while it is walked: Kahn's order
            below, last = depth[place] + 1, moved[place]
            for child in (*down[place], *hanging[place]) if place in hanging else down[place]:
                if depth[child] < below:
                    depth[child] = below
                if moved[child] < last:
                    moved[child] = last
                left[child] -= 1
                if not left[child]:
                    order.append(child)
        return depth, moved, order


def _by_span(places: Sequence[int], own: int) -> int | None:
    """The last step before this one with that span, else the first after it; never itself."""
    before = bisect_left(places, own)
    if before:
        return places[before - 1]
    return next((place for place in places[before:] if place != own), None)
