"""Response types of the cascade routes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from observatory.features.facts.types_answers import LaterFact, Spend, StepPlace, Strength

EdgeKind = Literal["origin", "parent", "span", "read", "exact", "inferred", "near", "message"]


class CascadeEdge(msgspec.Struct, kw_only=True):
    kind: EdgeKind
    weight: float
    from_sequence_number: int
    from_step: str | None
    fact_id: str | None


class TaintedStep(StepPlace, kw_only=True):
    strength: Strength
    weight: float
    depth: int
    state: str
    status: str | None
    tool: str | None
    cost: float
    evidence: list[CascadeEdge]


class TaintedAgent(msgspec.Struct, kw_only=True):
    """`received` when the agent was only sent it and has not acted on it yet."""

    agent_id: str | None
    strength: Literal["strong", "weak", "received"]
    sessions: list[str]
    steps: int
    cost: float
    first: StepPlace


class SideEffect(msgspec.Struct, kw_only=True):
    tool: str
    strength: Strength
    succeeded: int
    pending: int
    failed: int
    other: int
    first: StepPlace


class PauseCommand(msgspec.Struct, kw_only=True):
    """Ready to send: `POST` with `body` to `path`."""

    command: Literal["pause"]
    session_id: str
    agent_id: str
    path: str
    body: dict[str, str]


class PausedAgent(msgspec.Struct, kw_only=True):
    agent_id: str | None
    holds_it: bool
    reason: str


class SmallerContainment(msgspec.Struct, kw_only=True):
    agents: list[PausedAgent]
    pause: list[PauseCommand]
    note: str


class ContainmentItem(msgspec.Struct, kw_only=True):
    agents: list[PausedAgent]
    pause: list[PauseCommand]
    exact: bool
    contained: bool
    note: str
    edges_since: str
    reached: list[str | None]
    reached_count: int
    already_halted: list[str | None]
    smaller: SmallerContainment | None


class BlastCounts(msgspec.Struct, kw_only=True):
    strong_steps: int
    weak_steps: int
    agents: int
    sessions: int
    facts: int
    side_effects: int
    deepest: int


class BlastAnswer(msgspec.Struct, kw_only=True):
    """`truncated`: there is more than was read; `steps` is a page of the result."""

    origin: StepPlace
    first_at: str
    last_at: str
    agents: list[TaintedAgent]
    sessions: list[str]
    steps: list[TaintedStep]
    next_cursor: str | None
    facts: list[LaterFact]
    side_effects: list[SideEffect]
    spend: Spend
    counts: BlastCounts
    containment: ContainmentItem
    truncated: bool
    note: str


class CauseReason(msgspec.Struct, kw_only=True):
    sign: str
    text: str
    points: float


class PathStep(StepPlace, kw_only=True):
    onward: str | None


class CauseItem(StepPlace, kw_only=True):
    rank: int
    score: float
    distance: int
    status: str | None
    tool: str | None
    reasons: list[CauseReason]
    path: list[PathStep]
    path_cut: bool


class CausesAnswer(msgspec.Struct, kw_only=True):
    step: StepPlace
    items: list[CauseItem]
    ancestors: int
    truncated: bool
    note: str


CASCADE_ANSWERS: dict[str, Any] = {"step_blast": BlastAnswer, "step_causes": CausesAnswer}
