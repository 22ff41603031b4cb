"""The pipeline: one batch of a tenant from its rows to finished rows, in one transaction.

The order of stages is in `stages.py`. What passes is archived as forwarded and its effects follow; what is
held is archived too and comes back through the relay. A batch belongs to one tenant and runs inside one
transaction whose chain head is locked. It is synchronous and pure but for that transaction, so running it
again after a rollback gives the same rows. Nothing here knows SQL, a socket, a clock or a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import msgspec

from observatory.pipeline import agents, authority
from observatory.pipeline import row_statements as stating
from observatory.pipeline.event_writer import EventWriter, gateway_event
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.ports import Transaction
from observatory.pipeline.redaction import batch as redaction
from observatory.pipeline.refusals import TABLE, RefusalCounter
from observatory.pipeline.rows import MessageRow, MessageState, StepRow
from observatory.pipeline.state import (
    BatchState,
    Command,
    IncomingMessage,
    ReadSet,
    RejectedBody,
    Submission,
    SubmissionResult,
    TransactionChanges,
)
from observatory.pipeline.step_cost import cost_of
from observatory.pipeline.write_path import WritePath
from observatory.protocol.identity import agent_entity_id, mint
from observatory.protocol.responses import Accepted, Refused


class PipelineBatch:
    """One transaction's worth of submissions of one tenant, in arrival order."""

    def __init__(
        self, path: WritePath, service: ServiceInfo, tenant_id: str, items: Sequence[Submission], now_ns: int
    ) -> None:
        self._path = path
        self._service = service
        self._tenant_id = tenant_id
        self._items = items
        self._now_ns = now_ns
        self._is_settled = False
        self._counted: set[str] = set()  # keys whose refusal counts are read with the other rows

    def read_set(self) -> ReadSet:
        read_set = ReadSet()
        for item in self._items:
            who = item.principal
            # The gateway itself has no key; the key of a tenant's creator belongs to the home tenant.
            if who.tenant_id == self._tenant_id and not who.key_id.startswith("sys_"):
                read_set.keys[who.key_id] = who.access_version
            if isinstance(item, IncomingMessage):
                for reads in self._path.reads:
                    reads(item.message, self._tenant_id, read_set)
            elif isinstance(item, RejectedBody):
                read_set.row(TABLE, who.key_id)
                self._counted.add(who.key_id)
                if item.agent_id is not None:
                    read_set.agents.add(agent_entity_id(self._tenant_id, item.agent_id))
            else:
                read_set.add(item.read_set)
        return read_set

    def run(
        self, transaction: Transaction, known: BatchState | None
    ) -> tuple[list[SubmissionResult], BatchState]:
        """The results, and the batch state after them; `known` is the state after the previous batch."""
        memory = transaction.load(self._tenant_id, self.read_set(), known)
        more = self.settle(memory)
        if more is not None:
            transaction.read_more(memory, more)
        changes = TransactionChanges()
        verdicts = self.think(memory, changes, partial(transaction.read_more, memory))
        if changes.audit or changes.writes:
            transaction.save(memory, changes)
        return verdicts, memory

    def settle(self, memory: BatchState) -> ReadSet | None:
        """Redact the messages by the tenant's rules; returns what must be read in addition.

        From here on no stage, event or row contains the original text. Without rules it costs nothing.
        """
        self._is_settled = True
        book = memory.tenant_config.redaction
        if book is None:
            return None
        self._items, read_set = redaction.redact_batch(self._items, book, self._tenant_id, self._now_ns)
        return read_set if read_set.steps else None

    def think(
        self, memory: BatchState, changes: TransactionChanges, read: Callable[[ReadSet], None] | None = None
    ) -> list[SubmissionResult]:
        """Compute the result of each submission; changes `memory` and `changes`, writes nothing.

        `read` loads more rows under the lock; without it NeedsLock is raised where more rows are needed.
        """
        if not self._is_settled:
            self.settle(memory)
        event_writer = EventWriter(self._service, memory, changes, self._now_ns, self._path.forwarded)
        refusals = RefusalCounter(event_writer, set(self._counted), read)
        return [self._judge(item, memory, changes, event_writer, refusals) for item in self._items]

    def _judge(
        self,
        item: Submission,
        memory: BatchState,
        changes: TransactionChanges,
        event_writer: EventWriter,
        refusals: RefusalCounter,
    ) -> SubmissionResult:
        event_writer.key_id = item.principal.key_id
        if isinstance(item, IncomingMessage):
            return self._run_stages(item, memory, changes, event_writer, refusals)
        if authority.has_lapsed(item.principal, memory, self._now_ns):
            return SubmissionResult(401, Refused(reason="unauthorized", detail="this key is no longer valid"))
        verdict = self._check_certificate(item, memory)
        is_breach = verdict is None and isinstance(item, RejectedBody)
        if verdict is None:
            verdict = (
                self._record_violation(item) if isinstance(item, RejectedBody) else item.decide(event_writer)
            )
        changes.writes += verdict.writes
        events = refusals.in_full(item.principal, verdict)
        if is_breach and isinstance(item, RejectedBody):
            self._mark_violation(item, memory, is_recorded=bool(events))
        stating.attach_statements(events, verdict.writes)
        for event in events:
            event_writer.append(event)
        return verdict

    def _run_stages(
        self,
        item: IncomingMessage,
        memory: BatchState,
        changes: TransactionChanges,
        event_writer: EventWriter,
        refusals: RefusalCounter,
    ) -> SubmissionResult:
        ctx = MessageContext(
            item.message, item.principal, item.received_ns, redacted=item.redacted, context=item.context
        )
        if item.message.warnings:
            ctx.warnings.extend(item.message.warnings)
        for stage in self._path.stages:
            verdict = stage(ctx, memory, self._now_ns)
            if verdict is not None:
                break
        else:
            verdict = None
        stating.attach_statements(ctx.events, ctx.writes)
        for event in ctx.events:
            event_writer.append(event)
        changes.writes += ctx.writes
        if verdict is None:
            return self._accept(ctx, event_writer)
        if verdict.archived:
            self._refuse(ctx, verdict, event_writer)
        for event in refusals.in_full(ctx.principal, verdict):
            event_writer.append(event)
        return verdict

    def _accept(self, ctx: MessageContext, event_writer: EventWriter) -> SubmissionResult:
        """Durable, and forwarded or held."""
        session = ctx.session
        assert session is not None  # set by the placement stage for every message
        number = event_writer.next_sequence
        state: MessageState = "forwarded" if ctx.cause is None else "held"
        warnings = tuple(ctx.warnings)
        self._archive(ctx, number, state, warnings, event_writer)
        _fold(ctx, event_writer.memory, number)
        if ctx.cause is None:
            kind = "heartbeat" if ctx.message.message_type == "heartbeat" else "message_delivered"
            event_writer.append_message_event(ctx, session, kind)
            event_writer.forward(ctx, number)
        else:
            for effect in self._path.held:
                effect(ctx, event_writer, number)
        for effect in self._path.archived:
            effect(ctx, event_writer, number)
        return SubmissionResult(
            202,
            Accepted(
                message_id=ctx.message_id,
                session_id=session.session_id,
                step_id=ctx.step_id,
                sequence_number=number,
                state=state,
                warnings=warnings,
            ),
        )

    def _refuse(self, ctx: MessageContext, verdict: SubmissionResult, event_writer: EventWriter) -> None:
        """A well-formed message that may not pass is archived with that state (ruling 10)."""
        session, answer = ctx.session, verdict.answer
        assert session is not None
        number = event_writer.next_sequence
        # Stored with the row, so that a repeat gets the same response.
        notes = (answer.reason, answer.rule_id or "", answer.cap or "", answer.detail or "")
        self._archive(ctx, number, "refused", notes, event_writer)
        _count(ctx, event_writer.memory, number)
        detail = {"reason": answer.reason, "rule_id": answer.rule_id, "cap": answer.cap}
        event_writer.append_message_event(ctx, session, "message_refused", detail)
        for effect in self._path.archived:
            effect(ctx, event_writer, number)

    def _archive(
        self,
        ctx: MessageContext,
        number: int,
        state: MessageState,
        notes: tuple[str, ...],
        event_writer: EventWriter,
    ) -> None:
        message, session = ctx.message, ctx.session
        assert session is not None
        ctx.message_id = message_id = message.message_id or mint("msg_", self._now_ns, number)
        event_writer.changes.messages.append(
            MessageRow(
                number,
                message_id,
                ctx.step_id,
                ctx.name,
                session.session_no,
                message.message_type,
                state,
                "\n".join(ctx.parents) or None,
                ctx.parent_inferred,
                _notes_json(notes) if notes else None,
                message.digest,
                message.raw,
                ctx.entropy,
            )
        )
        event_writer.memory.fresh[ctx.name] = StepRow(
            ctx.name,
            number,
            message.digest,
            session.session_id,
            ctx.step_id,
            message_id,
            state,
            notes,
        )

    def _check_certificate(self, item: RejectedBody | Command, memory: BatchState) -> SubmissionResult | None:
        """Refuse what is sent for an agent bound to a certificate without that certificate."""
        if not memory.tenant_config.certificates:
            return None
        if isinstance(item, Command):
            entity_id = item.on_behalf_of
        else:
            entity_id = None if item.agent_id is None else agent_entity_id(self._tenant_id, item.agent_id)
        if entity_id is None:
            return None
        return authority.refuse_uncertified(item.principal, entity_id, memory, self._now_ns)

    def _mark_violation(self, item: RejectedBody, memory: BatchState, is_recorded: bool) -> None:
        """Mark the agent as violating. An agent known only by an invalid message becomes a ghost node, but
        not for a violation that is only counted: one request could create thousands."""
        if item.agent_id is None:
            return
        entity_id = agent_entity_id(self._tenant_id, item.agent_id)
        agent = memory.agents.get(entity_id)
        if agent is None:
            if not is_recorded:
                return
            agent = agents.create_agent(memory, entity_id, item.agent_id, self._now_ns)
        agent.violation_ns = self._now_ns
        memory.touch(agent)

    def _record_violation(self, item: RejectedBody) -> SubmissionResult:
        """A violation is recorded by hash and rule; the body is never stored (ruling 12)."""
        sender = item.agent_id or "an agent whose id could not be read"
        event = gateway_event(
            self._tenant_id,
            "schema_violation",
            f"refused a message of {sender}",
            self._now_ns,
            item.principal,
            {
                "agent_id": item.agent_id,
                "capability_version": item.capability_version,
                "violation_reason": item.reason,
                "raw_payload_hash": item.raw_payload_hash,
            },
        )
        return SubmissionResult(item.code, item.answer, [event])


