"""Reminders: an agent asks for a later message by a step with `tool_call="schedule_reminder"` (ruling 29).

Law: a stage checks the request, so that an invalid one is archived and refused with a sentence for its agent.
An effect creates the job, in the transaction that forwards the step: a step that needs an approval creates
none before it is approved, and a rejected one never. A moment in the past, or a delay of 0, means at once;
more than a year is refused. The reminder is sent only to the requesting agent, in the requesting session.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.schedule.commands import JobSpec, row_of
from observatory.pipeline import quotas
from observatory.pipeline import row_statements as stating
from observatory.pipeline.event_draft import in_session
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import BatchState, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol import clock
from observatory.protocol.clock import from_ns
from observatory.protocol.document import parse
from observatory.protocol.identity import agent_entity_id, mint
from observatory.protocol.message import Message
from observatory.protocol.responses import Refused

TOOL: Final = "schedule_reminder"
INTENT: Final = "reminder"
REQUEST_STATUSES: Final = ("success", "pending")  # a call that failed or was skipped requests nothing
LONGEST_MS: Final = 366 * 86_400_000
LARGEST: Final = 65_536
MILLISECOND: Final = 1_000_000


class ReminderRequest(NamedTuple):
    """A valid request for a reminder: after a delay, or at a moment; `payload` as JSON."""

    delay_ms: int | None
    at_ns: int | None
    payload: str

    def moment(self, now_ns: int) -> int:
        """Never before now: a past moment is due at once."""
        if self.delay_ms is not None:
            return now_ns + max(0, self.delay_ms) * MILLISECOND
        return max(now_ns, self.at_ns or 0)


class _Input(msgspec.Struct):
    delay_ms: Any = None
    at: Any = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


def add_reminder_reads(message: Message, tenant_id: str, read_set: ReadSet) -> None:
    """Ask for the count of the agent's pending reminders."""
    if _asks(message):
        read_set.waiting.add((quotas.REMINDERS, agent_entity_id(tenant_id, message.sender_id)))


def check(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    """The stage: refuses an invalid request, and one beyond the agent's quota."""
    if not _asks(ctx.message):
        return None
    request = _read(ctx)
    if isinstance(request, str):
        return SubmissionResult(403, Refused(reason="bad_reminder", detail=request), archived=True)
    if request.moment(now_ns) - now_ns > LONGEST_MS * MILLISECOND:
        detail = "a reminder may be at most a year ahead; ask again later"
        return SubmissionResult(403, Refused(reason="bad_reminder", detail=detail), archived=True)
    full = quotas.quota_refusal(memory, quotas.REMINDERS, ctx.agent)
    return None if full is None else SubmissionResult(403, full, archived=True)


def _asks(message: Message) -> bool:
    return message.tool == TOOL and message.log is not None and message.status in REQUEST_STATUSES


def _read(ctx: MessageContext) -> ReminderRequest | str:
    """The step's request, or one sentence that says why it is invalid."""
    assert ctx.message.log is not None
    text = ctx.message.log.action.tool_input
    try:
        given = msgspec.json.decode((text or "").encode(), type=_Input)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return "tool_input of schedule_reminder must be an object with delay_ms or at, and payload"
    if (given.delay_ms is None) == (given.at is None):
        return "a reminder needs either delay_ms or at"
    if len(bytes(given.payload)) > LARGEST:
        return f"the payload of a reminder may have at most {LARGEST} bytes"
    # Numbers, depth and characters are checked as in the message it becomes: else it could never be sent.
    document = parse(b'{"metadata":{"payload":' + bytes(given.payload) + b"}}")
    if document is None or not document.clean:
        return "the payload of a reminder must be JSON that every parser reads alike"
    payload = bytes(given.payload).decode()
    if given.delay_ms is not None:
        delay = given.delay_ms
        if isinstance(delay, bool) or not isinstance(delay, int | float):
            return "delay_ms must be a number of milliseconds"
        # Clamped beyond the limit: a very large float has no exact integer value.
        return ReminderRequest(int(max(-1.0, min(delay, 2.0 * LONGEST_MS))), None, payload)
    try:
        return ReminderRequest(None, clock.parse(given.at)[1], payload)
    except (ValueError, TypeError):
        return "at must be a time such as 2027-01-31T09:00:00Z"


def follow(ctx: MessageContext, uow: UnitOfWork, number: int) -> None:
    """The effect: creates the job, in the transaction of the requesting step."""
    if not _asks(ctx.message) or ctx.agent is None or ctx.session is None:
        return
    request = _read(ctx)
    if isinstance(request, str):  # a person rewrote it while it was held
        return
    now_ns, agent, session = uow.now_ns, ctx.agent, ctx.session
    full = quotas.quota_refusal(uow.memory, quotas.REMINDERS, agent)
    if full is not None:  # others were created while it was held
        detail = {"reason": full.reason, "step_id": ctx.step_id, "agent_id": agent.agent_id}
        summary = f"no reminder was created for {agent.agent_id}: {full.detail}"
        sender = {"sender_id": agent.entity_id, "sender_type": "agent", "message_id": ctx.message_id}
        uow.append(in_session(session, "message_undeliverable", summary, detail, now_ns, **sender))
        return
    quotas.count_waiting(uow.memory, quotas.REMINDERS, agent.agent_no)
    at_ns = request.moment(now_ns)
    spec = JobSpec(
        name=f"reminder of {agent.agent_id}",
        kind="once",
        cron=None,
        zone="UTC",
        at_ns=at_ns,
        target_kind="agent",
        target_name=agent.agent_id,
        intent=INTENT,
        payload=request.payload,
        session_id=session.session_id,
        misfire="run_once",
        overlap="allow",
        jitter_s=0,
        grace_s=60,
        max_tries=3,
    )
    job_id = mint("job_", now_ns, number)
    row = row_of(agent.entity_id, uow.memory.tenant.tenant_id, job_id, spec, now_ns)
    row |= {"next_for_ns": at_ns, "next_ns": at_ns, "asked_by": agent.entity_id, "asked_seq": number}
    uow.changes.writes.append(RowWrite("jobs", row))
    detail = {"job_id": job_id, "at": from_ns(at_ns), "step_id": ctx.step_id, "agent_id": agent.agent_id}
    summary = f"{agent.agent_id} requested a reminder"
    sender = {"sender_id": agent.entity_id, "sender_type": "agent", "message_id": ctx.message_id}
    event = in_session(session, "reminder_scheduled", summary, detail, now_ns, **sender)
    stating.attach_rows(event, [stating.stated_row("jobs", row)])
    uow.append(event)
