"""What redaction registers with the gateway."""

from __future__ import annotations

from observatory.features.redaction.routes import REDACTION_ANSWERS, redaction_router
from observatory.features.redaction.worker import EVERY_S, RetentionWorker
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.runtime.worker_context import PeriodicTask, TenantWatch


async def start(app: AppState) -> None:
    app.due.append(PeriodicTask("retention", EVERY_S, RetentionWorker(app, TenantWatch(app.store)).due))


FEATURE = Feature(start=start, routes=(redaction_router,), answers=REDACTION_ANSWERS)
