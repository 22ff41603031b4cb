"""Pipeline stage: who may send what (ruling 13). Runs first, before anything else of a message is used.

An agent's key sends only as an agent, a bound key only as its own agent, and never `decision_response` or
`system_event`: an agent cannot approve itself. People send envelopes only in their own name, admins also as
an agent (S1141); `system` is the gateway alone. Without the certificate an agent is bound to, not even an
admin can send as it (S860).
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import BatchState, Command, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.responses import Refused

NEVER_FROM_AGENTS = frozenset({"decision_response", "system_event"})
MAY_SEND = frozenset({"agent", "approver", "operator", "admin"})


def check(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    principal, message = ctx.principal, ctx.message
    if memory.tenant.disabled or has_lapsed(principal, memory, now_ns):
        return SubmissionResult(401, Refused(reason="unauthorized", detail="this key is no longer valid"))
    tenant_id = principal.tenant_id
    agent = message.sender_type == "agent"
    ctx.entity_id = agent_entity_id(tenant_id, message.sender_id) if agent else message.sender_id
    if agent and memory.tenant_config.certificates and ctx.entity_id in memory.tenant_config.certificates:
        refused = refuse_uncertified(principal, ctx.entity_id, memory, now_ns)
        if refused is not None:
            return refused
        if principal.role == "agent" and principal.agent_id is None:
            # The certificate identifies it, as a key bound to this agent would.
            ctx.principal = msgspec.structs.replace(principal, agent_id=message.sender_id)
    if principal.role == "admin" and (agent or principal.key_id.startswith("sys_")):
        return None
    if principal.role == "agent":
        if not agent:
            return _refusal(ctx, now_ns, "sender_mismatch", "an agent's key sends only as an agent")
        bound = principal.agent_id
        if bound is not None and agent_entity_id(tenant_id, bound) != ctx.entity_id:
            return _refusal(ctx, now_ns, "sender_mismatch", "this key is bound to another agent")
        if message.message_type in NEVER_FROM_AGENTS:
            return _refusal(
                ctx, now_ns, "not_allowed", f"an agent may not send {message.message_type}; a person must"
            )
        return None
    if principal.role not in MAY_SEND:
        return _refusal(ctx, now_ns, "not_allowed", f"the role {principal.role} may not send messages")
    if message.sender_type != "user" or message.sender_id != principal.user_id:
        return _refusal(ctx, now_ns, "sender_mismatch", "a person sends only in their own name")
    return None


def has_lapsed(principal: Principal, memory: BatchState, now_ns: int) -> bool:
    """Whether the key is revoked or expired: what the endpoint had cached is checked again under the lock."""
    expired = principal.expires_ns is not None and principal.expires_ns <= now_ns
    return expired or principal.key_id in memory.revoked_keys


def refuse_uncertified(
    who: Principal, entity_id: str, memory: BatchState, now_ns: int
) -> SubmissionResult | None:
    """The refusal of a sender without the certificate its agent is bound to; None for all others."""
    binding = memory.tenant_config.certificates.get(entity_id)
    if binding is None or who.key_id.startswith("sys_") or binding.fits(who.certificate, now_ns):
        return None
    shown = who.certificate
    if shown is None:
        problem = "this connection presented none"
    elif not shown.is_current(now_ns):
        problem = "the one this connection presented has expired, or is not valid yet"
    else:
        problem = "this connection presented another"
    detail = f"this agent is bound to a certificate and can send only with it; {problem}"
    detail_members = {
        "reason": "certificate_required",
        "key_id": who.key_id,
        "entity_id": entity_id,
        "bound_by": binding.kind,
        "shown": None if shown is None else shown.fingerprint,
    }
    summary = f"refused to take {who.key_id} for an agent that is bound to a certificate: {problem}"
    event = gateway_event(who.tenant_id, "security_violation", summary, now_ns, who, detail_members)
    return SubmissionResult(403, Refused(reason="certificate_required", detail=detail), [event])


def is_proven(who: Principal, entity_id: str, memory: BatchState) -> bool:
    """Whether only this agent can have done this: its key is bound to it, or its certificate was shown (any
    other principal was refused before, see `uncertified`)."""
    return who.is_bound or (who.role == "agent" and entity_id in memory.tenant_config.certificates)


def refuse_unbound_key(
    who: Principal, agent_id: str, memory: BatchState, now_ns: int
) -> SubmissionResult | None:
    """The refusal of an unbound agent key where another key is bound to this agent (S1142)."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    if (
        who.role != "agent"
        or entity_id not in memory.tenant_config.bound
        or is_proven(who, entity_id, memory)
    ):
        return None
    detail = "this agent has a key of its own; only that key, or an admin's, reads and acknowledges its inbox"
    detail_members = {"permission": "listen", "agent_id": agent_id, "reason": "bound_key_required"}
    summary = f"{who.key_id} was refused the inbox of {agent_id}, which has a key of its own"
    event = gateway_event(who.tenant_id, "permission_denied", summary, now_ns, who, detail_members)
    return SubmissionResult(403, Refused(reason="bound_key_required", detail=detail), [event])


def _refusal(ctx: MessageContext, now_ns: int, reason: str, detail: str) -> SubmissionResult:
    event = gateway_event(
        ctx.principal.tenant_id,
        "security_violation",
        f"refused a {ctx.message.message_type}: {detail}",
        now_ns,
        ctx.principal,
        {"reason": reason, "key_id": ctx.principal.key_id},
    )
    return SubmissionResult(403, Refused(reason=reason, detail=detail), [event])


def note_use(who: Principal, now_ns: int) -> Command:
    """Record that a signed-in browser was used; no change of access, so no event."""
    where = {"tenant_id": who.tenant_id, "login_id": who.key_id}

    def decide(uow: UnitOfWork) -> SubmissionResult:
        return SubmissionResult(200, None, [], [RowWrite("logins", {"seen_ns": uow.now_ns}, where)])

    return Command(who, now_ns, decide)


def denied(who: Principal, what: str, now_ns: int) -> Command:
    """A refused request is recorded too."""
    return access_changed(
        who,
        now_ns,
        "permission_denied",
        f"{who.role} was refused: {what}",
        [],
        403,
        None,
        {"permission": what},
        False,
    )


def access_changed(
    who: Principal,
    now_ns: int,
    event_type: str,
    summary: str,
    writes: list[RowWrite],
    code: int,
    answer: Any,
    detail: dict[str, Any],
    changes_access: bool = True,
) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        if changes_access:
            memory.tenant.access_version += 1
        if event_type == "key_revoked":
            memory.tenant.rulebook_version += 1  # its agent may have no bound key any more
        return SubmissionResult(
            code, answer, [gateway_event(who.tenant_id, event_type, summary, now_ns, who, detail)], writes
        )

    return Command(who, now_ns, decide)
