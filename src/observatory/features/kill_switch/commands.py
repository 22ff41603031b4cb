"""Commands of kill switches: arm, confirm twice, engage, release in stages (ruling 26).

Law: two confirmations, one after the other, each with its own one-time token that lives two minutes and is
stored only as a hash. Engaging is one command: the row, the tenant policy that judges every later message of
the same batch, the event, and a `stop` for every agent in scope. An armed or lapsed switch stops nothing.
Messages in scope are held by the relay and forwarded by `release.py`; nothing is lost.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Any

import msgspec

from observatory.features.kill_switch.types import MAX_NOTIFIED
from observatory.pipeline import row_statements as stating
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.matching import in_scope
from observatory.pipeline.rows import AgentRow, RowWrite
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
from observatory.protocol.responses import Refused
from observatory.protocol.scopes import COLUMNS, switch_of
from observatory.protocol.spelling import are_same_name
from observatory.protocol.tenant_config import KillScope, KillState, KillSwitch

TABLE = "kill_switches"
TOKEN_S = 120
# The refusal for a switch that can no longer be confirmed.
ENDED = {
    "engaged": "this kill switch is already engaged",
    "releasing": "this kill switch is being released; arm a new one to stop again",
    "released": "this kill switch was released; arm a new one to stop again",
}


def arm(
    principal: Principal,
    kill_id: str,
    scope: KillScope,
    target: str,
    reason: str,
    token_hash: bytes,
    now_ns: int,
) -> Command:
    """The first of three steps: holds nothing yet."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        for switch in uow.memory.tenant_config.kill_switches:
            same = switch.target == target or are_same_name(switch.target, target)
            if same and (switch.scope, switch.state) == (scope, "engaged"):
                detail = f"{switch.kill_id} already stops this scope; release that one first"
                return SubmissionResult(409, Refused(reason="already_engaged", detail=detail))
        row = {
            "tenant_id": principal.tenant_id,
            "kill_id": kill_id,
            "scope": scope,
            "target": target,
            "state": "armed",
            "token_hash": token_hash,
            "reason": reason,
            "requested_by": principal.entity_id,
            "created_ns": uow.now_ns,
            "expires_ns": uow.now_ns + TOKEN_S * 1_000_000_000,
            "engaged_ns": None,
            "released_ns": None,
            "updated_ns": uow.now_ns,
        }
        uow.memory.rows.setdefault(TABLE, {})[kill_id] = dict(row)
        uow.changes.writes.append(RowWrite(TABLE, row))
        uow.append(_event(principal, row, "kill_switch_requested", "armed", uow.now_ns))
        return SubmissionResult(202, dict(row))

    return Command(principal, now_ns, decide)


def confirm(
    principal: Principal,
    kill_id: str,
    token_hash: bytes,
    next_hash: bytes,
    entities: Iterable[str],
    now_ns: int,
) -> Command:
    """The first confirmation returns the second token, the second confirmation engages."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get(TABLE, {}).get(kill_id)
        refused = _may_confirm(row, uow.now_ns)
        if refused is not None or row is None:
            return refused or _unknown()
        if not hmac.compare_digest(bytes(row["token_hash"] or b""), token_hash):
            return _wrong_token(principal, kill_id, uow.now_ns)
        if row["state"] == "armed":
            expires_ns = uow.now_ns + TOKEN_S * 1_000_000_000
            _change(uow, row, state="confirmed", token_hash=next_hash, expires_ns=expires_ns)
            uow.append(_event(principal, row, "kill_switch_requested", "confirmed", uow.now_ns))
            return SubmissionResult(202, dict(row))
        return _engage(principal, row, uow)

    return Command(principal, now_ns, decide, _reads(kill_id, entities))


def release(
    principal: Principal, kill_id: str, reason: str, held: int, entities: Iterable[str], now_ns: int
) -> Command:
    """From here on it holds nothing new; what is held is forwarded by the release worker, oldest first."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get(TABLE, {}).get(kill_id)
        if row is None:
            return _unknown()
        if row["state"] != "engaged":
            waiting = state_of(row, uow.now_ns) in ("armed", "confirmed", "lapsed")
            why = "it was never engaged and holds nothing" if waiting else "it is already released"
            return SubmissionResult(409, Refused(reason="not_engaged", detail=why))
        _change(uow, row, state="releasing")
        _apply_to_policy(uow.memory, row)
        event = _event(principal, row, "kill_switch_released", "releasing", uow.now_ns)
        event.detail |= {"held": held, "reason": reason}
        number = uow.append(event)
        body = _public_columns(row) | {"reason": reason}
        notified = 0
        for agent in _in_scope(uow.memory, row):
            if not _stopped(uow.memory, agent):
                uow.deliver(number, agent.agent_no, "start", body)
                notified += 1
        return SubmissionResult(202, dict(row) | {"told": notified, "held": held})

    return Command(principal, now_ns, decide, _reads(kill_id, entities))


