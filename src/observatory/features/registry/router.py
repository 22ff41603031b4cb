"""Where a forwarded message goes: agent, capability by traffic weights, cluster, session (ruling 28).

Law: an effect of forwarding, pure over the batch's memory; whom it chooses follows from the message's digest,
so that a batch run again chooses the same. It never refuses: what nobody can take is parked and told of, and
the reaper gives it to whoever comes. Healthy goes before unknown, unknown before zombie, evicted gets none,
and nothing goes back to its own sender.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256

import msgspec

from observatory.features.policies import stage as policy
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry.addresses import PLACES, candidates, room, session_of
from observatory.features.registry.stage import addresses_of, gets, liveness
from observatory.pipeline.event_writer import notice
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Agent, DeliveryRow, Write
from observatory.pipeline.state import Act, Desk, Draft, Memory, Principal, Rulebook, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.events import SEVERITY
from observatory.protocol.identity import USER, agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.rulebook import Route

NO_AGENT = ("user", "system")
# A heartbeat is for the house: it passes every pause, rule and kill-switch and must carry nothing to anybody.
# An answer reaches its agent as a decision, by `decisions.follow`.
NOT_ROUTED = frozenset({"heartbeat", "decision_response"})
TIER = {"healthy": 0, "unknown": 1, "zombie": 2}
POINTS = 1 << 64


def want(message: Message, tenant_id: str, wants: Wants) -> None:
    """Name the rows a delivery needs, before the transaction begins."""
    recipient = message.recipient
    if recipient is None or message.recipient_type in NO_AGENT:
        return
    if message.recipient_type is None and recipient.startswith(PLACES):
        if recipient.startswith("session:"):
            wants.sessions.add(session_of(recipient))
            wants.rooms.add(session_of(recipient))
        else:
            wants.addresses.add(recipient)
    elif not recipient.startswith(USER):
        wants.agents.add(agent_entity_id(tenant_id, recipient))


def heed(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """A stage: whoever writes to somebody nobody knows is told so; the message waits for them."""
    message = passage.message
    recipient = message.recipient
    if recipient is None or message.recipient_type in NO_AGENT or message.message_type in NOT_ROUTED:
        return None
    if message.recipient_type is None and recipient.startswith(PLACES):
        known = recipient.startswith("session:") or bool(memory.fleet.get(recipient))
    else:
        entity_id = agent_entity_id(memory.tenant.tenant_id, recipient)
        known = recipient.startswith(USER) or entity_id in memory.agents
    if not known:
        passage.warnings.append("recipient: no such agent is known yet; the message waits for one")
    return None


def route(passage: Passage, desk: Desk, number: int) -> None:
    """The effect. Costs a plain message without a recipient one look."""
    message = passage.message
    recipient = message.recipient
    if recipient is None or message.recipient_type in NO_AGENT or message.message_type in NOT_ROUTED:
        return
    memory = desk.memory
    sender_no = passage.agent.agent_no if passage.agent is not None else 0
    if message.recipient_type is not None or not recipient.startswith(PLACES):
        if recipient.startswith(USER):
            return
        entity_id = agent_entity_id(memory.tenant.tenant_id, recipient)
        agent = memory.agents.get(entity_id)
        if agent is None:
            park(passage, desk, number, entity_id, "no agent of this name is known")
        elif agent.agent_no != sender_no:
            _deliver(passage, desk, number, agent.agent_no, None)
        return
    reached = candidates(memory, message)
    denied = policy.barred(message, passage.agent, memory, reached, passage.approved)
    if recipient.startswith("session:"):
        numbers = [
            member.agent_no
            for member in room(memory, recipient)
            if member.agent_no not in denied and member.agent_no != sender_no
        ]
        for agent_no in numbers:
            _deliver(passage, desk, number, agent_no, recipient)
        if not numbers:
            park(passage, desk, number, recipient, "nobody else is in this session")
        return
    chosen = choose(memory, recipient, message.digest, sender_no, desk.now_ns, denied)
    if chosen is None:
        park(passage, desk, number, recipient, "no instance can take it now")
    elif recipient.startswith("type:") and not breaker.admits(recipient.removeprefix("type:"), desk, number):
        park(passage, desk, number, recipient, "the circuit of this capability is open")
    else:
        _deliver(passage, desk, number, chosen.agent_no, recipient)


def choose(
    memory: Memory,
    address: str,
    digest: bytes,
    sender_no: int,
    now_ns: int,
    denied: Collection[int] = (),
) -> Agent | None:
    """One instance of a type, capability or cluster: the liveliest there are, then by weight, then evenly."""
    able = [
        agent
        for agent in map(memory.agents.get, sorted(memory.fleet.get(address, ())))
        if agent is not None
        and agent.evicted_ns is None
        and agent.agent_no != sender_no
        and agent.agent_no not in denied
        and gets(agent, address, memory.rulebook)
    ]
    if address.startswith("type:"):
        given = memory.rulebook.routes.get(address.removeprefix("type:"))
        if given is not None:
            return _by_weight(able, given, memory, digest, now_ns)
    best = _best(able, memory, now_ns)
    return best[_point(digest) % len(best)] if best else None


def _by_weight(able: list[Agent], given: Route, memory: Memory, digest: bytes, now_ns: int) -> Agent | None:
    """A target with weight and a live instance gets its share; one without lends it to the others.

    What no weight names is asked only when no named target has an instance; what has the weight 0 never is.
    """
    tenant_id, shares = memory.tenant.tenant_id, []
    named: set[int] = set()
    for target, weight in sorted(given.weights.items()):
        theirs = [agent for agent in able if _is_of(agent, target, tenant_id, memory.rulebook)]
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


def _is_of(agent: Agent, target: str, tenant_id: str, rulebook: Rulebook) -> bool:
    if target.startswith("cluster:"):
        return target in addresses_of(agent, rulebook)
    return agent.entity_id == agent_entity_id(tenant_id, target)


def _best(agents: Iterable[Agent], memory: Memory, now_ns: int) -> list[Agent]:
    """Those of the best liveness among them, each once."""
    tiers: dict[int, dict[int, Agent]] = {}
    pulses = memory.rows.get("pulses", {})
    for agent in agents:
        pulse = pulses.get(agent.agent_no)
        alive = liveness(agent.evicted_ns, None if pulse is None else pulse["heartbeat_ns"], now_ns)
        tiers.setdefault(TIER[alive], {})[agent.agent_no] = agent
    return list(tiers[min(tiers)].values()) if tiers else []


def _point(digest: bytes) -> int:
    # Other bytes than those that chose the target, or instances of one target would not be even.
    return int.from_bytes(digest[8:16], "big")


def digest_of(message_seq: int) -> bytes:
    """For work that is given out again, when its message is not at hand."""
    return sha256(str(message_seq).encode()).digest()


def _deliver(passage: Passage, desk: Desk, number: int, agent_no: int, address: str | None) -> None:
    session = passage.session
    assert session is not None  # placement is a stage and never leaves it out
    desk.changes.deliveries.append(
        DeliveryRow(
            sequence_number=number,
            agent_no=agent_no,
            kind="message",
            created_ns=desk.now_ns,
            session_no=session.session_no,
            sender_no=passage.agent.agent_no if passage.agent is not None else 0,
            address=address,
            message_seq=passage.archived_seq or number,
            state="pending" if agent_no else "parked",
        )
    )


def park(passage: Passage, desk: Desk, number: int, address: str, reason: str) -> None:
    """Nobody can take it now. It waits, numbered like the rest, until somebody comes."""
    _deliver(passage, desk, number, 0, address)
    session, message_seq = passage.session, passage.archived_seq or number
    assert session is not None
    place = session.trace_id, session.session_no
    desk.append(undeliverable(*place, address, reason, message_seq, passage.message_id, desk.now_ns))


def undeliverable(
    trace_id: str,
    session_no: int,
    address: str,
    reason: str,
    message_seq: int,
    message_id: str | None,
    now_ns: int,
) -> Draft:
    return Draft(
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


def put_route(who: Principal, given: Route, now_ns: int, was: dict[str, float] | None = None) -> Act:
    """Share out the work for a capability anew; from the next message on. `was`: what it must have been."""

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        before = memory.rulebook.routes.get(given.capability)
        if was is not None and was != (before.weights if before is not None else {}):
            detail = "somebody changed these weights meanwhile; look at them again, then save yours"
            return Verdict(409, Refused(reason="stale_weights", detail=detail))
        breaker.known(memory, given.capability, now_ns)
        memory.tenant.rulebook_version += 1
        routes = memory.rulebook.routes | {given.capability: given}
        memory.rulebook = msgspec.structs.replace(memory.rulebook, routes=routes)
        row = {
            "tenant_id": who.tenant_id,
            "capability": given.capability,
            "weights": msgspec.json.encode(given.weights, order="sorted").decode(),
            "updated_ns": now_ns,
            "updated_by": who.entity_id,
        }
        # Decimal text: audit events hold no floats (ruling 34).
        shares = {target: repr(weight) for target, weight in sorted(given.weights.items())}
        event = notice(
            who.tenant_id,
            "route_changed",
            f"work for {given.capability} is shared out anew",
            now_ns,
            who,
            {"capability": given.capability, "weights": shares},
        )
        return Verdict(200, row, [event], [Write("routes", row, key=("tenant_id", "capability"))])

    return Act(who, now_ns, decide)
