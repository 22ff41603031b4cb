"""Records MCP tool calls: one audit event per call, refused ones too (ruling 37, rule S405).

Law: the runtime writes it, not the agent. It holds the caller, the tool, the outcome and the hash of the
arguments, never their text; a name that is not one of our tools is not repeated either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from observatory.features.mcp.tools import OUTCOMES, Outcome
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.state import Command, EventDraft, Principal, SubmissionResult, UnitOfWork

UNKNOWN: Final = "unknown"


class RecordedToolCall(NamedTuple):
    tool: str
    outcome: Outcome
    reason: str | None
    arguments_hash: str | None  # None: they were not read


def record_tool_calls(who: Principal, calls: Sequence[RecordedToolCall], now_ns: int) -> Command:
    """The command that records the calls of one request."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        return SubmissionResult(200, None, [_event(who, call, uow.now_ns) for call in calls])

    return Command(who, now_ns, decide, size=1_024 * len(calls))


def _event(who: Principal, call: RecordedToolCall, now_ns: int) -> EventDraft:
    detail = {
        **call._asdict(),
        "who": who.entity_id,
        "role": who.role,
        "key_id": who.key_id,
    }
    summary = f"MCP tool {call.tool} called by {who.entity_id}: {call.outcome}"
    severity = OUTCOMES[call.outcome]
    event = gateway_event(who.tenant_id, "mcp_tool_called", summary, now_ns, who, detail, severity)
    if call.outcome == "refused":
        event.counts_as = "refused"
    return event
