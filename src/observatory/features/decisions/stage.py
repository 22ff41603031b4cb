"""The decision stage: who may ask, who may answer, and when it is too late (rulings 13 and 23).

Every refusal writes an event and archives nothing. Only a person who may approve and did not request it can
decide; the gateway itself only takes the option the agent named for its deadline, and only then. What a
confirmation refers to is never a reason to refuse it. Reads the rows that `commands.want` declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.pipeline import quotas
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.state import BatchState, SubmissionResult
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.messages import ActionConfirmation, DecisionRequest, DecisionResponse
from observatory.protocol.responses import Fault, Refused, Rejected
from observatory.protocol.tenant_config import DecisionSettings

MAY_APPROVE = frozenset({"approver", "operator", "admin"})
# States that an action_confirmation of the asking agent can end.
CONFIRMABLE = frozenset({"answered", "executing"})
RISKS = ("low", "medium", "high", "critical")
SECOND_NS = 1_000_000_000
Row = dict[str, Any]


class DecisionOptions(msgspec.Struct, frozen=True):
    """The column `options`: the available options, and who may not choose because they asked."""

    option_ids: tuple[str, ...]
    requested_by: str
    key_maker: str | None = None


def options_of(row: Row) -> DecisionOptions:
    return msgspec.json.decode(row["options"], type=DecisionOptions)


def check(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    """The stage. Every refusal writes an event and archives nothing."""
    if ctx.message.envelope is None:
        return None
    payload = ctx.message.envelope.payload
    if isinstance(payload, DecisionRequest):
        return _check_request(ctx, payload, memory, now_ns)
    if isinstance(payload, DecisionResponse):
        return _check_response(ctx, payload, memory, now_ns)
    if isinstance(payload, ActionConfirmation):
        _warn(ctx, payload, memory)
    return None


def _check_request(
    ctx: MessageContext, payload: DecisionRequest, memory: BatchState, now_ns: int
) -> SubmissionResult | None:
    if row_of(memory, payload.decision_id) is not None:
        detail = "this decision_id already exists; use a new one"
        return _refused(ctx, now_ns, 409, "decision_exists", detail, payload.decision_id)
    full = quotas.quota_refusal(memory, quotas.DECISIONS, ctx.agent)
    if full is not None:
        return _refused(ctx, now_ns, 403, full.reason, full.detail, payload.decision_id)
    faults = []
    option_ids = {option.option_id for option in payload.options}
    if ctx.message.sender_type != "agent":
        faults.append(Fault("sender.entity_type", "must be agent: only agents request decisions"))
    if len(option_ids) < len(payload.options):
        faults.append(Fault("payload.options", "each option must have a unique option_id"))
    faults += deadline_faults(payload, memory.tenant_config.decisions, now_ns)
    faults += auto_faults(payload, memory.tenant_config.decisions)
    return _rejected(ctx, memory, now_ns, faults) if faults else None


def deadline_faults(payload: DecisionRequest, settings: DecisionSettings, now_ns: int) -> list[Fault]:
    """A person needs time to answer. A deadline in the past is accepted: the request has expired."""
    if payload.deadline is None:
        return []
    ahead_ns = to_ns(payload.deadline) - now_ns
    if ahead_ns <= 0 or ahead_ns >= settings.min_deadline_s * SECOND_NS:
        return []
    return [Fault("payload.deadline", f"must be at least {settings.min_deadline_s} seconds ahead")]


def auto_faults(payload: DecisionRequest, settings: DecisionSettings) -> list[Fault]:
    """Why the gateway may not take the option an agent named for its deadline."""
    if payload.auto_action is None:
        return []
    path = "payload.auto_action.option_id"
    if settings.auto_risk == "none":
        return [Fault("payload.auto_action", "this tenant allows no automatic decision at a deadline")]
    named = [
        (place, one)
        for place, one in enumerate(payload.options)
        if one.option_id == payload.auto_action.option_id
    ]
    if len(named) != 1:
        return [Fault(path, "must be the option_id of one of the options")]
    ((place, option),) = named
    faults = []
    if settings.auto_needs_default and not option.is_default:
        faults.append(Fault(path, "must be the option marked is_default"))
    if option.risk_level is None or RISKS.index(option.risk_level) > RISKS.index(settings.auto_risk):
        problem = f"must be set and at most {settings.auto_risk} for an automatic decision"
        faults.append(Fault(f"payload.options[{place}].risk_level", problem))
    return faults


def auto_option(payload: DecisionRequest, settings: DecisionSettings, now_ns: int) -> str | None:
    """The option taken at the deadline, checked again on creation: a hold or a rewrite may have come between.

    A deadline that has passed, or is too near for a person to answer, ends the request without an answer.
    """
    if payload.auto_action is None or payload.deadline is None:
        return None
    is_too_near = to_ns(payload.deadline) < now_ns + settings.min_deadline_s * SECOND_NS
    return None if is_too_near or auto_faults(payload, settings) else payload.auto_action.option_id


def _check_response(
    ctx: MessageContext, payload: DecisionResponse, memory: BatchState, now_ns: int
) -> SubmissionResult | None:
    by_gateway = ctx.principal.key_id.startswith("sys_") and ctx.message.sender_type == "system"
    row = row_of(memory, payload.decision_id)
    if not by_gateway and (problem := _may_not_decide(ctx, row)) is not None:
        return _refused(ctx, now_ns, 403, *problem, payload.decision_id, "security_violation")
    if row is None:
        refusal = no_such_decision()
        return _refused(ctx, now_ns, 404, refusal.reason, refusal.detail, payload.decision_id)
    if row["state"] != "pending" or (is_late(row, now_ns) and not by_gateway):
        refusal = already_decided(row)
        return _refused(ctx, now_ns, 409, refusal.reason, refusal.detail, payload.decision_id)
    if by_gateway and not (is_late(row, now_ns) and payload.selected_option_id == row["auto_option"]):
        detail = "the gateway takes only the option named for the deadline, and only then"
        return _refused(ctx, now_ns, 403, "not_allowed", detail, payload.decision_id)
    if payload.selected_option_id not in options_of(row).option_ids:
        fault = Fault("payload.selected_option_id", "must be the option_id of one of the decision's options")
        return _rejected(ctx, memory, now_ns, [fault])
    return None


def _may_not_decide(ctx: MessageContext, row: Row | None) -> tuple[str, str] | None:
    """Why this sender may not answer (ruling 13)."""
    who, message = ctx.principal, ctx.message
    if who.user_id is None:
        return "no_user", "only a person can respond; this key belongs to no user"
    if message.sender_type != "user" or message.sender_id != who.user_id:
        return "sender_mismatch", "a user can only respond in their own name"
    if who.role not in MAY_APPROVE or (who.scopes and "approve" not in who.scopes):
        return "not_allowed", f"the role {who.role}, or this key's scopes, cannot approve"
    if row is not None and who.has_requested(options_of(row).requested_by, options_of(row).key_maker):
        return (
            "own_request",
            "you requested this, or created the agent key it was requested with; another person must decide",
        )
    return None


def _warn(ctx: MessageContext, payload: ActionConfirmation, memory: BatchState) -> None:
    """A confirmation is always accepted; one that cannot be linked gets a warning."""
    named = named_in(payload)
    if named is None:
        return
    path, row = "payload.triggered_by.decision_id", row_of(memory, named)
    if row is None:
        ctx.warnings.append(f"{path}: unknown decision; the confirmation was stored")
    elif not is_its_own(ctx, row):
        ctx.warnings.append(f"{path}: another agent requested this decision; its state was not changed")
    elif row["state"] not in CONFIRMABLE:
        ctx.warnings.append(f"{path}: this decision is {row['state']}; its state was not changed")


def row_of(memory: BatchState, decision_id: str) -> Row | None:
    return memory.rows.get("decisions", {}).get(decision_id)


def named_in(payload: ActionConfirmation) -> str | None:
    return None if payload.triggered_by is None else payload.triggered_by.decision_id


def is_late(row: Row, now_ns: int) -> bool:
    return row["deadline_ns"] is not None and bool(row["deadline_ns"] <= now_ns)


def is_its_own(ctx: MessageContext, row: Row) -> bool:
    return ctx.agent is not None and ctx.agent.agent_no == row["agent_no"]


def no_such_decision() -> Refused:
    return Refused(reason="no_such_decision", detail="no decision of this tenant has that id")


def already_decided(row: Row) -> Refused:
    """Its state and since when; the first valid answer has won."""
    if row["state"] in ("pending", "expired"):
        return Refused(reason="expired", detail=f"its deadline was {from_ns(row['deadline_ns'])}")
    since = row["answered_ns"] or row["updated_ns"]
    return Refused(
        reason="already_decided", detail=f"this decision is {row['state']}, since {from_ns(since)}"
    )


def _refused(
    ctx: MessageContext,
    now_ns: int,
    code: int,
    reason: str,
    detail: str | None,
    decision_id: str,
    event_type: str = "message_refused",
) -> SubmissionResult:
    event_detail = {"reason": reason, "decision_id": decision_id, "key_id": ctx.principal.key_id}
    event_detail["raw_payload_hash"] = "sha256:" + ctx.message.digest.hex()
    summary = f"refused a {ctx.message.message_type}: {reason}"
    event = gateway_event(ctx.principal.tenant_id, event_type, summary, now_ns, ctx.principal, event_detail)
    return SubmissionResult(code, Refused(reason=reason, detail=detail), [event])


def _rejected(
    ctx: MessageContext, memory: BatchState, now_ns: int, faults: Sequence[Fault]
) -> SubmissionResult:
    """The response the interceptor gives, for faults that depend on the decision or on several fields."""
    message, digest = ctx.message, "sha256:" + ctx.message.digest.hex()
    detail = {
        "agent_id": message.sender_id if ctx.agent is not None else None,
        "capability_version": None,
        "violation_reason": f"{faults[0].path}: {faults[0].problem}",
        "raw_payload_hash": digest,
    }
    if ctx.agent is not None:
        ctx.agent.violation_ns = now_ns
        memory.touch(ctx.agent)
    summary = f"refused a message of {message.sender_id}"
    event = gateway_event(ctx.principal.tenant_id, "schema_violation", summary, now_ns, ctx.principal, detail)
    answer = Rejected(reason="schema_violation", faults=tuple(faults), raw_payload_hash=digest)
    return SubmissionResult(422, answer, [event])
