"""Administration endpoints: tenants, users and keys. Every command is audited in its tenant's chain.

Secrets are created here and shown once; only hashes are stored. The home tenant's admin creates tenants;
every other admin sees and changes only their own.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.access import commands as access
from observatory.features.access.routes_keys import (
    Name,
    checked,
    end_within,
    existing_user,
    make_key,
    make_user,
    scopes_within,
)
from observatory.features.access.routes_sign_ins import make_login, may_sign_in
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.authentication import PERMISSIONS, Permission, allows
from observatory.http.permissions import principal_of, require_permission
from observatory.pipeline.state import HOME_TENANT, Command, Principal, Role
from observatory.protocol import clock
from observatory.protocol.identity import mint
from observatory.protocol.rules import Timestamp

PEOPLE = "a person is viewer, auditor, approver, operator or admin"
# How often a change is prepared and tried again when access changed meanwhile.
ATTEMPTS = 5
TenantId = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^tnt_[A-Za-z0-9_-]{1,64}$(?!\n)",
        extra={"expects": "tnt_ and then 1 to 64 characters of A-Z a-z 0-9 _ -"},
    ),
]


class NewTenant(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    display_name: Name
    tenant_id: TenantId | None = None


class NewUser(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: Name
    role: Role
    display_name: Name | None = None


class NewRole(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`was`: the role you have seen; if it changed since, 409 and nothing is changed."""

    role: Role
    was: Role | None = None


