"""Commands of the reaper: evict silent agents, remove them from sessions, reroute waiting work (ruling 27).

Pure, like every command: the reaper finds candidates in committed rows, and each is checked again here under
the tenant's lock. So two gateways may reap at once, and the second finds nothing to do. History stays:
eviction marks a row; rerouting ends one delivery and begins another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import router
from observatory.pipeline import addresses, policy
from observatory.pipeline import agents as registry
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.ports import BacklogDelivery, SilentAgent
from observatory.pipeline.rows import AgentRow, DeliveryRow, RowWrite
from observatory.pipeline.state import (
    BatchState,
    Command,
    EventDraft,
    Principal,
    ReadSet,
    SubmissionResult,
    UnitOfWork,
)
from observatory.protocol.clock import from_ns
from observatory.protocol.events import INFO, SEVERITY
from observatory.protocol.message import Message
from observatory.protocol.responses import Refused
from observatory.settings import Settings

NOTHING = SubmissionResult(200, 0)


def apply_settings(settings: Settings) -> None:
    """Apply the configured times and limits; the reaper calls this in its constructor."""
    registry.TIMES.check_ns = settings.heartbeat_check_s * registry.SECOND
    registry.TIMES.timeout_ns = settings.heartbeat_timeout_s * registry.SECOND
    breaker.LIMITS.window_ns = settings.breaker_window_s * breaker.SECOND
    breaker.LIMITS.min_calls = settings.breaker_min_calls
    breaker.LIMITS.failure_ratio = settings.breaker_failure_ratio
    breaker.LIMITS.open_ns = settings.breaker_open_s * breaker.SECOND


def evict(who: Principal, silent: SilentAgent, now_ns: int) -> Command:
    """Evict an agent if it is still silent. It keeps its name, its history and its inbox."""
    read_set = ReadSet(agents={silent.entity_id})
    read_set.row("pulses", silent.agent_no)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        agent = memory.agents.get(silent.entity_id)
        pulse = memory.rows.get("pulses", {}).get(silent.agent_no)
        if agent is None or agent.evicted_ns is not None or pulse is None:
            return NOTHING
        heard_ns = pulse["heartbeat_ns"]
        if now_ns - heard_ns < registry.TIMES.timeout_ns:
            return NOTHING
        agent.evicted_ns = now_ns
        memory.touch(agent)
        silent_s = (now_ns - heard_ns) // registry.SECOND
        event = gateway_event(
            memory.tenant.tenant_id,
            "agent_evicted",
            f"agent {agent.agent_id} was evicted after {silent_s} s of silence",
            now_ns,
            who,
            {
                "agent_id": agent.agent_id,
                "entity_id": agent.entity_id,
                "last_heartbeat_at": from_ns(heard_ns),
                "silent_s": silent_s,
            },
        )
        return SubmissionResult(200, 1, [event])

    return Command(who, now_ns, decide, read_set)


def evict_by_operator(who: Principal, entity_id: str, note: str | None, now_ns: int) -> Command:
    """An operator evicts an agent; its next heartbeat or message registers it again."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        agent = uow.memory.agents.get(entity_id)
        if agent is None:
            return SubmissionResult(
                404, Refused(reason="not_found", detail="no agent of this tenant has that name")
            )
        if agent.evicted_ns is not None:
            return SubmissionResult(
                409, Refused(reason="already_evicted", detail="this agent is already evicted")
            )
        agent.evicted_ns = uow.now_ns
        uow.memory.touch(agent)
        detail = {"agent_id": agent.agent_id, "entity_id": entity_id, "note": note}
        summary = f"agent {agent.agent_id} was evicted by {who.entity_id}"
        tenant_id = uow.memory.tenant.tenant_id
        event = gateway_event(tenant_id, "agent_evicted", summary, uow.now_ns, who, detail)
        return SubmissionResult(
            200, {"agent_id": agent.agent_id, "entity_id": entity_id, "evicted": True}, [event]
        )

    return Command(who, now_ns, decide, ReadSet(agents={entity_id}))


