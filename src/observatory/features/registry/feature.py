"""What registry registers with the gateway."""

from __future__ import annotations

from observatory.features.registry.routes import registry
from observatory.features.registry.routes_grants import grants_router
from observatory.features.registry.routes_routing import routing
from observatory.features.registry.types_answers import (
    AgentItem,
    BreakerItem,
    CapabilityItem,
    EdgeItem,
    Evicted,
    HeartbeatAnswer,
    LeaveAnswer,
    RouteItem,
    VersionItem,
)
from observatory.features.registry.types_grants import GrantItem, GrantsAnswer, RoutingSettingsAnswer
from observatory.features.registry.worker import Reaper
from observatory.http.answers import Page
from observatory.http.app_state import AppState
from observatory.http.feature import Feature


async def start(app: AppState) -> None:
    reaper = Reaper(app, app.due, app.wall.believed)
    app.workers["clock"] = reaper.run
    app.measured.append(reaper)


FEATURE = Feature(
    start=start,
    routes=(
        registry,
        routing,
        grants_router,
    ),
    answers={
        "list_agents": Page[AgentItem],
        "get_agent": AgentItem,
        "register_agent": AgentItem,
        "evict_agent": Evicted,
        "heartbeat": HeartbeatAnswer,
        "list_capabilities": Page[CapabilityItem],
        "list_routes": Page[RouteItem],
        "put_route": RouteItem,
        "list_breakers": Page[BreakerItem],
        "set_breaker": BreakerItem,
        "list_edges": Page[EdgeItem],
        "leave_session": LeaveAnswer,
        "get_routing_settings": RoutingSettingsAnswer,
        "put_routing_settings": RoutingSettingsAnswer,
        "list_grants": Page[GrantItem],
        "change_grants": GrantsAnswer,
        "list_versions": Page[VersionItem],
        "put_versions": Page[VersionItem],
    },
)
