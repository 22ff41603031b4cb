"""The eight payloads an envelope can carry.

Law: the seed's names. Where the seed only shows a sample, fields a reader needs are required and the rest
are optional; optional fields may be null. Rules that span fields are in `cross_faults` of the struct, used
by both the decoder (`__post_init__`) and the validators.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta as Rule
from msgspec import Struct

from observatory.protocol import clock
from observatory.protocol.rules import (
    ActionId,
    AlertId,
    ArtifactId,
    Count,
    DecisionId,
    EntityId,
    EventId,
    InlineContent,
    Label,
    Name,
    Percent,
    Sha256,
    TaskId,
    Timestamp,
)

RiskLevel = Literal["low", "medium", "high", "critical"]
AlertSeverity = Literal["info", "warning", "error", "critical"]
MAX_INLINE_BYTES = 65536

Free = dict[str, Any]
Fault = tuple[str, str]  # field, sentence


class Checked(Struct, frozen=True, kw_only=True):
    """A struct with rules beyond its types: valid times, and those of `cross_faults`."""

    times: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def cross_faults(cls, get: Callable[[str], Any]) -> Iterable[Fault]:
        """The rules broken between fields, assuming each field is valid by itself."""
        return ()

    def __post_init__(self) -> None:
        for name in self.times:
            text = getattr(self, name)
            if text is not None:
                clock.parse(text)
        for _, problem in self.cross_faults(partial(getattr, self)):
            raise ValueError(problem)


class ContextRef(Struct, frozen=True, kw_only=True):
    uri: Annotated[str, Rule(min_length=1, max_length=4096)]
    ref_type: Label | None = None
    label: Label | None = None


class DecisionOption(Struct, frozen=True, kw_only=True):
    option_id: Name
    label: Annotated[str, Rule(min_length=1, max_length=1024)]
    risk_level: RiskLevel | None = None
    is_default: bool | None = False


class AutoAction(Struct, frozen=True, kw_only=True):
    option_id: Name
    trigger: Literal["deadline_expired"]


class DecisionRequest(Checked, frozen=True, kw_only=True):
    """An agent requests a decision from its owner."""

    times: ClassVar = ("deadline",)

    decision_id: DecisionId
    title: str
    options: Annotated[list[DecisionOption], Rule(min_length=1, max_length=100)]
    description: str | None = None
    context_refs: list[ContextRef] | None = None
    deadline: Timestamp | None = None
    auto_action: AutoAction | None = None


class DecisionResponse(Checked, frozen=True, kw_only=True):
    """The owner's decision."""

    times: ClassVar = ("responded_at",)

    decision_id: DecisionId
    selected_option_id: Name
    respondent_note: str | None = None
    responded_at: Timestamp | None = None
    response_method: Name | None = None


class AlertDetail(Struct, frozen=True, kw_only=True):
    content: str
    format: Literal["plain", "markdown"] | None = "plain"


class StatusAlert(Struct, frozen=True, kw_only=True):
    """An agent reports the status of its work."""

    alert_id: AlertId
    severity: AlertSeverity
    title: str
    category: Name | None = None
    summary: str | None = None
    detail: AlertDetail | None = None
    actionable: bool | None = False


class ArtifactShare(Checked, frozen=True, kw_only=True):
    """A file, code, image or data, by reference or inline."""

    artifact_id: ArtifactId
    artifact_type: Literal["file", "code", "image", "data"]
    title: str
    media_type: Name | None = None
    size_bytes: Count | None = None
    sha256: Sha256 | None = None
    uri: Annotated[str, Rule(min_length=1, max_length=4096)] | None = None
    content: InlineContent | None = None
    language: Name | None = None
    related_refs: list[str | ContextRef] | None = None

    @classmethod
    def cross_faults(cls, get: Callable[[str], Any]) -> Iterable[Fault]:
        content = get("content")
        if get("uri") is None and content is None:
            yield "uri", "is missing: an artifact needs a uri or inline content"
        # max_length counts characters; this limit counts bytes.
        if content is not None and len(content.encode(errors="replace")) > MAX_INLINE_BYTES:
            yield (
                "content",
                f"must have at most {MAX_INLINE_BYTES} bytes; share larger content by uri",
            )


class ActionDetail(Checked, frozen=True, kw_only=True):
    times: ClassVar = ("started_at", "completed_at")

    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    duration_ms: Count | None = None


class TriggeredBy(Struct, frozen=True, kw_only=True):
    decision_id: DecisionId | None = None


class ActionConfirmation(Struct, frozen=True, kw_only=True):
    """An agent reports the result of an action."""

    action_id: ActionId
    action_type: Name
    status: Literal["success", "failure", "rollback"]
    title: str | None = None
    summary: str | None = None
    detail: ActionDetail | None = None
    triggered_by: TriggeredBy | None = None
    rollback_available: bool | None = False
    before_state: Free | None = None
    after_state: Free | None = None


class CurrentTask(Checked, frozen=True, kw_only=True):
    times: ClassVar = ("estimated_completion",)

    task_id: TaskId
    description: str | None = None
    progress_pct: Percent | None = None
    estimated_completion: Timestamp | None = None


class ResourceUsage(Struct, frozen=True, kw_only=True):
    tokens_consumed_24h: Count | None = None
    api_calls_24h: Count | None = None


class Heartbeat(Struct, frozen=True, kw_only=True):
    """An agent's periodic sign of life."""

    agent_status: Name
    current_task: CurrentTask | None = None
    resource_usage: ResourceUsage | None = None


class Text(Struct, frozen=True, kw_only=True):
    """Free text."""

    content: str
    format: Literal["plain", "markdown"] | None = "plain"
    reply_to: Name | None = None


class SystemEvent(Struct, frozen=True, kw_only=True):
    """A platform event: connect, disconnect, policy."""

    event_id: EventId
    event_type: Name
    entity_id: EntityId
    reason: str | None = None
    detail: Free | None = None


Payload = (
    DecisionRequest
    | DecisionResponse
    | StatusAlert
    | ArtifactShare
    | ActionConfirmation
    | Heartbeat
    | Text
    | SystemEvent
)
