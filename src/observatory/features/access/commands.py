"""Acts on tenants, users, keys, logins and versions: pure decisions, chained like everything else.

Each function returns an `Act` for the committer. Secrets never come here: the door makes them and
hands in hashes. A change of access raises the tenant's `access_version`, so that a key the door had
cached is looked at again under the lock: revocation counts with the very next message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from observatory.ledger.chain import GENESIS_HASH
from observatory.pipeline.event_writer import SYSTEM_SESSION, notice, system_trace
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Memory, Principal, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.versions import VersionEntry, VersionStatus, parse_semver

# Why an act was refused that was prepared by what was read before; the door reads and tries again.
STALE = "access_changed"


def create_tenant(who: Principal, tenant_id: str, display_name: str, now_ns: int) -> Act:
    """Submitted to the new tenant's own chain: its first event tells of its making."""

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        if memory.head.sequence_number:
            return Verdict(409, Refused(reason="conflict", detail="a tenant of this id exists already"))
        writes = tenant_rows(memory, display_name, now_ns)
        event = notice(
            tenant_id, "tenant_created", f"tenant {display_name} created", now_ns, who, {"tenant": tenant_id}
        )
        return Verdict(201, writes[0].values, [event], writes)

    return Act(who, now_ns, decide)


def tenant_rows(memory: Memory, display_name: str, created_ns: int) -> list[Write]:
    """The rows a tenant begins with: itself, its chain's head, and the session of what belongs to none."""
    tenant_id = memory.tenant.tenant_id
    head = {
        "tenant_id": tenant_id,
        "tenant_no": memory.tenant.tenant_no,
        "sequence_number": 0,
        "event_hash": GENESIS_HASH,
        "sessions": 0,
        "agents": 0,
        "access_version": 0,
        "rulebook_version": 0,
    }
    system = {
        "tenant_id": tenant_id,
        "session_no": 0,
        "session_id": SYSTEM_SESSION,
        "trace_id": system_trace(tenant_id),
        "first_seq": 1,
        "last_seq": 1,
        "started_ns": created_ns,
        "last_ns": created_ns,
        "messages": 0,
    }
    tenant = {"tenant_id": tenant_id, "display_name": display_name, "created_ns": created_ns}
    return [Write("tenants", tenant), Write("chain_heads", head), Write("sessions", system)]


def create_user(who: Principal, user: dict[str, Any], now_ns: int) -> Act:
    summary = f"user {user['user_id']} created as {user['role']}"
    return _access(
        who, now_ns, "user_created", summary, [Write("users", user)], 201, user, {"user_id": user["user_id"]}
    )


