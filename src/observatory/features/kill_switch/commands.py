"""Acts on kill-switches: armed, confirmed twice, engaged, released in stages (ruling 26).

Law: two confirmations, one after the other, each with a one-time token of its own that lives two minutes
and is kept only as a hash. Engaging is one act: the row, the rulebook every later message of the same
batch is judged by, the event, and a `stop` for every agent in scope. An armed or lapsed one rules nothing.
What is in scope is held by the relay and handed on by `release.py`; nothing is lost.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Any

import msgspec

from observatory.features.relay.stage import in_scope
from observatory.pipeline import row_statements as stating
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Agent, Write
from observatory.pipeline.state import Act, Desk, Draft, Memory, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.rulebook import KillScope, KillState, KillSwitch
from observatory.protocol.scopes import COLUMNS, switch_of
from observatory.protocol.spelling import are_same

TABLE = "kill_switches"
TOKEN_S = 120
# Told in the engaging transaction; an agent beyond them learns it when it connects.
MOST_TOLD = 20_000
# What a switch that is neither waiting for a confirmation nor engaged is told of.
ENDED = {
    "engaged": "this kill-switch is engaged already",
    "releasing": "this kill-switch is being released; arm a new one to stop again",
    "released": "this kill-switch was released; arm a new one to stop again",
}


def arm(
    who: Principal, kill_id: str, scope: KillScope, target: str, reason: str, token_hash: bytes, now_ns: int
) -> Act:
    """The first of three steps: nothing is held by it."""

    def decide(desk: Desk) -> Verdict:
        for switch in desk.memory.rulebook.kill_switches:
            same = switch.target == target or are_same(switch.target, target)
            if same and (switch.scope, switch.state) == (scope, "engaged"):
                detail = f"{switch.kill_id} stops this scope already; release that one to let it go on"
                return Verdict(409, Refused(reason="already_engaged", detail=detail))
        row = {
            "tenant_id": who.tenant_id,
            "kill_id": kill_id,
            "scope": scope,
            "target": target,
            "state": "armed",
            "token_hash": token_hash,
            "reason": reason,
            "requested_by": who.entity_id,
            "created_ns": desk.now_ns,
            "expires_ns": desk.now_ns + TOKEN_S * 1_000_000_000,
            "engaged_ns": None,
            "released_ns": None,
            "updated_ns": desk.now_ns,
        }
        desk.memory.rows.setdefault(TABLE, {})[kill_id] = dict(row)
        desk.changes.writes.append(Write(TABLE, row))
        desk.append(_event(who, row, "kill_switch_requested", "armed", desk.now_ns))
        return Verdict(202, dict(row))

    return Act(who, now_ns, decide)


def confirm(
    who: Principal,
    kill_id: str,
    token_hash: bytes,
    next_hash: bytes,
    entities: Iterable[str],
    now_ns: int,
) -> Act:
    """The first confirmation gives out the second token, the second engages."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get(TABLE, {}).get(kill_id)
        refused = _may_confirm(row, desk.now_ns)
        if refused is not None or row is None:
            return refused or _unknown()
        if not hmac.compare_digest(bytes(row["token_hash"] or b""), token_hash):
            return _wrong_token(who, kill_id, desk.now_ns)
        if row["state"] == "armed":
            expires_ns = desk.now_ns + TOKEN_S * 1_000_000_000
            _change(desk, row, state="confirmed", token_hash=next_hash, expires_ns=expires_ns)
            desk.append(_event(who, row, "kill_switch_requested", "confirmed", desk.now_ns))
            return Verdict(202, dict(row))
        return _engage(who, row, desk)

    return Act(who, now_ns, decide, _wants(kill_id, entities))


def release(
    who: Principal, kill_id: str, reason: str, held: int, entities: Iterable[str], now_ns: int
) -> Act:
    """From here on nothing new is held by it; what waits is handed on by the stager, oldest first."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get(TABLE, {}).get(kill_id)
        if row is None:
            return _unknown()
        if row["state"] != "engaged":
            waiting = state_of(row, desk.now_ns) in ("armed", "confirmed", "lapsed")
            why = "it was never engaged and holds nothing" if waiting else "it is released already"
            return Verdict(409, Refused(reason="not_engaged", detail=why))
        _change(desk, row, state="releasing")
        _rule(desk.memory, row)
        event = _event(who, row, "kill_switch_released", "releasing", desk.now_ns)
        event.detail |= {"held": held, "reason": reason}
        number = desk.append(event)
        body = _told(row) | {"reason": reason}
        told = 0
        for agent in _in_scope(desk.memory, row):
            if not _stopped(desk.memory, agent):
                desk.tell(number, agent.agent_no, "start", body)
                told += 1
        return Verdict(202, dict(row) | {"told": told, "held": held})

    return Act(who, now_ns, decide, _wants(kill_id, entities))


def staged(who: Principal, kill_id: str, released: int, remaining: int, now_ns: int) -> Act:
    """One stage of a release, told of."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get(TABLE, {}).get(kill_id)
        if row is None or row["state"] != "releasing":
            return Verdict(409, Refused(reason="not_releasing", detail="this kill-switch is not releasing"))
        event = _event(who, row, "kill_switch_released", "stage", desk.now_ns)
        event.detail |= {"released": released, "remaining": remaining}
        return Verdict(200, dict(row), [event])

    return Act(who, now_ns, decide, _wants(kill_id, ()))


