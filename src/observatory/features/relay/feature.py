"""What relay registers with the gateway."""

from __future__ import annotations

from functools import partial

from observatory.features.relay import worker as gatekeeper
from observatory.features.relay.routes import relay
from observatory.features.relay.routes_acts import acts
from observatory.features.relay.routes_agents import ROOM_ANSWERS, AgentSession, agent_rooms
from observatory.features.relay.routes_holds import holds
from observatory.features.relay.types import Commanded, HoldItem, InterventionItem
from observatory.http.answers import Page
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.protocol.events import AuditEvent
from observatory.runtime.worker_context import PeriodicTask, TenantWatch


async def start(app: AppState) -> None:
    app.due += [
        PeriodicTask(
            "gates and pauses", 1.0, partial(gatekeeper.expire_and_confirm, app, TenantWatch(app.store))
        ),
        PeriodicTask(
            "lines left standing", 30.0, partial(gatekeeper.resume_releases, app, TenantWatch(app.store))
        ),
    ]


FEATURE = Feature(
    start=start,
    routes=(
        holds,
        relay,
        agent_rooms,
        acts,
    ),
    answers=ROOM_ANSWERS
    | {
        "agent_sessions": Page[AgentSession],
        "pause": Commanded,
        "unpause": Commanded,
        "rewrite": Commanded,
        "inject": Commanded,
        "cancel": Commanded,
        "approve": Commanded,
        "edit": Commanded,
        "reject": Commanded,
        "undo": Commanded,
        "list_holds": Page[HoldItem],
        "list_interventions": Page[InterventionItem],
        "audit_acts": Page[AuditEvent],
    },
)
