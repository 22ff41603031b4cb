"""Reminders: an agent asks to be spoken to later, by a step with `tool_call="schedule_reminder"` (ruling 29).

Law: what is asked for is checked by a stage, so one that cannot be is refused with a sentence its agent sees,
and archived. The job is made by an effect, in the transaction that forwards the step: a step that a person
must approve first makes none until then, and one that is rejected never. A moment that is over, or a delay of
0, means at once; more than a year is refused. It comes back into the session that asked, to the agent that
asked, and to nobody else.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.schedule.commands import JobSpec, row_of
from observatory.pipeline import quotas
from observatory.pipeline import row_statements as stating
from observatory.pipeline.event_draft import in_session
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Desk, Memory, Verdict, Wants
from observatory.protocol import clock
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.document import parse
from observatory.protocol.identity import agent_entity_id, mint
from observatory.protocol.message import Message

TOOL: Final = "schedule_reminder"
INTENT: Final = "reminder"
ASKS: Final = ("success", "pending")  # a call that failed or was skipped asks for nothing
LONGEST_MS: Final = 366 * 86_400_000
LARGEST: Final = 65_536
MILLISECOND: Final = 1_000_000


class Asked(NamedTuple):
    """A reminder that can be kept: from now on, or at a moment; `payload` as JSON."""

    delay_ms: int | None
    at_ns: int | None
    payload: str

    def moment(self, now_ns: int) -> int:
        """Never before now: what is over is due."""
        if self.delay_ms is not None:
            return now_ns + max(0, self.delay_ms) * MILLISECOND
        return max(now_ns, self.at_ns or 0)


class _Input(msgspec.Struct):
    delay_ms: Any = None
    at: Any = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


def want(message: Message, tenant_id: str, wants: Wants) -> None:
    """How many the agent waits for already."""
    if _asks(message):
        wants.waiting.add((quotas.REMINDERS, agent_entity_id(tenant_id, message.sender_id)))


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """The stage."""
    if not _asks(passage.message):
        return None
    found = _read(passage)
    if isinstance(found, str):
        return Verdict(403, Refused(reason="bad_reminder", detail=found), archived=True)
    if found.moment(now_ns) - now_ns > LONGEST_MS * MILLISECOND:
        detail = "a reminder lies at most a year ahead; ask again nearer to it"
        return Verdict(403, Refused(reason="bad_reminder", detail=detail), archived=True)
    full = quotas.exceeded(memory, quotas.REMINDERS, passage.agent)
    return None if full is None else Verdict(403, full, archived=True)


def _asks(message: Message) -> bool:
    return message.tool == TOOL and message.log is not None and message.status in ASKS


def _read(passage: Passage) -> Asked | str:
    """What the step asks for, or one sentence why it cannot be."""
    assert passage.message.log is not None
    text = passage.message.log.action.tool_input
    try:
        given = msgspec.json.decode((text or "").encode(), type=_Input)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return "tool_input of schedule_reminder is an object with delay_ms or at, and payload"
    if (given.delay_ms is None) == (given.at is None):
        return "a reminder has either delay_ms or at"
    if len(bytes(given.payload)) > LARGEST:
        return f"the payload of a reminder has at most {LARGEST} bytes"
    # Its numbers, depth and characters as in the message it becomes: else it could never come back.
    document = parse(b'{"metadata":{"payload":' + bytes(given.payload) + b"}}")
    if document is None or not document.clean:
        return "the payload of a reminder is JSON that every parser reads alike"
    payload = bytes(given.payload).decode()
    if given.delay_ms is not None:
        delay = given.delay_ms
        if isinstance(delay, bool) or not isinstance(delay, int | float):
            return "delay_ms is a number of milliseconds"
        # Beyond the limit by any measure; a float so large is no whole number of them.
        return Asked(int(max(-1.0, min(delay, 2.0 * LONGEST_MS))), None, payload)
    try:
        return Asked(None, clock.parse(given.at)[1], payload)
    except (ValueError, TypeError):
        return "at is a time such as 2027-01-31T09:00:00Z"


def follow(passage: Passage, desk: Desk, number: int) -> None:
    """The effect: its job, in the transaction of the step that asks."""
    if not _asks(passage.message) or passage.agent is None or passage.session is None:
        return
    found = _read(passage)
    if isinstance(found, str):  # a person wrote something else into it while it was held
        return
    now_ns, agent, session = desk.now_ns, passage.agent, passage.session
    full = quotas.exceeded(desk.memory, quotas.REMINDERS, agent)
    if full is not None:  # it was held until others had come
        detail = {"reason": full.reason, "step_id": passage.step_id, "agent_id": agent.agent_id}
        summary = f"no reminder was made for {agent.agent_id}: {full.detail}"
        sender = {"sender_id": agent.entity_id, "sender_type": "agent", "message_id": passage.message_id}
        desk.append(in_session(session, "message_undeliverable", summary, detail, now_ns, **sender))
        return
    quotas.note(desk.memory, quotas.REMINDERS, agent.agent_no)
    at_ns = found.moment(now_ns)
    spec = JobSpec(
        name=f"reminder of {agent.agent_id}",
        kind="once",
        cron=None,
        zone="UTC",
        at_ns=at_ns,
        target_kind="agent",
        target_name=agent.agent_id,
        intent=INTENT,
        payload=found.payload,
        session_id=session.session_id,
        misfire="run_once",
        overlap="allow",
        jitter_s=0,
        grace_s=60,
        max_tries=3,
    )
    job_id = mint("job_", now_ns, number)
    row = row_of(agent.entity_id, desk.memory.tenant.tenant_id, job_id, spec, now_ns)
    row |= {"next_for_ns": at_ns, "next_ns": at_ns, "asked_by": agent.entity_id, "asked_seq": number}
    desk.changes.writes.append(Write("jobs", row))
    detail = {"job_id": job_id, "at": from_ns(at_ns), "step_id": passage.step_id, "agent_id": agent.agent_id}
    summary = f"{agent.agent_id} asked to be reminded"
    sender = {"sender_id": agent.entity_id, "sender_type": "agent", "message_id": passage.message_id}
    event = in_session(session, "reminder_scheduled", summary, detail, now_ns, **sender)
    stating.put_on(event, [stating.row_of("jobs", row)])
    desk.append(event)
