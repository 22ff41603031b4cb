"""Reads the part of a tenant's configuration that routing uses."""

from __future__ import annotations

from observatory.features.registry import commands_grants as grants
from observatory.http.app_state import AppState
from observatory.pipeline.state import TenantConfig


async def read_routing_config(app: AppState, tenant_id: str) -> TenantConfig:
    """The part of the tenant's configuration that decides who gets work."""
    settings = await app.store.rows(tenant_id, "knobs", name=grants.NAME)
    return grants.routing_config_from_rows(
        settings, await app.store.rows(tenant_id, "grants", removed_ns=None)
    )
