"""What schedule registers with the gateway."""

from __future__ import annotations

from observatory.features.schedule.commands_firing import LEASE
from observatory.features.schedule.routes import jobs_router
from observatory.features.schedule.routes_dead_letters import dead_letters_router
from observatory.features.schedule.routes_leader import scheduler_router
from observatory.features.schedule.types import SCHEDULE_ANSWERS
from observatory.features.schedule.types_rows import Schedule
from observatory.features.schedule.worker import Scheduler
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.pipeline.ports import Leases
from observatory.runtime.leader import Leader


async def start(app: AppState) -> None:
    store = app.store
    assert isinstance(store, Leases)
    assert isinstance(store, Schedule)
    app.services |= {Leases: store, Schedule: store}
    scheduler = app.add(Scheduler(app, store, Leader(store, LEASE), app.wall))
    app.measured.append(scheduler)
    if app.serving:
        app.workers |= {"scheduler": scheduler.run, "scheduler lease": scheduler.leader.keep}


FEATURE = Feature(
    start=start,
    routes=(
        jobs_router,
        scheduler_router,
        dead_letters_router,
    ),
    answers=SCHEDULE_ANSWERS,
)