def disable_user(who: Principal, user_id: str, now_ns: int) -> Act:
    where = {"tenant_id": who.tenant_id, "user_id": user_id}
    return _access(
        who,
        now_ns,
        "user_disabled",
        f"user {user_id} disabled",
        [Write("users", {"disabled_ns": now_ns}, where)],
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
) -> Act:
    """Another role, at once. `gained` permissions are told of one by one; `doomed` keys can do more and end.

    `renamed` browsers stay signed in under another id: whatever is under way or open by the old one is no
    longer good, what they ask next is judged by the new role.
    `seen` is the access version at which the door read the tenant's users and keys; any change of access
    since then may have made another admin the last one, so the door has to look again.
    """
    user_id = user["user_id"]

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        if memory.tenant.access_version != seen:
            return Verdict(409, Refused(reason=STALE, detail="access changed meanwhile; try again"))
        memory.tenant.access_version += 1
        memory.tenant.rulebook_version += 1  # who has a bound key
        # Acts of this very batch must not pass on what they were allowed before.
        memory.gone_keys.update(doomed, renamed)
        mine = {"tenant_id": who.tenant_id}
        writes = [Write("users", {"role": role}, mine | {"user_id": user_id})]
        writes += [Write("api_keys", {"revoked_ns": now_ns}, mine | {"key_id": key}) for key in doomed]
        writes += [
            Write("logins", {"login_id": new}, mine | {"login_id": old}) for old, new in renamed.items()
        ]
        if user_id in memory.rows.get("users", {}):
            memory.rows["users"][user_id]["role"] = role
        detail = {"user_id": user_id, "from": user["role"], "to": role}
        summary = f"user {user_id} is {role}, was {user['role']}"
        events = [notice(who.tenant_id, "role_changed", summary, now_ns, who, detail)]
        events += [
            notice(
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
            told = {"key_id": key_id, "user_id": user_id, "reason": "role_changed"}
            events.append(notice(who.tenant_id, "key_revoked", f"key {key_id} revoked", now_ns, who, told))
        answer = {"user_id": user_id, "role": role, "revoked_keys": list(doomed)}
        return Verdict(200, answer, events, writes)

    return Act(who, now_ns, decide)


def create_key(who: Principal, row: dict[str, Any], now_ns: int, user_role: str | None = None) -> Act:
    """`user_role` is what the door saw of the key's user; a role changed since then is not overtaken."""
    detail = {
        "key_id": row["key_id"],
        "role": row["role"],
        "agent_id": row["agent_id"],
        "user_id": row["user_id"],
    }
    granted = detail | {"scopes": msgspec.json.decode(row["scopes"])}

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        user = memory.rows.get("users", {}).get(row["user_id"])
        if user is not None and user_role is not None and user["role"] != user_role:
            return Verdict(409, Refused(reason=STALE, detail="the user's role changed meanwhile; try again"))
        memory.tenant.access_version += 1
        if row["agent_id"] is not None:
            memory.tenant.rulebook_version += 1
            bound = memory.rulebook.bound | {agent_entity_id(who.tenant_id, row["agent_id"])}
            memory.rulebook = msgspec.structs.replace(memory.rulebook, bound=bound)
        made = f"key {row['key_id']} created for the role {row['role']}"
        given = f"key {row['key_id']} may act as {row['role']}"
        events = [
            notice(who.tenant_id, "key_created", made, now_ns, who, detail),
            notice(who.tenant_id, "permission_granted", given, now_ns, who, granted),
        ]
        return Verdict(201, None, events, [Write("api_keys", row)])

    act = Act(who, now_ns, decide)
    if user_role is not None:
        act.wants.row("users", row["user_id"])
    return act


def revoke_key(who: Principal, key_id: str, now_ns: int) -> Act:
    where = {"tenant_id": who.tenant_id, "key_id": key_id}
    return _access(
        who,
        now_ns,
        "key_revoked",
        f"key {key_id} revoked",
        [Write("api_keys", {"revoked_ns": now_ns}, where)],
        200,
        {"key_id": key_id, "revoked": True},
        {"key_id": key_id},
    )


def issue_login(who: Principal, row: dict[str, Any], now_ns: int) -> Act:
    summary = f"a one-time login link was made for {row['user_id']}"
    return _access(
        who, now_ns, "login_issued", summary, [Write("logins", row)], 201, None, {"user_id": row["user_id"]}
    )


def sign_in(who: Principal, link_id: str, cookie: dict[str, Any], now_ns: int) -> Act:
    """The link's row becomes the browser's: a second click finds no link any more."""
    where = {"tenant_id": who.tenant_id, "login_id": link_id, "kind": "link"}
    writes = [Write("logins", cookie, where)]
    return _access(
        who, now_ns, "user_signed_in", f"{who.user_id} signed in", writes, 200, None, {"user_id": who.user_id}
    )


def sign_out(who: Principal, login_id: str, user_id: str, now_ns: int) -> Act:
    """The end of a sign-in: by whom it is, or by an admin."""
    where = {"tenant_id": who.tenant_id, "login_id": login_id}
    writes = [Write("logins", {"ended_ns": now_ns}, where)]
    summary = f"{user_id} signed out" if who.user_id == user_id else f"{user_id} was signed out"
    answer, detail = {"login_id": login_id, "ended": True}, {"user_id": user_id}
    return _access(who, now_ns, "user_signed_out", summary, writes, 200, answer, detail)


def note_use(who: Principal, now_ns: int) -> Act:
    """A signed-in browser asked for something; no change of access, so no event."""
    where = {"tenant_id": who.tenant_id, "login_id": who.key_id}

    def decide(desk: Desk) -> Verdict:
        return Verdict(200, None, [], [Write("logins", {"seen_ns": desk.now_ns}, where)])

    return Act(who, now_ns, decide)


def put_versions(
    who: Principal,
    agent_type: str,
    entries: Sequence[VersionEntry],
    now_ns: int,
    was: Mapping[str, VersionStatus] | None = None,
) -> Act:
    """The whole registry of one agent type: what is not named any more is retired, never forgotten."""

    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        before = memory.rulebook.versions.get(agent_type, {})
        if was is not None and was != {entry.version: entry.status for entry in before.values()}:
            why = "somebody changed these versions meanwhile; look at them again, then save yours"
            return Verdict(409, Refused(reason="stale_versions", detail=why))
        named = {entry.version for entry in entries}
        # Another spelling of a named version (v1.0.0 for 1.0.0) follows it; it is not left out.
        meant = {parse_semver(entry.version): entry for entry in entries}
        left_out = [
            msgspec.structs.replace(meant[key], version=old.version)
            if (key := parse_semver(old.version)) in meant
            else msgspec.structs.replace(old, status="retired")
            for old in before.values()
            if old.version not in named
        ]
        memory.tenant.rulebook_version += 1
        writes = [
            Write(
                "versions",
                {
                    "tenant_id": who.tenant_id,
                    "agent_type": agent_type,
                    "version": entry.version,
                    "status": entry.status,
                    "fields": msgspec.json.encode(entry.fields).decode()
                    if entry.fields is not None
                    else None,
                    "updated_ns": now_ns,
                    "updated_by": who.entity_id,
                },
                key=("tenant_id", "agent_type", "version"),
            )
            for entry in (*entries, *left_out)
        ]
        # Acts and messages behind this one in the batch go by the new registry already.
        registry = memory.rulebook.versions | {
            agent_type: {entry.version: entry for entry in (*entries, *left_out)}
        }
        memory.rulebook = msgspec.structs.replace(memory.rulebook, versions=registry)
        memory.judged = {}
        detail = {
            "agent_type": agent_type,
            "versions": {entry.version: entry.status for entry in (*entries, *left_out)},
        }
        event = notice(
            who.tenant_id, "version_registered", f"versions of {agent_type} set", now_ns, who, detail
        )
        return Verdict(200, [*entries, *left_out], [event], writes)

    return Act(who, now_ns, decide)


def denied(who: Principal, what: str, now_ns: int) -> Act:
    """A refused attempt at a door is told of too."""
    return _access(
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


def _access(
    who: Principal,
    now_ns: int,
    event_type: str,
    summary: str,
    writes: list[Write],
    code: int,
    answer: Any,
    detail: dict[str, Any],
    changes_access: bool = True,
) -> Act:
    def decide(desk: Desk) -> Verdict:
        memory, now_ns = desk.memory, desk.now_ns
        if changes_access:
            memory.tenant.access_version += 1
        if event_type == "key_revoked":
            memory.tenant.rulebook_version += 1  # perhaps its agent has no bound key any more
        return Verdict(
            code, answer, [notice(who.tenant_id, event_type, summary, now_ns, who, detail)], writes
        )

    return Act(who, now_ns, decide)
