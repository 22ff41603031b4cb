"""What alerting registers with the gateway."""

from __future__ import annotations

from observatory.features.alerting.levels import AlertLevels
from observatory.features.alerting.routes import alert_rules_router
from observatory.features.alerting.routes_scaling import scaling_router
from observatory.features.alerting.routes_tray import AlertNotice, alerts
from observatory.features.alerting.types import ALERT_RULE_ANSWERS
from observatory.features.alerting.types_readings import LevelReading
from observatory.features.alerting.worker import AlertWorker
from observatory.features.fleet.types_traffic import SpendingReads
from observatory.features.transparency.worker import Sealer
from observatory.http.answers import Page
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.pipeline.ports import Leases
from observatory.runtime.leader import Leader


async def start(app: AppState) -> None:
    refused, readings = app.service(Sealer).refused, app.services[LevelReading]
    levels = AlertLevels(app.store, app.derived.queries(SpendingReads), refused, app.started_ns, readings)
    leader = Leader(app.service(Leases), "alerts")
    alerts = app.add(AlertWorker(app, levels, leader, believed=app.wall.believed))
    app.measured.append(alerts)
    if app.serving:
        app.workers["alerts"] = alerts.run


FEATURE = Feature(
    start=start,
    routes=(
        alerts,
        alert_rules_router,
        scaling_router,
    ),
    answers=ALERT_RULE_ANSWERS
    | {
        "list_alerts": Page[AlertNotice],
    },
)
