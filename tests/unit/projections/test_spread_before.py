"""Infections and blasts are, edge for edge, what the plain way before found (S248–S250, S262–S264).

Random graphs in a real derived store: forks, joins, several sessions, circles, parents that came late, shared
spans, letters, uses of every kind. The same rows are given to the folds as they were before anything of them
was made faster (`*_before.py`), read here row by row.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from observatory.derived.seen import DerivedWrite
from observatory.features.cascade.blast_radius import affected_agents, blast_totals
from observatory.features.cascade.cascade import BlastRadius, ForwardWalk
from observatory.features.cascade.routes import cascade_of
from observatory.features.cascade.types_rows import LocatedStep
from observatory.features.facts.routes_infection import infection_of
from observatory.features.facts.types import FactRow, UseRow, fact_number
from observatory.features.graph import types_spread as columns
from observatory.features.graph.types_spread import PLACE_BITS
from observatory.http.app_state import AppState
from observatory.pipeline.state import Principal
from observatory.stores import sqlite_derived
from tests.unit.projections import cascade_before, infection_before
from tests.unit.projections.rows_before import Downstream, Spread, StepRow, TaintRow

TENANT = "tnt_test"
WHO = Principal(tenant_id=TENANT, role="operator", key_id="key_test")
Row = dict[str, Any]


class Mesh:
    """So many steps in so many sessions; `near` is how far back links and uses mostly lead."""

    def __init__(self, seed: int, count: int, sessions: int, near: int) -> None:
        dice = random.Random(seed)
        self.tables: dict[str, list[Row]] = {
            f"insight_{name}": [] for name in ("steps", "links", "facts", "uses")
        }
        copies: dict[int, list[int]] = {}
        for seq in range(1, count + 1):
            agent, session = dice.randint(1, 6), dice.randint(1, sessions)
            if dice.random() < 0.5:
                session = min(sessions, 1 + (seq - 1) * sessions // count)  # one after the other
            self.tables["insight_steps"].append(
                {
                    "seq": seq, "name_key": seq * 10, "span_key": -dice.randint(1, count),
                    "session_no": session, "agent_no": agent, "recipient_no": dice.choice((0, 0, 0, 1, 2, 3)),
                    "message_type": "decision_log", "state": dice.choice(("forwarded", "forwarded", "held")),
                    "status": "success", "tool": dice.choice((None, "search")), "cost": seq / 64,
                    "reported": None, "tokens": 1, "confidence": None, "entropy": None, "terminal": 0,
                    "cluster_id": None, "at_ns": seq,
                }
            )  # fmt: skip
            for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
                # Mostly back, sometimes ahead: late parents, and circles.
                parent = max(1, seq + dice.choice((-1, -1, -1, 1)) * dice.randint(0, near))
                key, kind = (parent * 10, dice.choice(("declared", "declared", "inferred")))
                if dice.random() < 0.15:
                    key, kind = -dice.randint(1, count), "span"
                self._add("links", {"seq": seq, "parent_key": key, "kind": kind, "session_no": session})
            copies[seq] = [fact_number(seq, place) for place in range(dice.choice((0, 1, 1, 2)))]
            for fact_id in copies[seq]:
                self._add(
                    "facts",
                    {
                        "fact_id": fact_id, "seq": seq, "session_no": session, "agent_no": agent,
                        "cluster_id": None, "at_ns": seq, "fact_key": fact_id, "subject_key": None,
                        "subject": None, "value": None, "text": f"fact {fact_id}",
                    },
                )  # fmt: skip
            for _ in range(dice.choice((0, 0, 1, 2))):
                known = copies.get(max(1, seq - dice.randint(1, near)), [])
                if known:
                    copy = dice.choice((0, *copies[seq]))
                    self._add(
                        "uses",
                        {
                            "fact_id": dice.choice(known), "seq": seq,
                            "kind": dice.choice(("declared", "exact", "near")),
                            "weight": dice.choice((1.0, 0.9, 0.8, 0.333)), "agent_no": agent,
                            "session_no": session, "copy_id": copy, "from_no": 0, "from_agent": 0,
                        },
                    )  # fmt: skip

        for row in self.tables["insight_uses"]:
            source = self.tables["insight_steps"][(row["fact_id"] >> PLACE_BITS) - 1]
            row |= {"from_no": source["session_no"], "from_agent": source["agent_no"]}
        self._cross()

    def _cross(self) -> None:
        """Whatever leads from one session into another, as the folds tell it."""
        found: set[tuple[Any, ...]] = set()
        homes = {row["seq"]: row["session_no"] for row in self.tables["insight_steps"]}
        having: dict[int, set[int]] = {}
        for row in self.tables["insight_steps"]:
            for key in (row["name_key"], row["span_key"]):
                having.setdefault(key, set()).add(row["session_no"])
        for row in self.tables["insight_links"]:
            for home in having.get(row["parent_key"], ()):
                found.add((home, row["session_no"], row["parent_key"], row["seq"], row["kind"]))
        for row in self.tables["insight_uses"]:
            found.add((homes[row["fact_id"] >> PLACE_BITS], row["session_no"], 0, 0, "use"))
        self.tables["insight_crossings"] = [
            dict(zip(columns.CrossingColumns.__slots__, row, strict=True))
            for row in sorted(found)
            if row[0] != row[1]
        ]

    def _add(self, name: str, row: Row) -> None:
        """One row a key, as the store keeps it."""
        key = {"links": ("seq", "parent_key"), "uses": ("fact_id", "seq"), "facts": ("fact_id",)}[name]
        rows = self.tables[f"insight_{name}"]
        if not any(all(one[part] == row[part] for part in key) for one in rows[-8:]):
            rows.append(row)

    async def keep(self, derived: Any) -> None:
        puts = [DerivedWrite(table, rows) for table, rows in self.tables.items()]
        until = len(self.tables["insight_steps"])
        assert await derived.apply(TENANT, 0, until, 1, puts, [])

    def _of(self, sessions: set[int], after: int) -> tuple[list[Row], list[Row], list[Row]]:
        """Steps, facts, and uses of these facts."""
        steps = [
            row
            for row in self.tables["insight_steps"]
            if row["session_no"] in sessions and row["seq"] >= after
        ]
        numbers = {row["seq"] for row in steps}
        facts = [row for row in self.tables["insight_facts"] if row["seq"] in numbers]
        known = {row["fact_id"] for row in facts}
        uses = [row for row in self.tables["insight_uses"] if row["fact_id"] in known]
        return steps, facts, sorted(uses, key=lambda one: (one["fact_id"], one["seq"]))

    def spread(self, sessions: set[int], after: int) -> Spread:
        steps, facts, uses = self._of(sessions, after)
        links = [(row["parent_key"], row["seq"], row["session_no"]) for row in self.tables["insight_links"]]
        return Spread(
            [StepRow(*(row[name] for name in StepRow._fields)) for row in steps],
            links,
            [(row["fact_id"], row["session_no"]) for row in facts],
            [UseRow(*(row[name] for name in UseRow._fields)) for row in uses],
            False,
        )

    def downstream(self, sessions: set[int], after: int) -> Downstream:
        steps, facts, uses = self._of(sessions, after)
        links = self.tables["insight_links"]
        parents: dict[int, list[tuple[int, str]]] = {}
        for row in sorted(links, key=lambda one: (one["seq"], one["parent_key"])):
            parents.setdefault(row["seq"], []).append((row["parent_key"], row["kind"]))
        names = {row["name_key"]: (row["seq"], row["session_no"]) for row in steps}
        return Downstream(
            [
                (*(row[name] for name in TaintRow._fields[:-2]), *parent)
                for row in steps
                for parent in parents.get(row["seq"], [(None, None)])
            ],
            [(row["fact_id"], row["seq"]) for row in facts],
            [(row["fact_id"], row["seq"], row["kind"], row["weight"], row["session_no"]) for row in uses],
            [
                (parent[0], row["seq"], row["session_no"], row["kind"], parent[1])
                for row in links
                if (parent := names.get(row["parent_key"]))
                and row["kind"] != "span"
                and row["session_no"] not in sessions
            ],
            False,
        )

    def as_columns(self, sessions: set[int], after: int) -> columns.Spread:
        steps, facts, uses = self._of(sessions, after)
        links = [
            row
            for row in self.tables["insight_links"]
            if row["session_no"] in sessions and row["seq"] >= after
        ]
        links.sort(key=lambda one: (one["seq"], one["parent_key"]))
        abroad = [
            row
            for row in self.tables["insight_crossings"]
            if row["from_no"] in sessions and row["kind"] != "use"
        ]
        return columns.Spread(
            _columns(columns.StepColumns, steps, state=columns.STATES),
            _columns(columns.LinkColumns, links, kind=columns.LINK_KINDS),
            _columns(columns.FactColumns, facts),
            _columns(columns.UseColumns, uses, kind=columns.USE_KINDS),
            _columns(columns.CrossingColumns, abroad, kind=columns.LINK_KINDS),
        )


def _columns(form: type[Any], rows: list[Row], /, **words: tuple[str, ...]) -> Any:
    made = [row | {name: places.index(row[name]) for name, places in words.items()} for row in rows]
    return form.of([row[name] for name in form.__slots__] for row in made)


def same_infection(mesh: Mesh, source: Row, found: Any) -> int:
    plain = infection_before.Infection(source["fact_id"], source["session_no"])
    while plain.wanted:
        wanted = set(plain.wanted)
        plain.feed(mesh.spread(wanted, source["seq"]), wanted)
    infected = plain.infected()
    assert found.infected() == infected
    assert found.copies == plain.copies
    for mine, theirs in ((found.strong, plain.strong), (found.weak, plain.weak)):
        assert [(seq, mine.get(seq)) for seq in infected] == [(seq, theirs.get(seq)) for seq in infected]
    assert found.with_evidence(infected) == plain.received(infected)
    assert found.later() == plain.later()
    assert found.holders() == plain.holders()
    assert list(found.holders()) == list(plain.holders())
    assert (found.spend(True), found.spend(False)) == (plain.spend(True), plain.spend(False))
    return len(infected)


def same_blast(mesh: Mesh, spot: LocatedStep, found: Any) -> int:
    plain = cascade_before.Cascade(spot.seq, spot.session_no)
    again = ForwardWalk(spot.seq, spot.session_no)
    while plain.wanted:
        wanted = set(plain.wanted)
        assert again.wanted == wanted
        plain.feed(mesh.downstream(wanted, spot.seq), wanted)
        again.feed(mesh.as_columns(wanted, spot.seq), wanted)
    tainted, mine = plain.settle(), found.settle()
    # A weight is of a shortest way, of several the first found: the same for rows in the same order.
    assert tuple(again.settle()) == tuple(tainted)
    assert mine.strong == tainted.strong
    assert mine.depth == tainted.depth
    order = sorted(tainted.depth)
    assert found.evidence(mine, order) == plain.evidence(tainted, order)
    assert found.received(mine) == plain.received(tainted)
    facts = [fact_id for seq in order for fact_id in plain.made.get(seq, ())]
    assert blast_totals(found, mine)["facts"] == facts
    same_sums(mesh, found, mine)
    assert mine.weight.keys() == tainted.weight.keys()
    return len(order)


def same_sums(mesh: Mesh, found: ForwardWalk, mine: BlastRadius) -> None:
    """What is told of all of it, step by step instead of by columns."""
    sums = blast_totals(found, mine)
    rows = [row for row in mesh.tables["insight_steps"] if row["seq"] in mine.depth]
    agents: dict[int, dict[str, Any]] = {}
    tools: dict[tuple[str, str], int] = {}
    rooms: dict[int, set[int]] = {}
    for row in rows:
        sure = "strong" if row["seq"] in mine.strong else "weak"
        one = agents.setdefault(row["agent_no"], {"sessions": set(), "steps": 0, "cost": 0.0, "seqs": {}})
        one["sessions"].add(row["session_no"])
        one["steps"], one["cost"] = one["steps"] + 1, one["cost"] + row["cost"]
        one["seqs"].setdefault(sure, row["seq"])
        rooms.setdefault(row["agent_no"], set()).add(row["session_no"])
        if row["recipient_no"] and row["state"] == "forwarded":
            rooms.setdefault(row["recipient_no"], set()).add(row["session_no"])
        if row["tool"] and row["seq"] != found.origin:
            tools[row["tool"], sure] = tools.get((row["tool"], sure), 0) + 1
    for number, one in agents.items():
        received, sure = sums["agents"][number], "strong" if "strong" in one["seqs"] else "weak"
        assert (received["strength"], received["first"]) == (sure, one["seqs"][sure])
        assert [received[name] for name in ("sessions", "steps", "cost")] == [
            one[name] for name in ("sessions", "steps", "cost")
        ]
    assert {
        pair: one["succeeded"] + one["pending"] for pair, one in sums["tools"].items()
    } == tools  # all of them succeeded, or are held
    assert sums["spend"]["strong"] + sums["spend"]["weak"] == sum(row["cost"] for row in rows)
    assert sums["sessions"] == {row["session_no"] for row in rows}
    assert affected_agents(found, mine) == ({*found.received(mine), *agents}, rooms)


@pytest.mark.parametrize(
    ("count", "sessions", "near"), [(60, 1, 6), (150, 12, 8), (400, 40, 12), (400, 70, 3)]
)
def test_the_same_as_before(tmp_path: Path, count: int, sessions: int, near: int) -> None:
    async def compared() -> tuple[int, int]:
        reached = blasted = 0
        for seed in range(8):
            mesh = Mesh(seed, count, sessions, near)
            derived = sqlite_derived(tmp_path / f"{seed}.db")
            await derived.start()
            await mesh.keep(derived)
            harness = cast(
                AppState, SimpleNamespace(derived=derived, settings=SimpleNamespace(orphan_wait_s=0))
            )
            for source in random.Random(seed).sample(mesh.tables["insight_facts"], 6):
                row = FactRow(*(source[name] for name in FactRow._fields))
                found, truncated = await infection_of(harness, WHO, row)
                assert not truncated
                reached = max(reached, same_infection(mesh, source, found))
            for step in random.Random(seed).sample(mesh.tables["insight_steps"], 6):
                spot = LocatedStep(*(step[name] for name in LocatedStep._fields))
                cascade, truncated = await cascade_of(harness, WHO, spot)
                assert not truncated
                blasted = max(blasted, same_blast(mesh, spot, cascade))
            await derived.stop()
        return reached, blasted

    assert min(asyncio.run(compared())) > 20  # or nothing much was compared
