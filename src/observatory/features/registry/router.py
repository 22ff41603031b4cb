"""Where a forwarded message goes: agent, capability by traffic weights, cluster, session (ruling 28).

Law: an effect of forwarding, pure over the batch state; the choice follows from the message's digest, so that
a retried batch chooses the same. It never refuses: work that no agent can take is parked with an event, and
the reaper reroutes it when an agent can. Healthy agents go before unknown, unknown before zombie; evicted
agents get nothing, and nothing goes back to its own sender.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256

import msgspec

from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry.types import NOT_ROUTED
from observatory.pipeline import policy
from observatory.pipeline.addresses import GROUP_PREFIXES, candidates, members_of_session, session_of
from observatory.pipeline.agents import addresses_of, liveness, may_get_work
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import AgentRow, DeliveryRow, RowWrite
from observatory.pipeline.state import (
    BatchState,
    Command,
    EventDraft,
    Principal,
    ReadSet,
    SubmissionResult,
    TenantConfig,
    UnitOfWork,
)
from observatory.protocol.clock import from_ns
from observatory.protocol.events import SEVERITY
from observatory.protocol.identity import USER, agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.responses import Refused
from observatory.protocol.tenant_config import Route

NO_AGENT = ("user", "system")
TIER = {"healthy": 0, "unknown": 1, "zombie": 2}
POINTS = 1 << 64


def add_route_reads(message: Message, tenant_id: str, read_set: ReadSet) -> None:
    """Name the rows that a delivery needs, before the transaction begins."""
    recipient = message.recipient
    if recipient is None or message.recipient_type in NO_AGENT:
        return
    if message.recipient_type is None and recipient.startswith(GROUP_PREFIXES):
        if recipient.startswith("session:"):
            read_set.sessions.add(session_of(recipient))
            read_set.rooms.add(session_of(recipient))
        else:
            read_set.addresses.add(recipient)
    elif not recipient.startswith(USER):
        read_set.agents.add(agent_entity_id(tenant_id, recipient))


def warn_unknown_recipient(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    """A stage: warns the sender when no such recipient is known; the message waits for one."""
    message = ctx.message
    recipient = message.recipient
    if recipient is None or message.recipient_type in NO_AGENT or message.message_type in NOT_ROUTED:
        return None
    if message.recipient_type is None and recipient.startswith(GROUP_PREFIXES):
        known = recipient.startswith("session:") or bool(memory.fleet.get(recipient))
    else:
        entity_id = agent_entity_id(memory.tenant.tenant_id, recipient)
        known = recipient.startswith(USER) or entity_id in memory.agents
    if not known:
        ctx.warnings.append("recipient: no such agent yet; the message waits until one registers")
    return None


def route_message(ctx: MessageContext, uow: UnitOfWork, number: int) -> None:
    """The effect. A plain message without a recipient costs one comparison."""
    message = ctx.message
    recipient = message.recipient
    if recipient is None or message.recipient_type in NO_AGENT or message.message_type in NOT_ROUTED:
        return
    memory = uow.memory
    sender_no = ctx.agent.agent_no if ctx.agent is not None else 0
    if message.recipient_type is not None or not recipient.startswith(GROUP_PREFIXES):
        if recipient.startswith(USER):
            return
        entity_id = agent_entity_id(memory.tenant.tenant_id, recipient)
        agent = memory.agents.get(entity_id)
        if agent is None:
            park(ctx, uow, number, entity_id, "no agent with this name is registered")
        elif agent.agent_no != sender_no:
            _deliver(ctx, uow, number, agent.agent_no, None)
        return
    reached = candidates(memory, message)
    denied = policy.barred_agent_numbers(message, ctx.agent, memory, reached, ctx.approved)
    if recipient.startswith("session:"):
        numbers = [
            member.agent_no
            for member in members_of_session(memory, recipient)
            if member.agent_no not in denied and member.agent_no != sender_no
        ]
        for agent_no in numbers:
            _deliver(ctx, uow, number, agent_no, recipient)
        if not numbers:
            park(ctx, uow, number, recipient, "no other agent is in this session")
        return
    chosen = choose_agent(memory, recipient, message.digest, sender_no, uow.now_ns, denied)
    if chosen is None:
        park(ctx, uow, number, recipient, "no instance is available")
    elif recipient.startswith("type:") and not breaker.admits(recipient.removeprefix("type:"), uow, number):
        park(ctx, uow, number, recipient, "the circuit of this capability is open")
    else:
        _deliver(ctx, uow, number, chosen.agent_no, recipient)


def choose_agent(
    memory: BatchState,
    address: str,
    digest: bytes,
    sender_no: int,
    now_ns: int,
    denied: Collection[int] = (),
) -> AgentRow | None:
    """One instance of a type, capability or cluster: by best liveness, then by weight, then evenly."""
    able = [
        agent
        for agent in map(memory.agents.get, sorted(memory.fleet.get(address, ())))
        if agent is not None
        and agent.evicted_ns is None
        and agent.agent_no != sender_no
        and agent.agent_no not in denied
        and may_get_work(agent, address, memory.tenant_config)
    ]
    if address.startswith("type:"):
        given = memory.tenant_config.routes.get(address.removeprefix("type:"))
        if given is not None:
            return _by_weight(able, given, memory, digest, now_ns)
    best = _best(able, memory, now_ns)
    return best[_point(digest) % len(best)] if best else None


def _by_weight(
    able: list[AgentRow], given: Route, memory: BatchState, digest: bytes, now_ns: int
) -> AgentRow | None:
    """A target with weight and a live instance gets its share; the share of one without goes to the others.

    Agents that no weight names get work only when no named target has an instance; weight 0 never gets any.
    """
    tenant_id, shares = memory.tenant.tenant_id, []
    named: set[int] = set()
    for target, weight in sorted(given.weights.items()):
        theirs = [agent for agent in able if _is_of(agent, target, tenant_id, memory.tenant_config)]
        named.update(agent.agent_no for agent in theirs)
        if weight > 0 and theirs:
            shares.append((weight, theirs))
    best = _best([agent for _, theirs in shares for agent in theirs], memory, now_ns)
    if not best:
        best = _best([agent for agent in able if agent.agent_no not in named], memory, now_ns)
        return best[_point(digest) % len(best)] if best else None
    good = {agent.agent_no for agent in best}
    live = [(w, left) for w, theirs in shares if (left := [one for one in theirs if one.agent_no in good])]
    at = int.from_bytes(digest[:8], "big") / POINTS * sum(weight for weight, _ in live)
    for weight, theirs in live:
        at -= weight
        if at < 0:
            return theirs[_point(digest) % len(theirs)]
    return live[-1][1][_point(digest) % len(live[-1][1])]


def _is_of(agent: AgentRow, target: str, tenant_id: str, tenant_config: TenantConfig) -> bool:
    if target.startswith("cluster:"):
        return target in addresses_of(agent, tenant_config)
    return agent.entity_id == agent_entity_id(tenant_id, target)


def _best(agents: Iterable[AgentRow], memory: BatchState, now_ns: int) -> list[AgentRow]:
    """The agents of the best liveness tier, each once."""
    tiers: dict[int, dict[int, AgentRow]] = {}
    pulses = memory.rows.get("pulses", {})
    for agent in agents:
        pulse = pulses.get(agent.agent_no)
        state = liveness(agent.evicted_ns, None if pulse is None else pulse["heartbeat_ns"], now_ns)
        tiers.setdefault(TIER[state], {})[agent.agent_no] = agent
    return list(tiers[min(tiers)].values()) if tiers else []


def _point(digest: bytes) -> int:
    # Not the bytes that chose the target, or the instances of one target would not get even shares.
    return int.from_bytes(digest[8:16], "big")


def digest_of(message_seq: int) -> bytes:
    """For rerouted work, when its message is not loaded."""
    return sha256(str(message_seq).encode()).digest()


def _deliver(ctx: MessageContext, uow: UnitOfWork, number: int, agent_no: int, address: str | None) -> None:
    session = ctx.session
    assert session is not None  # placement is a stage and never leaves it out
    uow.changes.deliveries.append(
        DeliveryRow(
            sequence_number=number,
            agent_no=agent_no,
            kind="message",
            created_ns=uow.now_ns,
            session_no=session.session_no,
            sender_no=ctx.agent.agent_no if ctx.agent is not None else 0,
            address=address,
            message_seq=ctx.archived_seq or number,
            state="pending" if agent_no else "parked",
        )
    )


def park(ctx: MessageContext, uow: UnitOfWork, number: int, address: str, reason: str) -> None:
    """No agent can take it now. It waits as a delivery without an agent until one can."""
    _deliver(ctx, uow, number, 0, address)
    session, message_seq = ctx.session, ctx.archived_seq or number
    assert session is not None
    location = session.trace_id, session.session_no
    uow.append(undeliverable(*location, address, reason, message_seq, ctx.message_id, uow.now_ns))


def undeliverable(
    trace_id: str,
    session_no: int,
    address: str,
    reason: str,
    message_seq: int,
    message_id: str | None,
    now_ns: int,
) -> EventDraft:
    return EventDraft(
        event_type="message_undeliverable",
        severity=SEVERITY["message_undeliverable"],
        timestamp=from_ns(now_ns),
        timestamp_ns=now_ns,
        trace_id=trace_id,
        message_id=message_id,
        session_no=session_no,
        summary=f"a message to {address} waits: {reason}",
        detail={"address": address, "reason": reason, "message_sequence_number": message_seq},
    )


def put_route(who: Principal, given: Route, now_ns: int, was: dict[str, float] | None = None) -> Command:
    """Set the traffic weights of a capability from the next message on. `was`: the weights expected now."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        before = memory.tenant_config.routes.get(given.capability)
        if was is not None and was != (before.weights if before is not None else {}):
            detail = "these weights were changed meanwhile; reload them and try again"
            return SubmissionResult(409, Refused(reason="stale_weights", detail=detail))
        breaker.breaker_of(memory, given.capability, now_ns)
        memory.tenant.rulebook_version += 1
        routes = memory.tenant_config.routes | {given.capability: given}
        memory.tenant_config = msgspec.structs.replace(memory.tenant_config, routes=routes)
        row = {
            "tenant_id": who.tenant_id,
            "capability": given.capability,
            "weights": msgspec.json.encode(given.weights, order="sorted").decode(),
            "updated_ns": now_ns,
            "updated_by": who.entity_id,
        }
        # Decimal text: audit events hold no floats (ruling 34).
        shares = {target: repr(weight) for target, weight in sorted(given.weights.items())}
        event = gateway_event(
            who.tenant_id,
            "route_changed",
            f"traffic weights of {given.capability} changed",
            now_ns,
            who,
            {"capability": given.capability, "weights": shares},
        )
        return SubmissionResult(200, row, [event], [RowWrite("routes", row, key=("tenant_id", "capability"))])

    return Command(who, now_ns, decide)
