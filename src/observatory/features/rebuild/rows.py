"""Import: rebuilds the rows of the archive from an export: the same numbers, bytes and states, in order.

What the pipeline once decided is read from the records, never decided again: no event is written, no
hash is computed. Agents, sessions and members are folded by the pipeline's own rules (`registry`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.cli.terminal import CommandFailed
from observatory.features.rebuild.insight import InsightRows
from observatory.features.rebuild.relay import RelayRows
from observatory.features.rebuild.thoughts import ThoughtRows
from observatory.features.rebuild.types import IMPORTED, NO_LIMIT
from observatory.ledger.canonical import sha256_text
from observatory.ledger.chain import ChainHead
from observatory.ledger.export import ExportedMessage, ExportEntry
from observatory.ledger.merkle import leaf_data, leaf_hash
from observatory.pipeline import agents as registry
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import AgentRow, AuditRow, MemberRow, MessageRow, RowWrite, SessionRow
from observatory.pipeline.state import BatchState, Principal, TransactionChanges
from observatory.pipeline.step_cost import cost_of
from observatory.protocol.clock import to_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.steps import step_name

VERIFIED = "tenant_verified"
_record = msgspec.json.Decoder(dict[str, Any]).decode


class Refold:
    """Keeps all agents, sessions and members until the end: 0.8 KB a session with one member (measured)."""

    def __init__(self, memory: BatchState) -> None:
        self._memory = memory
        self._traces: dict[str, SessionRow] = {}
        self._relay = RelayRows(memory)
        self._insight = InsightRows(memory)
        self._thoughts = ThoughtRows(memory.tenant.tenant_id)
        tenant_id = memory.tenant.tenant_id
        self._sender = Principal(tenant_id=tenant_id, role="admin", key_id="sys_import")

    @staticmethod
    def beginning(entry: ExportEntry) -> tuple[int, str]:
        """When the tenant was created and its name, as its first event records."""
        event = _record(entry.record)
        summary = str(event["body"].get("summary", ""))
        name = summary.removeprefix("tenant ").removesuffix(" created")
        return to_ns(event["timestamp"]), name or event["resource"]["av.tenant.id"]

    def changes(self, page: list[ExportEntry]) -> TransactionChanges:
        changes = TransactionChanges()
        for entry in page:
            event = _record(entry.record)
            if entry.message is None:
                self._apply(event, changes)
                session = self._traces.get(event["trace_id"])
                self._relay.apply(entry, event, session, changes)
                self._insight.apply(entry.sequence_number, event, session, changes)
                self._thoughts.apply(entry, event, session, changes)
            else:
                changes.messages.append(self._message(entry, entry.message, event))
                if entry.message.shredded_by is not None:
                    changes.shreds.append((entry.message.shredded_by, [entry.sequence_number]))
            changes.audit.append(self._audit(entry, event))
            self._memory.head = ChainHead(entry.sequence_number, event["hash_chain"]["event_hash"])
        return changes

    def finish(self) -> None:
        """After the last page: CommandFailed if a thought's text is still missing."""
        self._thoughts.finish()

    def mark(self, now_ns: int) -> RowWrite:
        """Marks the tenant as imported: its former rules, keys, users and inboxes are not here."""
        row = {
            "tenant_id": self._memory.tenant.tenant_id,
            "name": IMPORTED,
            "value": str(self._memory.head.sequence_number),
            "updated_ns": now_ns,
            "updated_by": self._sender.key_id,
        }
        return RowWrite("knobs", row, key=("tenant_id", "name"))

    def saved(self) -> None:
        """Mark rows just written as unchanged."""
        for row in self._memory.changed:
            row.dirty = False
        self._memory.changed = []

    def _audit(self, entry: ExportEntry, event: dict[str, Any]) -> AuditRow:
        attributes = event["attributes"]
        leaf = entry.leaf_hash
        if leaf is None:  # exported through a gateway, which serves records, not leaves
            event_hash = event["hash_chain"]["event_hash"]
            tenant_id = self._memory.tenant.tenant_id
            leaf = leaf_hash(
                leaf_data(tenant_id, entry.sequence_number, event_hash, sha256_text(entry.record))
            )
        return AuditRow(
            entry.sequence_number,
            to_ns(event["timestamp"]),
            event["severity_number"],
            known.session_no if (known := self._traces.get(event["trace_id"])) is not None else 0,
            attributes.get("av.sender.entity_id"),
            attributes.get("av.recipient.entity_id"),
            entry.record,
            leaf,
        )

    def _message(self, entry: ExportEntry, archived: ExportedMessage, event: dict[str, Any]) -> MessageRow:
        if archived.raw is None:
            return self._shredded(entry, archived, event)
        message = intercept(archived.raw, NO_LIMIT)
        if not isinstance(message, Message):
            raise CommandFailed(
                f"message {entry.sequence_number} of the export cannot be read by this version"
            )
        number, observed_ns = entry.sequence_number, to_ns(event["observed_timestamp"])
        session = self._session(archived.session_id, event["trace_id"], number, observed_ns)
        name = step_name(archived.session_id, archived.step_id, archived.message_id)
        if archived.state != "refused":
            self._heard(message, session, name, number, observed_ns, event["resource"].get("av.trust_level"))
        entropy = self._insight.scored(message, session, number)
        row = _row(archived, name, session, number, message.digest, entropy)
        if archived.state == "held":
            agent = self._memory.agents.get(event["attributes"].get("av.sender.entity_id", ""))
            number = agent.agent_no if agent is not None else 0
            self._relay.held(row, event, session, number, message.agent_type, message.cluster_id)
        return row

    def _shredded(self, entry: ExportEntry, archived: ExportedMessage, event: dict[str, Any]) -> MessageRow:
        """A message without bytes: its cost and score are lost with them, its place and proof are not."""
        if archived.shredded_by is None:
            raise CommandFailed(f"message {entry.sequence_number} has no bytes, and no event ordered it")
        memory, attributes = self._memory, event["attributes"]
        number, observed_ns = entry.sequence_number, to_ns(event["observed_timestamp"])
        session = self._session(archived.session_id, event["trace_id"], number, observed_ns)
        name = step_name(archived.session_id, archived.step_id, archived.message_id)
        agent_id, agent = attributes.get("av.sender.agent_id"), None
        if agent_id is not None:
            entity_id = agent_entity_id(memory.tenant.tenant_id, agent_id)
            agent = memory.agents.get(entity_id) or registry.create_agent(
                memory, entity_id, agent_id, observed_ns
            )
        if agent is not None and archived.state != "refused":
            agent.last_seen_ns, agent.messages = observed_ns, agent.messages + 1
            _trust(agent, event["resource"].get("av.trust_level"))
            memory.touch(agent)
            self._count_message(session, agent, name, number, observed_ns)
        digest = bytes.fromhex(attributes["av.message.digest"].removeprefix("sha256:"))
        row = _row(archived, name, session, number, digest)
        if archived.state == "held":
            self._relay.held(row, event, session, 0 if agent is None else agent.agent_no, None, None)
        return row

    def _count_message(
        self, session: SessionRow, agent: AgentRow, name: str, number: int, observed_ns: int
    ) -> MemberRow:
        memory, pair = self._memory, (session.session_no, agent.agent_no)
        member = memory.members.get(pair)
        if member is None:
            member = memory.members[pair] = MemberRow(session_no=pair[0], agent_no=pair[1])
        if member.messages == 0:
            session.agents += 1
        member.last_step, member.last_seq, member.arrived_ns = name, number, observed_ns
        memory.touch(member)
        member.messages += 1
        return member

    def _session(self, session_id: str, trace_id: str, number: int, observed_ns: int) -> SessionRow:
        memory = self._memory
        session = memory.sessions.get(session_id)
        if session is None:
            memory.tenant.sessions += 1
            session = memory.sessions[session_id] = SessionRow(
                session_no=memory.tenant.sessions,
                session_id=session_id,
                trace_id=trace_id,
                first_seq=number,
                started_ns=observed_ns,
            )
            self._traces[trace_id] = session
        session.last_seq, session.last_ns = number, observed_ns
        memory.touch(session)
        session.messages += 1
        return session

    def _heard(
        self,
        message: Message,
        session: SessionRow,
        name: str,
        number: int,
        observed_ns: int,
        trust: str | None,
    ) -> None:
        if message.sender_type != "agent":
            return
        memory = self._memory
        entity_id = agent_entity_id(memory.tenant.tenant_id, message.sender_id)
        agent = memory.agents.get(entity_id) or registry.create_agent(
            memory, entity_id, message.sender_id, observed_ns
        )
        _trust(agent, trust)
        ctx = MessageContext(message, self._sender, observed_ns, agent=agent, session=session)
        registry.update_agent(ctx, memory)
        member = self._count_message(session, agent, name, number, observed_ns)
        delta = message.log.state_delta if message.log is not None else None
        if delta is not None:
            member.tokens += delta.tokens_consumed or 0
            cost = cost_of(delta, member.cost)
            if cost is not None:
                total = delta.cumulative_session_cost
                total = member.cost + cost if total is None else total
                session.cost += total - member.cost
                session.spent += cost
                agent.cost += cost
                member.cost = total

    def _apply(self, event: dict[str, Any], changes: TransactionChanges) -> None:
        """Events of the gateway that have rows of their own: agents, ghosts, versions."""
        memory, body = self._memory, event["body"]
        kind, observed_ns = body["event_type"], to_ns(event["observed_timestamp"])
        agent_id = body.get("agent_id")
        if kind in ("agent_registered", "schema_violation") and agent_id is not None:
            entity_id = agent_entity_id(memory.tenant.tenant_id, agent_id)
            agent = memory.agents.get(entity_id) or registry.create_agent(
                memory, entity_id, agent_id, observed_ns
            )
            if agent.agent_id == entity_id != agent_id:  # its name became known later than its id
                agent.agent_id = agent_id
                memory.touch(agent)
            if kind == "schema_violation":
                agent.violation_ns = observed_ns
                memory.touch(agent)
            elif "trust_level" in body.get("set", ()):
                _trust(agent, VERIFIED)
                memory.touch(agent)
        elif kind in ("agent_evicted", "agent_recovered"):
            known = memory.agents.get(body.get("entity_id") or "")
            if known is not None:
                known.evicted_ns = to_ns(event["timestamp"]) if kind == "agent_evicted" else None
                memory.touch(known)
        elif kind == "version_unknown":
            self._version(body["agent_type"], body["capability_version"], "seen", event, changes)
        elif kind == "version_registered":
            for version, status in body["versions"].items():
                self._version(body["agent_type"], version, status, event, changes)

    def _version(
        self, agent_type: str, version: str, status: str, event: dict[str, Any], changes: TransactionChanges
    ) -> None:
        self._memory.tenant.rulebook_version += 1
        row = {
            "tenant_id": self._memory.tenant.tenant_id,
            "agent_type": agent_type,
            "version": version,
            "status": status,
            "updated_ns": to_ns(event["observed_timestamp"]),
            "updated_by": event["attributes"].get("av.sender.entity_id", "sys_gateway"),
        }
        changes.writes.append(RowWrite("versions", row, key=("tenant_id", "agent_type", "version")))


def _trust(agent: AgentRow, said: str | None) -> None:
    """As the registry: a key of its own proves it once and for all, another's takes nothing from that."""
    if said == VERIFIED:
        agent.trust_level = VERIFIED


def _row(
    archived: ExportedMessage,
    name: str,
    session: SessionRow,
    number: int,
    digest: bytes,
    entropy: float | None = None,
) -> MessageRow:
    return MessageRow(
        number,
        archived.message_id,
        archived.step_id,
        name,
        session.session_no,
        archived.message_type,
        archived.state,  # type: ignore[arg-type]
        "\n".join(archived.parents) or None,
        archived.parent_inferred,
        msgspec.json.encode(archived.warnings).decode() if archived.warnings else None,
        digest,
        archived.raw,
        entropy,
    )
