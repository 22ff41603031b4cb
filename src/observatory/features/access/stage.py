"""Who may send what (ruling 13). Runs first: nothing of a message counts before its sender does.

An agent's key sends only as an agent, a bound key only as its own, and never `decision_response` or
`system_event`: an agent cannot approve itself. People send envelopes only in their own name, admins also as
an agent (S1141); `system` is the gateway alone. Without the certificate an agent is bound to, not even an
admin speaks as it (S860).
"""

from __future__ import annotations

import msgspec

from observatory.pipeline.event_writer import notice
from observatory.pipeline.message_context import Passage
from observatory.pipeline.state import Memory, Principal, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.identity import agent_entity_id

NEVER_FROM_AGENTS = frozenset({"decision_response", "system_event"})
MAY_SEND = frozenset({"agent", "approver", "operator", "admin"})


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    principal, message = passage.principal, passage.message
    if memory.tenant.disabled or has_lapsed(principal, memory, now_ns):
        return Verdict(401, Refused(reason="unauthorized", detail="this key is no longer valid"))
    tenant_id = principal.tenant_id
    agent = message.sender_type == "agent"
    passage.entity_id = agent_entity_id(tenant_id, message.sender_id) if agent else message.sender_id
    if agent and memory.rulebook.certificates and passage.entity_id in memory.rulebook.certificates:
        refused = uncertified(principal, passage.entity_id, memory, now_ns)
        if refused is not None:
            return refused
        if principal.role == "agent" and principal.agent_id is None:
            # The certificate says who it is, as a key bound to this agent would.
            passage.principal = msgspec.structs.replace(principal, agent_id=message.sender_id)
    if principal.role == "admin" and (agent or principal.key_id.startswith("sys_")):
        return None
    if principal.role == "agent":
        if not agent:
            return _refusal(passage, now_ns, "sender_mismatch", "an agent's key sends only as an agent")
        bound = principal.agent_id
        if bound is not None and agent_entity_id(tenant_id, bound) != passage.entity_id:
            return _refusal(passage, now_ns, "sender_mismatch", "this key is bound to another agent")
        if message.message_type in NEVER_FROM_AGENTS:
            return _refusal(
                passage, now_ns, "not_allowed", f"an agent may not send {message.message_type}; a person must"
            )
        return None
    if principal.role not in MAY_SEND:
        return _refusal(passage, now_ns, "not_allowed", f"the role {principal.role} may not send messages")
    if message.sender_type != "user" or message.sender_id != principal.user_id:
        return _refusal(passage, now_ns, "sender_mismatch", "a person sends only in their own name")
    return None


def has_lapsed(principal: Principal, memory: Memory, now_ns: int) -> bool:
    """Revocation counts at once: what the door had cached is checked again under the lock."""
    expired = principal.expires_ns is not None and principal.expires_ns <= now_ns
    return expired or principal.key_id in memory.gone_keys


def uncertified(who: Principal, entity_id: str, memory: Memory, now_ns: int) -> Verdict | None:
    """The refusal of who speaks as an agent without the certificate it is bound to; None for all others."""
    binding = memory.rulebook.certificates.get(entity_id)
    if binding is None or who.key_id.startswith("sys_") or binding.fits(who.certificate, now_ns):
        return None
    shown = who.certificate
    if shown is None:
        problem = "this connection showed none"
    elif not shown.is_current(now_ns):
        problem = "the one this connection showed has ended, or is not valid yet"
    else:
        problem = "this connection showed another"
    detail = f"this agent is bound to a certificate and speaks only with it; {problem}"
    told = {
        "reason": "certificate_required",
        "key_id": who.key_id,
        "entity_id": entity_id,
        "bound_by": binding.kind,
        "shown": None if shown is None else shown.fingerprint,
    }
    summary = f"refused to take {who.key_id} for an agent that is bound to a certificate: {problem}"
    event = notice(who.tenant_id, "security_violation", summary, now_ns, who, told)
    return Verdict(403, Refused(reason="certificate_required", detail=detail), [event])


def is_proven(who: Principal, entity_id: str, memory: Memory) -> bool:
    """Whether only this agent can have done this: its key is bound to it, or its certificate was shown (any
    other principal was refused before, see `uncertified`)."""
    return who.is_bound or (who.role == "agent" and entity_id in memory.rulebook.certificates)


def unbound(who: Principal, agent_id: str, memory: Memory, now_ns: int) -> Verdict | None:
    """The refusal of an agent key that is bound to no agent where one is bound to this agent (S1142)."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    if who.role != "agent" or entity_id not in memory.rulebook.bound or is_proven(who, entity_id, memory):
        return None
    detail = "this agent has a key of its own; only that key, or an admin's, reads and acknowledges its inbox"
    told = {"permission": "listen", "agent_id": agent_id, "reason": "bound_key_required"}
    summary = f"{who.key_id} was refused the inbox of {agent_id}, which has a key of its own"
    event = notice(who.tenant_id, "permission_denied", summary, now_ns, who, told)
    return Verdict(403, Refused(reason="bound_key_required", detail=detail), [event])


def _refusal(passage: Passage, now_ns: int, reason: str, detail: str) -> Verdict:
    event = notice(
        passage.principal.tenant_id,
        "security_violation",
        f"refused a {passage.message.message_type}: {detail}",
        now_ns,
        passage.principal,
        {"reason": reason, "key_id": passage.principal.key_id},
    )
    return Verdict(403, Refused(reason=reason, detail=detail), [event])