def leave_sessions(who: Principal, entity_id: str, sessions: Sequence[str], now_ns: int) -> Command:
    """Remove an evicted agent from its sessions; one that came back meanwhile stays."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory = uow.memory
        agent = memory.agents.get(entity_id)
        if agent is None or agent.evicted_ns is None:
            return NOTHING
        events = []
        for session_id in sessions:
            session = memory.sessions.get(session_id)
            member = None if session is None else memory.members.get((session.session_no, agent.agent_no))
            if session is not None and member is not None:
                event = registry.leave_session(session, member, agent, memory, uow.now_ns)
                events += [] if event is None else [event]
        return SubmissionResult(200, len(events), events)

    return Command(who, now_ns, decide, ReadSet(agents={entity_id}, sessions=set(sessions)))


def reroute_delivery(
    who: Principal,
    work: BacklogDelivery,
    holder: str | None,
    target: str,
    now_ns: int,
    sender: str | None = None,
) -> Command:
    """Reroute waiting work to an agent that can take it.

    Parked work, or work that an evicted agent (`holder`, its entity id) has not acknowledged; `target` is
    the new recipient: an address, or an agent's entity id.
    """
    read_set = ReadSet(agents=set() if holder is None else {holder})
    read_set.row("deliveries", work.sequence_number)
    if sender is not None:
        read_set.agents.add(sender)
    read_set.contents.add(work.message_seq)  # a policy may deny it to a candidate
    read_set.row("holds", work.message_seq)  # or require an approval, which may have been given already
    read_set.recipient(f"session:{addresses.session_of(target)}" if target.startswith("session:") else target)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory = uow.memory
        row = memory.rows.get("deliveries", {}).get((work.sequence_number, work.agent_no))
        agent = None if holder is None else memory.agents.get(holder)
        if row is None or row["state"] != ("parked" if holder is None else "pending"):
            return NOTHING
        if agent is not None and agent.evicted_ns is None:  # it came back and reads its inbox itself
            return NOTHING
        takers = _takers(uow, work, target, memory.agents.get(sender or ""))
        if takers:
            number = uow.append(_rerouted(work, agent, target, takers, uow.now_ns))
            _begin(uow, work, number, list(takers))
        elif holder is not None and work.address is not None:
            reason = "its instance was evicted and no other can take it now"
            number = uow.append(
                router.undeliverable(
                    work.trace_id,
                    work.session_no,
                    work.address,
                    reason,
                    work.message_seq,
                    work.message_id,
                    uow.now_ns,
                )
            )
            _begin(uow, work, number, [0])
        else:  # addressed by name: it waits in that inbox
            return NOTHING
        row["state"] = "rerouted"
        where = {
            "tenant_id": memory.tenant.tenant_id,
            "sequence_number": work.sequence_number,
            "agent_no": work.agent_no,
        }
        ended = {"state": "rerouted", "ended_ns": uow.now_ns}
        uow.changes.writes.append(RowWrite("deliveries", ended, where))
        return SubmissionResult(200, 1)

    return Command(who, now_ns, decide, read_set)


def _takers(uow: UnitOfWork, work: BacklogDelivery, target: str, sender: AgentRow | None) -> dict[int, str]:
    """Agent numbers and names; for members of a session only the numbers are loaded."""
    memory = uow.memory
    raw = memory.raws.get(work.message_seq)
    message = None if raw is None else intercept(raw)
    denied: set[int] = set()
    if isinstance(message, Message):
        hold = memory.rows.get("holds", {}).get(work.message_seq)
        approved = hold is not None and hold["gate"] == 2
        denied = policy.barred_agent_numbers(message, sender, memory, _reached(memory, target), approved)
    if target.startswith("session:"):
        numbers = (
            {member.agent_no for member in addresses.members_of_session(memory, target)}
            - {work.sender_no}
            - denied
        )
        return dict.fromkeys(sorted(numbers), "")
    if target.startswith(addresses.GROUP_PREFIXES):
        digest = router.digest_of(work.message_seq)
        agent = router.choose_agent(memory, target, digest, work.sender_no, uow.now_ns, denied)
    else:
        agent = memory.agents.get(target)
    if agent is None or agent.agent_no == work.sender_no or agent.agent_no in denied:
        return {}
    if target == work.address and target.startswith("type:"):
        capability = target.removeprefix("type:")
        if not breaker.admits(capability, uow, work.message_seq):
            return {}
    return {agent.agent_no: agent.agent_id}


def _reached(memory: BatchState, target: str) -> Iterable[AgentRow]:
    if target.startswith(addresses.GROUP_PREFIXES):
        return addresses.agents_at(memory, target)
    agent = memory.agents.get(target)
    return () if agent is None else (agent,)


def _begin(uow: UnitOfWork, work: BacklogDelivery, number: int, agents: Sequence[int]) -> None:
    """Deliver the same message again, under the number of the event that records the reroute."""
    uow.changes.deliveries += [
        DeliveryRow(
            sequence_number=number,
            agent_no=agent_no,
            kind="message",
            created_ns=uow.now_ns,
            session_no=work.session_no,
            sender_no=work.sender_no,
            address=work.address
            if work.address and work.address.startswith(addresses.GROUP_PREFIXES)
            else None,
            message_seq=work.message_seq,
            state="pending" if agent_no else "parked",
        )
        for agent_no in agents
    ]


def _rerouted(
    work: BacklogDelivery, holder: AgentRow | None, target: str, takers: dict[int, str], now_ns: int
) -> EventDraft:
    to = [name for name in takers.values() if name]
    origin = "parked work" if holder is None else f"undelivered work of {holder.agent_id}"
    return EventDraft(
        event_type="message_rerouted",
        # Delivering parked work to a new agent is no fault.
        severity=INFO if holder is None else SEVERITY["message_rerouted"],
        timestamp=from_ns(now_ns),
        timestamp_ns=now_ns,
        trace_id=work.trace_id,
        message_id=work.message_id,
        session_no=work.session_no,
        summary=f"{origin} rerouted to {to[0] if to else f'{len(takers)} agents'}",
        detail={
            "message_sequence_number": work.message_seq,
            "delivery_sequence_number": work.sequence_number,
            "address": work.address or target,
            "from": None if holder is None else holder.agent_id,
            "to": to[0] if to else None,
            "agents": len(takers),
        },
    )
