"""The stage of decisions: who may ask, who may answer, and when it is too late (rulings 13 and 23).

Law: every refusal is told of by an event and archives nothing. Only a person who may approve and did not
request decides; the house itself only takes the option the agent named for its deadline, and only then.
What a confirmation refers to is never a reason to refuse it. Reads the rows `decisions.want` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.pipeline import quotas
from observatory.pipeline.event_writer import notice
from observatory.pipeline.message_context import Passage
from observatory.pipeline.state import Memory, Verdict
from observatory.protocol.answers import Fault, Refused, Rejected
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.messages import ActionConfirmation, DecisionRequest, DecisionResponse
from observatory.protocol.rulebook import DecisionSettings

MAY_APPROVE = frozenset({"approver", "operator", "admin"})
# What an action_confirmation of the asking agent ends.
CONFIRMABLE = frozenset({"answered", "executing"})
RISKS = ("low", "medium", "high", "critical")
SECOND_NS = 1_000_000_000
Row = dict[str, Any]


class Asked(msgspec.Struct, frozen=True):
    """The column `options`: what can be chosen, and who may not choose because they asked."""

    option_ids: tuple[str, ...]
    requested_by: str
    key_maker: str | None = None


def asked_of(row: Row) -> Asked:
    return msgspec.json.decode(row["options"], type=Asked)


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """The stage. Every refusal is told of by an event and archives nothing."""
    if passage.message.envelope is None:
        return None
    payload = passage.message.envelope.payload
    if isinstance(payload, DecisionRequest):
        return _check_request(passage, payload, memory, now_ns)
    if isinstance(payload, DecisionResponse):
        return _check_response(passage, payload, memory, now_ns)
    if isinstance(payload, ActionConfirmation):
        _warn(passage, payload, memory)
    return None


def _check_request(passage: Passage, payload: DecisionRequest, memory: Memory, now_ns: int) -> Verdict | None:
    if row_of(memory, payload.decision_id) is not None:
        detail = "this decision_id already names a decision; ask under a new one"
        return _refused(passage, now_ns, 409, "decision_exists", detail, payload.decision_id)
    full = quotas.exceeded(memory, quotas.DECISIONS, passage.agent)
    if full is not None:
        return _refused(passage, now_ns, 403, full.reason, full.detail, payload.decision_id)
    faults = []
    option_ids = {option.option_id for option in payload.options}
    if passage.message.sender_type != "agent":
        faults.append(Fault("sender.entity_type", "must be agent: it is agents who request decisions"))
    if len(option_ids) < len(payload.options):
        faults.append(Fault("payload.options", "must have an option_id of its own for each option"))
    faults += deadline_faults(payload, memory.rulebook.decisions, now_ns)
    faults += auto_faults(payload, memory.rulebook.decisions)
    return _rejected(passage, memory, now_ns, faults) if faults else None


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
        return [Fault("payload.auto_action", "this tenant takes no option at a deadline: a person decides")]
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
        faults.append(Fault(path, "must be the option that is marked is_default"))
    if option.risk_level is None or RISKS.index(option.risk_level) > RISKS.index(settings.auto_risk):
        problem = f"must be given and at most {settings.auto_risk}: no person looks at it"
        faults.append(Fault(f"payload.options[{place}].risk_level", problem))
    return faults


def auto_option(payload: DecisionRequest, settings: DecisionSettings, now_ns: int) -> str | None:
    """The option taken at the deadline, judged again when it is asked: a hold or a rewrite came between.

    A deadline that is over, or so near that no person can answer, ends the request without an answer.
    """
    if payload.auto_action is None or payload.deadline is None:
        return None
    is_too_near = to_ns(payload.deadline) < now_ns + settings.min_deadline_s * SECOND_NS
    return None if is_too_near or auto_faults(payload, settings) else payload.auto_action.option_id


def _check_response(
    passage: Passage, payload: DecisionResponse, memory: Memory, now_ns: int
) -> Verdict | None:
    by_house = passage.principal.key_id.startswith("sys_") and passage.message.sender_type == "system"
    row = row_of(memory, payload.decision_id)
    if not by_house and (problem := _may_not_decide(passage, row)) is not None:
        return _refused(passage, now_ns, 403, *problem, payload.decision_id, "security_violation")
    if row is None:
        refusal = unknown()
        return _refused(passage, now_ns, 404, refusal.reason, refusal.detail, payload.decision_id)
    if row["state"] != "pending" or (is_late(row, now_ns) and not by_house):
        refusal = decided(row)
        return _refused(passage, now_ns, 409, refusal.reason, refusal.detail, payload.decision_id)
    if by_house and not (is_late(row, now_ns) and payload.selected_option_id == row["auto_option"]):
        detail = "the house takes only the option named for the deadline, and only then"
        return _refused(passage, now_ns, 403, "not_allowed", detail, payload.decision_id)
    if payload.selected_option_id not in asked_of(row).option_ids:
        fault = Fault("payload.selected_option_id", "must be the option_id of one of the decision's options")
        return _rejected(passage, memory, now_ns, [fault])
    return None


def _may_not_decide(passage: Passage, row: Row | None) -> tuple[str, str] | None:
    """Why this sender's word does not count (ruling 13)."""
    who, message = passage.principal, passage.message
    if who.user_id is None:
        return "no_user", "only a person can decide; this key belongs to no user"
    if message.sender_type != "user" or message.sender_id != who.user_id:
        return "sender_mismatch", "a person decides only in their own name"
    if who.role not in MAY_APPROVE or (who.scopes and "approve" not in who.scopes):
        return "not_allowed", f"the role {who.role}, or this key's scopes, have no permission to approve"
    if row is not None and who.has_requested(asked_of(row).requested_by, asked_of(row).key_maker):
        return (
            "own_request",
            "you requested this, or made the agent's key it was requested with; another person must decide",
        )
    return None


