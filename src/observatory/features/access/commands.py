"""Commands on tenants, users, keys, logins and versions: pure decisions, chained like everything else.

Each function returns a command for the committer. Secrets never come here: the endpoint creates them and
passes hashes. A change of access raises the tenant's `access_version`, so that a key the endpoint had
cached is checked again under the lock: revocation counts with the very next message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from observatory.features.access.types_rows import tenant_rows
from observatory.pipeline.authority import access_changed
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.responses import Refused

# Reason of a refusal when access changed since the command was prepared; the endpoint reads again and
# retries.
STALE = "access_changed"


def create_tenant(who: Principal, tenant_id: str, display_name: str, now_ns: int) -> Command:
    """Submitted to the new tenant's own chain: its first event records its creation."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        if memory.head.sequence_number:
            return SubmissionResult(
                409, Refused(reason="conflict", detail="a tenant of this id exists already")
            )
        writes = tenant_rows(memory, display_name, now_ns)
        event = gateway_event(
            tenant_id, "tenant_created", f"tenant {display_name} created", now_ns, who, {"tenant": tenant_id}
        )
        return SubmissionResult(201, writes[0].values, [event], writes)

    return Command(who, now_ns, decide)


def create_user(who: Principal, user: dict[str, Any], now_ns: int) -> Command:
    summary = f"user {user['user_id']} created as {user['role']}"
    return access_changed(
        who,
        now_ns,
        "user_created",
        summary,
        [RowWrite("users", user)],
        201,
        user,
        {"user_id": user["user_id"]},
    )


def disable_user(who: Principal, user_id: str, now_ns: int) -> Command:
    where = {"tenant_id": who.tenant_id, "user_id": user_id}
    return access_changed(
        who,
        now_ns,
        "user_disabled",
        f"user {user_id} disabled",
        [RowWrite("users", {"disabled_ns": now_ns}, where)],
        200,
        {"user_id": user_id, "disabled": True},
        {"user_id": user_id},
    )


def change_role(
    who: Principal,
    user: dict[str, Any],
    role: str,
    gained: Sequence[str],
    doomed: Sequence[str],
    renamed: Mapping[str, str],
    seen: int,
    now_ns: int,
) -> Command:
    """Change a role at once. Each `gained` permission is an event; `doomed` keys exceed the role and end.

    `renamed` browsers stay signed in under another id: requests and sockets of the old one are no longer
    valid, the next requests are checked against the new role.
    `seen` is the access version at which the endpoint read the tenant's users and keys; any change of access
    since then may have made another admin the last one, so the endpoint has to read again.
    """
    user_id = user["user_id"]

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        if memory.tenant.access_version != seen:
            return SubmissionResult(409, Refused(reason=STALE, detail="access changed meanwhile; try again"))
        memory.tenant.access_version += 1
        memory.tenant.rulebook_version += 1  # its set of bound keys may change
        # Commands of this very batch must not pass with the old permissions.
        memory.revoked_keys.update(doomed, renamed)
        mine = {"tenant_id": who.tenant_id}
        writes = [RowWrite("users", {"role": role}, mine | {"user_id": user_id})]
        writes += [RowWrite("api_keys", {"revoked_ns": now_ns}, mine | {"key_id": key}) for key in doomed]
        writes += [
            RowWrite("logins", {"login_id": new}, mine | {"login_id": old}) for old, new in renamed.items()
        ]
        if user_id in memory.rows.get("users", {}):
            memory.rows["users"][user_id]["role"] = role
        detail = {"user_id": user_id, "from": user["role"], "to": role}
        summary = f"user {user_id} is {role}, was {user['role']}"
        events = [gateway_event(who.tenant_id, "role_changed", summary, now_ns, who, detail)]
        events += [
            gateway_event(
                who.tenant_id,
                "permission_granted",
                f"user {user_id} may {permission}",
                now_ns,
                who,
                {"user_id": user_id, "permission": permission, "role": role},
            )
            for permission in gained
        ]
        for key_id in doomed:
            revocation = {"key_id": key_id, "user_id": user_id, "reason": "role_changed"}
            events.append(
                gateway_event(who.tenant_id, "key_revoked", f"key {key_id} revoked", now_ns, who, revocation)
            )
        answer = {"user_id": user_id, "role": role, "revoked_keys": list(doomed)}
        return SubmissionResult(200, answer, events, writes)

    return Command(who, now_ns, decide)


