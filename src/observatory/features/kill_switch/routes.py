"""Kill switches over HTTP: arm, confirm twice, release, list.

Tokens are generated here and shown once; only hashes are stored. Separate from the other God Mode routes
because they stop a mesh: every step is an audit event, including refused ones.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody

from observatory.errors import QueueFull
from observatory.features.kill_switch import commands
from observatory.features.kill_switch.types import MAX_NOTIFIED
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.rows import KillSwitchCounts
from observatory.pipeline.state import Command
from observatory.protocol.clock import from_ns
from observatory.protocol.credentials import digest, new_token
from observatory.protocol.identity import mint
from observatory.protocol.rules import Name
from observatory.protocol.tenant_config import KillScope, KillState

Reason = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=1_000,
        pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]+$(?!\n)",
        extra={"expects": "1 to 1000 characters; of control characters line feed and tab only"},
    ),
]
Token = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
SHOWN_AGENTS = 100
MAX_PAST = 200
INSIST_S = 10.0
LEFT = {"armed": 2, "confirmed": 1}


class NewKillSwitch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`target` names the cluster, the agent type (class) or the agent; a global switch has none."""

    scope: KillScope
    reason: Reason
    target: Name | None = None


class Confirmation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    token: Token


class Release(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    reason: Reason


class KillSwitchShown(msgspec.Struct, kw_only=True):
    kill_id: str
    scope: KillScope
    target: str | None
    state: KillState
    confirmations_left: int
    reason: str
    requested_by: str
    created_at: str
    expires_at: str | None
    engaged_at: str | None
    released_at: str | None


class KillSwitchItem(KillSwitchShown, kw_only=True):
    held: int


class KillSwitchList(msgspec.Struct, kw_only=True):
    engaged: bool
    items: list[KillSwitchItem]
    next_cursor: str | None


class WouldHold(msgspec.Struct, kw_only=True):
    """`known`: an agent has that name; otherwise it stops nothing until an agent of that name registers."""

    known: bool
    agents: int
    agent_ids: list[str]
    sessions: int


class ArmedKillSwitch(KillSwitchShown, kw_only=True):
    token: str
    would_hold: WouldHold


class ConfirmedKillSwitch(KillSwitchShown, kw_only=True):
    token: str | None = None
    told: int | None = None


class ReleasedKillSwitch(KillSwitchItem, kw_only=True):
    told: int


@get("/kill-switch", summary="List kill switches, newest first", operation_id="list_kill_switches")
async def list_kill_switches(request: Call, app: Here) -> Response[bytes]:
    """`engaged` says whether any is engaged now; `held` is the number of messages each holds.

    Returns all that hold something, and the newest 200 of the others.
    """
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, commands.TABLE)
    rows.sort(key=lambda row: (row["created_ns"], row["kill_id"]), reverse=True)
    # Open pages request this every two seconds: all switches in effect, and the newest of the rest.
    left_out = {row["kill_id"] for row in [row for row in rows if not _is_in_effect(row)][MAX_PAST:]}
    rows = [row for row in rows if row["kill_id"] not in left_out]
    items = [await item_with_held(app, row) for row in rows]
    engaged = any(row["state"] == "engaged" for row in rows)
    return json({"engaged": engaged, "items": items, "next_cursor": None})


@post("/kill-switch", summary="Arm a kill switch", status_code=202, operation_id="arm_kill_switch")
async def arm_kill_switch(request: Call, app: Here, data: JSONBody[NewKillSwitch]) -> Response[bytes]:
    """Holds nothing yet. The answer's token, shown only once, is for the first of two confirmations."""
    principal = await require_permission(request, app, "admin")
    if (data.scope == "global") != (data.target is None):
        raise Refusal(422, "bad_target", "a cluster, class or agent needs a target; global has no target")
    now_ns, token = app.clock(), new_token()
    command = commands.arm(
        principal,
        mint("kil_", now_ns),
        data.scope,
        data.target or "",
        data.reason,
        digest(token),
        now_ns,
    )
    row = await _submit_insisting(app, command)
    agents, reach = await _agents(app, row), await _reach(app, row)
    would_hold = {
        "known": data.scope == "global" or reach.agents > 0,
        "agents": reach.agents,
        "agent_ids": [agent["agent_id"] for agent in agents[:SHOWN_AGENTS]],
        "sessions": reach.sessions,
    }
    return json(_public(row, now_ns) | {"token": token, "would_hold": would_hold}, 202)


