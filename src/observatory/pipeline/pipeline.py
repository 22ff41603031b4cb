"""The corridor: the order of stages, and one batch from memory to finished rows.

`STAGES` is the law of the house in one tuple: who, whose, where, which version, whether it may pass and
whether a person must look first. What passes is forwarded, and `effects.FORWARDED` follows; what is held is
archived all the same and comes back through the relay. A batch belongs to one tenant and runs inside one
transaction whose chain head is locked; it is synchronous and pure but for that transaction, so running it
again after a rollback gives the same rows. Nothing here knows SQL, a socket or a clock of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import msgspec

from observatory.features.access import stage as authority
from observatory.features.budgets import stage as budget
from observatory.features.decisions import commands as decisions
from observatory.features.decisions import stage as decision_rules
from observatory.features.loops import stage as entropy
from observatory.features.policies import stage as policy
from observatory.features.redaction import stage as redacting
from observatory.features.refusals.commands import TABLE, Refusals
from observatory.features.registry import router
from observatory.features.registry import stage as registry
from observatory.features.registry import stage_versions as versions
from observatory.features.relay import stage as relay
from observatory.features.schedule import reminders
from observatory.pipeline import effects, placement, sender_clock
from observatory.pipeline import row_statements as stating
from observatory.pipeline.event_writer import Scribe, notice
from observatory.pipeline.message_context import Passage, Stage
from observatory.pipeline.message_event import Service
from observatory.pipeline.ports import Transaction
from observatory.pipeline.rows import MessageRow, MessageState, Step
from observatory.pipeline.state import Act, Arrival, Breach, Changes, Memory, Submission, Verdict, Wants
from observatory.protocol.answers import Accepted, Refused
from observatory.protocol.identity import agent_entity_id, mint

STAGES: tuple[Stage, ...] = (
    authority.check,
    registry.recognise,
    placement.place,
    versions.check,
    entropy.check,
    decision_rules.check,
    policy.check,
    budget.check,
    reminders.check,
    router.heed,
    relay.check,
    sender_clock.check,
    registry.enter,
)


class Batch:
    """One transaction's worth of submissions of one tenant, in arrival order."""

    def __init__(self, service: Service, tenant_id: str, items: Sequence[Submission], now_ns: int) -> None:
        self._service = service
        self._tenant_id = tenant_id
        self._items = items
        self._now_ns = now_ns
        self._is_settled = False
        self._counted: set[str] = set()  # keys whose refusals were asked for with the other rows

    def wants(self) -> Wants:
        wants = Wants()
        for item in self._items:
            who = item.principal
            # The gateway itself holds no key; who makes a tenant has theirs in the home tenant.
            if who.tenant_id == self._tenant_id and not who.key_id.startswith("sys_"):
                wants.keys[who.key_id] = who.access_version
            if isinstance(item, Arrival):
                placement.want(item.message, self._tenant_id, wants)
                router.want(item.message, self._tenant_id, wants)
                decisions.want(item.message, self._tenant_id, wants)
                reminders.want(item.message, self._tenant_id, wants)
            elif isinstance(item, Breach):
                wants.row(TABLE, who.key_id)
                self._counted.add(who.key_id)
                if item.agent_id is not None:
                    wants.agents.add(agent_entity_id(self._tenant_id, item.agent_id))
            else:
                wants.add(item.wants)
        return wants

    def run(self, transaction: Transaction, known: Memory | None) -> tuple[list[Verdict], Memory]:
        """The verdicts, and the memory after them; `known` is that of the batch before."""
        memory = transaction.load(self._tenant_id, self.wants(), known)
        more = self.settle(memory)
        if more is not None:
            transaction.look_more(memory, more)
        changes = Changes()
        verdicts = self.think(memory, changes, partial(transaction.look_more, memory))
        if changes.audit or changes.writes:
            transaction.save(memory, changes)
        return verdicts, memory

    def settle(self, memory: Memory) -> Wants | None:
        """Make the messages what may be kept of them, by the tenant's rules; what must be read besides then.

        From here on nobody sees what was sent: no stage, no event, no row. Without rules it costs nothing.
        """
        self._is_settled = True
        book = memory.rulebook.redaction
        if book is None:
            return None
        self._items, wants = redacting.redacted(self._items, book, self._tenant_id, self._now_ns)
        return wants if wants.steps else None

    def think(
        self, memory: Memory, changes: Changes, read: Callable[[Wants], None] | None = None
    ) -> list[Verdict]:
        """What becomes of each, by what memory holds; both are changed, nothing is written.

        `read` looks for more under the lock; without it NeedsLock is raised where more must be known.
        """
        if not self._is_settled:
            self.settle(memory)
        scribe = Scribe(self._service, memory, changes, self._now_ns)
        refusals = Refusals(scribe, set(self._counted), read)
        return [self._judge(item, memory, changes, scribe, refusals) for item in self._items]

    def _judge(
        self, item: Submission, memory: Memory, changes: Changes, scribe: Scribe, refusals: Refusals
    ) -> Verdict:
        scribe.key_id = item.principal.key_id
        if isinstance(item, Arrival):
            return self._walk(item, memory, changes, scribe, refusals)
        if authority.has_lapsed(item.principal, memory, self._now_ns):
            return Verdict(401, Refused(reason="unauthorized", detail="this key is no longer valid"))
        verdict = self._impostor(item, memory)
        is_breach = verdict is None and isinstance(item, Breach)
        if verdict is None:
            verdict = self._breach(item) if isinstance(item, Breach) else item.decide(scribe)
        changes.writes += verdict.writes
        events = refusals.in_full(item.principal, verdict)
        if is_breach and isinstance(item, Breach):
            self._mark(item, memory, is_recorded=bool(events))
        stating.state(events, verdict.writes)
        for event in events:
            scribe.append(event)
        return verdict

    def _walk(
        self, item: Arrival, memory: Memory, changes: Changes, scribe: Scribe, refusals: Refusals
    ) -> Verdict:
        passage = Passage(
            item.message, item.principal, item.received_ns, redacted=item.redacted, context=item.context
        )
        if item.message.warnings:
            passage.warnings.extend(item.message.warnings)
        for stage in STAGES:
            verdict = stage(passage, memory, self._now_ns)
            if verdict is not None:
                break
        else:
            verdict = None
        stating.state(passage.events, passage.writes)
        for event in passage.events:
            scribe.append(event)
        changes.writes += passage.writes
        if verdict is None:
            return self._accept(passage, scribe)
        if verdict.archived:
            self._refuse(passage, verdict, scribe)
        for event in refusals.in_full(passage.principal, verdict):
            scribe.append(event)
        return verdict

    def _accept(self, passage: Passage, scribe: Scribe) -> Verdict:
        """Durable, and forwarded or held."""
        session = passage.session
        assert session is not None  # placement is a stage and never leaves it out
        number = scribe.next_sequence
        state: MessageState = "forwarded" if passage.cause is None else "held"
        warnings = tuple(passage.warnings)
        self._archive(passage, number, state, warnings, scribe)
        _fold(passage, scribe.memory, number)
        if passage.cause is None:
            kind = "heartbeat" if passage.message.message_type == "heartbeat" else "message_delivered"
            scribe.chronicle(passage, session, kind)
            effects.forwarded(passage, scribe, number)
        else:
            relay.keep(passage, session, scribe)
        if passage.entropy is not None:
            entropy.follow(passage, scribe, number)
        return Verdict(
            202,
            Accepted(
                message_id=passage.message_id,
                session_id=session.session_id,
                step_id=passage.step_id,
                sequence_number=number,
                state=state,
                warnings=warnings,
            ),
        )

    def _refuse(self, passage: Passage, verdict: Verdict, scribe: Scribe) -> None:
        """A well-formed message that may not pass is archived with that state (ruling 10)."""
        session, answer = passage.session, verdict.answer
        assert session is not None
        number = scribe.next_sequence
        # Kept beside the row, so that a repeat is answered as the first was.
        told = (answer.reason, answer.rule_id or "", answer.cap or "", answer.detail or "")
        self._archive(passage, number, "refused", told, scribe)
        _count(passage, scribe.memory, number)
        detail = {"reason": answer.reason, "rule_id": answer.rule_id, "cap": answer.cap}
        scribe.chronicle(passage, session, "message_refused", detail)
        if passage.entropy is not None:
            entropy.follow(passage, scribe, number)

    def _archive(
        self, passage: Passage, number: int, state: MessageState, notes: tuple[str, ...], scribe: Scribe
    ) -> None:
        message, session = passage.message, passage.session
        assert session is not None
        passage.message_id = message_id = message.message_id or mint("msg_", self._now_ns, number)
        scribe.changes.messages.append(
            MessageRow(
                number,
                message_id,
                passage.step_id,
                passage.name,
                session.session_no,
                message.message_type,
                state,
                "\n".join(passage.parents) or None,
                passage.parent_inferred,
                _told(notes) if notes else None,
                message.digest,
                message.raw,
                passage.entropy,
            )
        )
        scribe.memory.fresh[passage.name] = Step(
            passage.name,
            number,
            message.digest,
            session.session_id,
            passage.step_id,
            message_id,
            state,
            notes,
        )

    def _impostor(self, item: Breach | Act, memory: Memory) -> Verdict | None:
        """Who is bound to a certificate is not spoken for without it, nor blamed for what others send."""
        if not memory.rulebook.certificates:
            return None
        if isinstance(item, Act):
            entity_id = item.speaks_as
        else:
            entity_id = None if item.agent_id is None else agent_entity_id(self._tenant_id, item.agent_id)
        if entity_id is None:
            return None
        return authority.uncertified(item.principal, entity_id, memory, self._now_ns)

    def _mark(self, item: Breach, memory: Memory, is_recorded: bool) -> None:
        """Its agent turns orange. One that is known only by what it sent wrongly is a ghost node, but not of
        a violation that is only counted: thousands could be made of one request."""
        if item.agent_id is None:
            return
        entity_id = agent_entity_id(self._tenant_id, item.agent_id)
        agent = memory.agents.get(entity_id)
        if agent is None:
            if not is_recorded:
                return
            agent = registry.enrol(memory, entity_id, item.agent_id, self._now_ns)
        agent.violation_ns = self._now_ns
        memory.touch(agent)

    def _breach(self, item: Breach) -> Verdict:
        """A violation is told of by hash and rule; the body was never kept (ruling 12)."""
        who = item.agent_id or "an agent that could not be read"
        event = notice(
            self._tenant_id,
            "schema_violation",
            f"refused a message of {who}",
            self._now_ns,
            item.principal,
            {
                "agent_id": item.agent_id,
                "capability_version": item.capability_version,
                "violation_reason": item.reason,
                "raw_payload_hash": item.raw_payload_hash,
            },
        )
        return Verdict(item.code, item.answer, [event])


