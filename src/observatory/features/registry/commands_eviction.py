"""Acts of the clock upon the Capability Map: evict, leave rooms, hand on work that waits (ruling 27).

Pure, like every act: the reaper finds candidates in committed rows, and each is looked at again here under
the tenant's lock. So two gateways may reap at once, and the second finds nothing to do. History stays:
eviction marks a row, handing on ends one delivery and begins another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from observatory.features.policies import stage as policy
from observatory.features.registry import addresses, router
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import stage as registry
from observatory.pipeline.event_writer import notice
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.ports import Silent, Stranded
from observatory.pipeline.rows import Agent, DeliveryRow, Write
from observatory.pipeline.state import Act, Desk, Draft, Memory, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.events import INFO, SEVERITY
from observatory.protocol.message import Message
from observatory.settings import Settings

NOTHING = Verdict(200, 0)


def obey(settings: Settings) -> None:
    """Take over the times and limits of this house; the reaper does so when it is made, before it is run."""
    registry.TIMES.check_ns = settings.heartbeat_check_s * registry.SECOND
    registry.TIMES.timeout_ns = settings.heartbeat_timeout_s * registry.SECOND
    breaker.LIMITS.window_ns = settings.breaker_window_s * breaker.SECOND
    breaker.LIMITS.min_calls = settings.breaker_min_calls
    breaker.LIMITS.failure_ratio = settings.breaker_failure_ratio
    breaker.LIMITS.open_ns = settings.breaker_open_s * breaker.SECOND


def evict(who: Principal, silent: Silent, now_ns: int) -> Act:
    """Out of the map, if it is still silent. It keeps its name, its history and its inbox."""
    wants = Wants(agents={silent.entity_id})
    wants.row("pulses", silent.agent_no)

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
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
        event = notice(
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
        return Verdict(200, 1, [event])

    return Act(who, now_ns, decide, wants)


def dismiss(who: Principal, entity_id: str, note: str | None, now_ns: int) -> Act:
    """An operator takes an agent out of the map; its next heartbeat or message brings it back."""

    def decide(desk: Desk) -> Verdict:
        agent = desk.memory.agents.get(entity_id)
        if agent is None:
            return Verdict(404, Refused(reason="not_found", detail="no agent of this tenant has that name"))
        if agent.evicted_ns is not None:
            return Verdict(409, Refused(reason="already_evicted", detail="this agent is evicted already"))
        agent.evicted_ns = desk.now_ns
        desk.memory.touch(agent)
        detail = {"agent_id": agent.agent_id, "entity_id": entity_id, "note": note}
        summary = f"agent {agent.agent_id} was evicted by {who.entity_id}"
        tenant_id = desk.memory.tenant.tenant_id
        event = notice(tenant_id, "agent_evicted", summary, desk.now_ns, who, detail)
        return Verdict(200, {"agent_id": agent.agent_id, "entity_id": entity_id, "evicted": True}, [event])

    return Act(who, now_ns, decide, Wants(agents={entity_id}))


def leave_rooms(who: Principal, entity_id: str, sessions: Sequence[str], now_ns: int) -> Act:
    """Who was evicted is in none of its rooms any more; who came back meanwhile stays."""

    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        agent = memory.agents.get(entity_id)
        if agent is None or agent.evicted_ns is None:
            return NOTHING
        events = []
        for session_id in sessions:
            session = memory.sessions.get(session_id)
            member = None if session is None else memory.members.get((session.session_no, agent.agent_no))
            if session is not None and member is not None:
                event = registry.leave(session, member, agent, memory, desk.now_ns)
                events += [] if event is None else [event]
        return Verdict(200, len(events), events)

    return Act(who, now_ns, decide, Wants(agents={entity_id}, sessions=set(sessions)))


def hand_on(
    who: Principal,
    work: Stranded,
    holder: str | None,
    target: str,
    now_ns: int,
    sender: str | None = None,
) -> Act:
    """Work that waits goes to whoever can take it.

    Parked work, or work that an evicted agent (`holder`, its entity id) has not acknowledged; `target` is
    whom to ask: an address, or an agent's entity id.
    """
    wants = Wants(agents=set() if holder is None else {holder})
    wants.row("deliveries", work.sequence_number)
    if sender is not None:
        wants.agents.add(sender)
    wants.contents.add(work.message_seq)  # a rule may deny it to who could take it
    wants.row("holds", work.message_seq)  # or ask for a person, who may have looked already
    wants.recipient(f"session:{addresses.session_of(target)}" if target.startswith("session:") else target)

    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        row = memory.rows.get("deliveries", {}).get((work.sequence_number, work.agent_no))
        agent = None if holder is None else memory.agents.get(holder)
        if row is None or row["state"] != ("parked" if holder is None else "pending"):
            return NOTHING
        if agent is not None and agent.evicted_ns is None:  # it came back and will read it itself
            return NOTHING
        takers = _takers(desk, work, target, memory.agents.get(sender or ""))
        if takers:
            number = desk.append(_rerouted(work, agent, target, takers, desk.now_ns))
            _begin(desk, work, number, list(takers))
        elif holder is not None and work.address is not None:
            reason = "its instance was evicted and no other can take it now"
            number = desk.append(
                router.undeliverable(
                    work.trace_id,
                    work.session_no,
                    work.address,
                    reason,
                    work.message_seq,
                    work.message_id,
                    desk.now_ns,
                )
            )
            _begin(desk, work, number, [0])
        else:  # by name: it waits in the inbox it was addressed to
            return NOTHING
        row["state"] = "rerouted"
        where = {
            "tenant_id": memory.tenant.tenant_id,
            "sequence_number": work.sequence_number,
            "agent_no": work.agent_no,
        }
        ended = {"state": "rerouted", "ended_ns": desk.now_ns}
        desk.changes.writes.append(Write("deliveries", ended, where))
        return Verdict(200, 1)

    return Act(who, now_ns, decide, wants)


def _takers(desk: Desk, work: Stranded, target: str, sender: Agent | None) -> dict[int, str]:
    """Agent numbers and names; of a room's members only the numbers are at hand."""
    memory = desk.memory
    raw = memory.raws.get(work.message_seq)
    message = None if raw is None else intercept(raw)
    denied: set[int] = set()
    if isinstance(message, Message):
        hold = memory.rows.get("holds", {}).get(work.message_seq)
        approved = hold is not None and hold["gate"] == 2
        denied = policy.barred(message, sender, memory, _reached(memory, target), approved)
    if target.startswith("session:"):
        numbers = {member.agent_no for member in addresses.room(memory, target)} - {work.sender_no} - denied
        return dict.fromkeys(sorted(numbers), "")
    if target.startswith(addresses.PLACES):
        digest = router.digest_of(work.message_seq)
        agent = router.choose(memory, target, digest, work.sender_no, desk.now_ns, denied)
    else:
        agent = memory.agents.get(target)
    if agent is None or agent.agent_no == work.sender_no or agent.agent_no in denied:
        return {}
    if target == work.address and target.startswith("type:"):
        capability = target.removeprefix("type:")
        if not breaker.admits(capability, desk, work.message_seq):
            return {}
    return {agent.agent_no: agent.agent_id}