class NewKey(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """For a user (its role), or for agents (role `agent`, optionally bound to one agent)."""

    role: Role
    label: Name = "key"
    user_id: Name | None = None
    agent_id: Name | None = None
    # Left out: everything its role may do. An empty list would look like nothing and mean everything:
    # refused.
    scopes: Annotated[list[Permission], msgspec.Meta(min_length=1)] | None = None
    expires_at: Timestamp | None = None


@get("/tenants", summary="Tenants you may see, and the one you are in", operation_id="list_tenants")
async def list_tenants(request: Call, app: Here) -> Response[bytes]:
    """A user belongs to one tenant; to work in another, sign in there (S312)."""
    principal = await require_permission(request, app, "read")
    if principal.tenant_id == HOME_TENANT and allows(principal, "admin"):
        rows = await app.store.tenant_rows()
    else:
        rows = await app.store.rows(principal.tenant_id, "tenants")
    mine = principal.tenant_id
    items = [
        _shown(row) | {"current": row["tenant_id"] == mine, "may_enter": row["tenant_id"] == mine}
        for row in rows
    ]
    return json({"items": items, "next_cursor": None})


@post("/tenants", summary="Create a tenant with its first admin", operation_id="create_tenant")
async def create_tenant(request: Call, app: Here, data: JSONBody[NewTenant]) -> Response[bytes]:
    """The answer holds the new tenant's admin key, shown this once."""
    principal = await require_permission(request, app, "admin")
    if principal.tenant_id != HOME_TENANT:
        raise Refusal(403, "not_allowed", "only an admin of the home tenant can create tenants")
    now_ns = app.clock()
    tenant_id = data.tenant_id or mint("tnt_", now_ns)
    checked(await app.act(access.create_tenant(principal, tenant_id, data.display_name, now_ns), tenant_id))
    founder = app.gateway_principal(tenant_id)
    user = await make_user(app, founder, "admin", "Administrator", "admin")
    key, row = await make_key(
        app,
        founder,
        role="admin",
        label="first admin key",
        user_id=user["user_id"],
        scopes=scopes_within(principal, "admin", []),
        expires_ns=await end_within(app, principal, None),
    )
    return json(
        {"tenant_id": tenant_id, "user_id": user["user_id"], "key_id": row["key_id"], "key": key}, 201
    )


@get("/users", summary="Users of the tenant", operation_id="list_users")
async def list_users(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    rows = await app.store.rows(principal.tenant_id, "users")
    return json({"items": [_shown(row) for row in rows], "next_cursor": None})


@get("/people", summary="Names of the tenant's users", operation_id="list_people")
async def list_people(request: Call, app: Here) -> Response[bytes]:
    """Readers of the record need the names of the users who acted; roles, keys and sign-ins need an admin."""
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, "users")
    people = [{"user_id": row["user_id"], "name": row["display_name"] or row["name"]} for row in rows]
    return json({"items": people, "next_cursor": None})


@post("/users", summary="Create a user and a one-time invitation link", operation_id="create_user")
async def create_user(request: Call, app: Here, data: JSONBody[NewUser]) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    if data.role == "agent":
        raise Refusal(422, "bad_role", PEOPLE)
    if await app.store.rows(principal.tenant_id, "users", name=data.name):
        raise Refusal(409, "conflict", "a user of this name already exists")
    user = await make_user(app, principal, data.name, data.display_name or data.name, data.role)
    link = await make_login(app, principal, user["user_id"]) if may_sign_in(principal, data.role) else None
    return json(_shown(user) | {"invite_url": link}, 201)


@put("/users/{user_id:str}", summary="Change a user's role at once", operation_id="change_role")
async def change_role(
    request: Call, app: Here, user_id: FromPath[str], data: JSONBody[NewRole]
) -> Response[bytes]:
    """Open browsers get the new role with their next request; keys that exceed the new role end."""
    principal = await require_permission(request, app, "admin")
    if data.role == "agent":
        raise Refusal(422, "bad_role", PEOPLE)
    for _ in range(ATTEMPTS):
        # The version first: any change after it was read makes the command stale.
        seen = (await app.store.rows(principal.tenant_id, "chain_heads"))[0]["access_version"]
        user = await existing_user(app, principal, user_id)
        if data.was not in (None, user["role"]):
            raise Refusal(
                409, "stale_role", f"the role was changed to {user['role']} meanwhile; reload and try again"
            )
        if user["role"] == data.role:
            return json({"user_id": user_id, "role": data.role, "revoked_keys": []})
        admins = await app.store.rows(principal.tenant_id, "users", role="admin", disabled_ns=None)
        if [admin["user_id"] for admin in admins] == [user_id]:
            raise Refusal(409, "last_admin", "this is the tenant's last admin; make another user admin first")
        verdict = await app.act(await _role_change(app, principal, user, data.role, seen))
        if verdict.code == 200 or verdict.answer.reason != access.STALE:
            break
    return json(checked(verdict).answer)


@post(
    "/users/{user_id:str}/disable",
    summary="Disable a user and all their keys",
    status_code=200,
    operation_id="disable_user",
)
async def disable_user(request: Call, app: Here, user_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    await existing_user(app, principal, user_id)
    if user_id == principal.user_id:
        raise Refusal(409, "conflict", "you cannot disable yourself")
    verdict = checked(await app.act(access.disable_user(principal, user_id, app.clock())))
    return json(verdict.answer)


@get("/keys", summary="Keys of the tenant, without their secrets", operation_id="list_keys")
async def list_keys(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    rows = await app.store.rows(principal.tenant_id, "api_keys")
    return json({"items": [_shown_key(row) for row in rows], "next_cursor": None})


@post("/keys", summary="Create a key; its secret is shown this once", operation_id="create_key")
async def create_key(request: Call, app: Here, data: JSONBody[NewKey]) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    if data.agent_id is not None and data.role != "agent":
        raise Refusal(422, "bad_key", "only a key of the role agent can be bound to an agent")
    if data.role == "agent" and data.user_id is not None:
        raise Refusal(422, "bad_key", "an agent's key belongs to no user")
    user_id, user_role = data.user_id, None
    if data.role != "agent":
        user_id = user_id or principal.user_id
        user = await existing_user(app, principal, user_id or "")
        if not PERMISSIONS[data.role] <= PERMISSIONS[user["role"]]:
            raise Refusal(422, "bad_key", "a key cannot do more than its user")
        user_role = user["role"]
    key, row = await make_key(
        app,
        principal,
        role=data.role,
        label=data.label,
        user_id=user_id,
        agent_id=data.agent_id,
        scopes=scopes_within(principal, data.role, data.scopes or []),
        expires_ns=await end_within(app, principal, data.expires_at),
        user_role=user_role,
    )
    return json(_shown_key(row) | {"key": key}, 201)


@delete("/keys/{key_id:str}", summary="Revoke a key at once", status_code=200, operation_id="revoke_key")
async def revoke_key(request: Call, app: Here, key_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    if not await app.store.rows(principal.tenant_id, "api_keys", key_id=key_id):
        raise Refusal(404, "not_found", "no key of this tenant has that id")
    verdict = checked(await app.act(access.revoke_key(principal, key_id, app.clock())))
    return json(verdict.answer)


@get("/whoami", summary="The principal of this key or cookie", operation_id="whoami")
async def whoami(request: Call, app: Here) -> Response[bytes]:
    principal = await principal_of(request, app)
    tenant_id, user_id = principal.tenant_id, principal.user_id
    tenants = await app.store.rows(tenant_id, "tenants")
    users = [] if user_id is None else await app.store.rows(tenant_id, "users", user_id=user_id)
    user: dict[str, Any] = users[0] if users else {"name": None, "display_name": None}
    return json(
        {
            "tenant_id": tenant_id,
            "tenant_name": tenants[0]["display_name"] if tenants else tenant_id,
            "role": principal.role,
            "user_id": user_id,
            "user_name": user["name"],
            "display_name": user["display_name"],
            "agent_id": principal.agent_id,
            "permissions": sorted(one for one in PERMISSIONS[principal.role] if allows(principal, one)),
        }
    )


async def _role_change(app: AppState, who: Principal, user: dict[str, Any], role: Role, seen: int) -> Command:
    may, might = PERMISSIONS[role], PERMISSIONS[user["role"]]
    mine = {"user_id": user["user_id"]}
    keys = await app.store.rows(who.tenant_id, "api_keys", revoked_ns=None, **mine)
    doomed = [key["key_id"] for key in keys if not PERMISSIONS[key["role"]] <= may]
    browsers = await app.store.rows(who.tenant_id, "logins", kind="cookie", ended_ns=None, **mine)
    now_ns = app.clock()
    renamed = {} if might <= may else {row["login_id"]: mint("log_", now_ns) for row in browsers}
    return access.change_role(who, user, role, sorted(may - might), doomed, renamed, seen, now_ns)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """The row as returned: times as text, never a hash."""
    item = {name: value for name, value in row.items() if not name.endswith(("_ns", "_hash"))}
    for name, value in row.items():
        if name.endswith("_ns"):
            item[name.removesuffix("_ns") + "_at"] = None if value is None else clock.from_ns(value)
    return item


def _shown_key(row: dict[str, Any]) -> dict[str, Any]:
    return _shown(row) | {"scopes": msgspec.json.decode(row["scopes"])}


god_mode = Router(
    path="/v1",
    route_handlers=[
        list_tenants,
        create_tenant,
        list_users,
        list_people,
        create_user,
        change_role,
        disable_user,
        list_keys,
        create_key,
        revoke_key,
        whoami,
    ],
    tags=["God Mode"],
)
