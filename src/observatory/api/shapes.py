"""What each reading route answers, as structs: the source of the OpenAPI document's response bodies."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

import msgspec

from observatory.api.verification import VerifyAnswer
from observatory.protocol.events import AuditEvent

Item = TypeVar("Item")


class Page(msgspec.Struct, Generic[Item], kw_only=True):
    """Every list: `next_cursor` is null when there is nothing more."""

    items: list[Item]
    next_cursor: str | None


class MessageItem(msgspec.Struct, kw_only=True):
    message_id: str
    session_id: str
    step_id: str
    sequence_number: int
    message_type: str
    state: Literal["forwarded", "held", "refused"]
    parents: list[str]
    parent_inferred: bool
    message: dict[str, Any] | None


class AgentItem(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    entity_type: Literal["agent"]
    tenant_id: str
    display_name: str
    agent_type: str | None
    capability_version: str | None
    cluster_id: str | None
    model: str | None
    provider: str | None
    hub_address: str | None
    capabilities: list[str]
    trust_level: Literal["tenant_verified", "federation_verified", "unverified"]
    state: Literal["idle", "active", "alert_entropy", "schema_violation", "dead", "blocked"]
    colour: str
    ghost: bool
    messages: int
    first_seen_at: str
    last_seen_at: str | None


class SessionItem(msgspec.Struct, kw_only=True):
    session_id: str
    trace_id: str
    messages: int
    first_sequence_number: int
    last_sequence_number: int
    started_at: str
    last_at: str


class SessionMember(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    messages: int
    last_step: str | None
    cost: float
    tokens: int


class SessionAnswer(SessionItem, kw_only=True):
    cost: float
    tokens: int
    agents: list[SessionMember]


class VersionItem(msgspec.Struct, kw_only=True):
    agent_type: str
    version: str
    status: Literal["current", "previous", "retired", "unknown"]
    fields: list[str] | None
    updated_at: str | None = None
    updated_by: str | None = None


class TenantItem(msgspec.Struct, kw_only=True):
    tenant_id: str
    display_name: str
    created_at: str
    disabled_at: str | None


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


class Whoami(msgspec.Struct, kw_only=True):
    tenant_id: str
    role: str
    user_id: str | None
    agent_id: str | None
    permissions: list[str]


class Health(msgspec.Struct, kw_only=True):
    status: str
    detail: str | None = None
    database: str | None = None
    waiting: int | None = None


ANSWERS: dict[str, Any] = {
    "list_messages": Page[MessageItem],
    "get_message": MessageItem,
    "audit_trace": Page[AuditEvent],
    "audit_tenant": Page[AuditEvent],
    "audit_entity": Page[AuditEvent],
    "audit_verify": VerifyAnswer,
    "list_agents": Page[AgentItem],
    "get_agent": AgentItem,
    "list_sessions": Page[SessionItem],
    "get_session": SessionAnswer,
    "list_versions": Page[VersionItem],
    "put_versions": Page[VersionItem],
    "list_tenants": Page[TenantItem],
    "create_tenant": NewTenantAnswer,
    "list_users": Page[UserItem],
    "create_user": UserItem,
    "disable_user": Disabled,
    "list_keys": Page[KeyItem],
    "create_key": KeyItem,
    "revoke_key": Revoked,
    "create_login": LoginAnswer,
    "whoami": Whoami,
    "healthz": Health,
    "readyz": Health,
}
