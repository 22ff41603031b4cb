"""What the routes of grants answer."""

from __future__ import annotations

import msgspec

from observatory.protocol.rulebook import RoutingSettings


class RoutingSettingsAnswer(RoutingSettings, frozen=True, kw_only=True):
    """The setting in force; who set it is null while it is the default."""

    updated_at: str | None = None
    updated_by: str | None = None


class GrantItem(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    capability: str
    granted_at: str
    granted_by: str


class GrantsAnswer(msgspec.Struct, kw_only=True):
    """All that the agent was given, after this."""

    agent_id: str
    entity_id: str
    granted: list[str]
