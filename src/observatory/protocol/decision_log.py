"""The DecisionLog: an agent's report of one step, in six sections.

Law: the seed's fields under the seed's names, plus only the optional ones a view needs. `meta`,
`identity` and `action` are required; `cognition`, when present, needs `intent`; optional fields may be
null. The structs are the only definition: decoder, validators, JSON Schema and types are derived from
them. A step reports its reasoning (`cognition`), action (`action`) and changes (`state_delta`).
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
    """The position of the step: trace, parents, time, cluster."""

    trace_id: TraceUuid
    timestamp: Timestamp
    # UNSET and null differ: a log that leaves the key out is accepted with a warning.
    parent_step_id: OptionalRef | UnsetType | None = UNSET
    cluster_id: Name | None = None
    step_id: Name | None = None
    session_id: SessionId | None = None
    parent_step_ids: Annotated[list[OptionalRef], Rule(max_length=1000)] | None = None


class Identity(Struct, frozen=True, kw_only=True, gc=False):
    """The acting agent, its version and model, and the recipient."""

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
    """An option that was considered and not chosen."""

    option: str
    why_not: str | None = None


class Citation(Struct, frozen=True, kw_only=True, gc=False):
    """A source the step is based on."""

    uri: str
    ref_type: str | None = None
    label: str | None = None


class Cognition(Struct, frozen=True, kw_only=True, gc=False):
    """The agent's intent and reasoning."""

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
    """What the step requests from the gateway."""

    hitl_required: bool | None = False
    interrupt_signal: InterruptSignal | None = None
    is_terminal: bool | None = False
    gateway_away: (
        Annotated[
            bool, Rule(description="Executed without the gateway's verdict: the gateway was unreachable")
        ]
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
