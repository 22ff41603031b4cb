"""Import: rebuilds the relay's rows: held messages, interventions, pauses.

Read from the events alone, in their order; nothing is decided again. Inboxes, decisions and rules (policies,
budgets, routes, kill-switches, instructions) are not part of a trail and start empty.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.rebuild.types import NO_LIMIT
from observatory.ledger.export import ExportEntry
from observatory.pipeline.addresses import recipient_of
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.rows import HoldRow, MemberRow, MessageRow, RowWrite, SessionRow
from observatory.pipeline.state import BatchState, TransactionChanges
from observatory.protocol.clock import to_ns
from observatory.protocol.message import Message
from observatory.protocol.otel import span_id_of

Event = dict[str, Any]
# Columns of an intervention that are copied from its event.
AS_WRITTEN = (
    "intervention_id",
    "command",
    "operator_id",
    "message_id",
    "before_hash",
    "after_hash",
    "note",
)


class RelayRows:
    def __init__(self, memory: BatchState) -> None:
        self._memory = memory
        self._by_message: dict[str, tuple[SessionRow, HoldRow]] = {}
        # The state of held messages before each rewrite: the rewrite in force, its digest, its recipient.
        self._before: dict[int, list[tuple[int | None, bytes, str | None]]] = {}
        self._pauses: dict[tuple[int, int], str] = {}

    def held(
        self,
        row: MessageRow,
        event: Event,
        session: SessionRow,
        agent_no: int,
        agent_type: str | None,
        cluster_id: str | None,
    ) -> None:
        """A message archived as held."""
        body = event["body"]
        hold = HoldRow(
            sequence_number=row.sequence_number,
            session_no=session.session_no,
            agent_no=agent_no,
            message_id=row.message_id,
            step_id=row.step_id,
            name=row.name,
            span_id=event["span_id"] or span_id_of(row.step_id),
            message_type=row.message_type,
            agent_type=agent_type,
            cluster_id=cluster_id,
            cause=body["cause"],
            reason=body["reason"],
            recipient=_recipient(event["attributes"]),
            waits=",".join(map(str, body.get("waits_for", ()))) or None,
            digest=row.digest,
            requested_by=body.get("requested_by", ""),
            key_id=event["attributes"].get("av.sender.key_id"),
            key_maker=body.get("key_maker"),
            bound=int(event["resource"].get("av.trust_level") == "tenant_verified"),
            held_ns=to_ns(event["observed_timestamp"]),
        )
        if body["cause"] == "pause":
            self._take_over(session, agent_no)
        self._memory.holds.setdefault(session.session_no, {})[row.sequence_number] = hold
        self._by_message[row.message_id] = (session, hold)
        session.held += 1
        self._memory.touch(hold)

    def apply(
        self, entry: ExportEntry, event: Event, session: SessionRow | None, changes: TransactionChanges
    ) -> None:
        """An event without a message of its own."""
        body, now_ns = event["body"], to_ns(event["observed_timestamp"])
        known = self._by_message.get(body.get("message_id") or "")
        match body["event_type"]:
            case "gate_opened" if known is not None:
                hold = known[1]
                hold.gate, hold.quorum, hold.on_expiry = 1, body["quorum"], body["on_expiry"]
                hold.deadline_ns = None if body["deadline"] is None else to_ns(body["deadline"])
                self._memory.touch(hold)
            case "gate_expired" if known is not None and body["on_expiry"] == "approve":
                known[1].gate = 2
                self._memory.touch(known[1])
            case "message_delivered" | "message_rejected" if known is not None:
                self._end(*known, event, now_ns)
            case "hitl_intervention" if body.get("everywhere"):
                self._everywhere(entry, event, changes, now_ns)
            case "hitl_intervention" if session is not None:
                self._command(entry, event, session, known and known[1], changes, now_ns)
            case "hitl_reversed":
                self._reverse(body, known and known[1], changes, now_ns)
            case "pause_acknowledged" | "pause_confirmed" if body.get("intervention_id"):
                column = "acknowledged_ns" if body["event_type"] == "pause_acknowledged" else "confirmed_ns"
                proven = {"proven": int(body["proven"])} if "proven" in body else {}
                self._mark(body["intervention_id"], {column: now_ns} | proven, changes)

    def _end(self, session: SessionRow, hold: HoldRow, event: Event, now_ns: int) -> None:
        body = event["body"]
        if body["event_type"] == "message_delivered":
            hold.state = "released"
        else:
            hold.state = "expired" if body.get("reason") == "expired" else "rejected"
            session.rejected += 1
        hold.ended_ns, hold.released_seq = now_ns, event["hash_chain"]["sequence_number"]
        hold.ended_by = body.get("released_by") or body.get("by")
        del self._memory.holds[session.session_no][hold.sequence_number]
        session.held -= 1
        self._memory.touch(hold)
        self._memory.touch(session)

    def _command(
        self,
        entry: ExportEntry,
        event: Event,
        session: SessionRow,
        hold: HoldRow | None,
        changes: TransactionChanges,
        now_ns: int,
    ) -> None:
        memory, body = self._memory, event["body"]
        entity_id = event["attributes"].get("av.recipient.entity_id")
        agent = memory.agents.get(entity_id or "")
        number, tenant_id = entry.sequence_number, memory.tenant.tenant_id
        row = {
            "tenant_id": tenant_id,
            "sequence_number": number,
            "agent_no": agent.agent_no if agent is not None else 0,
            "session_no": session.session_no,
            "message_seq": hold.sequence_number if hold is not None else None,
            "issued_ns": now_ns,
        }
        changes.writes.append(RowWrite("interventions", row | {name: body[name] for name in AS_WRITTEN}))
        if body["command"] in ("rewrite", "edit") and hold is not None and entry.rewritten is not None:
            digest = bytes.fromhex(body["after_hash"].removeprefix("sha256:"))
            before = (hold.rewrite_seq, hold.digest, hold.recipient)
            self._before.setdefault(hold.sequence_number, []).append(before)
            hold.rewrite_seq, hold.digest, hold.approvals = number, digest, None
            self._rewritten(hold, entry.rewritten, body.get("gate"))
            written = {"message_seq": hold.sequence_number, "raw": entry.rewritten or None, "digest": digest}
            own = {"tenant_id": tenant_id, "sequence_number": number, "created_ns": now_ns}
            changes.writes.append(RowWrite("rewrites", own | written))
        if body["command"] in ("approve", "edit") and hold is not None:
            given = [*(msgspec.json.decode(hold.approvals) if hold.approvals else []), body["operator_id"]]
            hold.approvals = msgspec.json.encode(given).decode()
            hold.gate = 2 if len(given) >= hold.quorum else hold.gate
        if hold is not None:
            memory.touch(hold)
        if body["command"] in ("pause", "unpause") and agent is not None:
            self._pause(body, number, now_ns, (session.session_no, agent.agent_no), changes)

    def _everywhere(self, entry: ExportEntry, event: Event, changes: TransactionChanges, now_ns: int) -> None:
        """A pause of the agent in all sessions, or its end."""
        memory, body = self._memory, event["body"]
        agent = memory.agents.get(event["attributes"].get("av.recipient.entity_id") or "")
        if agent is None:
            return
        number = entry.sequence_number
        row = {name: body[name] for name in AS_WRITTEN} | {
            "tenant_id": memory.tenant.tenant_id,
            "sequence_number": number,
            "session_no": 0,
            "agent_no": agent.agent_no,
            "message_seq": None,
            "issued_ns": now_ns,
        }
        changes.writes.append(RowWrite("interventions", row))
        if body["command"] == "pause":
            agent.paused_ns, agent.paused_by, agent.pause_seq = now_ns, body["operator_id"], number
            self._pauses[0, agent.agent_no] = body["intervention_id"]
        else:
            agent.paused_ns = agent.paused_by = agent.pause_seq = None
            if (paused := self._pauses.pop((0, agent.agent_no), None)) is not None:
                self._mark(paused, {"reversed_ns": now_ns}, changes)
        memory.touch(agent)

    def _take_over(self, session: SessionRow, agent_no: int) -> None:
        """The first message held in a session copies the agent's own pause to the session."""
        agents = self._memory.agents.values()
        agent = next((one for one in agents if one.agent_no == agent_no and one.is_paused), None)
        if agent is None:
            return
        pair = (session.session_no, agent_no)
        member = self._memory.members.get(pair)
        if member is None:
            member = self._memory.members[pair] = MemberRow(session_no=pair[0], agent_no=agent_no)
        if not member.is_paused:
            member.paused_ns, member.paused_by = agent.paused_ns, agent.paused_by
            self._memory.touch(member)

    def _rewritten(self, hold: HoldRow, content: bytes, gate: dict[str, Any] | None) -> None:
        """Approvals were of the old content; the new one may have another recipient, or need a gate."""
        hold.gate = 1 if hold.gate else 0
        message = intercept(content, NO_LIMIT) if content else None
        if isinstance(message, Message):
            hold.recipient = recipient_of(message, self._memory.tenant.tenant_id)
        if gate is not None:
            hold.gate, hold.quorum, hold.on_expiry = 1, gate["quorum"], gate["on_expiry"]

    def _pause(
        self, body: Event, number: int, now_ns: int, pair: tuple[int, int], changes: TransactionChanges
    ) -> None:
        memory = self._memory
        member = memory.members.get(pair)
        if member is None:
            member = memory.members[pair] = MemberRow(session_no=pair[0], agent_no=pair[1])
        if body["command"] == "pause":
            member.paused_ns, member.paused_by, member.pause_seq = now_ns, body["operator_id"], number
            self._pauses[pair] = body["intervention_id"]
        else:
            member.paused_ns = member.paused_by = member.pause_seq = None
            if (paused := self._pauses.pop(pair, None)) is not None:
                self._mark(paused, {"reversed_ns": now_ns}, changes)
        memory.touch(member)

    def _reverse(self, body: Event, hold: HoldRow | None, changes: TransactionChanges, now_ns: int) -> None:
        self._mark(body["intervention_id"], {"reversed_ns": now_ns}, changes)
        if hold is not None and hold.rewrite_seq is not None:
            where = {"tenant_id": self._memory.tenant.tenant_id, "sequence_number": hold.rewrite_seq}
            changes.writes.append(RowWrite("rewrites", {"undone_ns": now_ns}, where))
            hold.rewrite_seq, hold.digest, hold.recipient = self._before[hold.sequence_number].pop()
            hold.approvals, hold.gate = None, 1 if hold.gate else 0
            self._memory.touch(hold)

    def _mark(self, intervention_id: str, values: dict[str, int], changes: TransactionChanges) -> None:
        where = {"tenant_id": self._memory.tenant.tenant_id, "intervention_id": intervention_id}
        changes.writes.append(RowWrite("interventions", values, where))


def _recipient(attributes: dict[str, Any]) -> str | None:
    """The recipient as the relay stores it: people and the gateway have no inbox."""
    if attributes.get("av.recipient.entity_type") in ("user", "system"):
        return None
    return attributes.get("av.recipient.entity_id") or attributes.get("av.recipient.address")