@lru_cache(maxsize=1024)
def _notes_json(warnings: tuple[str, ...]) -> str:
    """Warnings as stored; they come from a small set of constants, so caching pays."""
    return msgspec.json.encode(warnings).decode()


def _count(ctx: MessageContext, memory: BatchState, number: int) -> None:
    session = ctx.session
    assert session is not None
    if session.messages == 0:
        session.first_seq = number
    session.last_seq = number
    # By the gateway's clock: a sender's clock may be years off.
    if ctx.received_ns > session.last_ns:
        session.last_ns = ctx.received_ns
    session.messages += 1
    memory.touch(session)


def _fold(ctx: MessageContext, memory: BatchState, number: int) -> None:
    """Update the session, the agent and its membership after this message, forwarded or held."""
    session, member, message = ctx.session, ctx.member, ctx.message
    assert session is not None
    _count(ctx, memory, number)
    agents.update_agent(ctx, memory)
    if member is None:
        return
    if member.messages == 0:
        session.agents += 1
    member.last_step, member.last_seq = ctx.name, number
    member.arrived_ns = ctx.received_ns
    member.messages += 1
    memory.touch(member)
    delta = message.log.state_delta if message.log is not None else None
    if delta is not None:
        member.tokens += delta.tokens_consumed or 0
        cost = cost_of(delta, member.cost)
        if cost is not None:
            total = delta.cumulative_session_cost
            if total is None:  # senders that report only the cost of each step: summed here
                total = member.cost + cost
            session.cost += total - member.cost
            session.spent += cost
            if ctx.agent is not None:
                ctx.agent.cost += cost
            member.cost = total
