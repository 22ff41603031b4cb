"""Response types of the routes of facts, memory and drift, and the names that numbers stand for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from observatory.features.facts.types import FactRow, fact_name
from observatory.features.facts.types_beliefs import value_in
from observatory.features.graph.queries_session import playback
from observatory.http.answers import Page
from observatory.http.app_state import AppState
from observatory.protocol.clock import from_ns
from observatory.protocol.steps import step_name

Strength = Literal["strong", "weak"]


class Mark(msgspec.Struct, kw_only=True):
    marked_by: str
    marked_at: str
    note: str | None


class StepPlace(msgspec.Struct, kw_only=True):
    """Where and when something was stated."""

    agent_id: str | None
    session_id: str | None
    step: str | None  # its name; null when it is no longer in the archive
    sequence_number: int
    at: str


class FactItem(StepPlace, kw_only=True):
    fact_id: str
    text: str
    cluster_id: str | None
    subject: str | None
    value: str | None
    uses: int
    marked_false: Mark | None


class MemoryItem(FactItem, kw_only=True):
    """`source` is where the claim was first made, as far as it can be traced."""

    held_by: Literal["added", "read"]
    source: StepPlace
    source_fact_id: str


class EvidenceItem(msgspec.Struct, kw_only=True):
    kind: Literal["source", "declared", "exact", "near", "derived", "descent", "message"]
    weight: float
    from_sequence_number: int
    from_step: str | None
    fact_id: str | None


class InfectedStep(StepPlace, kw_only=True):
    strength: Strength
    weight: float
    cost: float
    evidence: list[EvidenceItem]


class InfectedAgent(msgspec.Struct, kw_only=True):
    agent_id: str | None
    strength: Strength
    sessions: list[str]
    steps: int
    cost: float
    first: StepPlace


class LaterFact(StepPlace, kw_only=True):
    fact_id: str
    text: str
    strength: Strength


class Spend(msgspec.Struct, kw_only=True):
    strong: float
    weak: float


class Counts(msgspec.Struct, kw_only=True):
    strong_steps: int
    weak_steps: int
    copies: int
    later_facts: int


class InfectionAnswer(msgspec.Struct, kw_only=True):
    """`truncated`: there is more than was read; `steps` is a page of the result."""

    fact: FactItem
    source: FactItem
    first_at: str
    agents: list[InfectedAgent]
    steps: list[InfectedStep]
    next_cursor: str | None
    copies: list[FactItem]
    later_facts: list[LaterFact]
    also_claimed: list[FactItem]
    spend: Spend
    counts: Counts
    truncated: bool


class Marked(msgspec.Struct, kw_only=True):
    status: str
    mark_id: str
    fact_id: str


class Quarantined(msgspec.Struct, kw_only=True):
    status: Literal["planned", "quarantined", "already_quarantined"]
    fact_id: str
    agents: list[dict[str, Any]]
    truncated: bool = False  # it spread further than was read


class Holder(StepPlace, kw_only=True):
    fact_id: str
    text: str


class SideItem(msgspec.Struct, kw_only=True):
    value: str
    holders: list[Holder]


class Reconciled(msgspec.Struct, kw_only=True):
    value: str
    decided_by: str
    decided_at: str


class ConflictItem(msgspec.Struct, kw_only=True):
    subject: str
    scope: str
    sides: list[SideItem]
    reconciled: Reconciled | None  # the last ruling; agents that held another value were notified
    # Only when something is left out: how many values and holders, and a note.
    more_values: int | None = None
    more_holders: int | None = None
    note: str | None = None


class DivergenceItem(msgspec.Struct, kw_only=True):
    agent_id: str | None
    agent_type: str
    distance: float
    threshold: float
    calls: int
    peers: int
    tools: dict[str, float]
    usual_tools: dict[str, float]


class DriftAnswer(msgspec.Struct, kw_only=True):
    conflicts: list[ConflictItem]
    divergences: list[DivergenceItem]
    since: str
    truncated: bool


class ReconcileAnswer(msgspec.Struct, kw_only=True):
    status: Literal["reconciled", "already_reconciled"]
    reconciliation_id: str | None
    scope: str
    agents: list[dict[str, Any]]


FACT_ANSWERS: dict[str, Any] = {
    "list_facts": Page[FactItem],
    "get_fact": FactItem,
    "mark_fact_false": Marked,
    "undo_fact_mark": Marked,
    "fact_infection": InfectionAnswer,
    "quarantine_fact": Quarantined,
    "read_memory": Page[MemoryItem],
    "drift": DriftAnswer,
    "reconcile_drift": ReconcileAnswer,
}


class NameLookup:
    """Names of agents, sessions and steps, looked up once per response."""

    def __init__(self) -> None:
        self.agents: dict[int, str] = {}
        self.types: dict[int, str | None] = {}
        self.sessions: dict[int, str] = {}
        self.steps: dict[int, str] = {}

    async def learn(
        self, app: AppState, tenant_id: str, agents: Collection[int], sessions: Collection[int]
    ) -> None:
        missing = sorted(set(agents) - self.agents.keys() - {0})
        for row in await app.store.rows(tenant_id, "agents", agent_no=missing) if missing else ():
            self.agents[row["agent_no"]] = row["agent_id"]
            self.types[row["agent_no"]] = row["agent_type"]
        missing_sessions = sorted(set(sessions) - self.sessions.keys() - {0})
        for row in (
            await app.store.rows(tenant_id, "sessions", session_no=missing_sessions)
            if missing_sessions
            else ()
        ):
            self.sessions[row["session_no"]] = row["session_id"]

    async def name_steps(self, app: AppState, tenant_id: str, numbers: Collection[int]) -> None:
        found = await playback(app).played(tenant_id, sorted(set(numbers) - self.steps.keys()))
        await self.learn(app, tenant_id, (), {session_no for session_no, _ in found.values()})
        for seq, (session_no, row) in found.items():
            self.steps[seq] = step_name(self.sessions.get(session_no, ""), row.step_id, row.message_id)

    async def know(self, app: AppState, tenant_id: str, rows: Collection[FactRow]) -> None:
        await self.learn(app, tenant_id, {r.agent_no for r in rows}, {r.session_no for r in rows})
        await self.name_steps(app, tenant_id, {row.seq for row in rows})

    def place(self, seq: int, agent_no: int, session_no: int, at_ns: int) -> dict[str, Any]:
        return {
            "agent_id": self.agents.get(agent_no),
            "session_id": self.sessions.get(session_no),
            "step": self.steps.get(seq),
            "sequence_number": seq,
            "at": from_ns(at_ns),
        }

    def of(self, row: FactRow) -> dict[str, Any]:
        return self.place(row.seq, row.agent_no, row.session_no, row.at_ns)

    def fact(self, row: FactRow, marks: Mapping[int, Mapping[str, Any]], uses: int) -> dict[str, Any]:
        return self.of(row) | {
            "fact_id": fact_name(row.fact_id),
            "text": row.text,
            "cluster_id": row.cluster_id,
            "subject": row.subject,
            "value": value_text(row),
            "uses": uses,
            "marked_false": mark_item(marks.get(row.fact_id)),
        }


def value_text(row: FactRow) -> str | None:
    """The value of a fact as stated in its text."""
    return None if row.value is None else value_in(row.text) or row.value.partition(":")[2]


def mark_item(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {"marked_by": row["marked_by"], "marked_at": from_ns(row["marked_ns"]), "note": row["note"]}