def record_stage(principal: Principal, kill_id: str, released: int, remaining: int, now_ns: int) -> Command:
    """Records one stage of a release."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get(TABLE, {}).get(kill_id)
        if row is None or row["state"] != "releasing":
            return SubmissionResult(
                409, Refused(reason="not_releasing", detail="this kill switch is not releasing")
            )
        event = _event(principal, row, "kill_switch_released", "stage", uow.now_ns)
        event.detail |= {"released": released, "remaining": remaining}
        return SubmissionResult(200, dict(row), [event])

    return Command(principal, now_ns, decide, _reads(kill_id, ()))


def finish(principal: Principal, kill_id: str, remaining: int, now_ns: int) -> Command:
    """No message is held by this switch any more; `remaining` are held by another engaged switch."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get(TABLE, {}).get(kill_id)
        if row is None or row["state"] != "releasing":
            return SubmissionResult(
                409, Refused(reason="not_releasing", detail="this kill switch is not releasing")
            )
        _change(uow, row, state="released", released_ns=uow.now_ns)
        _apply_to_policy(uow.memory, row)
        event = _event(principal, row, "kill_switch_released", "released", uow.now_ns)
        event.detail |= {"held_by_another": remaining}
        return SubmissionResult(200, dict(row), [event])

    return Command(principal, now_ns, decide, _reads(kill_id, ()))


def state_of(row: dict[str, Any], now_ns: int) -> KillState:
    """The state to show: a switch whose token expired is lapsed, although no row says so."""
    state: KillState = row["state"]
    return "lapsed" if state in ("armed", "confirmed") and row["expires_ns"] <= now_ns else state


def scope_filter(row: dict[str, Any]) -> dict[str, str]:
    """The agents in its scope, as columns of `agents` and their values."""
    if row["scope"] == "global":
        return {}
    return {COLUMNS[row["scope"]]: row["target"]}


def _reads(kill_id: str, entities: Iterable[str]) -> ReadSet:
    reads = ReadSet(agents=set(entities))
    reads.row(TABLE, kill_id)
    return reads


def _unknown() -> SubmissionResult:
    return SubmissionResult(
        404, Refused(reason="not_found", detail="no kill switch of this tenant has that id")
    )


def _may_confirm(row: dict[str, Any] | None, now_ns: int) -> SubmissionResult | None:
    if row is None:
        return _unknown()
    state = state_of(row, now_ns)
    if state == "lapsed":
        detail = f"not confirmed within {TOKEN_S} seconds, so it lapsed and holds nothing; arm a new one"
        return SubmissionResult(409, Refused(reason="lapsed", detail=detail))
    if state in ENDED:
        return SubmissionResult(409, Refused(reason="conflict", detail=ENDED[state]))
    return None


def _wrong_token(principal: Principal, kill_id: str, now_ns: int) -> SubmissionResult:
    event = gateway_event(
        principal.tenant_id,
        "permission_denied",
        f"a confirmation of {kill_id} was refused",
        now_ns,
        principal,
        {"permission": "kill_switch_confirm", "kill_id": kill_id},
    )
    detail = "this is not the token of the next confirmation: it is wrong or already used"
    return SubmissionResult(403, Refused(reason="wrong_token", detail=detail), [event])


def _engage(principal: Principal, row: dict[str, Any], uow: UnitOfWork) -> SubmissionResult:
    _change(uow, row, state="engaged", token_hash=None, engaged_ns=uow.now_ns)
    _apply_to_policy(uow.memory, row)
    agents = _in_scope(uow.memory, row)
    event = _event(principal, row, "kill_switch_engaged", "engaged", uow.now_ns)
    event.detail["agents"] = len(agents)
    number = uow.append(event)
    body = _public_columns(row)
    for agent in agents[:MAX_NOTIFIED]:
        uow.deliver(number, agent.agent_no, "stop", body)
    return SubmissionResult(200, dict(row) | {"told": len(agents[:MAX_NOTIFIED])})


def _change(uow: UnitOfWork, row: dict[str, Any], **values: Any) -> None:
    """In the database, only from the state it was in; in memory, for later commands of this batch."""
    where = {"tenant_id": row["tenant_id"], "kill_id": row["kill_id"], "state": row["state"]}
    values["updated_ns"] = uow.now_ns
    uow.changes.writes.append(RowWrite(TABLE, values, where))
    row.update(values)


def _apply_to_policy(memory: BatchState, row: dict[str, Any]) -> None:
    """Makes the next message of this batch be judged by it; other gateways see the new version number."""
    switches = tuple(one for one in memory.tenant_config.kill_switches if one.kill_id != row["kill_id"])
    if row["state"] in ("engaged", "releasing"):
        switches += (_switch(row),)
    memory.tenant_config = msgspec.structs.replace(memory.tenant_config, kill_switches=switches)
    memory.tenant.rulebook_version += 1


def _switch(row: dict[str, Any]) -> KillSwitch:
    return switch_of(row["tenant_id"], row["kill_id"], row["scope"], row["target"], row["state"])


def _in_scope(memory: BatchState, row: dict[str, Any]) -> list[AgentRow]:
    switch = _switch(row)
    found = [agent for agent in memory.agents.values() if in_scope(switch, agent)]
    return sorted(found, key=lambda agent: agent.agent_no)


def _stopped(memory: BatchState, agent: AgentRow) -> bool:
    """Whether another switch still stops this agent: then it gets no `start`."""
    return any(one.state == "engaged" and in_scope(one, agent) for one in memory.tenant_config.kill_switches)


def _public_columns(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("kill_id", "scope", "target", "reason")}


def _event(principal: Principal, row: dict[str, Any], event_type: str, stage: str, now_ns: int) -> EventDraft:
    where = "the whole tenant" if row["scope"] == "global" else f"{row['scope']} {row['target']}"
    detail = _public_columns(row) | {"stage": stage}
    if stage in ("armed", "confirmed"):
        detail["expires_at"] = from_ns(row["expires_ns"])
    draft = gateway_event(
        principal.tenant_id, event_type, f"kill-switch for {where}: {stage}", now_ns, principal, detail
    )
    stating.attach_rows(draft, [stating.stated_row(TABLE, row)])
    return draft