def _reached(memory: Memory, target: str) -> Iterable[Agent]:
    if target.startswith(addresses.PLACES):
        return addresses.meant(memory, target)
    agent = memory.agents.get(target)
    return () if agent is None else (agent,)


def _begin(desk: Desk, work: Stranded, number: int, agents: Sequence[int]) -> None:
    """The same message anew, under the number of the event that tells of it."""
    desk.changes.deliveries += [
        DeliveryRow(
            sequence_number=number,
            agent_no=agent_no,
            kind="message",
            created_ns=desk.now_ns,
            session_no=work.session_no,
            sender_no=work.sender_no,
            address=work.address if work.address and work.address.startswith(addresses.PLACES) else None,
            message_seq=work.message_seq,
            state="pending" if agent_no else "parked",
        )
        for agent_no in agents
    ]


def _rerouted(
    work: Stranded, holder: Agent | None, target: str, takers: dict[int, str], now_ns: int
) -> Draft:
    to = [name for name in takers.values() if name]
    whence = "parked work" if holder is None else f"undelivered work of {holder.agent_id}"
    return Draft(
        event_type="message_rerouted",
        # Nothing went wrong when somebody came for what was parked.
        severity=INFO if holder is None else SEVERITY["message_rerouted"],
        timestamp=from_ns(now_ns),
        timestamp_ns=now_ns,
        trace_id=work.trace_id,
        message_id=work.message_id,
        session_no=work.session_no,
        summary=f"{whence} goes to {to[0] if to else f'{len(takers)} agents'}",
        detail={
            "message_sequence_number": work.message_seq,
            "delivery_sequence_number": work.sequence_number,
            "address": work.address or target,
            "from": None if holder is None else holder.agent_id,
            "to": to[0] if to else None,
            "agents": len(takers),
        },
    )
