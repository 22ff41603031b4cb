"""The corridor: the order of stages, and one batch from memory to finished rows.

`STAGES` is the law of the house in one tuple: who, whose, where, which version. A batch belongs to one
tenant and runs inside one transaction whose chain head is locked; it is synchronous and pure but for
that transaction, so running it again after a rollback gives the same rows. Nothing here knows SQL, a
socket or a clock of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from observatory.gateway import authority, placement, registry, versions
from observatory.gateway.passage import Passage, Stage
from observatory.gateway.record import Scribe, Service, notice
from observatory.ports import Transaction
from observatory.protocol.answers import Accepted, Refused
from observatory.protocol.identity import agent_entity_id, mint
from observatory.state import (
    Act,
    Arrival,
    Breach,
    Changes,
    Memory,
    MessageRow,
    Step,
    Submission,
    Verdict,
    Wants,
)

STAGES: tuple[Stage, ...] = (authority.check, registry.recognise, placement.place, versions.check)


class Batch:
    """One transaction's worth of submissions of one tenant, in arrival order."""

    def __init__(self, service: Service, tenant_id: str, items: Sequence[Submission], now_ns: int) -> None:
        self._service = service
        self._tenant_id = tenant_id
        self._items = items
        self._now_ns = now_ns

    def wants(self) -> Wants:
        wants = Wants()
        for item in self._items:
            who = item.principal
            # The gateway itself holds no key; who makes a tenant has theirs in the home tenant.
            if who.tenant_id == self._tenant_id and not who.key_id.startswith("sys_"):
                wants.keys[who.key_id] = who.access_version
            if isinstance(item, Arrival):
                placement.want(item.message, self._tenant_id, wants)
            elif isinstance(item, Breach):
                if item.agent_id is not None:
                    wants.agents.add(agent_entity_id(self._tenant_id, item.agent_id))
            else:
                wants.steps |= item.wants.steps
                wants.sessions |= item.wants.sessions
                wants.agents |= item.wants.agents
        return wants

    def run(self, transaction: Transaction, known: Memory | None) -> tuple[list[Verdict], Memory]:
        """The verdicts, and the memory after them; `known` is that of the batch before."""
        memory = transaction.load(self._tenant_id, self.wants(), known)
        changes = Changes()
        scribe = Scribe(self._service, memory, changes, self._now_ns)
        verdicts = [self._judge(item, memory, changes, scribe) for item in self._items]
        if changes.audit or changes.writes:
            transaction.save(memory, changes)
        return verdicts, memory

    def _judge(self, item: Submission, memory: Memory, changes: Changes, scribe: Scribe) -> Verdict:
        if isinstance(item, Arrival):
            return self._walk(item, memory, changes, scribe)
        if authority.has_lapsed(item.principal, memory, self._now_ns):
            return Verdict(401, Refused(reason="unauthorized", detail="this key is no longer valid"))
        verdict = self._breach(item, memory) if isinstance(item, Breach) else self._act(item, memory)
        changes.writes += verdict.writes
        for event in verdict.events:
            scribe.append(event)
        return verdict

    def _act(self, item: Act, memory: Memory) -> Verdict:
        return item.decide(memory, self._now_ns)

    def _walk(self, item: Arrival, memory: Memory, changes: Changes, scribe: Scribe) -> Verdict:
        passage = Passage(item.message, item.principal, item.received_ns)
        if item.message.warnings:
            passage.warnings.extend(item.message.warnings)
        for stage in STAGES:
            verdict = stage(passage, memory, self._now_ns)
            if verdict is not None:
                break
        else:
            verdict = None
        for event in passage.events:
            scribe.append(event)
        changes.writes += passage.writes
        if verdict is not None:
            for event in verdict.events:
                scribe.append(event)
            return verdict
        return self._deliver(passage, memory, changes, scribe)

    def _deliver(self, passage: Passage, memory: Memory, changes: Changes, scribe: Scribe) -> Verdict:
        message, session = passage.message, passage.session
        assert session is not None  # placement is a stage and never leaves it out
        number = scribe.next_sequence
        message_id = message.message_id or mint("msg_", self._now_ns, number)
        scribe.deliver(passage, session, message_id, number)
        warnings = tuple(passage.warnings)
        changes.messages.append(
            MessageRow(
                number,
                message_id,
                passage.step_id,
                passage.name,
                session.session_no,
                message.message_type,
                "forwarded",
                "\n".join(passage.parents) or None,
                passage.parent_inferred,
                _told(warnings) if warnings else None,
                message.digest,
                message.raw,
            )
        )
        memory.steps[passage.name] = Step(
            passage.name,
            number,
            message.digest,
            session.session_id,
            passage.step_id,
            message_id,
            "forwarded",
            warnings,
        )
        _fold(passage, memory, number)
        return Verdict(
            202,
            Accepted(
                message_id=message_id,
                session_id=session.session_id,
                step_id=passage.step_id,
                sequence_number=number,
                state="forwarded",
                warnings=warnings,
            ),
        )

    def _breach(self, item: Breach, memory: Memory) -> Verdict:
        """A violation is told of by hash and rule; the body was never kept (ruling 12)."""
        if item.agent_id is not None:
            entity_id = agent_entity_id(self._tenant_id, item.agent_id)
            agent = memory.agents.get(entity_id)
            if agent is None:  # a ghost node: known only by what it sent wrongly
                agent = registry.enrol(memory, entity_id, item.agent_id, self._now_ns)
            agent.violation_ns = self._now_ns
            memory.touch(agent)
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


def _fold(passage: Passage, memory: Memory, number: int) -> None:
    """What the session, the agent and its membership are after this message."""
    session, member, message = passage.session, passage.member, passage.message
    assert session is not None
    if session.messages == 0:
        session.first_seq = number
    session.last_seq = number
    memory.touch(session)
    # By the gateway's clock: a sender's may be years off.
    session.last_ns = max(session.last_ns, passage.received_ns)
    session.messages += 1
    registry.heard(passage, memory)
    if member is None:
        return
    member.last_step, member.last_seq = passage.name, number
    memory.touch(member)
    member.messages += 1
    delta = message.log.state_delta if message.log is not None else None
    if delta is not None:
        member.tokens += delta.tokens_consumed or 0
        if delta.cumulative_session_cost is not None:
            member.cost = delta.cumulative_session_cost