def create_key(who: Principal, row: dict[str, Any], now_ns: int, user_role: str | None = None) -> Command:
    """`user_role`: the role of the key's user as the endpoint read it; 409 if it changed since then."""
    detail = {
        "key_id": row["key_id"],
        "role": row["role"],
        "agent_id": row["agent_id"],
        "user_id": row["user_id"],
    }
    granted = detail | {"scopes": msgspec.json.decode(row["scopes"])}

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory, now_ns = uow.memory, uow.now_ns
        user = memory.rows.get("users", {}).get(row["user_id"])
        if user is not None and user_role is not None and user["role"] != user_role:
            return SubmissionResult(
                409, Refused(reason=STALE, detail="the user's role changed meanwhile; try again")
            )
        memory.tenant.access_version += 1
        if row["agent_id"] is not None:
            memory.tenant.rulebook_version += 1
            bound = memory.tenant_config.bound | {agent_entity_id(who.tenant_id, row["agent_id"])}
            memory.tenant_config = msgspec.structs.replace(memory.tenant_config, bound=bound)
        made = f"key {row['key_id']} created for the role {row['role']}"
        given = f"key {row['key_id']} may act as {row['role']}"
        events = [
            gateway_event(who.tenant_id, "key_created", made, now_ns, who, detail),
            gateway_event(who.tenant_id, "permission_granted", given, now_ns, who, granted),
        ]
        return SubmissionResult(201, None, events, [RowWrite("api_keys", row)])

    act = Command(who, now_ns, decide)
    if user_role is not None:
        act.read_set.row("users", row["user_id"])
    return act


def revoke_key(who: Principal, key_id: str, now_ns: int) -> Command:
    where = {"tenant_id": who.tenant_id, "key_id": key_id}
    return access_changed(
        who,
        now_ns,
        "key_revoked",
        f"key {key_id} revoked",
        [RowWrite("api_keys", {"revoked_ns": now_ns}, where)],
        200,
        {"key_id": key_id, "revoked": True},
        {"key_id": key_id},
    )


def issue_login(who: Principal, row: dict[str, Any], now_ns: int) -> Command:
    summary = f"a one-time login link was made for {row['user_id']}"
    return access_changed(
        who,
        now_ns,
        "login_issued",
        summary,
        [RowWrite("logins", row)],
        201,
        None,
        {"user_id": row["user_id"]},
    )


def sign_in(who: Principal, link_id: str, cookie: dict[str, Any], now_ns: int) -> Command:
    """The link's row becomes the browser's: a second click finds no link any more."""
    where = {"tenant_id": who.tenant_id, "login_id": link_id, "kind": "link"}
    writes = [RowWrite("logins", cookie, where)]
    return access_changed(
        who, now_ns, "user_signed_in", f"{who.user_id} signed in", writes, 200, None, {"user_id": who.user_id}
    )


def sign_out(who: Principal, login_id: str, user_id: str, now_ns: int) -> Command:
    """End a sign-in: one's own, or as an admin."""
    where = {"tenant_id": who.tenant_id, "login_id": login_id}
    writes = [RowWrite("logins", {"ended_ns": now_ns}, where)]
    summary = f"{user_id} signed out" if who.user_id == user_id else f"{user_id} was signed out"
    answer, detail = {"login_id": login_id, "ended": True}, {"user_id": user_id}
    return access_changed(who, now_ns, "user_signed_out", summary, writes, 200, answer, detail)
