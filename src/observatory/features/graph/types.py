"""Response types of the session drill-down, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from observatory.features.graph.badge import Badge
from observatory.features.graph.causal_graph import Kind
from observatory.features.graph.types_annotations import Outcome

State = Literal["forwarded", "held", "rejected", "refused"]


class DagNode(msgspec.Struct, kw_only=True):
    """A step, or (kind `intervention`) a person's command; each has the members of its kind."""

    id: str
    version: int
    sequence_number: int
    kind: Literal["step", "intervention"]
    message_type: str
    agent_id: str | None
    at: str
    step_id: str | UnsetType = UNSET
    message_id: str | UnsetType = UNSET
    agent_type: str | UnsetType | None = UNSET
    intent: str | UnsetType | None = UNSET
    tool: str | UnsetType | None = UNSET
    status: str | UnsetType | None = UNSET
    state: State | UnsetType = UNSET
    badge: Badge | UnsetType = UNSET
    confidence: float | UnsetType | None = UNSET
    low_confidence: bool | UnsetType = UNSET
    hitl_required: bool | UnsetType = UNSET
    gate: Literal["none", "open", "approved"] | UnsetType | None = UNSET
    held_because: str | UnsetType | None = UNSET
    is_terminal: bool | UnsetType = UNSET
    entropy_score: float | UnsetType | None = UNSET
    tokens: int | UnsetType | None = UNSET  # null: not reported
    cost: float | UnsetType = UNSET
    branch_cost: float | UnsetType = UNSET
    parent: str | UnsetType | None = UNSET
    depth: int | UnsetType = UNSET
    is_root: bool | UnsetType = UNSET
    orphan: bool | UnsetType = UNSET
    flags: list[str] | UnsetType = UNSET
    command: str | UnsetType = UNSET
    operator_id: str | UnsetType = UNSET
    before_hash: str | UnsetType | None = UNSET
    after_hash: str | UnsetType | None = UNSET
    acknowledged_at: str | UnsetType | None = UNSET
    proven: bool | UnsetType | None = UNSET
    confirmed_at: str | UnsetType | None = UNSET
    reversed_at: str | UnsetType | None = UNSET


class DagEdge(msgspec.Struct, kw_only=True, rename={"source": "from"}):
    source: str
    to: str
    kind: Kind


class RefusedEdge(msgspec.Struct, kw_only=True, rename={"source": "from"}):
    source: str
    to: str
    kind: Literal["cycle"]


class DagAgent(msgspec.Struct, kw_only=True):
    agent_id: str
    agent_type: str | None
    badge: Badge
    badge_rule: int
    last_step: str
    steps: int
    cost: float
    tokens: int


class DagAnswer(msgspec.Struct, kw_only=True):
    """With `after`, nodes and edges replace those a reader has; the other members are complete."""

    session_id: str
    version: int
    as_of: str
    after: int | None
    truncated: bool
    nodes: list[DagNode]
    edges: list[DagEdge]
    refused_edges: list[RefusedEdge]
    roots: list[str]
    agents: list[DagAgent]
    summary: dict[str, int | float]


class StepAnswer(DagNode, kw_only=True):
    """Everything recorded about one step."""

    session_id: str
    trace: dict[str, str | None]
    declared_parents: list[str]
    input: dict[str, Any]
    output: dict[str, Any]
    reasoning: dict[str, Any]
    model: str | None
    provider: str | None
    capability_version: str | None
    recipient: str | None
    gateway_away: bool  # it was executed without the gateway's verdict
    children: list[dict[str, Any]]
    children_count: int
    interventions: list[DagNode]
    hold: dict[str, Any] | None
    rewrites: list[dict[str, Any]]
    annotations: list[AnnotationItem]
    review: dict[str, Any] | None
    links: dict[str, str]
    sealed: bool = False  # its session's thoughts are under a Merkle root


class ComparedStep(msgspec.Struct, kw_only=True):
    change: Literal["same", "changed", "left_only", "right_only"]
    left: dict[str, Any] | None
    right: dict[str, Any] | None
    differs: list[str]
    cost_delta: float
    duration_delta_ms: int | UnsetType = UNSET


class FirstDivergence(ComparedStep, kw_only=True):
    index: int


class Aligned(msgspec.Struct, kw_only=True):
    """`exact` is false when only pairs within `band` steps of the diagonal were compared."""

    exact: bool
    band: int | None


class CompareAnswer(msgspec.Struct, kw_only=True):
    left: dict[str, Any]
    right: dict[str, Any]
    delta: dict[str, Any]
    memory: dict[str, Any]
    first_divergence: FirstDivergence | None
    counts: dict[str, int]
    alignment: Aligned
    steps: list[ComparedStep]


class AnnotationItem(msgspec.Struct, kw_only=True):
    annotation_id: str
    session_id: str
    sequence_number: int
    step_id: str | None
    author_id: str
    label: str | None
    category: str | None
    text: str
    created_at: str


class AnnotationList(msgspec.Struct, kw_only=True):
    items: list[AnnotationItem]
    next_cursor: str | None


class RemovedAnnotation(msgspec.Struct, kw_only=True):
    annotation_id: str
    removed: bool


class Category(msgspec.Struct, kw_only=True):
    category: str
    family: str
    meaning: str


class CategoryList(msgspec.Struct, kw_only=True):
    items: list[Category]
    next_cursor: str | None


class ReviewItem(msgspec.Struct, kw_only=True):
    sequence_number: int
    message_id: str
    session_id: str
    step_id: str
    state: State
    at: str
    agent_id: str | None
    tool: str | None
    status: str | None
    intent: str | None
    confidence: float | None
    verdict: Outcome | None
    note: str | None
    reviewed_by: str | None
    reviewed_at: str | None


class ReviewList(msgspec.Struct, kw_only=True):
    """`threshold` is the confidence below which a step enters the queue."""

    items: list[ReviewItem]
    next_cursor: str | None
    threshold: float


DAG_ANSWERS: dict[str, Any] = {
    "session_dag": DagAnswer,
    "session_step": StepAnswer,
    "compare_sessions": CompareAnswer,
    "annotation_categories": CategoryList,
    "annotate_step": AnnotationItem,
    "session_annotations": AnnotationList,
    "list_annotations": AnnotationList,
    "remove_annotation": RemovedAnnotation,
    "list_reviews": ReviewList,
    "review_step": ReviewItem,
}
