"""Response types of the routing settings and grants."""

from __future__ import annotations

import msgspec

from observatory.protocol.tenant_config import RoutingSettings


class RoutingSettingsAnswer(RoutingSettings, frozen=True, kw_only=True):
    """The setting in force; `updated_by` is null while it is the default."""

    updated_at: str | None = None
    updated_by: str | None = None


class GrantItem(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    capability: str
    granted_at: str
    granted_by: str


class GrantsAnswer(msgspec.Struct, kw_only=True):
    """All grants of the agent after the change."""

    agent_id: str
    entity_id: str
    granted: list[str]