def _warn(passage: Passage, payload: ActionConfirmation, memory: Memory) -> None:
    """A confirmation is true whatever it refers to; what cannot be linked is said, never refused."""
    named = named_in(payload)
    if named is None:
        return
    path, row = "payload.triggered_by.decision_id", row_of(memory, named)
    if row is None:
        passage.warnings.append(f"{path}: names no decision known here; the confirmation was kept")
    elif not is_its_own(passage, row):
        passage.warnings.append(f"{path}: another agent requested this decision; its state was not changed")
    elif row["state"] not in CONFIRMABLE:
        passage.warnings.append(f"{path}: this decision is {row['state']}; its state was not changed")


def row_of(memory: Memory, decision_id: str) -> Row | None:
    return memory.rows.get("decisions", {}).get(decision_id)


def named_in(payload: ActionConfirmation) -> str | None:
    return None if payload.triggered_by is None else payload.triggered_by.decision_id


def is_late(row: Row, now_ns: int) -> bool:
    return row["deadline_ns"] is not None and bool(row["deadline_ns"] <= now_ns)


def is_its_own(passage: Passage, row: Row) -> bool:
    return passage.agent is not None and passage.agent.agent_no == row["agent_no"]


def unknown() -> Refused:
    return Refused(reason="no_such_decision", detail="no decision of this tenant has that id")


def decided(row: Row) -> Refused:
    """The state it is in and since when; the first valid answer has won."""
    if row["state"] in ("pending", "expired"):
        return Refused(reason="expired", detail=f"its deadline was {from_ns(row['deadline_ns'])}")
    since = row["answered_ns"] or row["updated_ns"]
    return Refused(
        reason="already_decided", detail=f"this decision is {row['state']}, since {from_ns(since)}"
    )


def _refused(
    passage: Passage,
    now_ns: int,
    code: int,
    reason: str,
    detail: str | None,
    decision_id: str,
    event_type: str = "message_refused",
) -> Verdict:
    told = {"reason": reason, "decision_id": decision_id, "key_id": passage.principal.key_id}
    told["raw_payload_hash"] = "sha256:" + passage.message.digest.hex()
    summary = f"refused a {passage.message.message_type}: {reason}"
    event = notice(passage.principal.tenant_id, event_type, summary, now_ns, passage.principal, told)
    return Verdict(code, Refused(reason=reason, detail=detail), [event])


def _rejected(passage: Passage, memory: Memory, now_ns: int, faults: Sequence[Fault]) -> Verdict:
    """What the interceptor would have said, had it known the decision or looked across fields."""
    message, digest = passage.message, "sha256:" + passage.message.digest.hex()
    told = {
        "agent_id": message.sender_id if passage.agent is not None else None,
        "capability_version": None,
        "violation_reason": f"{faults[0].path}: {faults[0].problem}",
        "raw_payload_hash": digest,
    }
    if passage.agent is not None:
        passage.agent.violation_ns = now_ns
        memory.touch(passage.agent)
    summary = f"refused a message of {message.sender_id}"
    event = notice(passage.principal.tenant_id, "schema_violation", summary, now_ns, passage.principal, told)
    answer = Rejected(reason="schema_violation", faults=tuple(faults), raw_payload_hash=digest)
    return Verdict(422, answer, [event])
