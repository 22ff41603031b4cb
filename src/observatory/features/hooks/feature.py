"""What hooks registers with the gateway."""

from __future__ import annotations

from observatory.features.hooks.routes import hooks_router
from observatory.features.hooks.routes_calls import hook_call_router
from observatory.features.hooks.types import HOOK_ANSWERS, HOOK_OPERATIONS
from observatory.features.hooks.types_rows import HookRows
from observatory.features.hooks.worker import HookReceiver
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.runtime.worker_context import PeriodicTask


async def start(app: AppState) -> None:
    assert isinstance(app.store, HookRows)
    hooks = app.add(HookReceiver(app, app.store))
    app.measured.append(hooks)
    app.draining.append(hooks)
    app.due.append(PeriodicTask("webhooks in", 5.0, hooks.due))


FEATURE = Feature(
    hook_operations=HOOK_OPERATIONS,
    start=start,
    routes=(
        hooks_router,
        hook_call_router,
    ),
    answers=HOOK_ANSWERS,
)
