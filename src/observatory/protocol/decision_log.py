"""The DecisionLog: what an agent says of one step, in six sections.

Law: the seed's fields under the seed's names, plus only the optional ones a view needs. `meta`,
`identity` and `action` are required; `cognition`, when present, needs `intent`; whatever is optional
may be null. The structs are the one definition: decoder, fault finder, JSON Schema and types follow
from them. A step says what it thought (`cognition`), did (`action`) and changed (`state_delta`).
"""

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec import Meta as Rule

from observatory.protocol.rules import (
    Count,
    Name,
    OptionalRef,
    Score,
    SemVer,
    SessionId,
    Timestamp,
    TraceUuid,
)

ActionStatus = Literal["success", "failure", "pending", "skipped"]
InterruptSignal = Literal["pause", "rewrite", "inject"]


class Meta(Struct, frozen=True, kw_only=True, gc=False):
    """Where the step stands: trace, parents, time, cluster."""

    trace_id: TraceUuid
    timestamp: Timestamp
    # UNSET and null differ: a log that leaves the key out is accepted with a warning.
    parent_step_id: OptionalRef | UnsetType | None = UNSET
    cluster_id: Name | None = None
    step_id: Name | None = None
    session_id: SessionId | None = None
    parent_step_ids: Annotated[list[OptionalRef], Rule(max_length=1000)] | None = None


class Identity(Struct, frozen=True, kw_only=True, gc=False):
    """Who acted, in which version, with which model, and for whom."""

    agent_id: Name
    agent_type: Name
    capability_version: SemVer
    model: Name | None = None
    provider: Name | None = None
    recipient: (
        Annotated[
            Name,
            Rule(description="An agent id, `type:<agent_type>`, `cluster:<id>` or `session:<id>`"),
        ]
        | None
    ) = None


class Alternative(Struct, frozen=True, kw_only=True, gc=False):
    """An option that was weighed and not taken."""

    option: str
    why_not: str | None = None


class Citation(Struct, frozen=True, kw_only=True, gc=False):
    """A source the step leans on."""

    uri: str
    ref_type: str | None = None
    label: str | None = None


class Cognition(Struct, frozen=True, kw_only=True, gc=False):
    """What the agent meant, and how it came to it."""

    intent: Annotated[str, Rule(description="Not empty", extra_json_schema={"minLength": 1})]
    reasoning_chain: list[str] | None = None
    confidence_score: Score | None = None
    strategy_used: str | None = None
    entropy_score: Score | None = None
    alternatives: list[Alternative] | None = None
    citations: list[str | Citation] | None = None


class Action(Struct, frozen=True, kw_only=True, gc=False):
    """What was done."""

    status: ActionStatus
    tool_call: Annotated[str, Rule(max_length=256)] | None = None
    tool_input: Annotated[str, Rule(description="JSON as a string")] | None = None
    tool_output_summary: str | None = None
    duration_ms: Count | None = None


class StateDelta(Struct, frozen=True, kw_only=True, gc=False):
    """What the step changed and cost."""

    added_to_memory: list[str] | None = None
    tokens_consumed: Count | None = None
    cumulative_session_cost: float | None = None
    read_from_memory: list[str] | None = None
    cost: Annotated[float, Rule(description="Cost of this step alone")] | None = None


class Control(Struct, frozen=True, kw_only=True, gc=False):
    """What the step asks of the gateway."""

    hitl_required: bool | None = False
    interrupt_signal: InterruptSignal | None = None
    is_terminal: bool | None = False
    gateway_away: (
        Annotated[bool, Rule(description="It was done without the gateway's verdict: the gateway was away")]
        | None
    ) = False


class DecisionLog(Struct, frozen=True, kw_only=True, gc=False):
    """One step of one agent."""

    meta: Meta
    identity: Identity
    action: Action
    cognition: Cognition | None = None
    state_delta: StateDelta | None = None
    control: Control | None = None
