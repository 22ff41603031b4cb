"""Messages of a session as read from the archive: the input of its graph, step details and comparisons.

Always current: nothing derived lies between the archive and the reader. Rows come in one query; their content
is decoded here, in the caller's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, cast, runtime_checkable

import msgspec

from observatory.derived.seen import FoldMessage
from observatory.protocol import clock
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.decoders import glance_decoder, strict_decoder
from observatory.protocol.envelope import AnyEnvelope, Envelope
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.steps import step_name

# Archived content was validated on arrival, so patterns are not checked again. Unknown fields are ignored.
_log_quick: Final = strict_decoder(DecisionLog, patterns=False).decode
# The members of a log that nodes use: the rest is neither decoded nor freed.
GLANCE_MEMBERS: Final = (
    "cluster_id", "cognition", "intent", "confidence_score", "tool_call", "control", "hitl_required",
    "is_terminal", "state_delta", "tokens_consumed", "cumulative_session_cost", "cost",
)  # fmt: skip
_log_glance: Final = glance_decoder(DecisionLog, GLANCE_MEMBERS).decode
_log: Final = msgspec.json.Decoder(DecisionLog).decode
_observed_ns: Final = lru_cache(maxsize=64)(clock.to_ns)  # a commit has one
_NO_AGENT: Final[Mapping[str, Any]] = {}
_envelope: Final = msgspec.json.Decoder(cast(type[Envelope], AnyEnvelope)).decode


class SessionMessage(NamedTuple):
    """An archived message of a session with its outcome."""

    seq: int
    message_id: str
    step_id: str
    message_type: str
    state: str
    parents: str | None  # names, one per line
    parent_inferred: int
    entropy: float | None
    at: str  # the gateway's clock, nine digits
    raw: bytes | None  # what was or would be forwarded: a rewrite in force, else the original
    rewrite_seq: int | None  # the command that replaced the content
    # Columns of its hold, if it was ever held.
    gate: int | None
    reason: str | None
    released_seq: int | None


@runtime_checkable
class SessionPlayback(Protocol):
    """Implemented by every store; committed rows of one tenant."""

    async def play(
        self, tenant_id: str, session: Mapping[str, Any], limit: int, before: int | None = None
    ) -> list[SessionMessage]:
        """The newest `limit` messages of a session in sequence order."""

    async def cut(
        self,
        tenant_id: str,
        session: Mapping[str, Any],
        limit: int,
        most_bytes: int,
        before: int | None = None,
    ) -> int | None:
        """The number from which on a session's messages stay within both limits; None when all of them do.
        The newest is always included."""

    async def lengths(self, tenant_id: str, numbers: Collection[int]) -> dict[int, int]:
        """Archived size in bytes of the messages among these numbers; 0 once shredded."""

    async def records(self, tenant_id: str, numbers: Collection[int]) -> dict[int, bytes]:
        """Audit records by their numbers."""

    async def steps_named(self, tenant_id: str, names: Collection[str]) -> dict[str, str]:
        """The names that are steps of this tenant, each with its session id."""

    async def steps_recorded(
        self, tenant_id: str, names: Collection[str]
    ) -> dict[str, tuple[str, bytes | None]]:
        """As `steps_named`, with the bytes as archived; None once shredded."""

    async def played(self, tenant_id: str, numbers: Collection[int]) -> dict[int, tuple[int, SessionMessage]]:
        """Messages by number, each with the number of its session; other numbers are left out."""

    async def low_confidence(
        self, tenant_id: str, below: float, after: int, before: int | None, limit: int
    ) -> list[int]:
        """Numbers between `after` and `before` of forwarded steps without a review whose confidence is
        below that, newest first."""

    async def annotations_page(
        self, tenant_id: str, where: Mapping[str, Any], before: str | None, limit: int
    ) -> list[dict[str, Any]]:
        """Annotations not removed, newest first, before an annotation's id."""


class LowConfidenceReads(Protocol):
    """Implemented by the derived store."""

    async def doubts(self, tenant_id: str, below: float, before: int, limit: int) -> list[int]:
        """Numbers before `before` of steps whose confidence is below that, newest first, whatever their
        outcome or review."""


def seen_of(
    row: SessionMessage,
    tenant_id: str,
    session: Mapping[str, Any],
    agents: Mapping[str, Mapping[str, Any]],
    is_glance: bool = False,
) -> FoldMessage:
    """`agents` maps entity ids to rows of the registry. A glance decodes only what a graph shows of a log."""
    log, envelope = _content(row, _log_glance if is_glance else _log_quick)
    agent_id, entity_id, span, above = "", "", None, None
    if log is not None:
        agent_id = log.identity.agent_id
        entity_id = agent_entity_id(tenant_id, agent_id)
    elif envelope is not None:
        agent_id = entity_id = envelope.sender.entity_id
        span, above = envelope.span_id.lower(), envelope.parent_span_id
    agent = agents.get(entity_id, _NO_AGENT)
    session_id, step_id, message_id = session["session_id"], row.step_id, row.message_id
    # Positional for speed: keyword arguments take five times as long.
    return FoldMessage(
        row.seq,
        session["session_no"],
        session_id,
        agent.get("agent_no", 0),
        agent.get("agent_id", agent_id),
        log.identity.agent_type if log is not None else agent.get("agent_type"),
        log.meta.cluster_id if log is not None else agent.get("cluster_id"),
        message_id,
        step_id,
        step_name(session_id, step_id, message_id),
        row.message_type,
        row.state,
        tuple(row.parents.split("\n")) if row.parents else (),
        bool(row.parent_inferred),
        span,
        above.lower() if above else None,
        _observed_ns(row.at),
        row.entropy,
        log,
        envelope,
        0,  # recipient_no
        row.rewrite_seq is not None,
    )


def _content(
    row: SessionMessage, quick: Callable[[bytes], DecisionLog]
) -> tuple[DecisionLog | None, Envelope | None]:
    """(None, None) when the bytes were shredded."""
    if row.raw is None:
        return None, None
    try:
        if row.message_type != "decision_log":
            return None, _envelope(row.raw)
        try:
            return quick(row.raw), None
        except msgspec.ValidationError:
            return _log(row.raw), None
    except msgspec.DecodeError:  # archived under a schema this version no longer reads
        return None, None