@lru_cache(maxsize=1024)
def _told(warnings: tuple[str, ...]) -> str:
    """Warnings as stored; they are words of the contract, so the same few come again and again."""
    return msgspec.json.encode(warnings).decode()


def _count(passage: Passage, memory: Memory, number: int) -> None:
    session = passage.session
    assert session is not None
    if session.messages == 0:
        session.first_seq = number
    session.last_seq = number
    # By the gateway's clock: a sender's may be years off.
    if passage.received_ns > session.last_ns:
        session.last_ns = passage.received_ns
    session.messages += 1
    memory.touch(session)


def _fold(passage: Passage, memory: Memory, number: int) -> None:
    """What the session, the agent and its membership are after this message, forwarded or held."""
    session, member, message = passage.session, passage.member, passage.message
    assert session is not None
    _count(passage, memory, number)
    registry.heard(passage, memory)
    if member is None:
        return
    if member.messages == 0:
        session.agents += 1
    member.last_step, member.last_seq = passage.name, number
    member.arrived_ns = passage.received_ns
    member.messages += 1
    memory.touch(member)
    delta = message.log.state_delta if message.log is not None else None
    if delta is not None:
        member.tokens += delta.tokens_consumed or 0
        cost = budget.cost_of(delta, member.cost)
        if cost is not None:
            total = delta.cumulative_session_cost
            if total is None:  # who tells only what each step cost has it summed here
                total = member.cost + cost
            session.cost += total - member.cost
            session.spent += cost
            if passage.agent is not None:
                passage.agent.cost += cost
            member.cost = total