@post(
    "/kill-switch/{kill_id:str}/confirm",
    summary="Confirm a kill switch; the second confirmation engages it",
    status_code=200,
    operation_id="confirm_kill_switch",
)
async def confirm_kill_switch(
    request: Call, app: Here, kill_id: FromPath[str], data: JSONBody[Confirmation]
) -> Response[bytes]:
    """The first confirmation returns the second token; the second returns state `engaged`."""
    principal = await require_permission(request, app, "admin")
    known = await existing(app, principal.tenant_id, kill_id)
    entities = [agent["entity_id"] for agent in await _agents(app, known)]
    token, now_ns = new_token(), app.clock()
    command = commands.confirm(principal, kill_id, digest(data.token), digest(token), entities, now_ns)
    row = await _submit_insisting(app, command)
    shown = _public(row, now_ns)
    return json(shown | ({"token": token} if row["state"] == "confirmed" else {"told": row["told"]}))


@post(
    "/kill-switch/{kill_id:str}/release",
    summary="Release a kill switch; what it held is forwarded in stages",
    status_code=202,
    operation_id="release_kill_switch",
)
async def release_kill_switch(
    request: Call, app: Here, kill_id: FromPath[str], data: JSONBody[Release]
) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    known = await existing(app, principal.tenant_id, kill_id)
    entities = [agent["entity_id"] for agent in await _agents(app, known)]
    held = (await _reach(app, known)).held
    now_ns = app.clock()
    row = await _submit_insisting(
        app, commands.release(principal, kill_id, data.reason, held, entities, now_ns)
    )
    return json(_public(row, now_ns) | {"told": row["told"], "held": held}, 202)


async def item_with_held(app: AppState, row: dict[str, Any]) -> dict[str, Any]:
    held = (await _reach(app, row)).held if _is_in_effect(row) else 0
    return _public(row, app.clock()) | {"held": held}


def _is_in_effect(row: dict[str, Any]) -> bool:
    return row["state"] in ("engaged", "releasing")


async def existing(app: AppState, tenant_id: str, kill_id: str) -> dict[str, Any]:
    rows = await app.store.rows(tenant_id, commands.TABLE, kill_id=kill_id)
    if not rows:
        raise Refusal(404, "not_found", "no kill switch of this tenant has that id")
    return rows[0]


async def _agents(app: AppState, row: dict[str, Any]) -> list[dict[str, Any]]:
    """Most recently seen first, at most as many as one transaction notifies."""
    scope = await app.store.spelt(row["tenant_id"], **commands.scope_filter(row))
    found = await app.store.rows(row["tenant_id"], "agents", **scope)
    return sorted(found, key=lambda agent: -agent["last_seen_ns"])[:MAX_NOTIFIED]


async def _reach(app: AppState, row: dict[str, Any]) -> KillSwitchCounts:
    return await app.store.reach(row["tenant_id"], **commands.scope_filter(row))


def _public(row: dict[str, Any], now_ns: int) -> dict[str, Any]:
    """The public columns: never a token's hash."""
    state = commands.state_of(row, now_ns)
    return {
        "kill_id": row["kill_id"],
        "scope": row["scope"],
        "target": row["target"] or None,
        "state": state,
        "confirmations_left": LEFT.get(state, 0),
        "reason": row["reason"],
        "requested_by": row["requested_by"],
        "created_at": from_ns(row["created_ns"]),
        "expires_at": from_ns(row["expires_ns"]) if row["engaged_ns"] is None else None,
        "engaged_at": None if row["engaged_ns"] is None else from_ns(row["engaged_ns"]),
        "released_at": None if row["released_ns"] is None else from_ns(row["released_ns"]),
    }


async def _submit_insisting(app: AppState, command: Command) -> dict[str, Any]:
    """A flood is when a kill switch is needed most: while the queue is full the command is retried."""
    deadline = time.monotonic() + INSIST_S
    while True:
        try:
            verdict = await app.command(command)
            break
        except QueueFull:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.01)
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    row: dict[str, Any] = verdict.answer
    return row


kill_switch = Router(
    path="/v1",
    route_handlers=[list_kill_switches, arm_kill_switch, confirm_kill_switch, release_kill_switch],
    tags=["God Mode"],
)
