"""Response structs of the endpoints for tenants, users, keys and sign-ins."""

from __future__ import annotations

from typing import Literal

import msgspec


class TenantItem(msgspec.Struct, kw_only=True):
    tenant_id: str
    display_name: str
    created_at: str
    disabled_at: str | None
    current: bool
    may_enter: bool


class NewTenantAnswer(msgspec.Struct, kw_only=True):
    tenant_id: str
    user_id: str
    key_id: str
    key: str


class UserItem(msgspec.Struct, kw_only=True):
    tenant_id: str
    user_id: str
    name: str
    display_name: str
    role: str
    created_at: str
    disabled_at: str | None = None
    invite_url: str | None = None


class PersonItem(msgspec.Struct, kw_only=True):
    user_id: str
    name: str


class KeyItem(msgspec.Struct, kw_only=True):
    tenant_id: str
    key_id: str
    public_id: str
    role: str
    scopes: list[str]
    user_id: str | None
    agent_id: str | None
    label: str
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None = None
    key: str | None = None


class Disabled(msgspec.Struct, kw_only=True):
    user_id: str
    disabled: bool


class Revoked(msgspec.Struct, kw_only=True):
    key_id: str
    revoked: bool


class LoginAnswer(msgspec.Struct, kw_only=True):
    url: str
    user_id: str


class LoginItem(msgspec.Struct, kw_only=True):
    """`browser`: signed in; `link`: not used yet."""

    login_id: str
    user_id: str
    kind: Literal["browser", "link"]
    key_id: str | None
    created_at: str
    expires_at: str
    last_used_at: str | None
    current: bool


class EndedLogin(msgspec.Struct, kw_only=True):
    login_id: str
    ended: bool


class Whoami(msgspec.Struct, kw_only=True):
    tenant_id: str
    tenant_name: str
    role: str
    user_id: str | None
    user_name: str | None
    display_name: str | None
    agent_id: str | None
    permissions: list[str]


class RoleAnswer(msgspec.Struct, kw_only=True):
    user_id: str
    role: str
    revoked_keys: list[str]
