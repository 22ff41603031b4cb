"""What refusals registers with the gateway."""

from __future__ import annotations

from functools import partial

from observatory.features.refusals import worker as refusals
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.runtime.worker_context import PeriodicTask, TenantWatch


async def start(app: AppState) -> None:
    app.due.append(PeriodicTask("refusals", 5.0, partial(refusals.due, app, TenantWatch(app.store))))


FEATURE = Feature(
    start=start,
)