def finish(who: Principal, kill_id: str, remaining: int, now_ns: int) -> Act:
    """Nothing waits for this switch any more; `remaining` are those another engaged one holds."""

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get(TABLE, {}).get(kill_id)
        if row is None or row["state"] != "releasing":
            return Verdict(409, Refused(reason="not_releasing", detail="this kill-switch is not releasing"))
        _change(desk, row, state="released", released_ns=desk.now_ns)
        _rule(desk.memory, row)
        event = _event(who, row, "kill_switch_released", "released", desk.now_ns)
        event.detail |= {"held_by_another": remaining}
        return Verdict(200, dict(row), [event])

    return Act(who, now_ns, decide, _wants(kill_id, ()))


def state_of(row: dict[str, Any], now_ns: int) -> KillState:
    """As shown: one whose token ran out is lapsed, without anybody having to write that."""
    state: KillState = row["state"]
    return "lapsed" if state in ("armed", "confirmed") and row["expires_ns"] <= now_ns else state


def scope_filter(row: dict[str, Any]) -> dict[str, str]:
    """The agents in its scope, as columns of theirs and what these read as."""
    if row["scope"] == "global":
        return {}
    return {COLUMNS[row["scope"]]: row["target"]}


def _wants(kill_id: str, entities: Iterable[str]) -> Wants:
    wants = Wants(agents=set(entities))
    wants.row(TABLE, kill_id)
    return wants


def _unknown() -> Verdict:
    return Verdict(404, Refused(reason="not_found", detail="no kill-switch of this tenant has that id"))


def _may_confirm(row: dict[str, Any] | None, now_ns: int) -> Verdict | None:
    if row is None:
        return _unknown()
    state = state_of(row, now_ns)
    if state == "lapsed":
        told = f"not confirmed within {TOKEN_S} seconds, so it lapsed and holds nothing; arm it anew"
        return Verdict(409, Refused(reason="lapsed", detail=told))
    if state in ENDED:
        return Verdict(409, Refused(reason="conflict", detail=ENDED[state]))
    return None


def _wrong_token(who: Principal, kill_id: str, now_ns: int) -> Verdict:
    event = notice(
        who.tenant_id,
        "permission_denied",
        f"a confirmation of {kill_id} was refused",
        now_ns,
        who,
        {"permission": "kill_switch_confirm", "kill_id": kill_id},
    )
    told = "this is not the token of the next confirmation: it is wrong, or was used already"
    return Verdict(403, Refused(reason="wrong_token", detail=told), [event])


def _engage(who: Principal, row: dict[str, Any], desk: Desk) -> Verdict:
    _change(desk, row, state="engaged", token_hash=None, engaged_ns=desk.now_ns)
    _rule(desk.memory, row)
    agents = _in_scope(desk.memory, row)
    event = _event(who, row, "kill_switch_engaged", "engaged", desk.now_ns)
    event.detail["agents"] = len(agents)
    number = desk.append(event)
    body = _told(row)
    for agent in agents[:MOST_TOLD]:
        desk.tell(number, agent.agent_no, "stop", body)
    return Verdict(200, dict(row) | {"told": len(agents[:MOST_TOLD])})


def _change(desk: Desk, row: dict[str, Any], **values: Any) -> None:
    """In the database, only from the state it was in; in memory, for what follows in this batch."""
    where = {"tenant_id": row["tenant_id"], "kill_id": row["kill_id"], "state": row["state"]}
    values["updated_ns"] = desk.now_ns
    desk.changes.writes.append(Write(TABLE, values, where))
    row.update(values)


def _rule(memory: Memory, row: dict[str, Any]) -> None:
    """The very next message of this batch is judged by it; other gateways see the new number."""
    kept = tuple(one for one in memory.rulebook.kill_switches if one.kill_id != row["kill_id"])
    if row["state"] in ("engaged", "releasing"):
        kept += (_switch(row),)
    memory.rulebook = msgspec.structs.replace(memory.rulebook, kill_switches=kept)
    memory.tenant.rulebook_version += 1


def _switch(row: dict[str, Any]) -> KillSwitch:
    return switch_of(row["tenant_id"], row["kill_id"], row["scope"], row["target"], row["state"])


def _in_scope(memory: Memory, row: dict[str, Any]) -> list[Agent]:
    switch = _switch(row)
    found = [agent for agent in memory.agents.values() if in_scope(switch, agent)]
    return sorted(found, key=lambda agent: agent.agent_no)


def _stopped(memory: Memory, agent: Agent) -> bool:
    """Whether another switch still stops this agent: then it is not told to start."""
    return any(one.state == "engaged" and in_scope(one, agent) for one in memory.rulebook.kill_switches)


def _told(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("kill_id", "scope", "target", "reason")}


def _event(who: Principal, row: dict[str, Any], event_type: str, stage: str, now_ns: int) -> Draft:
    where = "the whole tenant" if row["scope"] == "global" else f"{row['scope']} {row['target']}"
    detail = _told(row) | {"stage": stage}
    if stage in ("armed", "confirmed"):
        detail["expires_at"] = from_ns(row["expires_ns"])
    draft = notice(who.tenant_id, event_type, f"kill-switch for {where}: {stage}", now_ns, who, detail)
    stating.put_on(draft, [stating.row_of(TABLE, row)])
    return draft
